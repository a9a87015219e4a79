/*
 * Fencing tokens: ballots, not counters. Pure.
 *
 * A grant with a fence stores its ballot on each node that votes for it. A node refuses a ballot
 * that is not greater than the one it has stored for that resource. Two majorities share a node, so
 * the fence of a later grant is greater than that of every earlier one. Proposals follow the wall
 * clock, so that this stays true even after a node has lost its ballots together with its data.
 * docs/design/algorithm.md has the argument and its assumptions.
 *
 * A ballot is the wall clock in microseconds, or a little more. It stays below 2^53 until the year
 * 2255; Lua and JavaScript represent such numbers exactly.
 */
#ifndef ENGINE_ROUND_FENCE_H
#define ENGINE_ROUND_FENCE_H

#include <stdint.h>

/* The last proposal of this daemon, as it was before fence_propose() raised it above `seen`. */
struct fence {
    int64_t last;
};

/*
 * The next ballot at wall_us (microseconds since 1970). It is greater than every earlier ballot of
 * this daemon that followed the clock. It is also greater than `seen`, the largest ballot that the
 * masters have shown for the resource (0: none). `seen` does not affect later proposals: an absurd
 * ballot of one resource must not raise the ballots of all others. Returns 0 if no ballot below
 * 2^53 is left.
 */
int64_t fence_propose(struct fence *fence, int64_t wall_us, int64_t seen);

#endif
