/*
 * What the engine asks of those who drive it, as a fake cluster does it.
 */
#ifndef TESTS_UNIT_CLUSTER_IO_H
#define TESTS_UNIT_CLUSTER_IO_H

#include "tests/unit/cluster.h"

struct engine_io cluster_io(struct cluster *cluster);

#endif
