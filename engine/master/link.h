/*
 * The link to one Redis master: what to do with the connection, whether a command may be written to
 * it, and whose reply comes next. Pure: it opens, closes and writes through struct link_io, and
 * time comes in as an argument.
 *
 *             open            connected            greeted
 *     DOWN ---------> OPENING ---------> GREETING ---------> UP <------> SUSPECT
 *      ^                 |                  |                 |              |
 *      +-----------------+------------------+-----------------+--------------+
 *                     closed, or no answer for link_silence_timeout_ns
 *
 * One connection carries the commands of all rounds, and Redis answers in order: a ring of
 * outstanding remembers whose answer is next. When the connection is lost, every outstanding still
 * comes back, once.
 *
 * What a heartbeat says is none of the link's business: it tells when one is due, and the guard
 * (engine/master/guard_io.c) writes it.
 *
 * A master that leaves a command unanswered for node_timeout, be it of a round or a heartbeat, is
 * SUSPECT: it still gets heartbeats and releases, but no votes are asked of it until it answers in
 * time again. Because answers come in order, it is enough to look at the oldest command.
 *
 * A connection that is given up is reset, not closed in peace, and the next one first kills its
 * predecessor by CLIENT KILL ID: a SET still buffered there must not run behind the release that is
 * sent on the new one.
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

/* What a connection to a master needs done. None of them calls back. */
struct link_io {
    void *context;
    void (*open)(void *context, unsigned node);
    /* Reset the connection; no further event of it may arrive. */
    void (*close)(void *context, unsigned node);
    void (*write)(void *context, unsigned node, const char *bytes, size_t len);
    uint32_t (*random)(void *context);
};

/* Whom to say we are. NULL where there is nothing to say. */
struct link_login {
    const char *username;
    const char *password;
    unsigned database;
};

enum { LINK_PASSWORD_MAX = 1024, LINK_RUN_ID = 40, LINK_SAID = 127 };

/* Room for the longest command made of words: a mark in full, or a heartbeat with all its names. */
enum { LINK_COMMAND_MAX = 8192, LINK_WORDS_MAX = 2 * LIMIT_NODES + 16 };

/* Whose answer comes next. OUTSTANDING_HEARTBEAT is the guard's too: the last answer of a
 * heartbeat. */
enum __attribute__((packed)) outstanding_kind {
    OUTSTANDING_GREETING,
    OUTSTANDING_PENDING_RELEASE,
    OUTSTANDING_ROUND,
    OUTSTANDING_RELEASES, /* of several rounds */
    OUTSTANDING_GUARD,
    OUTSTANDING_HEARTBEAT,
    OUTSTANDING_KEY_PROBE, /* at a key somebody waits for */
    OUTSTANDING_FAR,       /* the contention hint of a far waiter */
    OUTSTANDING_TRACKING,  /* a setting of engine/master/tracker.h */
    OUTSTANDING_SELF_TEST, /* whether the node does what rounds ask for */
};

/*
 * Plain votes that are asked for one behind the other go by one outstanding, as a run: each of them
 * has an answer of its own, and its owner begins with a pointer to the next.
 */
struct outstanding {
    enum outstanding_kind kind;
    /* OUTSTANDING_ROUND: the command and its form as written; OUTSTANDING_GREETING: which step; of
     * the guard: which part of what it asks for; OUTSTANDING_SELF_TEST: which one;
     * OUTSTANDING_RELEASES: how many, and the form. */
    uint8_t command;
    uint8_t form;
    bool unfenced;  /* OUTSTANDING_ROUND: a vote, of which OK says all: yes */
    uint32_t epoch; /* OUTSTANDING_ROUND: of the node, when the vote was asked for */
    union {
        /* OUTSTANDING_ROUND, OUTSTANDING_KEY_PROBE: the key is tracked from then on, if the tracker
         * is still the same; 0: it is not. */
        uint32_t tracking;
        uint32_t number; /* plain: which it is of all that were asked for, of whichever node */
    };
    uint32_t more;   /* plain: votes of this run behind this one */
    int64_t sent_ns; /* of a run, the first */
    union {
        void *owner; /* OUTSTANDING_ROUND, OUTSTANDING_RELEASES, OUTSTANDING_KEY_PROBE,
                        OUTSTANDING_FAR: of the engine */
        uint64_t pending_releases; /* OUTSTANDING_PENDING_RELEASE: its position */
    };
};

struct link {
    const struct link_io *io;
    struct link_login login;
    unsigned node; /* its index, for the io */
    int64_t node_timeout_ns;
    int64_t heartbeat_every_ns;
    int64_t max_ttl_ms;

    enum link_state state;
    enum reason reason; /* why it is not UP; REASON_NONE when it is */
    int64_t since_ns;   /* since when it is up, suspect, or neither */
    int64_t opened_ns;  /* OPENING, GREETING: when that began */
    int64_t retry_ns;   /* DOWN: when to open again */
    unsigned attempts;  /* since it was last UP */

    /* Tickets: a ring, the next answer belongs to outstanding[first]. */
    struct outstanding *outstanding; /* LIMIT_LINK_COMMANDS of them */
    unsigned first;
    unsigned outstanding_count;
    unsigned load;             /* the outstanding, but each of several releases or votes counts */
    struct outstanding single; /* of a run, the one that was taken last */

    unsigned greetings_due; /* answers of this part of the greeting not in yet */
    int64_t heartbeat_ns;   /* when the last heartbeat was sent */
    bool heartbeat_due;     /* ... and it has not been answered */
    int64_t round_trip_ns;  /* of the last heartbeat; -1 none yet */
    int64_t distance_ns;    /* the usual one: shorter ones count at once, longer ones an eighth */
    struct histogram round_trips; /* of the commands of rounds, and of heartbeats */

    struct pending_releases pending_releases;
    unsigned releases_under_way;
    bool release_refused; /* one was answered by an error: none is sent before the next heartbeat */

    /* The connection in use, and the last one that was UP. A client id means something only
     * together with the run of the server that gave it; 0 where unknown. */
    char run_id[LINK_RUN_ID];
    int64_t uptime_s; /* of that run, when it was asked for it; -1: it did not say */
    int64_t client_id;
    char last_run_id[LINK_RUN_ID];
    int64_t last_client_id;

    enum redis_form release_form; /* on this connection, of a release that goes alone */
    enum reason said_reason;      /* of the last error that says more than its reason, or NONE */
    char said[LINK_SAID + 1];
};

struct link_rules {
    int64_t node_timeout_ns;
    int64_t heartbeat_every_ns;
    int64_t max_ttl_ms; /* for releases: see release.lua */
};

/* outstanding: LIMIT_LINK_COMMANDS of them; pending_releases: LIMIT_LINK_PENDING_RELEASES; both of
 * the caller.
 */
void link_init(struct link *link, unsigned node, const struct link_io *io,
               const struct link_login *login, const struct link_rules *rules,
               struct outstanding *outstanding, struct pending_release *pending_releases,
               int64_t now_ns);

/* How long a connection may stay without any answer before it is given up. */
int64_t link_silence_timeout_ns(const struct link *link);

/* Does this state take commands: UP, or SUSPECT? */
bool link_is_connected(enum link_state state);

/* May a command be written now? REASON_NONE, or why not. */
enum reason link_refuses_vote(const struct link *link);
enum reason link_refuses_release(const struct link *link);

/* Write a command of a round, a look or the guard. The outstanding of the first two comes back by
 * link_on_reply(), link_take_votes() or link_take_lost(). */
void link_send(struct link *link, const char *bytes, size_t len,
               const struct outstanding *outstanding);

/* The same of a command made of words, the last of which is NULL. */
void link_ask(struct link *link, const struct outstanding *outstanding, const char *const *words);

/* Write that command as Redis protocol; returns its length. */
size_t link_format(const char *const *words, char buf[LINK_COMMAND_MAX]);

/* What is written to the node together, before or behind this, holds one more command. */
void link_expect(struct link *link, const struct outstanding *outstanding);

/* The same of a plain vote. True: it belongs to a run, and the owner of the one asked for before
 * has to have this one's as its next. Only votes with one number behind the other do: so the next
 * of an owner is the same on every link. replies_keep_unfenced_yes() says what runs save. */
bool link_expect_vote(struct link *link, const struct outstanding *outstanding);

/* The reason behind an error that is no answer to a round. What it says is remembered where that is
 * more than the reason: an unknown error, and which command an ACL refuses. */
enum reason link_reason_of(struct link *link, const struct redis_reply *error);
/* What the master said for this reason, or what the reason means. */
const char *link_meaning(const struct link *link, enum reason reason);

/* True if a heartbeat may be written now, and then it has to be: none is under way. Its last
 * outstanding is OUTSTANDING_HEARTBEAT. */
bool link_begin_heartbeat(struct link *link, int64_t now_ns);

/* Remember a release that could not be written, or was not confirmed. */
void link_defer_release(struct link *link, const char *key, size_t key_len, const char *token,
                        int64_t now_ns);

/* What befell the connection. After a close, take the lost outstanding before anything else. */
void link_on_connected(struct link *link, int64_t now_ns);
void link_on_closed(struct link *link, enum reason reason, int64_t now_ns);

/*
 * A reply has come. The outstanding tells whose it is, and lives until the next is taken; NULL if
 * it is the link's own. A reply nobody asked for, or a greeting that fails, closes the link: look
 * at link->state.
 */
const struct outstanding *link_on_reply(struct link *link, const struct redis_reply *reply,
                                        int64_t now_ns);

/*
 * The same of a link that is well, of answers to plain votes: whose the next will be, with as many
 * more as its run has, and once so many of them have come. NULL: not so, and it takes
 * link_on_reply().
 */
const struct outstanding *link_expects_votes(const struct link *link);
void link_take_votes(struct link *link, unsigned count, int64_t now_ns);

/* Commands that are not answered yet. */
unsigned link_unanswered(const struct link *link);

/* Take the outstanding of a round, of releases or a look off a link that is DOWN; NULL once there
 * is none. It lives until the next is taken. */
const struct outstanding *link_take_lost(struct link *link);

/* When it wants link_on_timer() next; and that: true if a heartbeat is due. One is due, too, when
 * the link has come up, and once the answer of the last one has been taken, if it is SUSPECT still.
 */
int64_t link_deadline_ns(const struct link *link);
bool link_on_timer(struct link *link, int64_t now_ns);

/* How long to wait before a connection that is lost is opened again: growing with the attempts
 * since it was last there, from 50 ms to two seconds; and between half and all of that at random,
 * so that daemons do not come in step. */
int64_t link_retry_ns(unsigned attempts, uint32_t random);

#endif
