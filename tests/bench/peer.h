/* Runs a peer: a lock client in Node or Python that locks and unlocks as fast as it gets replies.
 * Peers are other lock libraries and services, and clients of redlockd. Their sources are in
 * tests/bench/peers/; `make bench-peers` installs them, with the packages that they need, in the
 * folder $PEERS. */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include <stdint.h>

#include "tests/bench/load.h"
#include "tests/e2e/master.h"
#include "tests/e2e/sandbox.h"

struct peer_plan {
    const char *name; /* name of a module beside bench.mjs, such as "redlock", or beside bench.py,
                         such as "redis_py.py" */
    const struct sandbox *sandbox;
    const struct master *masters; /* over TCP */
    unsigned master_count;
    int daemon_port;
    int etcd_port;
    unsigned in_flight; /* number of clients, all in one process */
    const char *how;    /* "apart", "together" or "in-turns": see bench.mjs */
    unsigned hold_ms;   /* how long each lock is held */
    int64_t for_ns;     /* duration of the measurement, after the warm-up */
};

/* Run the plan. The test fails if the process of the peer fails. */
void peer_run(const struct peer_plan *plan, struct load_result *result);

#endif
