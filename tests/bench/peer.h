/*
 * A client in Node for a while, as fast as it is answered: what others use for locks, or a thin
 * client of redlockd. tests/bench/peers/ has them; $PEERS is the folder where they are installed
 * with their packages (`make bench-peers` does that).
 */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include <stdint.h>

#include "tests/bench/load.h"
#include "tests/e2e/master.h"
#include "tests/e2e/sandbox.h"

struct peer_plan {
    const char *name; /* of a module beside bench.mjs: "redlock" */
    const struct sandbox *sandbox;
    const struct master *masters; /* over TCP */
    unsigned master_count;
    int daemon_port;
    int etcd_port;
    unsigned in_flight; /* locks that are taken and given back side by side, in one process */
    const char *how;    /* "apart", "together", "in-turns": see bench.mjs */
    unsigned hold_ms;   /* how long each is kept */
    int64_t for_ns;     /* after a warm-up of its own */
};

/* Fails the test where it does not end well. */
void peer_run(const struct peer_plan *plan, struct load_result *result);

#endif
