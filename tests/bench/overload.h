/*
 * What the cases of `make bench-overload` have in common: a stage whose daemon has no low limits,
 * the prober (prober.h), processor time, and the report of a case. From the environment:
 *
 *     OVERLOAD_MS        duration of each measurement in ms; by default 2000
 *     OVERLOAD_SECONDS   duration of each open loop in seconds; by default 60
 *     OVERLOAD_ROUNDS    how often the case low_load is repeated; by default 5
 *     OVERLOAD_HOLDS     HOLDs that must survive the cases clients, requests, open_loop and
 *                        late_masters; by default 5000
 *     OVERLOAD_ONLY      measure only the rows whose names contain this text
 *     OVERLOAD_BEFORE    another redlockd, with which the case low_load compares; by default none
 *     ONLY               the name of one case: clients, requests, open_loop, late_masters,
 *                        long_passes, low_load
 *
 * The daemon is $REDLOCKD. Thousands of connections need a high RLIMIT_NOFILE, which only root may
 * raise above the hard limit: rows for which it is too low are left out.
 */
#ifndef TESTS_BENCH_OVERLOAD_H
#define TESTS_BENCH_OVERLOAD_H

#include <stdint.h>

#include "tests/bench/distance.h"
#include "tests/bench/load.h"
#include "tests/bench/prober.h"
#include "tests/bench/report.h"
#include "tests/e2e/stage.h"

enum { OVERLOAD_MASTERS = 5, OVERLOAD_TTL_MS = 10000, OVERLOAD_WAIT_MS = 60000 };

struct overload {
    /* Settings. */
    int64_t for_ns;
    int64_t open_loop_ns;
    unsigned holds;

    /* Between overload_open() and overload_close(). */
    struct stage stage;
    struct daemon_plan plan; /* of its daemon */
    char yaml[256];          /* of the plan */
    int admin_port;
    const struct daemon *measured; /* the daemon of the stage, unless a case changes it */
    struct distance distance;      /* pid 0: none */

    /* Between overload_watch() and overload_watch_end(). */
    struct prober *prober; /* owned */
    unsigned suspects;     /* node_suspect events in the log before */

    /* The measurement that overload_phase() has started or ended. */
    int64_t started_ns;
    double seconds;
    int64_t daemon_ns; /* processor time */
    int64_t masters_ns;
    int64_t client_ns; /* with the prober, if there is one */
    int64_t machine_ns;

    double capacity; /* of the case open_loop, in pairs/s; 0: not measured */
    double round_us; /* of a round with late masters and one connection; 0: not measured */
};

/* A row of the report and how to measure it. */
struct overload_row {
    const char *name;
    /* Figures that it does not set are NAN. */
    void (*measure)(struct overload *overload, const struct overload_row *row,
                    double values[FIGURE_COUNT]);
    unsigned connections;
    unsigned depth;
    unsigned count; /* what is counted in this case: locks, waiters, late masters */
    unsigned late_ms;
    bool at_once;
    bool own;    /* each request has its own resource */
    bool before; /* by the daemon $OVERLOAD_BEFORE */
    bool low;    /* too little load for full throughput: OF_BEST is not among the worst values */
};

struct overload_case {
    const struct overload_row *rows;
    unsigned row_count;
    const struct goal *goals; /* they may name the row OVERLOAD_WORST */
    unsigned goal_count;
    unsigned rounds;
};

/* A row with the worst value of each figure. */
#define OVERLOAD_WORST "worst"

/* Read the settings, and raise the limit of open files. */
void overload_init(struct overload *overload);

/* Start masters and a daemon. The daemon reaches the first `late` masters through a relay, which
 * adds late_ms to the round trip; 0 ms: the relay adds no delay. */
void overload_open(struct overload *overload, const char *test, unsigned late, unsigned late_ms);
void overload_close(struct overload *overload);

/* Start the prober. overload_watch_end() ends it and sets its figures, such as PING_MS, LOST and
 * SUSPECT. */
void overload_watch(struct overload *overload, unsigned holds, unsigned hold_ttl_ms);
void overload_watch_end(struct overload *overload, double values[FIGURE_COUNT]);

/* Start or end the measurement of processor time. The first parameter is a struct overload. The
 * prober runs at both, or at none. */
void overload_phase(void *overload, bool starts);

/* Run the load on the measured daemon, for OVERLOAD_MS unless the plan has another duration, and
 * set its figures. */
void overload_load(struct overload *overload, const struct load_plan *plan,
                   struct load_result *result, double values[FIGURE_COUNT]);

/* Set REQUESTS, COST_US and DAEMON_SHARE for this number of requests. overload_phase() must have
 * ended the measurement. */
void overload_set_cost(const struct overload *overload, uint64_t requests,
                       double values[FIGURE_COUNT]);

/* Measure all rows of the case and print the report. */
void overload_run(struct overload *overload, const struct overload_case *what);

#endif
