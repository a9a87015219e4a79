#include "engine/round/node_set.h"

#include <assert.h>

#include "protocol/limits.h"

/* The sizes of all sets of n nodes, plus `count`: first the sets without the last node, then those
 * with it. ONE is for n = 1, TWO for n = 2, and so on. */
#define ONE(count)   (count), (count) + 1
#define TWO(count)   ONE(count), ONE((count) + 1)
#define THREE(count) TWO(count), TWO((count) + 1)
#define SIX(count)                                                                                 \
    THREE(count), THREE((count) + 1), THREE((count) + 1), THREE((count) + 2), THREE((count) + 1),  \
        THREE((count) + 2), THREE((count) + 2), THREE((count) + 3)
#define NINE(count)                                                                                \
    SIX(count), SIX((count) + 1), SIX((count) + 1), SIX((count) + 2), SIX((count) + 1),            \
        SIX((count) + 2), SIX((count) + 2), SIX((count) + 3)
#define TWELVE(count)                                                                              \
    NINE(count), NINE((count) + 1), NINE((count) + 1), NINE((count) + 2), NINE((count) + 1),       \
        NINE((count) + 2), NINE((count) + 2), NINE((count) + 3)
#define FIFTEEN(count)                                                                             \
    TWELVE(count), TWELVE((count) + 1), TWELVE((count) + 1), TWELVE((count) + 2),                  \
        TWELVE((count) + 1), TWELVE((count) + 2), TWELVE((count) + 2), TWELVE((count) + 3)

/* A table of the sizes of all possible sets. The popcnt instruction would be shorter, but compilers
 * do not use it because the oldest x86-64 processors lack it. The table saves 4 % of the daemon's
 * instructions at 16x16 (16 connections with 16 requests in flight on each). */
static const uint8_t counts[] = {FIFTEEN(0)};

unsigned nodes_count(uint32_t nodes)
{
    static_assert(sizeof(counts) == 1 << LIMIT_NODES, "one entry for each set");
    return counts[nodes & (sizeof(counts) - 1)];
}

int64_t nodes_quorum_ns(unsigned quorum, unsigned ready, uint32_t nodes, const int64_t *times_ns)
{
    int64_t earliest_ns = INT64_MAX;
    /* There are few nodes: for the time of each node, count how many are ready by then. */
    for (uint32_t rest = nodes; rest != 0; rest = nodes_after_first(rest)) {
        int64_t at_ns = times_ns[nodes_first(rest)];
        unsigned by_then = ready;
        for (uint32_t others = nodes; others != 0; others = nodes_after_first(others))
            by_then += times_ns[nodes_first(others)] <= at_ns;
        if (by_then >= quorum && at_ns < earliest_ns)
            earliest_ns = at_ns;
    }
    return earliest_ns;
}
