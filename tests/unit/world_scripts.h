/*
 * What our Lua scripts do, in C, on a fake master.
 */
#ifndef TESTS_UNIT_WORLD_SCRIPTS_H
#define TESTS_UNIT_WORLD_SCRIPTS_H

#include "tests/unit/world.h"

/* words[] is EVAL or EVALSHA, the script, how many keys, the keys, then the arguments; NULLs
 * follow. */
struct redis_reply world_run_script(struct world *world, unsigned node, unsigned script,
                                    char **words);

#endif
