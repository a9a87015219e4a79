/*
 * A client's connection to a daemon, and the requests in flight on it.
 *
 * Every request has a tag. Every reply must be valid (docs/protocol.txt) and have the tag of a
 * request that has no reply yet. Only a connection with a HOLD may receive a push.
 */
#ifndef TESTS_TORTURE_WIRE_H
#define TESTS_TORTURE_WIRE_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/client.h"
#include "tests/torture/ledger.h"

#define WIRE_VERBS(X)                                                                              \
    X(LOCK, "OK [0-9a-f]{40} [0-9]+ [0-9]+ (-|[0-9]+)( r#[1-5])?|HELD (-1|[0-9]+)|LATE "           \
            "[0-9]+|" NO_QUORUM)                                                                   \
    X(UNLOCK, "OK|GONE|" NO_QUORUM)                                                                \
    X(EXTEND, "OK [0-9a-f]{40} [0-9]+ [0-9]+|GONE|LATE [0-9]+|" NO_QUORUM)                         \
    X(STATUS, "HELD (-1|[0-9]+)|FREE|" NO_QUORUM)                                                  \
    X(STATS, "subject=[a-z]+( [a-z_]+=[^ ]+)*|END")                                                \
    X(PING, "PONG")                                                                                \
    X(QUIT, "BYE")                                                                                 \
    /* Pushes. */                                                                                  \
    X(LOST, "LOST r#[0-9] [0-9a-f]{40} (noquorum|late|gone|limit|overdue|shutdown)")               \
    X(WARN, "WARN r#[0-9] [0-9a-f]{40} [a-e]:[a-z]+")

#define NO_QUORUM "NOQUORUM [0-5]/5 need=3( [a-e]:[a-z]+)*|LIMIT [a-z_]+|SHUTDOWN"

enum wire_verb {
#define VERB_ENUM(name, pattern) WIRE_##name,
    WIRE_VERBS(VERB_ENUM)
#undef VERB_ENUM
        WIRE_COUNT
};

enum { WIRE_REQUESTS = 16 };

struct grammar {
    regex_t replies[WIRE_COUNT];
};

void grammar_init(struct grammar *grammar);
void grammar_free(struct grammar *grammar);

struct wire_request {
    enum wire_verb verb;
    unsigned tag;
    unsigned lock; /* the player's number for its lock */
    int64_t sent_ns;
};

struct wire {
    struct ledger *ledger;
    const struct grammar *grammar;
    unsigned player;
    char name; /* distinguishes the wires of a player */

    struct client client;
    bool open;
    bool over_tcp;
    bool ending; /* after QUIT or a shutdown of the connection: no LOCK can be granted any more */
    bool holds;  /* a HOLD was requested, so pushes are valid */
    unsigned daemon;
    unsigned next_tag;
    struct wire_request requests[WIRE_REQUESTS];
    unsigned request_count;
};

/* A reply or a push. */
struct wire_answer {
    struct wire_request request; /* for a push, only the verb is set */
    const char *text;            /* without the tag; valid until the next call */
};

/* Take over the connection that the caller has made in wire->client. */
void wire_opened(struct wire *wire, unsigned daemon, bool over_tcp);
void wire_close(struct wire *wire);
/* Close the connection. Over TCP the daemon sees a reset. */
void wire_reset(struct wire *wire);

/* Has the connection ended, with nothing left to read? */
bool wire_ended(struct wire *wire);

/* Send a request. The function adds the tag. */
void wire_ask(struct wire *wire, enum wire_verb verb, unsigned lock, const char *form, ...)
    __attribute__((format(printf, 4, 5)));

/* Read the next reply or push, if one has arrived. */
bool wire_read(struct wire *wire, struct wire_answer *answer);

const char *wire_verb_word(enum wire_verb verb);

#endif
