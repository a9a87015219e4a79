/* A client in Node that runs as fast as it gets replies: another lock library, or a thin client of
 * redlockd. They are in tests/bench/peers/; `make bench-peers` installs them with their packages in
 * the folder $PEERS. */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include <stdint.h>

#include "tests/bench/load.h"
#include "tests/e2e/master.h"
#include "tests/e2e/sandbox.h"

struct peer_plan {
    const char *name; /* name of a module beside bench.mjs, such as "redlock" */
    const struct sandbox *sandbox;
    const struct master *masters; /* over TCP */
    unsigned master_count;
    int daemon_port;
    int etcd_port;
    unsigned in_flight; /* independent locks, taken and released side by side in one process */
    const char *how;    /* "apart", "together", "in-turns": see bench.mjs */
    unsigned hold_ms;   /* how long each lock is held */
    int64_t for_ns;     /* duration after the client's own warm-up */
};

/* Run the plan. The test fails if the client fails. */
void peer_run(const struct peer_plan *plan, struct load_result *result);

#endif
