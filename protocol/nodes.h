/*
 * A set of nodes: bit i is node i of the configuration, of which there are LIMIT_NODES at most.
 * Pure.
 */
#ifndef PROTOCOL_NODES_H
#define PROTOCOL_NODES_H

#include <assert.h>
#include <stdint.h>

#include "protocol/limits.h"

/*
 * How many are in it. Each step of a round asks that several times, and where the compiler may not
 * rely on an instruction for it, as on the oldest x86-64, its own way is a call of a library: so
 * there is a table of the counts of all sets of eight.
 */
extern const uint8_t nodes_counts[256];

static inline unsigned nodes_count(uint32_t nodes)
{
    static_assert(LIMIT_NODES <= 16, "two bytes hold all of them");
    return nodes_counts[nodes & 255] + nodes_counts[nodes >> 8 & 255];
}

/* The first of a set that is not empty, and the set without it: to go through all that are in it.
 */
static inline unsigned nodes_first(uint32_t nodes)
{
    return (unsigned)__builtin_ctz(nodes);
}

static inline uint32_t nodes_behind_first(uint32_t nodes)
{
    return nodes & (nodes - 1);
}

#endif
