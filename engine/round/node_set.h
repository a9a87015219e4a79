/*
 * A set of nodes: bit i is node i of the configuration, of which there are LIMIT_NODES at most.
 * Pure.
 */
#ifndef ENGINE_ROUND_NODE_SET_H
#define ENGINE_ROUND_NODE_SET_H

#include <stdint.h>

/* The set of this node alone; and all, of so many. */
static inline uint32_t nodes_only(unsigned node)
{
    return UINT32_C(1) << node;
}

static inline uint32_t nodes_all(unsigned count)
{
    return nodes_only(count) - 1;
}

/* How many are in it. */
unsigned nodes_count(uint32_t nodes);

/* By when `quorum` nodes are ready at the earliest: `ready` of them are, and each node of the set
 * is at its time. INT64_MAX: never, as far as is known. */
int64_t nodes_quorum_ns(unsigned quorum, unsigned ready, uint32_t nodes, const int64_t *times_ns);

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
