/*
 * Run scenarios in turns, for some rounds, so that other load on the machine affects all of them,
 * and report the figures. From the environment:
 *
 *     BENCH_ROUNDS     number of rounds; 5
 *     BENCH_MS         duration of each scenario in a round; 1000
 *     BENCH_SOAK       seconds of the soak scenarios; without it they are left out
 *     BENCH_ONLY       a part of the names of the scenarios to run; without it all run
 *     BENCH_COMMIT     the commit that is measured
 *     BENCH_JSON       a file for all figures
 *     BENCH_MARKDOWN   a file for the tables of docs/performance.md
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "tests/bench/report.h"
#include "tests/bench/scenario.h"

/* Longer than any sensible run. */
enum { BENCH_TIME_LIMIT_S = 7200, BENCH_OF = 256 };

struct bench {
    const struct scenario *scenarios;
    unsigned scenario_count;
    const struct goal *goals;
    unsigned goal_count;
    /* Adds figures that no scenario measures; called after the last round. NULL: none. */
    void (*complete)(struct sheet *sheet);
};

/* Run the benchmark. The caller opens and closes the arena. */
void bench_run(const struct bench *bench, struct arena *arena);

/* A setting from the environment; NULL if it is unset or empty. */
const char *bench_setting(const char *name);
unsigned bench_number(const char *name, unsigned otherwise);

/* Describe the measurement in one line: date, commit, machine, its load before, and the settings.
 */
void bench_describe(unsigned rounds, unsigned round_ms, double load, char of[BENCH_OF]);

#endif
