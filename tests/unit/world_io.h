/*
 * What the engine asks of those who drive it, as a fake world does it.
 */
#ifndef TESTS_UNIT_WORLD_IO_H
#define TESTS_UNIT_WORLD_IO_H

#include "tests/unit/world.h"

struct engine_io world_io(struct world *world);

#endif
