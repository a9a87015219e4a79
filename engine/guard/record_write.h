/*
 * Which record the guard wants to write to a master, and whether it may write it. Pure.
 *
 * identity.h says that a master needs a new record. This module decides about the content, and
 * checks what must be known of the other masters first: one faulty daemon must not disarm the rest,
 * a daemon with a wrong list of masters must write nothing, and an operator override needs all
 * masters.
 */
#ifndef ENGINE_GUARD_RECORD_WRITE_H
#define ENGINE_GUARD_RECORD_WRITE_H

#include "engine/guard/guard.h"

/* A record to write if the present one is still `expected`. */
struct record_write {
    const char *expected;    /* "" for none */
    char text[LIMIT_RECORD]; /* all but the value of join_us */
    int64_t quarantine_us;
    int64_t join_us;    /* lower limit for join_us */
    const char *run_id; /* a quarantine under way of this run is not shortened */
};

/* For reset_set: the last sign of life of the old set on this node, when the node's clock showed
 * time_us (0: none), and the daemon that left it ("": not known). */
void guard_on_sign_of_life(struct guard *guard, unsigned node, int64_t time_us, const char *daemon);

/* Is that sign so fresh that the daemon may still run? Then nothing is written. */
bool guard_old_set_may_run(const struct guard *guard, unsigned node, int64_t now_ns);

/* Is there a record to write? If so, a probe has to follow it. random: 64 random bits for the id
 * of a new quarantine. */
bool guard_take_record_write(struct guard *guard, unsigned node, int64_t now_ns, uint64_t random,
                             struct record_write *write);

#endif
