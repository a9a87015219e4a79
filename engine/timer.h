/*
 * What is to happen at some time: a set of timers in order of their time. Pure, and intrusive: an
 * timer lies inside of what it is for, so setting one costs no memory.
 *
 * It is a pairing heap: from each timer hang others that are due behind it, in no order, so that
 * one that is set behind all others costs a comparison, and one that nothing hangs from costs
 * nothing to take away. Most are taken away long before they are due. In whatever order, one of n
 * costs about the logarithm of n comparisons, over all of them; a single one may cost n: the first
 * that is taken away of many that were only set, and puts them in order for those that follow.
 */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER INT64_MAX

/* All zero is an timer that is not set. */
struct timer {
    struct timer *below;  /* the first that hangs from it */
    struct timer *next;   /* ... and the next that hangs from where it does itself */
    struct timer **place; /* what points to it */
    int64_t at_ns;        /* if it is set */
    uint64_t serial;      /* the one that was set first comes first */
    bool set;
    uint8_t kind; /* of the owner: what it lies inside of */
};

struct timers {
    struct timer *first; /* all others hang from it */
    uint64_t serial;
    int64_t first_ns; /* when the first is due; TIMER_NEVER if none is set */
};

void timers_init(struct timers *timers);

/* Set it, or move it; TIMER_NEVER takes it away. */
void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns);

/* The first of those that are due, which then is not set any more; NULL if none is due. */
struct timer *timers_take(struct timers *timers, int64_t now_ns);

#endif
