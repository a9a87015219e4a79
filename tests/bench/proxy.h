/* The least that a daemon can cost: a process that does the rounds of rounds.h for any client,
 * batches the releases of a pass and answers as redlockd does. It decides nothing, has no limits
 * and survives no fault. Its cost above the limit is the cost of having a daemon; the cost of
 * redlockd above it is redlockd's own. */
#ifndef TESTS_BENCH_PROXY_H
#define TESTS_BENCH_PROXY_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/e2e/master.h"

struct proxy_plan {
    struct master *masters; /* as in rounds.h */
    bool guarded;
    bool line; /* all requests are for one resource, handed from one to the next */
};

struct bench_proxy {
    pid_t pid;
    int port; /* port on 127.0.0.1; load.h must use tags below ROUNDS_SLOTS */
};

/* The process ends with the test at the latest. */
void proxy_start(struct bench_proxy *proxy, const struct proxy_plan *plan);
void proxy_stop(struct bench_proxy *proxy);

#endif
