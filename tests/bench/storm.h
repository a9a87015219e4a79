/*
 * The rows of the case long_passes: clients send so much at once that a pass of the daemon's loop
 * could become long. Each row opens a stage of its own. It measures with a prober that has 100
 * HOLDs of one second; without masters the prober has none.
 */
#ifndef TESTS_BENCH_STORM_H
#define TESTS_BENCH_STORM_H

#include "tests/bench/overload.h"

/* Connections that list 65,000 known locks, each again and again. */
void storm_list(struct overload *overload, const struct overload_row *row,
                double values[FIGURE_COUNT]);

/* Waiters of one resource, each with a connection of its own, that ask for their place once a
 * second: spread over the second, or all at once. */
void storm_place(struct overload *overload, const struct overload_row *row,
                 double values[FIGURE_COUNT]);

/* Connections with `depth` waits each that all end in one instant: for one resource, or each for
 * its own. */
void storm_end(struct overload *overload, const struct overload_row *row,
               double values[FIGURE_COUNT]);

/* Connections with one wait each that all close at once. */
void storm_close(struct overload *overload, const struct overload_row *row,
                 double values[FIGURE_COUNT]);

/* `count` waiters of one resource in a line, and `depth` requests without WAIT beside them. The
 * cost is for each grant. */
void storm_line(struct overload *overload, const struct overload_row *row,
                double values[FIGURE_COUNT]);

/* Connections that each send `depth` UNLOCKs of one free resource (storm_unlock) or `depth` LOCKs
 * of it (storm_lock), all at once. */
void storm_unlock(struct overload *overload, const struct overload_row *row,
                  double values[FIGURE_COUNT]);
void storm_lock(struct overload *overload, const struct overload_row *row,
                double values[FIGURE_COUNT]);

/* `count` resources, each with one waiter, while no master runs. The cost is for each resource and
 * second. */
void storm_without_masters(struct overload *overload, const struct overload_row *row,
                           double values[FIGURE_COUNT]);

#endif
