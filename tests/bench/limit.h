/*
 * What five Redis masters and the kernel allow: a Redlock client without a daemon, a guard or any
 * handling of errors, that writes RESP by itself, once to each master in a pass. Nothing that does
 * the same rounds can be faster, so everything else is told as a ratio to it.
 *
 * Guarded, it asks what the guard of redlockd has each master asked behind the votes of a pass, and
 * does not look at the answers: that is what the guard costs at least.
 */
#ifndef TESTS_BENCH_LIMIT_H
#define TESTS_BENCH_LIMIT_H

#include "tests/bench/load.h"
#include "tests/e2e/master.h"

enum { LIMIT_MASTERS = 5, LIMIT_SLOTS = 256 };

struct limit_plan {
    struct master *masters; /* LIMIT_MASTERS of them, over TCP */
    unsigned in_flight;     /* locks that are taken and given back side by side */
    bool guarded;
    int64_t for_ns;
};

void limit_run(const struct limit_plan *plan, struct load_result *result);

#endif
