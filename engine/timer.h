/*
 * A set of timers, ordered by time. Pure and intrusive: a timer is part of the struct that it is
 * for, so setting one allocates nothing.
 *
 * The set is a pairing heap: each timer has children that are due after it, in no order. To set a
 * timer that is due last costs one comparison, and to remove one without children costs nothing.
 * Most timers are removed long before they are due. An operation costs O(log n) comparisons
 * amortized. A single one may cost n: the first removal after many insertions, which puts them in
 * order for those that follow.
 */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER INT64_MAX

/* A timer of all zero bytes is not set. */
struct timer {
    struct timer *child;   /* first child */
    struct timer *sibling; /* next sibling */
    struct timer **link;   /* the pointer that points to it */
    int64_t at_ns;         /* valid if set */
    uint64_t serial;       /* orders timers of the same time by when they were set */
    bool set;
    uint8_t kind; /* of the owner: the struct that contains it */
};

struct timers {
    struct timer *first; /* root of the heap */
    uint64_t serial;
    int64_t first_ns; /* time of the first timer; TIMER_NEVER if none is set */
};

void timers_init(struct timers *timers);

/* Set or move a timer; TIMER_NEVER removes it. */
void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns);

/* Remove and return the first timer that is due; NULL if none is. */
struct timer *timers_take(struct timers *timers, int64_t now_ns);

#endif
