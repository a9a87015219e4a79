/*
 * The engine: requests of clients in, quorum rounds over the links to the masters, replies out.
 *
 * It knows no socket, no clock, no libevent and, once made, no malloc on the way of a request.
 * Events come in with the time in them (nanoseconds of CLOCK_BOOTTIME, read freshly by the callback
 * that reports them), effects go out through struct engine_io. The simulator will drive this very
 * code.
 *
 *     engine_submit   -> (a LOCK: the queue of its resource) -> round_step
 *                     -> link_expect for each node, io.write to all (an UNLOCK: gathered)
 *     engine_flush    -> the releases gathered in this pass, as few commands; and behind the votes
 *                        that were asked for, one probe of the guard a node
 *     engine_on_replies
 *                     -> link_on_reply -> the vote is kept; once the probe has passed
 *                     -> round_step -> io.reply
 *
 * No function of engine_io may call the engine back.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/alarm.h"
#include "engine/flight/operation.h"
#include "engine/guard/guard.h"
#include "engine/histogram.h"
#include "engine/locks/call.h"
#include "engine/locks/extensions.h"
#include "engine/locks/queue.h"
#include "engine/locks/resource.h"
#include "engine/master/link.h"
#include "engine/master/tracker.h"
#include "engine/master/warden.h"
#include "engine/round/fence.h"
#include "engine/round/round.h"
#include "protocol/reply.h"
#include "protocol/request.h"

struct engine;
struct vote;

/* The two connections to a master: engine/master/link.h and engine/master/tracker.h. */
enum channel { CHANNEL_COMMANDS, CHANNEL_TRACKING, CHANNELS };

/* The io of all links, or of all trackers: it knows whose it is. */
struct engine_wire {
    struct engine *engine;
    enum channel channel;
};

/* A lock that is released by force. */
struct engine_broken {
    const char *resource; /* a view, without a final NUL */
    size_t resource_len;
    const char *token;
    uint64_t owner_id; /* the client it was granted to; 0: through another daemon */
    const char *owner_label;
};

struct engine_io {
    void *context;

    /* As in struct link_io and struct tracker_io; but the same may be written to several nodes, or
     * to none. */
    void (*open)(void *context, unsigned node, enum channel channel);
    void (*close)(void *context, unsigned node, enum channel channel);
    void (*write)(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                  size_t len);

    /* The answer to a submitted request. Exactly one of the two comes for each request, unless the
     * client is gone first. If this one cannot be delivered, it sets client->gone. */
    void (*reply)(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                  const struct reply *reply);
    /* A LOCK that was undone because the client ended its side of the connection. */
    void (*undone)(void *context, struct engine_client *client, const char *tag, size_t tag_len);
    /* What a client with a HOLD is told unasked. */
    void (*push)(void *context, struct engine_client *client, const struct push *push);

    /* This client is having it released, from now on: to be logged. */
    void (*breaking)(void *context, const struct engine_client *by,
                     const struct engine_broken *broken);
    /* That has succeeded so far that it is deleted from now on. NULL where nobody wants to know. */
    void (*broken)(void *context, const struct engine_broken *broken);

    /* A link went from one state to another; a node lost its vote or got it back (REASON_NONE is
     * before or now): to be logged. */
    void (*link_changed)(void *context, unsigned node, enum link_state before);
    /* The node's clock has gone back by so much. That is harmless for locks. */
    void (*clock_stepped_back)(void *context, unsigned node, int64_t back_ns);
    void (*vote_changed)(void *context, unsigned node, enum reason before, enum reason reason,
                         int64_t now_ns);

    /* A node has answered an error to what a round asked of it, a release or anything else: once
     * for each reason and connection, to be logged. */
    void (*command_refused)(void *context, unsigned node, enum reason reason, bool release);

    /* A node refuses several releases as one command (REDIS_BY_SHA1), or its own command for one
     * (in that form): to be logged. */
    void (*releases_refused)(void *context, unsigned node, enum redis_form form);

    /* The answer to one of what engine_try() has asked; REASON_NONE: it does that. NULL where
     * nobody calls that. */
    void (*tried)(void *context, unsigned node, const char *what, enum reason refused);
    /* ... and what this master says of whose the name of another is; "" nothing. */
    void (*leased)(void *context, unsigned node, unsigned named, const char *lease);

    /* Microseconds since 1970, for ballots. */
    int64_t (*wall_us)(void *context);

    /* Random bytes fit for a token: unpredictable, never repeated. */
    void (*entropy)(void *context, void *bytes, size_t len);
};

struct engine_rules {
    struct round_rules round;
    const char *key_prefix;
    size_t key_prefix_len;
    bool shared_names; /* keys are also those of other libraries */
    const char *node_names[LIMIT_NODES];
    struct link_login logins[LIMIT_NODES];
    const char *cluster;
    int64_t max_ttl_ns;
    int64_t fence_ttl_ns;
    int64_t max_extensions;
    int64_t max_hold_ns;
    int64_t backoff_min_ns;
    int64_t backoff_max_ns;
    size_t waiters; /* at most so many wait, in all and for one resource */
    size_t waiters_per_resource;
    bool fence_always; /* each LOCK, whether it asks for it or not */
    uint32_t durable;  /* see guard_rules, for these four */
    bool bootstrap;
    const char *reset_set;
    bool looks_on;
    /* Names this host's clock: the same for two daemons if and only if they read the same
     * CLOCK_BOOTTIME, so a boot has its own. Letters, digits and dashes. */
    const char *clock_id;
};

enum { ENGINE_CLOCK_ID_MAX = 80 };

/* Why a HOLD was lost, as LOST says it; a word that is not among them counts as the last. */
#define ENGINE_LOSS_TABLE(X)                                                                       \
    X("gone", "another has it, or it was released elsewhere")                                      \
    X("limit", "it was held for max_hold")                                                         \
    X("late", "its extension came too late")                                                       \
    X("noquorum", "too few masters voted for its extension")                                       \
    X("overdue", "the daemon was stopped, or too busy, to extend it")                              \
    X("shutdown", "the daemon was stopped")                                                        \
    X("other", "see the log")

enum {
#define X(word, text) +1
    ENGINE_LOSSES = ENGINE_LOSS_TABLE(X)
#undef X
};

/* The word, and the sentence for a person. Both static. */
const char *engine_loss_word(unsigned loss);
const char *engine_loss_text(unsigned loss);
/* The loss with this word. */
unsigned engine_loss_of(const char *word);

/* What STATS and the metrics show: counts since the start, of rounds that clients ask for. */
enum { OUTCOME_COUNT = OUTCOME_OUTBID + 1, ROUND_KINDS = ROUND_STATUS + 1 };

struct engine_stats {
    uint64_t outcomes[ROUND_KINDS][OUTCOME_COUNT];
    uint64_t undone; /* LOCKs whose client had gone before they were answered */
    uint64_t planted;
    uint64_t owed;      /* releases that had to be kept for later */
    uint64_t asked;     /* acquiring rounds */
    uint64_t handovers; /* ... that took a lock over from its holder, and were granted */
    uint64_t looks;     /* at a key, on one node */
    uint64_t renewals;  /* extensions of a HOLD */
    uint64_t lost;      /* HOLDs that were */
    uint64_t broken;    /* releases by force */
    uint64_t losses[ENGINE_LOSSES];
    /* Rounds in which a node had no vote, by reason, as of their decision; releases need none. */
    uint64_t refused[LIMIT_NODES][REASON_COUNT];
    struct histogram granted;       /* LOCKs that were, from the request to the answer */
    struct histogram granted_round; /* ... the round that granted it alone */
    struct histogram queued;        /* LOCKs with WAIT, until that round, or their wait was over */
};

struct engine {
    struct engine_rules rules;
    struct engine_io io;
    struct engine_wire wires[CHANNELS];
    struct link_io link_io;
    struct link links[LIMIT_NODES];
    unsigned node_count;

    struct fence fence;
    struct guard guard;
    struct warden wardens[LIMIT_NODES];
    STAILQ_HEAD(, operation) gathered;  /* releases to be written at the end of this pass */
    STAILQ_HEAD(, operation) unwritten; /* ... and those that some node did not take */
    uint32_t refusing;                  /* nodes that refused several releases at once, lately */
    uint32_t refusing_native;           /* ... or their own command for one */
    uint32_t apart;                     /* ... and took each alone: until the next connection */
    uint64_t refused_for[LIMIT_NODES];  /* as told by io.command_refused: reasons, a bit each */
    uint32_t unguarded;                 /* nodes that were asked for votes since their last probe */
    bool errands;                       /* the guard may want something written */
    enum reason vote_reason[LIMIT_NODES]; /* as last told by io.vote_changed */
    /* Answers that wait for the probe behind them: LIMIT_LINK_KEPT for each node. */
    struct vote *votes;
    struct answer *vote_answers;
    unsigned vote_count[LIMIT_NODES];
    /* Plain votes that were asked for; and for what last, which may be over. */
    uint32_t plain_votes;
    struct operation *asked_last;

    struct tracker_io tracker_io;
    struct tracker trackers[LIMIT_NODES];
    unsigned looking[LIMIT_NODES]; /* looks at keys under way */
    uint32_t untracked;            /* nodes whose first connection may not be tracked */

    struct alarms alarms;
    struct queue_rules queue_rules;
    uint32_t queue_seed;       /* of the last queue; daemons begin with different ones */
    char daemon[REDIS_DAEMON]; /* by which others know who waits */
    char absent_key[LIMIT_KEY_PREFIX + sizeof("redlockd set?") + REDIS_DAEMON]; /* see warden.h */
    /* What is written next. It is handed on before anything else is formatted. */
    char command[REDIS_RELEASES_MAX];
    struct pool calls;
    struct resources resources;
    struct operations operations;
    struct extensions extensions;
    struct pool breakings;
    struct pool locks;
    struct lock_list held; /* those with HOLD, held_count of them */
    size_t held_count;
    struct lock_list plain; /* the others, the oldest first */
    struct alarms due;      /* those of them that are to be extended as soon as there is room */
    unsigned renewing;      /* extensions of the daemon under way, and at most */
    unsigned renewals_max;
    size_t waiting; /* LOCKs with WAIT in some line */
    LIST_HEAD(, resource) waited_for;
    size_t waited_for_count; /* the resources of that list */
    size_t holding;          /* HOLDs that were granted or are asked for */
    bool draining;

    void *ticket_memory;
    char *owed_memory;
    struct engine_stats stats;
};

/* False if there is not enough memory. Nothing happens before the first engine_on_timer(). */
bool engine_init(struct engine *engine, const struct engine_rules *rules,
                 const struct engine_io *io, int64_t now_ns);
void engine_deinit(struct engine *engine);

/*
 * Other rules from now on, of which only these count: max_hold_ns, max_extensions, backoff_*,
 * waiters_per_resource, fence_always, and the logins, for the next connection to each node. The
 * others have to be as they were: rounds and promised deadlines hang on them.
 */
void engine_retune(struct engine *engine, const struct engine_rules *rules);

/* id: a number of its own, for listings. */
void engine_client_init(struct engine_client *client, uint64_t id);

/*
 * Take LOCK, UNLOCK, EXTEND, STATUS or BREAK, well-formed (request_parse()). The request's views
 * need to live only for the call. The reply may come before this returns.
 */
void engine_submit(struct engine *engine, struct engine_client *client,
                   const struct request *request, int64_t now_ns);

/* Is a request with this tag under way for this client? */
bool engine_tag_in_use(const struct engine_client *client, const char *tag, size_t tag_len);

/* What is known of the resource that a request names; NULL: nothing. It costs the masters nothing.
 */
const struct resource *engine_find(const struct engine *engine, const struct request *request);

/* The place in line of a client among those that wait for it here, 1 being the next; the first of
 * its places if it waits several times, 0 if it does not. The longer the line, the longer it takes.
 */
unsigned engine_place(const struct resource *resource, const struct engine_client *client);

/* The connection will end, in order or not: its LOCKs are undone, and told so. What it holds stays.
 */
void engine_client_ending(struct engine *engine, struct engine_client *client, int64_t now_ns);

/* The client ended its side of the connection, in order: its LOCKs are undone, and what it holds is
 * released, but for locks that linger. It may still read. */
void engine_client_half_closed(struct engine *engine, struct engine_client *client, int64_t now_ns);

/* The client closed its connection and reads nothing more: like engine_client_half_closed(), but
 * nothing is said of its LOCKs. */
void engine_client_closed(struct engine *engine, struct engine_client *client, int64_t now_ns);

/* The client said QUIT: like engine_client_closed(), but locks that linger are released too. */
void engine_client_quit(struct engine *engine, struct engine_client *client, int64_t now_ns);

/* The client has gone: whatever its LOCKs acquired is released, nothing is answered any more. What
 * it held is not extended any more, but not released: it may live, and rely on it. */
void engine_client_gone(struct engine *engine, struct engine_client *client, int64_t now_ns);

/* What a connection to a node has to say. */
void engine_on_connected(struct engine *engine, unsigned node, enum channel channel,
                         int64_t now_ns);
void engine_on_closed(struct engine *engine, unsigned node, enum channel channel,
                      enum reason reason, int64_t now_ns);

/* A reply that has come `count` times in a row, from 1 on. Returns how many of these it has dealt
 * with; 0: the connection was closed over it, and no more replies of this one come. */
unsigned engine_on_replies(struct engine *engine, unsigned node, enum channel channel,
                           const struct redis_reply *reply, unsigned count, int64_t now_ns);

/* Is there something to be written behind what this pass wrote? Then, at its end, that. */
bool engine_wants_flush(const struct engine *engine);
void engine_flush(struct engine *engine, int64_t now_ns);

/*
 * Ask a node, whose link is up, for all that rounds ask for, once each: on a key that nobody else
 * has, and of which nothing is left after some seconds; and for the leases on all names. io.tried()
 * hears ENGINE_TRIALS answers, io.leased() one for each node, unless the link is lost before.
 */
enum { ENGINE_TRIALS = 8 };
void engine_try(struct engine *engine, unsigned node, int64_t now_ns);

/* Why no vote is asked of this node; REASON_NONE if it votes. */
enum reason engine_refuses_vote(const struct engine *engine, unsigned node, int64_t now_ns);

/* When engine_on_timer() is wanted next, and that; calling it early does no harm. */
int64_t engine_deadline_ns(const struct engine *engine);
void engine_on_timer(struct engine *engine, int64_t now_ns);

/* What was due before now comes first: a HOLD that was lost while the daemon was stopped is told of
 * before anything else. Every function here does so; a PING has to by itself. */
void engine_catch_up(struct engine *engine, int64_t now_ns);

/* From now on requests are answered SHUTDOWN, and what is held is lost; true while answers or
 * releases are still under way. */
void engine_drain(struct engine *engine, int64_t now_ns);
bool engine_busy(const struct engine *engine);

/* There is no more time: what is not answered is answered SHUTDOWN, and each LOCK among it undone.
 */
void engine_abandon(struct engine *engine, int64_t now_ns);

#endif
