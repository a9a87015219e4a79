/*
 * Fencing tokens: ballots, not counters. Pure.
 *
 * A grant with a fence stores its ballot on each node that votes for it, and a node refuses a
 * ballot that is not greater than the one it has stored for that resource. Two majorities share a
 * node, so a later grant's fence is greater than every earlier one's. Proposals follow the wall
 * clock, so that this stays true where a node has lost its ballots with its data. docs/algorithm.md
 * has the argument and its assumptions.
 *
 * A ballot is the wall clock in microseconds, or a little more. It stays below 2^53, which Lua and
 * JavaScript represent exactly, until the year 2255.
 */
#ifndef ENGINE_ROUND_FENCE_H
#define ENGINE_ROUND_FENCE_H

#include <stdint.h>

/* The daemon's last proposal that followed the clock. */
struct fence {
    int64_t last;
};

/*
 * The next ballot at wall_us (microseconds since 1970). It is greater than every earlier ballot of
 * this daemon that followed the clock, and greater than `seen`, the largest ballot that the masters
 * have shown for the resource, or 0. `seen` does not affect later proposals: an absurd ballot of
 * one resource must not raise those of all others. Returns 0 if no ballot below 2^53 is left.
 */
int64_t fence_propose(struct fence *fence, int64_t wall_us, int64_t seen);

#endif
