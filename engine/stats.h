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

#endif
