/*
 * A set of nodes: bit i is node i of the configuration. Pure.
 */
#ifndef PROTOCOL_NODES_H
#define PROTOCOL_NODES_H

#include <stdint.h>

/*
 * How many are in it. Each step of a round asks that several times, and where the compiler may not
 * rely on an instruction for it, as on the oldest x86-64, its own way is a call of a library: so
 * the bits are added here, first in pairs, then in fours and eights.
 */
static inline unsigned nodes_count(uint32_t nodes)
{
    nodes -= nodes >> 1 & 0x55555555;
    nodes = (nodes & 0x33333333) + (nodes >> 2 & 0x33333333);
    nodes = (nodes + (nodes >> 4)) & 0x0f0f0f0f;
    return nodes * 0x01010101 >> 24;
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
