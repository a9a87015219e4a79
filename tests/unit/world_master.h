/*
 * A fake master by itself: what it keeps, and what it answers to one command.
 */
#ifndef TESTS_UNIT_WORLD_MASTER_H
#define TESTS_UNIT_WORLD_MASTER_H

#include "tests/unit/world.h"

/* Its wall clock. */
int64_t world_clock_ns(const struct world *world, unsigned node);

/* NULL if there is none; "" finds a free one. */
struct world_key *world_find_key(struct world *world, unsigned node, const char *key);

/* One command, that came by this connection; NULLs follow its words. */
struct redis_reply world_run(struct world *world, unsigned node, struct world_inbox *inbox,
                             char **words);

#endif
