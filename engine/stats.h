/* Counters of the engine since its start. */
#ifndef ENGINE_STATS_H
#define ENGINE_STATS_H

#include <stdint.h>

#include "engine/histogram.h"
#include "engine/round/round.h"
#include "protocol/limits.h"
#include "protocol/outcome.h"
#include "protocol/reason.h"

/* Why a HOLD was lost: the word after LOST, and an explanation for people. */
enum engine_loss {
    LOSS_GONE,
    LOSS_LIMIT,
    LOSS_LATE,
    LOSS_NOQUORUM,
    LOSS_TIMED_OUT,
    LOSS_SHUTDOWN,
    ENGINE_LOSSES,
};
extern const struct engine_loss_words {
    const char *word;
    const char *meaning;
} engine_losses[ENGINE_LOSSES];

/* The words after LIMIT in replies of the engine, in engine/locks/manager.c. Those of the server
 * (clients, unauthenticated, secrets) concern a connection and are not among them. */
enum { ENGINE_LIMITS = 12 };
extern const char *const engine_limits[ENGINE_LIMITS];

/* Counters that STATS and the metrics show. `outcomes` has the replies to LOCK, EXTEND, UNLOCK and
 * STATUS; rounds that no client requested are not counted there. OUTCOME_OUTBID is no reply: it
 * counts the rounds after which a LOCK with FENCE tried once more. ROUND_KINDS leaves out
 * ROUND_FREEZE, which no client requests. */
enum { OUTCOME_COUNT = OUTCOME_OUTBID + 1, ROUND_KINDS = ROUND_STATUS + 1 };

struct engine_stats {
    uint64_t outcomes[ROUND_KINDS][OUTCOME_COUNT];
    uint64_t undone;            /* LOCKs undone because their client left before the reply */
    uint64_t backfilled;        /* backfills, counted once for all nodes that get it together */
    uint64_t deferred_releases; /* releases recorded as pending, counted for each node */
    uint64_t acquire_rounds;    /* acquire rounds started */
    uint64_t handovers;         /* granted acquire rounds that took the lock over from its holder */
    uint64_t key_probes;        /* key probes sent, counted for each node */
    uint64_t renewals;          /* extensions of HOLDs started by the daemon itself */
    uint64_t lost;              /* HOLDs that were lost */
    uint64_t broken;            /* BREAKs that have begun to delete their lock */
    uint64_t losses[ENGINE_LOSSES];
    /* Replies LIMIT, by the word after it. Unlike `outcomes`, these include replies to BREAK. */
    uint64_t limits[ENGINE_LIMITS];
    /* For each node and reason: the number of rounds that were settled without a vote of the node,
     * because of this reason. Releases need no vote and are not counted. */
    uint64_t refused[LIMIT_NODES][REASON_COUNT];
    struct histogram granted;       /* granted LOCKs: from the request to the reply */
    struct histogram granted_round; /* granted LOCKs: the granted round alone */
    /* LOCKs with WAIT: from the request until the granted round began, or until the wait ended. */
    struct histogram queued;
    /* Requests that had to wait for their round to start: until it started, or was given up. */
    struct histogram held_back;
    uint64_t busy; /* requests answered LIMIT busy */
};

#endif
