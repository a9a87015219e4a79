/*
 * What little a daemon can cost: a process that does rounds.h for whoever connects, the releases of
 * a pass together, answers as redlockd does, and decides, bounds and survives nothing. What it
 * costs beyond the limit is having a daemon; what redlockd costs beyond it is redlockd.
 */
#ifndef TESTS_BENCH_PROXY_H
#define TESTS_BENCH_PROXY_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/e2e/master.h"

struct proxy_plan {
    struct master *masters; /* as in rounds.h */
    bool guarded;
    bool line; /* all requests are for one resource, which goes from one to the next */
};

struct proxy {
    pid_t pid;
    int port; /* of 127.0.0.1; for load.h, each request with a tag below ROUNDS_SLOTS */
};

/* It ends with the test at the latest. */
void proxy_start(struct proxy *proxy, const struct proxy_plan *plan);
void proxy_stop(struct proxy *proxy);

#endif
