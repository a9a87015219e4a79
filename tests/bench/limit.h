/* The limit: the throughput that five Redis masters and the kernel allow, measured by the paper's
 * rounds (rounds.h) without a daemon. Any program that does the same rounds does at least this
 * work, so the other figures are ratios to it. */
#ifndef TESTS_BENCH_LIMIT_H
#define TESTS_BENCH_LIMIT_H

#include "tests/bench/load.h"
#include "tests/bench/rounds.h"

struct limit_plan {
    struct master *masters; /* ROUNDS_MASTERS of them, over TCP */
    unsigned in_flight;     /* independent locks, taken and released side by side */
    bool guarded;           /* see rounds.h */
    int64_t for_ns;
};

void limit_run(const struct limit_plan *plan, struct load_result *result);

#endif
