/*
 * A client's connection to a daemon, and what is under way on it.
 *
 * Every request bears a tag. Every reply must be one of the protocol (docs/protocol.txt), bear the
 * tag of a request that was not answered yet, and answer it once; a push is only for those who
 * hold.
 */
#ifndef TESTS_TORTURE_WIRE_H
#define TESTS_TORTURE_WIRE_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/client.h"
#include "tests/torture/ledger.h"

#define VERBS(X)                                                                                   \
    X(LOCK, "OK [0-9a-f]{40} [0-9]+ [0-9]+ (-|[0-9]+)|HELD (-1|[0-9]+)|LATE [0-9]+|" NO_QUORUM)    \
    X(UNLOCK, "OK|GONE|" NO_QUORUM)                                                                \
    X(EXTEND, "OK [0-9a-f]{40} [0-9]+ [0-9]+|GONE|LATE [0-9]+|" NO_QUORUM)                         \
    X(STATUS, "HELD (-1|[0-9]+)|FREE|" NO_QUORUM)                                                  \
    X(STATS, "subject=[a-z]+( [a-z_]+=[^ ]+)*|END")                                                \
    X(PING, "PONG")                                                                                \
    X(QUIT, "BYE")                                                                                 \
    /* Not asked for. */                                                                           \
    X(LOST, "LOST r[0-9] [0-9a-f]{40} (noquorum|late|gone|limit|overdue|shutdown)")                \
    X(WARN, "WARN r[0-9] [0-9a-f]{40} [a-e]:[a-z]+")

#define NO_QUORUM "NOQUORUM [0-5]/5 need=3( [a-e]:[a-z]+)*|LIMIT [a-z_]+|SHUTDOWN"

enum verb {
#define VERB_ENUM(name, pattern) VERB_##name,
    VERBS(VERB_ENUM)
#undef VERB_ENUM
        VERB_COUNT
};

enum { WIRE_REQUESTS = 16 };

struct grammar {
    regex_t replies[VERB_COUNT];
};

void grammar_init(struct grammar *grammar);
void grammar_free(struct grammar *grammar);

struct request {
    enum verb verb;
    unsigned tag;
    unsigned lock; /* the player's number for the lock that it is about */
    int64_t sent_ns;
};

struct wire {
    struct ledger *ledger;
    const struct grammar *grammar;
    unsigned player;
    char name; /* of the wire, among those of its player */

    struct client client;
    bool open;
    bool over_tcp;
    bool ending; /* no LOCK can be granted any more: it was shut down, or QUIT said */
    bool holds;  /* a LOCK with HOLD was sent */
    unsigned daemon;
    unsigned next_tag;
    struct request requests[WIRE_REQUESTS];
    unsigned request_count;
};

/* A reply or a push. */
struct answer {
    struct request request; /* of a push, only the verb */
    const char *text;       /* without its tag; lives until the next call */
};

/* The connection was made by the caller, in wire->client. */
void wire_opened(struct wire *wire, unsigned daemon, bool over_tcp);
void wire_close(struct wire *wire);
/* By TCP, the daemon sees a reset. */
void wire_reset(struct wire *wire);

/* Has it ended, with nothing left to read? */
bool wire_ended(struct wire *wire);

/* Send a request, the tag aside. */
void wire_ask(struct wire *wire, enum verb verb, unsigned lock, const char *form, ...)
    __attribute__((format(printf, 4, 5)));

/* The next answer, if one is there. */
bool wire_read(struct wire *wire, struct answer *answer);

const char *verb_name(enum verb verb);

#endif
