/* A set of nodes: bit i stands for node i of the configuration, which has at most LIMIT_NODES
 * nodes. Pure. */
#ifndef ENGINE_ROUND_NODE_SET_H
#define ENGINE_ROUND_NODE_SET_H

#include <stdint.h>

/* nodes_only(): the set that contains one node. nodes_all(): the set of the first `count` nodes. */
static inline uint32_t nodes_only(unsigned node)
{
    return UINT32_C(1) << node;
}

static inline uint32_t nodes_all(unsigned count)
{
    return nodes_only(count) - 1;
}

/* The number of nodes in the set. */
unsigned nodes_count(uint32_t nodes);

/* The earliest time at which `quorum` nodes are ready. `ready` nodes are ready now, and each node
 * in the set `nodes` becomes ready at its time in times_ns. INT64_MAX: never, as far as is
 * known. */
int64_t nodes_quorum_ns(unsigned quorum, unsigned ready, uint32_t nodes, const int64_t *times_ns);

/* To iterate over a set: its first node, and the set without that node. The set must not be
 * empty. */
static inline unsigned nodes_first(uint32_t nodes)
{
    return (unsigned)__builtin_ctz(nodes);
}

static inline uint32_t nodes_after_first(uint32_t nodes)
{
    return nodes & (nodes - 1);
}

#endif
