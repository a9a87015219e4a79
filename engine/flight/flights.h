/*
 * All rounds in flight: the layer below the lock manager. It starts a round for a key, a kind and a
 * token. It batches what goes to the masters in one pass, keeps votes until the guard's probe after
 * them has passed, steps the round, and puts each settled round on a list. It knows nothing of
 * clients, queues or holds.
 *
 *     flights_start -> round_step -> write.c writes the commands, or batches them until the end of
 *                      the pass
 *     replies.h     -> keep votes -> the guard's probe passes -> round_step -> flights->settled
 *     flights_next_settled -> the lock manager acts on the outcome -> flights_conclude
 *
 * flights->news holds everything else that the lock manager must learn. A function of engine.h that
 * settles a round or adds news handles both before it returns, in one place: finish() in engine.c.
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

/* The context of the I/O callbacks: one for all links and one for all trackers, so that a callback
 * knows its channel. */
struct flights_wire {
    struct flights *flights;
    enum channel channel;
};

/* What the lock manager must learn from the masters' replies and states. One reply sets each key
 * here at most once, and the lock manager reads the news before the next reply. The masks at the
 * end are sets of nodes. */
struct flights_news {
    bool any;

    /* The key that a node reported on, in its reply to a key probe or an undo; NULL: no report. */
    struct flight_key *observed;
    unsigned observed_on;
    struct answer answer; /* the report; FAILED: the reply does not say what holds the key */
    bool tracked;         /* the node will report the next change of the key */
    bool forgot_script;   /* FAILED because the node lacks the script: send it in full */

    /* A key that has changed; NULL: none. Valid as long as the reply. */
    const char *changed;
    size_t changed_len;
    unsigned changed_on;

    /* A key that was handed over while another daemon waits for it; NULL: none. That daemon needs
     * the key to be free for contention_need_ns; 0: no longer than usual. */
    struct flight_key *contended;
    int64_t contention_need_ns;

    /* The key that a master's reply to write_far_query() is about; NULL: no reply. A far waiter of
     * another daemon needs the key to be free for sought_need_ns; 0: the master knows of no far
     * waiter. */
    struct flight_key *sought;
    int64_t sought_need_ns;

    uint32_t votes_lost;  /* nodes that have lost their vote; lost_for has the reasons */
    uint32_t probes_lost; /* nodes whose connection was lost, with all key probes under way */
    uint32_t untracked;   /* nodes that report no more changes */
    uint32_t probe_again; /* nodes on which any key may have changed, or that vote again */
    enum reason lost_for[LIMIT_NODES];
};

/*
 * One entry of the votes that wait for the guard's probe: a single vote, or a batch of YES answers
 * to unfenced votes. A vote is unfenced if a plain OK means YES (engine/master/link.h). Nearly all
 * votes are such YES answers, most of them in batches, so one entry for a batch saves work. Every
 * other vote has its own entry.
 */
struct kept_vote {
    struct flight *flight;
    int64_t sent_ns;
    uint32_t epoch;
    /* The number of YES answers in this batch, the first for `flight`; 0: this entry is a single
     * vote, and vote_answers has its answer. */
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
    struct flight_list voting;  /* unsettled rounds, earliest deadline first */
    struct flight_list settled; /* settled but not concluded rounds, in the order of settling */
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
    /* The number of rounds that have asked for unfenced votes, and the flight of the last one. That
     * flight may have ended: the pointer is used only while its batch still waits for an answer. */
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
/* Write a new token, LIMIT_TOKEN digits. */
void flights_make_token(struct flights *flights, char *token);
/* Write the frozen form of a token, of the same length. It differs for each BREAK. */
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

/* Tell the round that its client has gone and waits for no reply. */
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

/* The first settled round; NULL: none. The caller acts on the outcome and then calls
 * flights_conclude(). `delivered` is false if the round granted a lock but no client was told; the
 * round then undoes the grant. */
struct flight *flights_next_settled(struct flights *flights);
void flights_conclude(struct flights *flights, struct flight *flight, bool delivered,
                      int64_t now_ns);

/* The earliest deadline of the unsettled rounds; INT64_MAX: there are none. */
int64_t flights_deadline_ns(const struct flights *flights);
/* Step each round whose deadline has passed. */
void flights_on_deadline(struct flights *flights, int64_t now_ns);

/* --- for replies.c --- */

/* A node has answered a command of a round. */
void flights_deliver(struct flights *flights, unsigned node, struct flight *flight,
                     enum round_command command, const struct answer *answer, int64_t now_ns);
/* A command of a round has failed on a node. */
void flights_fail(struct flights *flights, unsigned node, struct flight *flight,
                  enum round_command command, enum reason reason, int64_t now_ns);
/* `flight` is the acquire of a hand-over, and its swap was answered or has failed on a node.
 * Deliver what the answer says about the old token to the partner, the release. */
void flights_deliver_to_partner(struct flights *flights, unsigned node, struct flight *flight,
                                const struct answer *answer, int64_t now_ns);
/* The round is finished and concluded: free the flight. */
void flights_end(struct flights *flights, struct flight *flight);

static inline bool flights_is_over(const struct flight *flight)
{
    return round_is_finished(&flight->round) && !flight->settled;
}

/* As flights_deliver(), for a vote. Fast for YES votes that do not decide the round, which most do
 * not. */
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
