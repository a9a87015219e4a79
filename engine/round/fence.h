/*
 * Fencing tokens: ballots, not counters. Pure.
 *
 * A grant with a fence stores its ballot on each node that votes for it, and a node refuses a
 * ballot that is not greater than what it has stored for that resource. Two majorities share a
 * node, so a later grant's fence is greater than every earlier one's. A proposal follows the wall
 * clock, so that this stays true where a node has lost its ballots with its data; docs/algorithm.md
 * has the argument and what it takes for granted.
 *
 * A ballot is the wall clock in microseconds, or a little more; below 2^53, so that Lua and
 * JavaScript hold it exactly, until the year 2255.
 */
#ifndef ENGINE_ROUND_FENCE_H
#define ENGINE_ROUND_FENCE_H

#include <stdint.h>

/* What a daemon proposes from: its last proposal that followed the clock. */
struct fence {
    int64_t last;
};

/*
 * The next ballot at this time (microseconds since 1970): greater than every earlier one of this
 * daemon that followed the clock, and than `seen`, the largest met on the masters for the resource,
 * 0 for none. What was seen is nothing to other resources: one that bears an absurd ballot must not
 * lift them all. 0 if there is none left below 2^53.
 */
int64_t fence_propose(struct fence *fence, int64_t wall_us, int64_t seen);

#endif
