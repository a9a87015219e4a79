/*
 * All rounds in flight: the layer below the lock manager. It starts a round for a key, a kind and a
 * token. It batches what goes to the masters in one pass, keeps votes until the guard's probe after
 * them has passed, steps the round, and puts each settled round on a list. It knows nothing of
 * clients, queues or holds.
 *
 *     flights_start    -> round_step -> write.c: the commands, or batched for the end of the pass
 *     flights_on_replies (replies.h) -> votes kept -> the guard passes -> round_step
 *                      -> flights->settled
 *     flights_next_settled -> the lock manager does what follows -> flights_conclude
 *
 * Other news for the lock manager is in flights->news. The lock manager handles both in one place,
 * before the function of engine.h in which they came up returns, and clears the news.
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

/* The context of all links, or of all trackers; it tells which channel an operation is for. */
struct flights_wire {
    struct flights *flights;
    enum channel channel;
};

/* News from below for the lock manager. `observed` and `changed` come with one reply; the masks at
 * the end are sets of nodes. */
struct flights_news {
    bool any;

    /* A node has said what holds this key, in the reply to a key probe or an undo; NULL: none
     * has. */
    struct flight_key *observed;
    unsigned observed_on;
    struct answer answer; /* FAILED: the node could not say */
    bool tracked;         /* the node will report the next change of the key */
    bool forgot_script;   /* FAILED because the node lacks the script: send it in full */

    /* A key that has changed; NULL: none. Valid as long as the reply. */
    const char *changed;
    size_t changed_len;
    unsigned changed_on;

    /* A key that was handed over while another daemon waits. That daemon needs it to be free for
     * contention_need_ns; 0: no longer than usual. NULL: none. */
    struct flight_key *contended;
    int64_t contention_need_ns;

    /* The key of an answer to write_far_query(): how long a far waiter of another daemon needs
     * it to be free; 0: this master knows of no far waiter. NULL: no answer. */
    struct flight_key *sought;
    int64_t sought_need_ns;

    uint32_t votes_lost;  /* nodes that have lost their vote, each for its reason in lost_for */
    uint32_t probes_lost; /* nodes whose connection was lost, with all key probes under way */
    uint32_t untracked;   /* nodes that report no more changes */
    uint32_t probe_again; /* nodes on which any key may have changed, or that vote again */
    enum reason lost_for[LIMIT_NODES];
};

/*
 * A vote, or a batch of unfenced votes, kept until the guard has passed. Nearly all votes are plain
 * YES answers, most of them in batches, and a batch is kept as one entry. Votes with other answers
 * are kept one by one.
 */
struct kept_vote {
    struct flight *flight;
    int64_t sent_ns;
    uint32_t epoch;
    /* The number of YES votes in this batch, beginning with `flight`; 0: a single other answer. */
    uint32_t unfenced;
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
    struct flight_list settled; /* settled rounds, in this order, until they are concluded */
    struct flights_news news;
    struct flight_keys idle_keys; /* keys that may be unused; the lock manager sweeps them */

    STAILQ_HEAD(, flight) batched;   /* releases to be written at the end of this pass */
    STAILQ_HEAD(, flight) unwritten; /* releases that a node did not accept */
    uint32_t unguarded;              /* nodes asked for votes since their last probe */
    bool guard_has_work;             /* the guard may have something to write */

    /* Votes that wait for the probe after them: LIMIT_LINK_KEPT for each node. */
    struct kept_vote *votes;
    struct answer *vote_answers;
    unsigned vote_count[LIMIT_NODES];
    /* Unfenced votes asked for so far, and the flight of the last one, which may have ended. */
    uint32_t unfenced_votes;
    struct flight *last_unfenced;

    unsigned far_queries;      /* number of write_far_query() commands sent */
    char daemon[REDIS_DAEMON]; /* id of this daemon, for other daemons */
    char absent_key[LIMIT_KEY_PREFIX + sizeof("redlockd set?") + REDIS_DAEMON]; /* see master.h */
    /* Buffer for the next command. Its content is passed on before another command is formatted. */
    char command[REDIS_RELEASES_MAX];

    void *outstanding_memory;
    struct pending_release *pending_releases;
};

/* Returns false if there is not enough memory; call flights_deinit() in this case too. rules, io
 * and stats must outlive flights. */
bool flights_init(struct flights *flights, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, int64_t now_ns);
void flights_deinit(struct flights *flights);

/* The logins in the rules have changed; the next connections use them. */
void flights_update_logins(struct flights *flights);

/* --- random --- */

uint32_t flights_random(struct flights *flights);
/* Write LIMIT_TOKEN digits: a new token; or the frozen form of a token, unique to one BREAK. */
void flights_make_token(struct flights *flights, char *token);
void flights_freeze_token(struct flights *flights, const char *token, char *frozen);

/* --- rounds --- */

/* Open a flight; NULL if the pool is empty. Either flights_start() or flights_drop() must
 * follow. */
struct flight *flights_open(struct flights *flights, struct flight_key *key, enum round_kind kind,
                            int64_t ttl_ns);
void flights_drop(struct flights *flights, struct flight *flight);

void flights_start(struct flights *flights, struct flight *flight, int64_t now_ns);

/* The nodes that can take both rounds of a hand-over. */
uint32_t flights_hand_over_nodes(struct flights *flights, struct flight_key *key, int64_t now_ns);
/* Start both rounds of a hand-over; `nodes` get both as one command. */
void flights_hand_over(struct flights *flights, struct flight *release, struct flight *acquire,
                       uint32_t nodes, int64_t now_ns);

/* No client waits for the reply any more. */
void flights_cancel(struct flights *flights, struct flight *flight, int64_t now_ns);

/* A token is going to be released: extensions under way must no longer backfill it. */
void flights_forbid_backfill(struct flights *flights, struct flight_key *key, const char *token,
                             int64_t now_ns);

/* There is no room for a round: record a pending release for each of these nodes. */
void flights_defer_release(struct flights *flights, const struct flight_key *key, const char *token,
                           uint32_t nodes, int64_t now_ns);

/*
 * A release has found its token on less than a quorum. A failed BREAK may have left the token
 * frozen, and a node's own compare-and-delete does not recognize the frozen form. Send the
 * script to the nodes that found the key absent.
 */
void flights_release_frozen(struct flights *flights, const struct flight *flight, int64_t now_ns);

/* The first settled round; NULL: none. The caller does what follows from it and then calls
 * flights_conclude(). delivered is false if no client heard of the grant, which is then undone. */
struct flight *flights_next_settled(struct flights *flights);
void flights_conclude(struct flights *flights, struct flight *flight, bool delivered,
                      int64_t now_ns);

/* The deadline of the first voting round, INT64_MAX without one; and the handler of each
 * deadline that has passed. */
int64_t flights_deadline_ns(const struct flights *flights);
void flights_on_deadline(struct flights *flights, int64_t now_ns);

/* --- for replies.c --- */

/* A node has answered a command of a round. */
void flights_deliver(struct flights *flights, unsigned node, struct flight *flight,
                     enum round_command command, const struct answer *answer, int64_t now_ns);
/* A command of a round has failed on a node. */
void flights_fail(struct flights *flights, unsigned node, struct flight *flight,
                  enum round_command command, enum reason reason, int64_t now_ns);
/* What a swap has answered about the token that is released. */
void flights_deliver_to_partner(struct flights *flights, unsigned node, struct flight *flight,
                                const struct answer *answer, int64_t now_ns);
/* The round is finished and concluded: free the flight. */
void flights_end(struct flights *flights, struct flight *flight);

static inline bool flights_is_over(const struct flight *flight)
{
    return round_is_finished(&flight->round) && !flight->settled;
}

/* Deliver one of many votes, most of which decide nothing. */
static inline void flights_deliver_vote(struct flights *flights, unsigned node,
                                        struct flight *flight, const struct answer *answer,
                                        int64_t now_ns)
{
    if (answer->kind != ANSWER_YES || !round_add_vote_fast(&flight->round, node, now_ns))
        flights_deliver(flights, node, flight, ROUND_VOTE, answer, now_ns);
    else if (flights_is_over(flight))
        flights_end(flights, flight);
}

/* At the end of the pass: fail the releases that a node did not accept. */
void flights_fail_unwritten(struct flights *flights, int64_t now_ns);

#endif
