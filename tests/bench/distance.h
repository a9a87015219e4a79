/* Simulates a network distance between a daemon and the masters: a relay process forwards the bytes
 * in both directions and delays each byte by a fixed time. */
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

/* one_way_ns: delay in each direction, half of a round trip. If the test ends without
 * distance_stop(), the relay process ends with it. */
void distance_start(struct distance *distance, const struct master *masters, int64_t one_way_ns);
void distance_stop(struct distance *distance);

#endif
