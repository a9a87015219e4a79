/*
 * The link to one Redis master: the state of the connection, whether a command may be written to
 * it, and which command the next reply belongs to. Pure: it opens, closes and writes through struct
 * link_io, and time is an argument.
 *
 *             open            connected            greeted
 *     DOWN ---------> OPENING ---------> GREETING ---------> UP <------> SUSPECT
 *      ^                 |                  |                 |              |
 *      +-----------------+------------------+-----------------+--------------+
 *                     closed, or no answer for link_silence_timeout_ns
 *
 * One connection carries the commands of all rounds, and Redis answers in order: a ring of
 * outstanding commands gives the owner of the next answer. When the connection is lost, every
 * outstanding command comes back once.
 *
 * The link does not know what a heartbeat contains. It only says when one is due, and the guard
 * (engine/master/guard_io.c) writes it.
 *
 * A master that leaves a command of a round or a heartbeat unanswered for node_timeout is SUSPECT.
 * It still gets heartbeats and releases, but no votes are asked of it until it answers in time
 * again. Because answers come in order, the link only has to look at the oldest command.
 *
 * When the daemon gives up a connection it resets it, without an orderly close. The next connection
 * first kills its predecessor by CLIENT KILL ID: a SET still buffered there must not run after the
 * release that is sent on the new connection.
 */
#ifndef ENGINE_MASTER_LINK_H
#define ENGINE_MASTER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/histogram.h"
#include "engine/master/pending_releases.h"
#include "protocol/limits.h"
#include "protocol/reason.h"
#include "protocol/redis.h"

enum link_state { LINK_DOWN, LINK_OPENING, LINK_GREETING, LINK_UP, LINK_SUSPECT };

const char *link_state_word(enum link_state state);

/* The operations on a connection to a master. None of them calls back. */
struct link_io {
    void *context;
    void (*open)(void *context, unsigned node);
    /* Reset the connection; no further event of it may arrive. */
    void (*close)(void *context, unsigned node);
    void (*write)(void *context, unsigned node, const char *bytes, size_t len);
    uint32_t (*random)(void *context);
};

/* Credentials; NULL where none are needed. */
struct link_login {
    const char *username;
    const char *password;
    unsigned database;
};

enum { LINK_PASSWORD_MAX = 1024, LINK_RUN_ID = 40, LINK_ERROR_TEXT_MAX = 127 };

/* LINK_COMMAND_MAX has room for the longest command made of words: a record write in full, or a
 * heartbeat with all names. */
enum { LINK_COMMAND_MAX = 8192, LINK_WORDS_MAX = 2 * LIMIT_NODES + 16 };

/* The purpose of an outstanding command. The guard uses OUTSTANDING_HEARTBEAT for the last
 * answer of a heartbeat. */
enum __attribute__((packed)) outstanding_kind {
    OUTSTANDING_GREETING,
    OUTSTANDING_PENDING_RELEASE,
    OUTSTANDING_ROUND,
    OUTSTANDING_RELEASES, /* several releases as one command */
    OUTSTANDING_GUARD,
    OUTSTANDING_HEARTBEAT,
    OUTSTANDING_KEY_PROBE, /* key probe, for waiters */
    OUTSTANDING_FAR,       /* reads the contention hint of a far waiter */
    OUTSTANDING_TRACKING,  /* a setting for engine/master/tracker.h */
    OUTSTANDING_SELF_TEST, /* engine/flight/self_test.h */
};

/*
 * A command that was written and has no answer yet. Unfenced votes that are asked for one after the
 * other share one outstanding command as a batch. Each of them has its own answer, and each owner
 * begins with a pointer to the next owner.
 */
struct outstanding {
    enum outstanding_kind kind;
    /*
     * OUTSTANDING_ROUND: the command and its form as written; OUTSTANDING_GREETING: the step;
     * guard: the part of its question; OUTSTANDING_SELF_TEST: the number of the test;
     * OUTSTANDING_RELEASES: how many, and the form.
     */
    uint8_t command;
    uint8_t form;
    bool unfenced;  /* OUTSTANDING_ROUND: a vote for which a plain OK means YES */
    uint32_t epoch; /* OUTSTANDING_ROUND: the node's epoch when the vote was asked for */
    union {
        /* OUTSTANDING_ROUND, OUTSTANDING_KEY_PROBE: the key is tracked from then on if the
         * tracker still has this number; 0: it is not tracked. */
        uint32_t tracking;
        uint32_t number; /* unfenced: serial number among the votes asked of all nodes */
    };
    uint32_t more;   /* unfenced: votes of this batch after this one */
    int64_t sent_ns; /* of a batch: when the first was sent */
    union {
        /* OUTSTANDING_ROUND, OUTSTANDING_RELEASES, OUTSTANDING_KEY_PROBE, OUTSTANDING_FAR: an
         * object of the engine. */
        void *owner;
        uint64_t position; /* OUTSTANDING_PENDING_RELEASE */
    };
};

struct link {
    const struct link_io *io;
    struct link_login login;
    unsigned node; /* index of the node, for the io */
    int64_t node_timeout_ns;
    int64_t heartbeat_every_ns;
    int64_t max_ttl_ms;

    enum link_state state;
    enum reason reason; /* why it is not UP; REASON_NONE when it is */
    int64_t since_ns;   /* when it last came up, became suspect, or went down */
    int64_t opened_ns;  /* OPENING, GREETING: when that began */
    int64_t retry_ns;   /* DOWN: when to open again */
    unsigned attempts;  /* connection attempts since it was last UP */

    /* A ring of outstanding commands: the next answer belongs to outstanding[first]. */
    struct outstanding *outstanding; /* LIMIT_LINK_COMMANDS entries */
    unsigned first;
    unsigned outstanding_count;
    unsigned load; /* outstanding commands, with each release and vote of a batch counted */
    struct outstanding single; /* copy of the last vote taken from a batch */

    unsigned greetings_due; /* answers that this part of the greeting still waits for */
    int64_t heartbeat_ns;   /* when the last heartbeat was sent */
    bool heartbeat_due;     /* the last heartbeat has not been answered */
    int64_t round_trip_ns;  /* of the last heartbeat; -1: none so far */
    /* Smoothed round trip: shorter ones count at once, longer ones by an eighth. */
    int64_t distance_ns;
    struct histogram round_trips; /* of commands of rounds, and of heartbeats */

    struct pending_releases pending_releases;
    unsigned releases_under_way;
    bool release_refused; /* after an error reply to a release: wait for the next heartbeat */

    /* The present connection, and the last one that was UP. A client id is meaningful only
     * together with the run of the server that assigned it; 0: not known. */
    char run_id[LINK_RUN_ID];
    int64_t uptime_s; /* uptime of that run when the daemon asked; -1: the server did not say */
    int64_t client_id;
    char last_run_id[LINK_RUN_ID];
    int64_t last_client_id;

    enum redis_form release_form; /* form of single releases on this connection */
    enum reason error_reason; /* reason of the text in `error_text`; REASON_NONE: there is none */
    char error_text[LINK_ERROR_TEXT_MAX + 1];
};

struct link_rules {
    int64_t node_timeout_ns;
    int64_t heartbeat_every_ns;
    int64_t max_ttl_ms; /* for release.lua */
};

/* outstanding: LIMIT_LINK_COMMANDS entries; pending_releases: LIMIT_LINK_PENDING_RELEASES entries.
 * The caller owns both. */
void link_init(struct link *link, unsigned node, const struct link_io *io,
               const struct link_login *login, const struct link_rules *rules,
               struct outstanding *outstanding, struct pending_release *pending_releases,
               int64_t now_ns);

/* How long a connection may stay without any answer before the daemon gives it up. */
int64_t link_silence_timeout_ns(const struct link *link);

/* Does this state accept commands: UP or SUSPECT? */
bool link_is_connected(enum link_state state);

/* Why no command may be written now; REASON_NONE if it may. */
enum reason link_refuses_vote(const struct link *link);
enum reason link_refuses_release(const struct link *link);

/* Write a command of a round, a key probe or a command of the guard. Commands of rounds and key
 * probes come back from link_on_reply(), link_take_votes() or link_take_lost(). */
void link_send(struct link *link, const char *bytes, size_t len,
               const struct outstanding *outstanding);

/* As link_send(), for a command made of words; the last word is NULL. */
void link_send_words(struct link *link, const struct outstanding *outstanding,
                     const char *const *words);

/* Write that command as Redis protocol; returns its length. */
size_t link_format(const char *const *words, char buf[LINK_COMMAND_MAX]);

/* Bytes that the caller writes to the node itself contain one more command. */
void link_expect(struct link *link, const struct outstanding *outstanding);

/*
 * As link_expect(), for an unfenced vote. Returns true if the vote joins a batch; the caller then
 * links it from the owner of the previous vote. Only votes with consecutive numbers join, so the
 * next of an owner is the same on every link. replies_keep_unfenced_yes() says what batches save.
 */
bool link_expect_vote(struct link *link, const struct outstanding *outstanding);

/* The reason for an error that is not an answer to a round. Remembers the error's text where it
 * says more than the reason: an unknown error, or which command an ACL refuses. */
enum reason link_reason_of(struct link *link, const struct redis_reply *error);
/* The text that the master sent for this reason, or a description of the reason. */
const char *link_meaning(const struct link *link, enum reason reason);

/* Returns true if a heartbeat may be written now, because none is under way. The caller must
 * then write it, with OUTSTANDING_HEARTBEAT as its last command. */
bool link_begin_heartbeat(struct link *link, int64_t now_ns);

/* Record a release that could not be written, or was not confirmed. */
void link_defer_release(struct link *link, const char *key, size_t key_len, const char *token,
                        int64_t now_ns);

/* Events of the connection. After a close, the caller must first take the lost outstanding
 * commands. */
void link_on_connected(struct link *link, int64_t now_ns);
void link_on_closed(struct link *link, enum reason reason, int64_t now_ns);

/*
 * A reply has arrived. Returns the outstanding command that it belongs to, valid until the next is
 * taken; NULL if it is the link's own. An unexpected reply, or a greeting that fails, closes the
 * link: check link->state.
 */
const struct outstanding *link_on_reply(struct link *link, const struct redis_reply *reply,
                                        int64_t now_ns);

/*
 * A fast path for answers to unfenced votes on a healthy link. link_expects_votes() returns the
 * outstanding command of the next answer, with `more` votes after it in its batch;
 * link_take_votes() takes `count` of them. NULL: use link_on_reply().
 */
const struct outstanding *link_expects_votes(const struct link *link);
void link_take_votes(struct link *link, unsigned count, int64_t now_ns);

/* The number of commands without an answer. */
unsigned link_unanswered(const struct link *link);

/* Take an outstanding command of a round, of releases or of a key probe off a link that is DOWN;
 * NULL once there is none. It is valid until the next is taken. */
const struct outstanding *link_take_lost(struct link *link);

/*
 * Call link_on_timer() at link_deadline_ns(). It returns true if a heartbeat is due. A
 * heartbeat is also due when the link has come up, and when a heartbeat was answered while the link
 * is SUSPECT.
 */
int64_t link_deadline_ns(const struct link *link);
bool link_on_timer(struct link *link, int64_t now_ns);

/*
 * How long to wait before opening a lost connection again. The time grows with the attempts since
 * the connection was last up, from 50 ms to two seconds, and is drawn between half of that and all
 * of it, so that daemons do not reconnect in step.
 */
int64_t link_retry_ns(unsigned attempts, uint32_t random);

#endif
