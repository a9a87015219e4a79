/*
 * The link to one Redis master. It knows the state of the connection, whether a command may be
 * written now, and which command the next reply belongs to. Pure: it opens, closes and writes
 * through struct link_io, and time is an argument.
 *
 *             open            connected            greeted
 *     DOWN ---------> OPENING ---------> GREETING ---------> UP <------> SUSPECT
 *      ^                 |                  |                 |              |
 *      +-----------------+------------------+-----------------+--------------+
 *                     closed, greeting refused, or no answer for link_silence_timeout_ns
 *
 * One connection carries the commands of all rounds. Redis answers in order, so a ring of
 * outstanding commands tells which command the next answer belongs to. When the connection is lost,
 * link_take_lost() returns once each command whose owner has to learn of the loss: the commands of
 * rounds, batches of releases, key probes and far queries.
 *
 * The link does not know what a heartbeat contains. It only says when a heartbeat is due;
 * engine/master/guard_io.c writes it.
 *
 * A master that leaves a command unanswered for node_timeout is SUSPECT. The daemon still sends it
 * heartbeats and releases, but asks it for no votes until an answer arrives within node_timeout of
 * its command. Answers come in order, so the link only has to look at the oldest outstanding
 * command.
 *
 * When the daemon gives up a connection, it resets the connection instead of closing it in order.
 * On the next connection it first kills the old one by CLIENT KILL ID. A SET that the master has
 * not read from the old connection must not run after the release that is sent on the new one.
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

/* The two connections to a master: that of the link, and that of engine/master/tracker.h. */
enum channel { CHANNEL_COMMANDS, CHANNEL_TRACKING, CHANNELS };

/* The operations on the connections to masters. None of these functions may call the engine. */
struct link_io {
    void *context;
    void (*open)(void *context, unsigned node, enum channel channel);
    /* Reset the connection. Afterwards no event of it may be reported any more. */
    void (*close)(void *context, unsigned node, enum channel channel);
    /* Write to each node of a set, which may be empty. */
    void (*write)(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                  size_t len);
    /* Write len random bytes. Tokens are made of them, so they must be unpredictable and never
     * repeat. */
    void (*random)(void *context, void *bytes, size_t len);
};

uint32_t link_random(const struct link_io *io);

/* Credentials; NULL where none are needed. Changes take effect with the next connection. */
struct link_login {
    const char *username;
    const char *password;
    unsigned database;
};

enum { LINK_RUN_ID = 40, LINK_ERROR_TEXT_MAX = 127 };

/* LINK_COMMAND_MAX: enough for the longest command that is sent as words, which is a record write
 * with its whole script, or a heartbeat with all names. */
enum { LINK_COMMAND_MAX = 8192, LINK_WORDS_MAX = 2 * LIMIT_NODES + 20 };

/* The purpose of an outstanding command. OUTSTANDING_HEARTBEAT is only the last command of a
 * heartbeat; the guard sends the other commands of it as OUTSTANDING_GUARD. */
enum __attribute__((packed)) outstanding_kind {
    OUTSTANDING_GREETING,
    OUTSTANDING_PENDING_RELEASE,
    OUTSTANDING_ROUND,
    OUTSTANDING_RELEASES, /* several releases as one command */
    OUTSTANDING_GUARD,
    OUTSTANDING_HEARTBEAT,
    OUTSTANDING_KEY_PROBE, /* a key probe for waiters */
    OUTSTANDING_FAR,       /* reads the contention hint of a far waiter */
    OUTSTANDING_TRACKING,  /* a setting for engine/master/tracker.h */
    OUTSTANDING_SELF_TEST, /* engine/flight/self_test.h */
};

/*
 * A command that was written and has no answer yet.
 *
 * Successive unfenced votes share one outstanding command, as a batch. Each vote of a batch still
 * gets its own answer. The first field of each owner is a pointer to the next owner in the batch.
 */
struct outstanding {
    enum outstanding_kind kind;
    union {
        uint8_t command; /* OUTSTANDING_ROUND: enum round_command */
        uint8_t count;   /* OUTSTANDING_RELEASES: the number of releases */
        uint8_t step;    /* OUTSTANDING_GREETING */
        uint8_t part;    /* OUTSTANDING_GUARD, OUTSTANDING_HEARTBEAT: enum part in guard_io.c */
        uint8_t test;    /* OUTSTANDING_SELF_TEST: its number */
    };
    uint8_t form;   /* enum redis_form: how a round, releases or a key probe were written */
    bool unfenced;  /* OUTSTANDING_ROUND: a vote to which +OK means YES */
    uint32_t epoch; /* OUTSTANDING_ROUND: the node's epoch when the vote was asked for */
    union {
        /* OUTSTANDING_ROUND, OUTSTANDING_KEY_PROBE: the serial number of the tracker when the
         * command was written. If the tracker still has this number when the answer arrives, the
         * key is tracked. 0: tracking was not requested. */
        uint32_t tracking;
        /* Unfenced: serial number of the round, counted over all rounds with unfenced votes. */
        uint32_t number;
    };
    uint32_t more;   /* unfenced: further votes in this batch */
    int64_t sent_ns; /* for a batch: when its first vote was sent */
    union {
        /* The object of the engine that the command is for. OUTSTANDING_ROUND,
         * OUTSTANDING_RELEASES: a flight. OUTSTANDING_KEY_PROBE, OUTSTANDING_FAR: a key. */
        void *owner;
        uint64_t position; /* OUTSTANDING_PENDING_RELEASE: in the list of pending releases */
    };
};

struct link_rules {
    int64_t node_timeout_ns;
    int64_t heartbeat_every_ns;
    int64_t max_ttl_ms; /* an argument of release.lua */
};

struct link {
    const struct link_io *io;
    const struct link_login *login; /* owned by the caller */
    unsigned node;                  /* index of the node, an argument of the io functions */
    struct link_rules rules;

    enum link_state state;
    enum reason reason; /* why the link is not UP; REASON_NONE while it is */
    int64_t since_ns;   /* when the link last came up, became suspect, or went down */
    int64_t opened_ns;  /* OPENING, GREETING: when this state began */
    int64_t retry_ns;   /* DOWN: when to open again */
    /* How often a connection has ended or failed since one last lasted for a heartbeat interval. */
    unsigned attempts;

    /* A ring of outstanding commands: the next answer belongs to outstanding[first]. */
    struct outstanding *outstanding; /* LIMIT_LINK_COMMANDS entries */
    unsigned first;
    unsigned outstanding_count;
    unsigned load; /* like outstanding_count, but counts each release and vote of a batch */
    struct outstanding single; /* copy of the vote that was taken from a batch last */

    unsigned greetings_due; /* answers still missing for the present part of the greeting */
    int64_t heartbeat_ns;   /* when the last heartbeat was sent, or when the link came up */
    bool heartbeat_due;     /* the last heartbeat has not been answered */
    int64_t round_trip_ns;  /* round trip of the last heartbeat; -1: none so far */
    /* Smoothed round trip of heartbeats: a shorter one replaces it, a longer one raises it by an
     * eighth of the difference. -1: none so far. */
    int64_t distance_ns;
    struct histogram round_trips; /* round trips of commands of rounds and of heartbeats */
    int64_t latency_ns; /* round trip of the last answered command of a round; -1: none so far */

    struct pending_releases pending_releases;
    unsigned releases_under_way;
    /* The master has answered a pending release by an error: send no other one before the next
     * heartbeat is due. */
    bool release_refused;

    /* Of the present connection, and (last_...) of the last one that was UP. A client id is
     * meaningful only together with the run id of the server that assigned it. client_id 0: not
     * known. */
    char run_id[LINK_RUN_ID];
    /* Uptime of that run, in seconds, when the daemon asked; -1: the server did not say. */
    int64_t uptime_s;
    int64_t client_id;
    char last_run_id[LINK_RUN_ID];
    int64_t last_client_id;

    enum redis_form release_form; /* in which form single releases are sent on this connection */
    /* The reason to which error_text belongs; REASON_NONE: there is no text. */
    enum reason error_reason;
    char error_text[LINK_ERROR_TEXT_MAX + 1];
};

/* outstanding: memory for LIMIT_LINK_COMMANDS entries. pending_releases: memory for
 * LIMIT_LINK_PENDING_RELEASES entries. The caller owns both. */
void link_init(struct link *link, unsigned node, const struct link_io *io,
               const struct link_login *login, const struct link_rules *rules,
               struct outstanding *outstanding, struct pending_release *pending_releases,
               int64_t now_ns);

/* How long a connection may stay without any answer before the daemon gives it up. */
int64_t link_silence_timeout_ns(const struct link *link);

/* Can commands be written in this state? Yes if it is UP or SUSPECT. */
bool link_is_connected(enum link_state state);

/* Why no vote may be asked for now, and why no release may be written now; REASON_NONE if it
 * may. */
enum reason link_refuses_vote(const struct link *link);
enum reason link_refuses_release(const struct link *link);

/* Write a command. When its answer arrives, link_on_reply() returns the outstanding command. If the
 * connection is lost first, link_take_lost() returns it, or drops it if it is of a kind that
 * link_take_lost() does not return. */
void link_send(struct link *link, const char *bytes, size_t len,
               const struct outstanding *outstanding);

/* Like link_send(), for a command made of words; the last element of `words` is NULL. */
void link_send_words(struct link *link, const struct outstanding *outstanding,
                     const char *const *words);

/* Format such a command in the Redis protocol; returns its length. */
size_t link_format(const char *const *words, char buf[LINK_COMMAND_MAX]);

/* The caller has written a command to the node itself: expect its answer. */
void link_expect(struct link *link, const struct outstanding *outstanding);

/*
 * Like link_expect(), for an unfenced vote. Returns true if the vote joins the batch of the
 * previous vote. The caller then sets the pointer in the owner of the previous vote to the owner of
 * this one. Only votes with consecutive numbers join, so an owner has the same next owner on every
 * link. replies_keep_unfenced_yes() says what batches save.
 */
bool link_expect_vote(struct link *link, const struct outstanding *outstanding);

/* Find the reason for an error reply. If the text of the error says more than the reason, the link
 * remembers the text. That is so for an unknown error, and for an ACL error that names the
 * command. */
enum reason link_reason_of(struct link *link, const struct redis_reply *error);
/* The text that the master sent for this reason; without such a text, a description of the
 * reason. */
const char *link_meaning(const struct link *link, enum reason reason);

/* Returns true if a heartbeat may be written now: the link is connected, and no heartbeat is under
 * way. The caller must then write one whose last command is OUTSTANDING_HEARTBEAT. */
bool link_begin_heartbeat(struct link *link, int64_t now_ns);

/* Record a release that could not be written, or that the master has not confirmed. It is sent as
 * soon as possible. */
void link_defer_release(struct link *link, const char *key, size_t key_len, const char *token,
                        int64_t now_ns);

/* Events of the connection. After a close, whatever caused it, the caller has to take all lost
 * commands by link_take_lost() before the link is opened again. */
void link_on_connected(struct link *link, int64_t now_ns);
void link_on_closed(struct link *link, enum reason reason, int64_t now_ns);

/*
 * A reply has arrived. Returns the outstanding command that it answers, valid until the next one is
 * taken; NULL if the link has handled the reply itself. An unexpected reply, or a greeting that
 * fails, closes the link, so the caller has to check link->state.
 */
const struct outstanding *link_on_reply(struct link *link, const struct redis_reply *reply,
                                        int64_t now_ns);

/*
 * A fast path for answers to unfenced votes on a link that is UP. link_expects_votes() returns the
 * outstanding command of the next answer; `more` further votes follow in its batch. NULL: use
 * link_on_reply() instead. link_take_votes() takes `count` votes of that batch as answered.
 */
const struct outstanding *link_expects_votes(const struct link *link);
void link_take_votes(struct link *link, unsigned count, int64_t now_ns);

/* The age of the oldest command without an answer, or the round trip of the last answered command
 * of a round if that is longer. INT64_MAX: no command of a round was answered on this connection,
 * so its age can be less than the round trip. */
int64_t link_latency_ns(const struct link *link, int64_t now_ns);

/* The number of commands without an answer, with each vote of a batch counted. */
unsigned link_unanswered(const struct link *link);

/* Take the next lost command off a link that is DOWN: a command of a round, a batch of releases, a
 * key probe or a far query. Other commands are dropped. NULL: none is left. The result is valid
 * until the next call. */
const struct outstanding *link_take_lost(struct link *link);

/*
 * Call link_on_timer() at link_deadline_ns(), when all answers that had arrived by heard_ns have
 * been handled. It returns true if the caller has to send a heartbeat. The caller also has to send
 * one when the link has come up, and after each reply that leaves the link SUSPECT, unless a
 * heartbeat is under way.
 */
int64_t link_deadline_ns(const struct link *link);
bool link_on_timer(struct link *link, int64_t heard_ns, int64_t now_ns);

/*
 * How long to wait before a lost connection is opened again. The longest wait grows with
 * `attempts` (see struct link), from 50 ms to two seconds. The result
 * is drawn at random between half of the longest wait and the whole, so that daemons do not
 * reconnect all at once.
 */
int64_t link_retry_ns(unsigned attempts, uint32_t random);

#endif
