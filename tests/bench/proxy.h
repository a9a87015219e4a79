/* The proxy: the least that a daemon can cost. It is a process that does the rounds of rounds.h for
 * its clients, batches the releases of a pass, and replies as redlockd does. It makes no decisions,
 * has no limits and survives no fault. The difference between the limit (limit.h) and the proxy is
 * the cost of having a daemon at all. The difference between the proxy and redlockd is the cost of
 * redlockd itself. */
#ifndef TESTS_BENCH_PROXY_H
#define TESTS_BENCH_PROXY_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/e2e/master.h"

struct proxy_plan {
    struct master *masters; /* as in rounds.h */
    bool guarded;
    bool line; /* all requests are for one resource, which each client hands over to the next */
};

struct bench_proxy {
    pid_t pid;
    int port; /* port on 127.0.0.1; the clients' tags must be below ROUNDS_SLOTS */
};

/* Start the process, and return when it listens. It ends when the test ends, if not before. */
void proxy_start(struct bench_proxy *proxy, const struct proxy_plan *plan);
void proxy_stop(struct bench_proxy *proxy);

#endif
