/*
 * Which record is to be written to a master, and may it be? Pure.
 *
 * identity.h says that a master wants a new record. Here is what it has to say, and what has to be
 * known of the other masters before it is written: one sick daemon must not disarm the rest, one
 * with the wrong list of masters writes nothing, and an operator's override wants all of them.
 */
#ifndef ENGINE_GUARD_RECORD_WRITE_H
#define ENGINE_GUARD_RECORD_WRITE_H

#include "engine/guard/guard.h"

/* A record to be written, if the one there is still `expected`. */
struct record_write {
    const char *expected;    /* "" for none */
    char text[LIMIT_RECORD]; /* all but the value of join_us */
    int64_t quarantine_us;
    int64_t join_us;    /* join_us is to be at least this */
    const char *run_id; /* whose quarantine, if one is under way, is not to be shortened */
};

/* For reset_set: the last that a daemon of the old set has left on this node, when its clock said
 * time_us (0: nothing), and which daemon, as far as it said ("" if not). */
void guard_on_sign_of_life(struct guard *guard, unsigned node, int64_t time_us, const char *daemon);

/* Is that so fresh that the daemon may still run? Then nothing is written. */
bool guard_shows_life(const struct guard *guard, unsigned node, int64_t now_ns);

/* Is there a record to write? A probe has to follow it. random: 64 bits of it, for a quarantine
 * that begins. */
bool guard_take_record_write(struct guard *guard, unsigned node, int64_t now_ns, uint64_t random,
                             struct record_write *write);

#endif
