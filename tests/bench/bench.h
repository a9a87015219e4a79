/*
 * Scenarios in turn, for some rounds, so that what else the machine does befalls all of them, and
 * what they tell.
 *
 * From the environment:
 *     BENCH_ROUNDS     5 unless set
 *     BENCH_MS         how long each scenario lasts in a round, 1000 unless set
 *     BENCH_SOAK       seconds of those that go on for long; without it they are left out
 *     BENCH_ONLY       a part of the names of those that are run; without it all are
 *     BENCH_COMMIT     what was measured
 *     BENCH_JSON       a file for all figures
 *     BENCH_MARKDOWN   likewise, to be read
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "tests/bench/report.h"
#include "tests/bench/scenario.h"

/* Longer than any sensible run. */
enum { BENCH_TIME_LIMIT_S = 7200 };

struct bench {
    const struct scenario *scenarios;
    unsigned scenario_count;
    const struct goal *goals;
    unsigned goal_count;
    /* For figures that no scenario tells; called after the last round. NULL: none. */
    void (*complete)(struct sheet *sheet);
};

/* The arena is open. */
void bench_run(const struct bench *bench, struct arena *arena);

#endif
