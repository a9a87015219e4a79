/*
 * What tests of the guard do to the masters of a fake world, and expect of their votes.
 */
#ifndef TESTS_UNIT_WORLD_GUARD_H
#define TESTS_UNIT_WORLD_GUARD_H

#include "tests/unit/world.h"

/* max_ttl is 60 s, its drift 0.61 s; a heartbeat later at the latest the guard has looked. */
enum { QUARANTINE_MS = 60610, LOOKED_MS = 1100 };

/* All of these nodes vote ("-"), or have no vote for this reason. */
void world_expect_votes(const struct world *world, unsigned first, unsigned last,
                        const char *reason);

/* They have no vote, for this reason, until the quarantine is over; then all of five vote. */
void world_expect_quarantine(struct world *world, unsigned first, unsigned last,
                             const char *reason);

/* "a" is granted to nobody within this time; asked each second. */
void world_expect_no_grant_for_s(struct world *world, unsigned seconds);

/* A key that daemons of the set leave for each other, in a buffer that the next call overwrites. */
const char *world_guard_key(const struct world *world, const char *kind, const char *rest);

/* Replace a word of a master's record by another. */
void world_forge(struct world *world, unsigned node, const char *word, const char *by);

/* The node's table says that this name (":a") is another server's. */
void world_lease_to_another(struct world *world, unsigned node, const char *rest, int64_t ttl_ms);

void world_step_clock(struct world *world, unsigned first, unsigned last, int64_t seconds);

/* "a" is granted for 60 s, and is on A, B and C alone. */
void world_lock_on_three(struct world *world);

/* It restarts, and has all its data. */
void world_restart_with_data(struct world *world, unsigned node);

/* Likewise, and another daemon has recorded it. */
void world_restart_recorded(struct world *world, unsigned node);

#endif
