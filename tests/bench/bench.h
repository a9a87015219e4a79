/*
 * Runs all scenarios one after the other, repeats this for some rounds, and reports the figures. A
 * round is one pass over all scenarios, not a Redlock round. Since each scenario runs in every
 * round, other load on the machine affects all scenarios alike. Environment variables:
 *
 *     BENCH_ROUNDS     number of rounds; by default 5
 *     BENCH_MS         duration of each scenario in a round, in ms; by default 1000
 *     BENCH_SOAK       duration of the soak scenarios in seconds; by default they do not run
 *     BENCH_ONLY       run only the scenarios whose names contain this text
 *     BENCH_COMMIT     the commit that is measured
 *     BENCH_JSON       write all figures to this file
 *     BENCH_MARKDOWN   write the tables of docs/design/performance.md to this file
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "tests/bench/report.h"
#include "tests/bench/scenario.h"

/* BENCH_TIME_LIMIT_S is longer than any sensible run. BENCH_OF is the size of the text of
 * bench_describe(). */
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

/* Describe the measurement in one line: date, commit, machine, its load before, and the settings.
 */
void bench_describe(unsigned rounds, unsigned round_ms, double load, char of[BENCH_OF]);

#endif
