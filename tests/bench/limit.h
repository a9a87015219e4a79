/*
 * What five Redis masters and the kernel allow: rounds.h as in the paper, without a daemon. Whoever
 * does the same rounds has that much to do, so everything else is told as a ratio to it.
 */
#ifndef TESTS_BENCH_LIMIT_H
#define TESTS_BENCH_LIMIT_H

#include "tests/bench/load.h"
#include "tests/bench/rounds.h"

struct limit_plan {
    struct master *masters; /* ROUNDS_MASTERS of them, over TCP */
    unsigned in_flight;     /* locks that are taken and given back side by side */
    bool guarded;           /* see rounds.h */
    int64_t for_ns;
};

void limit_run(const struct limit_plan *plan, struct load_result *result);

#endif
