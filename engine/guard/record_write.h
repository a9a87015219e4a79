/*
 * Which record the guard wants to write to a master, and whether it may write it. Pure.
 *
 * identity.h says that a master needs a new record. This module decides about the content, and
 * first checks what must be known of the other masters. One faulty daemon must not take away the
 * votes of all masters. A daemon with a wrong list of masters must write nothing. A record of an
 * operator override is written only while the daemon has samples of all masters.
 */
#ifndef ENGINE_GUARD_RECORD_WRITE_H
#define ENGINE_GUARD_RECORD_WRITE_H

#include "engine/guard/guard.h"

/* The arguments of write_record.lua: a record, to be written if the present one is still
 * `expected`. */
struct record_write {
    const char *expected;    /* "": there must be no record */
    char text[LIMIT_RECORD]; /* the new record without the value of join_us */
    int64_t quarantine_us;   /* length of the new quarantine; 0: it begins none */
    int64_t join_us;         /* lower limit for join_us */
    const char *run_id;      /* a quarantine under way of this run_id is not shortened */
};

/* For reset_set: a node has answered about signs of life of the old set. time_us: the last one, on
 * the clock of the node; 0: none. daemon: id of the daemon that left it; "": not known. */
void guard_on_sign_of_life(struct guard *guard, unsigned node, int64_t time_us, const char *daemon);

/* Is the last sign of life so fresh that a daemon of the old set may still run? Then no record of
 * that set is replaced. */
bool guard_old_set_may_run(const struct guard *guard, unsigned node, int64_t now_ns);

/* Is there a record to write to this node now? If so, fills *write; the caller has to write it and
 * a probe after it. random: 64 random bits, the id of a new quarantine. */
bool guard_take_record_write(struct guard *guard, unsigned node, int64_t now_ns, uint64_t random,
                             struct record_write *write);

#endif
