/* A distance between a daemon and the masters: a process that forwards the bytes of both sides,
 * each byte a fixed time later. */
#ifndef TESTS_BENCH_DISTANCE_H
#define TESTS_BENCH_DISTANCE_H

#include <stdint.h>
#include <sys/types.h>

#include "tests/e2e/master.h"

enum { DISTANCE_MASTERS = 5 };

struct distance {
    pid_t pid;
    int ports[DISTANCE_MASTERS]; /* ports on 127.0.0.1, one for each master */
};

/* one_way_ns: half of a round trip. The process ends with the test at the latest. */
void distance_start(struct distance *distance, const struct master *masters, int64_t one_way_ns);
void distance_stop(struct distance *distance);

#endif
