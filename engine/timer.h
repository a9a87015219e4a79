/*
 * A set of timers, ordered by time. Pure. A timer is embedded in the struct that it serves, so
 * setting a timer allocates nothing.
 *
 * The set is a pairing heap: each timer has a list of children, which are due after it and are in
 * no order among themselves. Setting a timer that is not set takes one comparison. Removing a timer
 * that has no children takes no comparison, and most timers are removed long before they are due.
 * Any operation takes O(log n) comparisons amortized. A single removal can take n comparisons if it
 * is the first one after many insertions; that removal sorts the timers in part, so that later
 * removals are cheap.
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
    struct timer **link;   /* the pointer that points to this timer */
    int64_t at_ns;         /* valid if set */
    uint64_t serial;       /* of two timers with the same time, the one set first is due first */
    bool set;
    uint8_t kind; /* what the timer is for; set and read by its owner */
};

struct timers {
    struct timer *first; /* root of the heap */
    uint64_t serial;
    int64_t first_ns; /* time of the first timer; TIMER_NEVER if none is set */
};

void timers_init(struct timers *timers);

/* Set or move a timer; TIMER_NEVER removes it. */
void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns);

/* Remove and return the first timer that is due at now_ns; NULL if none is. */
struct timer *timers_take(struct timers *timers, int64_t now_ns);

#endif
