/*
 * What the engine counts, since its start.
 */
#ifndef ENGINE_STATS_H
#define ENGINE_STATS_H

#include <stdint.h>

#include "engine/histogram.h"
#include "engine/round/round.h"
#include "protocol/limits.h"
#include "protocol/outcome.h"
#include "protocol/reason.h"

/* Why a HOLD was lost: the word that LOST says, and what it means to a person. */
enum engine_loss {
    LOSS_GONE,
    LOSS_LIMIT,
    LOSS_LATE,
    LOSS_NOQUORUM,
    LOSS_OVERDUE,
    LOSS_SHUTDOWN,
    ENGINE_LOSSES,
};
extern const struct engine_loss_words {
    const char *word;
    const char *meaning;
} engine_losses[ENGINE_LOSSES];

/* What STATS and the metrics show: counts since the start, of rounds that clients ask for. */
enum { OUTCOME_COUNT = OUTCOME_OUTBID + 1, ROUND_KINDS = ROUND_STATUS + 1 };

struct engine_stats {
    uint64_t outcomes[ROUND_KINDS][OUTCOME_COUNT];
    uint64_t undone; /* LOCKs whose client had gone before they were answered */
    uint64_t backfilled;
    uint64_t deferred_releases; /* releases that had to be kept for later */
    uint64_t asked;             /* acquiring rounds */
    uint64_t handovers;         /* ... that took a lock over from its holder, and were granted */
    uint64_t key_probes;        /* at a key, on one node */
    uint64_t renewals;          /* extensions of a HOLD */
    uint64_t lost;              /* HOLDs that were */
    uint64_t broken;            /* releases by force */
    uint64_t losses[ENGINE_LOSSES];
    /* Rounds in which a node had no vote, by reason, as of their decision; releases need none. */
    uint64_t refused[LIMIT_NODES][REASON_COUNT];
    struct histogram granted;       /* LOCKs that were, from the request to the answer */
    struct histogram granted_round; /* ... the round that granted it alone */
    struct histogram queued;        /* LOCKs with WAIT, until that round, or their wait was over */
};

#endif
