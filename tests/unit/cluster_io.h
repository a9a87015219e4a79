/*
 * The callbacks of the engine (engine_io), as the fake cluster implements them.
 */
#ifndef TESTS_UNIT_CLUSTER_IO_H
#define TESTS_UNIT_CLUSTER_IO_H

#include "tests/unit/cluster.h"

struct engine_io cluster_io(struct cluster *cluster);

#endif
