/*
 * All rounds in flight: the layer below the lock manager. Given a key, a kind of round and a token,
 * it starts a round. It batches what goes to the masters in one pass. It keeps each vote until the
 * guard's probe after it has passed. Then it steps the round, and puts each settled round on a
 * list. It knows nothing of clients, queues or HOLDs.
 *
 *     flights_start -> round_step -> write.c writes the commands, or batches them until the end of
 *                      the pass
 *     replies.h     -> keeps votes -> the guard's probe passes -> round_step -> flights->settled
 *     flights->settled -> the lock manager acts on the outcome -> flights_conclude
 *
 * flights->news holds everything else that the lock manager must learn. If a function of engine.h
 * settles a round or adds news, it also acts on both before it returns. That happens in one
 * place: finish() in engine.c.
 */
#ifndef ENGINE_FLIGHT_FLIGHTS_H
#define ENGINE_FLIGHT_FLIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/flight/admission.h"
#include "engine/flight/flight.h"
#include "engine/flight/io.h"
#include "engine/guard/guard.h"
#include "engine/master/master.h"
#include "engine/pool.h"
#include "engine/stats.h"
#include "protocol/limits.h"
#include "protocol/redis.h"

struct flights;

/* What the lock manager must learn from the replies and states of the masters. One reply sets each
 * of `observed`, `changed`, `contended` and `sought` at most once, and the lock manager reads the
 * news before the next reply is handled. The uint32_t fields at the end are sets of nodes. */
struct flights_news {
    bool any;

    /* Observation: a node has said what holds this key, in its reply to a key probe or an undo;
     * NULL: no observation. */
    struct flight_key *observed;
    unsigned observed_on;
    struct answer answer; /* what holds the key; FAILED: the reply does not say */
    bool tracked;         /* the node will report the next change of the key */
    /* FAILED because the node lacks the script: send the command with the whole script. */
    bool forgot_script;

    /* A master has reported that this key has changed; NULL: no report. The string is valid as long
     * as the reply. */
    const char *changed;
    size_t changed_len;
    unsigned changed_on;

    /* This key was handed over while another daemon waits for it; NULL: no such key. That daemon
     * needs the key to be free for contention_need_ns; 0: the usual pauses are long enough. */
    struct flight_key *contended;
    int64_t contention_need_ns;

    /* A master has replied to write_far_query() for this key; NULL: no such reply. sought_need_ns:
     * how long a far waiter of another daemon needs the key to be free; 0: this master knows of no
     * far waiter. */
    struct flight_key *sought;
    int64_t sought_need_ns;

    uint32_t votes_lost; /* nodes that have lost their vote; the reasons are in lost_for */
    /* Nodes whose connection was lost, and with it the key probes under way. */
    uint32_t probes_lost;
    uint32_t untracked; /* nodes that report no more changes */
    /* Nodes where any key may have changed, or that have got their vote back. */
    uint32_t probe_again;
    enum reason lost_for[LIMIT_NODES];
};

/*
 * One entry of the list of votes that wait for the guard's probe. It is a single vote, or a batch
 * of YES answers to unfenced votes. (A vote is unfenced if the plain answer OK means YES:
 * engine/master/link.h.) Nearly all votes are such YES answers, and most of them come in batches,
 * so an entry for a whole batch saves work. Every other vote has an entry of its own.
 */
struct kept_vote {
    struct flight *flight;
    int64_t sent_ns;
    uint32_t epoch;
    /* The number of YES answers in this batch; `flight` is the flight of the first. 0: this entry
     * is a single vote, and its answer is in vote_answers. */
    uint32_t unfenced;
};

struct flights {
    const struct engine_rules *rules;
    const struct engine_io *io;
    struct engine_stats *stats;
    unsigned node_count;
    struct master masters[LIMIT_NODES];
    struct guard guard;

    struct pool pool;
    struct admission admission;
    struct flight_list voting; /* started but not settled rounds, earliest deadline first */
    /* Rounds that are settled but not concluded, in the order of settling. */
    struct flight_list settled;
    struct flights_news news;
    struct flight_keys idle_keys; /* keys that may be unused; the lock manager empties this list */

    STAILQ_HEAD(, flight) batched;   /* releases to be written at the end of this pass */
    STAILQ_HEAD(, flight) unwritten; /* releases that some node has refused to take */
    uint32_t unprobed;   /* nodes that were asked for votes after the last probe was written */
    bool guard_has_work; /* the guard may have something to send to the masters */

    /* The votes that wait for the guard's probe, with room for LIMIT_LINK_KEPT entries for each
     * node. */
    struct kept_vote *votes;
    struct answer *vote_answers;
    unsigned vote_count[LIMIT_NODES];
    /* The number of rounds that have asked for unfenced votes, and the flight of the last of them.
     * That flight may have ended. The pointer is used only while the batch of that flight waits for
     * an answer, and then the flight still exists. */
    uint32_t unfenced_votes;
    struct flight *last_unfenced;

    unsigned far_queries;      /* number of write_far_query() commands sent */
    char daemon[REDIS_DAEMON]; /* the id by which other daemons know this one */
    /* A key with the prefix of the locks that no lock can have. The guard uses it to test SET. */
    char absent_key[LIMIT_KEY_PREFIX + sizeof("redlockd set?") + REDIS_DAEMON];
    /* Buffer for the next command. Its content is always passed on before another command is
     * formatted. */
    char command[REDIS_RELEASES_MAX];

    void *outstanding_memory;
    struct pending_release *pending_releases;
};

/* Returns false if there is not enough memory; flights_deinit() has to be called in this case too.
 * rules, io and stats must outlive flights. */
bool flights_init(struct flights *flights, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, int64_t now_ns);
void flights_deinit(struct flights *flights);

/* --- tokens --- */

/* Write a new random token of LIMIT_TOKEN digits to `token`. */
void flights_make_token(struct flights *flights, char *token);
/* Write a frozen form of the token to `frozen`. It has the same length, and differs for each
 * BREAK. */
void flights_freeze_token(struct flights *flights, const char *token, char *frozen);

/* --- rounds --- */

/* Open a flight; NULL if the pool is empty. The caller then calls flights_start(),
 * flights_hand_over() or flights_drop(). */
struct flight *flights_open(struct flights *flights, struct flight_key *key, enum round_kind kind,
                            int64_t ttl_ns);
void flights_drop(struct flights *flights, struct flight *flight);

/* Start the round. If it is a RELEASE, nodes that cannot be written to get a pending release. An
 * acquire or a status round must have been admitted (flights_has_room()), except for a second bid,
 * the acquire of a hand-over, the first round of a BREAK, and a round of a survey that has no other
 * round under way. */
void flights_start(struct flights *flights, struct flight *flight, int64_t now_ns);
/* May another acquire or status round start (engine/flight/admission.h)? */
bool flights_has_room(const struct flights *flights);
/* Call this at the end of a pass: the limit of rounds adapts to the masters' latency. */
void flights_adapt(struct flights *flights, int64_t now_ns);

/* The nodes that can take the swap of a hand-over. Releases of this key that are still batched are
 * written first. */
uint32_t flights_hand_over_nodes(struct flights *flights, struct flight_key *key, int64_t now_ns);
/* Start both rounds of a hand-over. `nodes` get the swap; the other nodes get the release only. */
void flights_hand_over(struct flights *flights, struct flight *release, struct flight *acquire,
                       uint32_t nodes, int64_t now_ns);

/* The client of the round has gone and waits for no reply: cancel the round. An acquire is
 * undone. */
void flights_cancel(struct flights *flights, struct flight *flight, int64_t now_ns);

/* A token is going to be released: from now on, extensions under way must not backfill it. */
void flights_forbid_backfill(struct flights *flights, struct flight_key *key, const char *token,
                             int64_t now_ns);

/* There is no room for a release round: record a pending release for each of these nodes
 * instead. */
void flights_defer_release(struct flights *flights, const struct flight_key *key, const char *token,
                           uint32_t nodes, int64_t now_ns);

/*
 * A release has found its token on less than a quorum of the nodes. The cause may be a failed BREAK
 * that has left the token frozen, because the compare-and-delete command of a node does not
 * recognize the frozen form. So each node that has such a command and did not find the token gets a
 * pending release, which is sent as release.lua. A node that has a pending release already gets no
 * other one.
 */
void flights_release_frozen(struct flights *flights, const struct flight *flight, int64_t now_ns);

/* Conclude a round of flights->settled, after the caller has acted on its outcome. `delivered` is
 * false if the round granted a lock but the grant reached no client; the grant is then undone. */
void flights_conclude(struct flights *flights, struct flight *flight, bool delivered,
                      int64_t now_ns);

/* The earliest deadline of the rounds that are not settled; INT64_MAX: there are none. */
int64_t flights_deadline_ns(const struct flights *flights);
/* Step each round whose deadline had passed at heard_ns. */
void flights_on_deadline(struct flights *flights, int64_t heard_ns, int64_t now_ns);

/* --- for replies.c --- */

/* A node has answered a command of a round. */
void flights_deliver(struct flights *flights, unsigned node, struct flight *flight,
                     enum round_command command, const struct answer *answer, int64_t now_ns);
/* A command of a round has failed on a node. */
void flights_fail(struct flights *flights, unsigned node, struct flight *flight,
                  enum round_command command, enum reason reason, int64_t now_ns);
/* `flight` is the acquire of a hand-over, whose swap was answered or has failed on a node. Pass on
 * to its partner, the release, what the answer says about the old token. */
void flights_deliver_to_partner(struct flights *flights, unsigned node, struct flight *flight,
                                const struct answer *answer, int64_t now_ns);
/* The round is finished and concluded: free the flight. */
void flights_end(struct flights *flights, struct flight *flight);

static inline bool flights_is_over(const struct flight *flight)
{
    return round_is_finished(&flight->round) && !flight->settled;
}

/* Like flights_deliver(), for a vote. It is fast for YES votes that do not decide the round, which
 * is the case for most votes. */
static inline void flights_deliver_vote(struct flights *flights, unsigned node,
                                        struct flight *flight, const struct answer *answer,
                                        int64_t now_ns)
{
    if (answer->kind != ANSWER_YES || !round_add_vote_fast(&flight->round, node, now_ns))
        flights_deliver(flights, node, flight, ROUND_VOTE, answer, now_ns);
    else if (flights_is_over(flight))
        flights_end(flights, flight);
}

/* At the end of the pass: the releases in flights->unwritten have failed on the nodes that refused
 * to take them. */
void flights_fail_unwritten(struct flights *flights, int64_t now_ns);

#endif
