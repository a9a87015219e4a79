/*
 * Client-side tracking on a fake master: it tells once of a key that has changed.
 */
#ifndef TESTS_UNIT_WORLD_TRACKING_H
#define TESTS_UNIT_WORLD_TRACKING_H

#include "tests/unit/world.h"

/* The key is told about once, when it is not as it is now any more. */
void world_track(struct world *world, unsigned node, const char *key);

/* Tell of what has changed, whoever did it; was there anything? */
bool world_tell(struct world *world, unsigned node);

/* Whoever wanted to be told is gone. */
void world_untrack(struct world_master *master);

#endif
