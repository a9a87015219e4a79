/* The limit: the throughput that five Redis masters and the kernel allow. It is measured by a
 * client that does the paper's rounds (rounds.h) itself, without a daemon. Any program that does
 * the same rounds does at least this work, so other figures are reported as ratios to the limit. */
#ifndef TESTS_BENCH_LIMIT_H
#define TESTS_BENCH_LIMIT_H

#include "tests/bench/load.h"
#include "tests/bench/rounds.h"

struct limit_plan {
    struct master *masters; /* ROUNDS_MASTERS of them, over TCP */
    unsigned in_flight;     /* independent locks, taken and released concurrently */
    bool guarded;           /* see rounds.h */
    int64_t for_ns;
};

void limit_run(const struct limit_plan *plan, struct load_result *result);

#endif
