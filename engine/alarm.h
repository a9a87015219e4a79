/*
 * What is to happen at some time: a set of alarms in order of their time. Pure, and intrusive: an
 * alarm lies inside of what it is for, so setting one costs no memory.
 *
 * It is a pairing heap: from each alarm hang others that are due behind it, in no order, so that
 * one that is set behind all others costs a comparison, and one that nothing hangs from costs
 * nothing to take away. Most are taken away long before they are due. In whatever order, one of n
 * costs about the logarithm of n comparisons, over all of them; a single one may cost n: the first
 * that is taken away of many that were only set, and puts them in order for those that follow.
 */
#ifndef ENGINE_ALARM_H
#define ENGINE_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#define ALARM_NEVER INT64_MAX

/* All zero is an alarm that is not set. */
struct alarm {
    struct alarm *below;  /* the first that hangs from it */
    struct alarm *next;   /* ... and the next that hangs from where it does itself */
    struct alarm **place; /* what points to it */
    int64_t at_ns;        /* if it is set */
    uint64_t serial;      /* the one that was set first comes first */
    bool set;
    uint8_t kind; /* of the owner: what it lies inside of */
};

struct alarms {
    struct alarm *first; /* all others hang from it */
    uint64_t serial;
    int64_t first_ns; /* when the first is due; ALARM_NEVER if none is set */
};

void alarms_init(struct alarms *alarms);

/* Set it, or move it; ALARM_NEVER takes it away. */
void alarms_set(struct alarms *alarms, struct alarm *alarm, int64_t at_ns);

/* The first of those that are due, which then is not set any more; NULL if none is due. */
struct alarm *alarms_take(struct alarms *alarms, int64_t now_ns);

#endif
