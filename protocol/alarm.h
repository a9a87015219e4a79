/*
 * What is to happen at some time: a set of alarms in order of their time. Pure, and intrusive: an
 * alarm lies inside of what it is for, so setting one costs no memory. The tree is that of libbsd.
 */
#ifndef PROTOCOL_ALARM_H
#define PROTOCOL_ALARM_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>

#define ALARM_NEVER INT64_MAX

/* All zero is an alarm that is not set. */
struct alarm {
    RB_ENTRY(alarm) entry;
    int64_t at_ns;   /* if it is set */
    uint64_t serial; /* the one that was set first comes first */
    bool set;
    uint8_t kind; /* of the owner: what it lies inside of */
};

RB_HEAD(alarm_tree, alarm);

struct alarms {
    struct alarm_tree tree;
    uint64_t serial;
    int64_t first_ns; /* when the first is due; ALARM_NEVER if none is set */
};

void alarms_init(struct alarms *alarms);

/* Set it, or move it; ALARM_NEVER takes it away. */
void alarms_set(struct alarms *alarms, struct alarm *alarm, int64_t at_ns);

/* The first of those that are due, which then is not set any more; NULL if none is due. */
struct alarm *alarms_take(struct alarms *alarms, int64_t now_ns);

#endif
