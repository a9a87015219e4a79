/*
 * All rounds in flight: the layer below the lock manager. It starts a round for a key, a kind and a
 * token; batches what goes to the masters in one pass; keeps votes until the guard's probe after
 * them has passed; steps the round; and puts each settled round on a list. It knows no clients, no
 * queues and no holds.
 *
 *     flights_start    -> round_step -> write.c: the commands, or gathered for the end of the pass
 *     flights_on_replies (replies.h) -> votes kept -> the guard passes -> round_step
 *                      -> flights->settled
 *     flights_next_settled -> the lock manager does what follows -> flights_conclude
 *
 * What else the lock manager has to hear is in flights->news. It takes both in one place, before
 * the function of engine.h returns in which they came up; and clears the news.
 */
#ifndef ENGINE_FLIGHT_FLIGHTS_H
#define ENGINE_FLIGHT_FLIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/flight/flight.h"
#include "engine/flight/io.h"
#include "engine/guard/guard.h"
#include "engine/master/master.h"
#include "engine/pool.h"
#include "engine/stats.h"
#include "protocol/limits.h"
#include "protocol/redis.h"

struct flights;

/* The io of all links, or of all trackers: it knows whose it is. */
struct flights_wire {
    struct flights *flights;
    enum channel channel;
};

/* What has come up below, for the lock manager. The first two come with one reply; the others are
 * sets of nodes. */
struct flights_news {
    bool any;

    /* A node has told what holds a key, by a look or an undo; NULL: none has. */
    struct flight_key *seen;
    unsigned seen_by;
    struct answer answer; /* FAILED: it could not say */
    bool tracked;         /* it will report the next change of the key */
    bool forgot_script;   /* FAILED: it did not know the script, which is to be sent in full */

    /* A key that has changed, valid as long as the reply; NULL: none has. */
    const char *changed;
    size_t changed_len;
    unsigned changed_on;

    /* Another daemon waits for a key that was handed over, and needs it to be free for this long;
     * 0: no longer than usual. NULL: none does. */
    struct flight_key *contended;
    int64_t contention_need_ns;

    /* A key was asked about by write_far_query(): how long a far waiter of another daemon needs it
     * to be free; 0: this master knows of none. NULL: no such answer. */
    struct flight_key *sought;
    int64_t sought_need_ns;

    uint32_t votes_lost;  /* nodes that have lost their vote, each for the reason in lost_for */
    uint32_t probes_lost; /* ... the connection, with all looks under way */
    uint32_t untracked;   /* ... that report no more changes */
    uint32_t probe_again; /* ... on which any key may have changed, or which vote again */
    enum reason lost_for[LIMIT_NODES];
};

/* A vote, or a run of plain ones, until the guard has passed. Nearly all of them are a plain yes,
 * and most of these are a run: they are kept as one. What another says more is kept apart. */
struct kept_vote {
    struct flight *flight;
    int64_t sent_ns;
    uint32_t epoch;
    uint32_t unfenced; /* so many say yes, of this flight and those together with it; 0: another */
};

struct flights {
    const struct engine_rules *rules;
    const struct engine_io *io;
    struct engine_stats *stats;
    unsigned node_count;
    struct master masters[LIMIT_NODES];
    struct guard guard;
    struct flights_wire wires[CHANNELS];
    struct link_io link_io;
    struct link_io tracker_io;

    struct pool pool;
    struct flight_list voting;  /* rounds not settled, by deadline */
    struct flight_list settled; /* ... those that are, in this order, until they are concluded */
    struct flights_news news;
    struct flight_keys idle_keys; /* perhaps; the lock manager sweeps them */

    STAILQ_HEAD(, flight) batched;   /* releases to be written at the end of this pass */
    STAILQ_HEAD(, flight) unwritten; /* ... and those that some node did not take */
    uint32_t unguarded;              /* nodes that were asked for votes since their last probe */
    bool guard_has_work;             /* the guard may want something written */

    /* Votes that wait for the probe after them: LIMIT_LINK_KEPT for each node. */
    struct kept_vote *votes;
    struct answer *vote_answers;
    unsigned vote_count[LIMIT_NODES];
    /* Plain votes that were asked for; and for what last, which may be over. */
    uint32_t unfenced_votes;
    struct flight *asked_last;

    unsigned far_queries;      /* so many have been asked for */
    char daemon[REDIS_DAEMON]; /* by which other daemons know this one */
    char absent_key[LIMIT_KEY_PREFIX + sizeof("redlockd set?") + REDIS_DAEMON]; /* see master.h */
    /* What is written next. It is handed on before anything else is formatted. */
    char command[REDIS_RELEASES_MAX];

    void *outstanding_memory;
    struct pending_release *pending_releases;
};

/* False if there is not enough memory; flights_deinit() follows all the same. The rules, the io and
 * the stats outlive it. */
bool flights_init(struct flights *flights, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, int64_t now_ns);
void flights_deinit(struct flights *flights);

/* The logins of the rules have changed: for the next connections. */
void flights_take_logins(struct flights *flights);

/* --- random --- */

uint32_t flights_random(struct flights *flights);
/* LIMIT_TOKEN digits: a new token; and a frozen form of a token that no other BREAK has. */
void flights_make_token(struct flights *flights, char *token);
void flights_freeze_token(struct flights *flights, const char *token, char *frozen);

/* --- rounds --- */

/* A new one; NULL if there is no room. Either flights_start() or flights_drop() follows. */
struct flight *flights_open(struct flights *flights, struct flight_key *key, enum round_kind kind,
                            int64_t ttl_ns);
void flights_drop(struct flights *flights, struct flight *flight);

void flights_start(struct flights *flights, struct flight *flight, int64_t now_ns);

/* The nodes that can be asked for both rounds of a hand-over. */
uint32_t flights_for_hand_over(struct flights *flights, struct flight_key *key, int64_t now_ns);
/* Start both, on these nodes with one command. */
void flights_hand_over(struct flights *flights, struct flight *release, struct flight *acquire,
                       uint32_t nodes, int64_t now_ns);

/* No client waits for its answer any more. */
void flights_cancel(struct flights *flights, struct flight *flight, int64_t now_ns);

/* A token is to be released: no extension under way may backfill it any more. */
void flights_forbid_backfill(struct flights *flights, struct flight_key *key, const char *token,
                             int64_t now_ns);

/* There is no room for a round: these nodes are pending_releases the release. */
void flights_owe(struct flights *flights, const struct flight_key *key, const char *token,
                 uint32_t nodes, int64_t now_ns);

/* A release has found its token on less than a quorum: a BREAK that failed may have left it frozen,
 * which nodes that compare and delete by themselves do not see. They are sent the script. */
void flights_release_frozen(struct flights *flights, const struct flight *flight, int64_t now_ns);

/* The first round that has settled; NULL: none. What follows is done by the caller, and then
 * flights_conclude(); undelivered: no client heard of the grant, which is undone. */
struct flight *flights_next_settled(struct flights *flights);
void flights_conclude(struct flights *flights, struct flight *flight, bool delivered,
                      int64_t now_ns);

/* The deadline of the first that votes; INT64_MAX none. And that it has passed, for each. */
int64_t flights_deadline_ns(const struct flights *flights);
void flights_on_deadline(struct flights *flights, int64_t now_ns);

/* --- for replies.c --- */

/* What a node says to a command of a round. */
void flights_deliver(struct flights *flights, unsigned node, struct flight *flight,
                     enum round_command command, const struct answer *said, int64_t now_ns);
/* Nothing: it failed. */
void flights_fail(struct flights *flights, unsigned node, struct flight *flight,
                  enum round_command command, enum reason reason, int64_t now_ns);
/* What a command that hands over has said of the token that is released. */
void flights_deliver_to_partner(struct flights *flights, unsigned node, struct flight *flight,
                                const struct answer *said, int64_t now_ns);
/* Its round is finished, and what followed has been done: it is gone. */
void flights_end(struct flights *flights, struct flight *flight);

static inline bool flights_is_over(const struct flight *flight)
{
    return round_is_finished(&flight->round) && !flight->settled;
}

/* The answer of many votes, one after the other, most of which decide nothing. */
static inline void flights_deliver_vote(struct flights *flights, unsigned node,
                                        struct flight *flight, const struct answer *said,
                                        int64_t now_ns)
{
    if (said->kind != ANSWER_YES || !round_add_vote_fast(&flight->round, node, now_ns))
        flights_deliver(flights, node, flight, ROUND_VOTE, said, now_ns);
    else if (flights_is_over(flight))
        flights_end(flights, flight);
}

/* The releases that some node did not take fail, at the end of the pass. */
void flights_fail_unwritten(struct flights *flights, int64_t now_ns);

#endif
