/* A scenario is one kind of load on one setup. This module runs it and measures it once. */
#ifndef TESTS_BENCH_SCENARIO_H
#define TESTS_BENCH_SCENARIO_H

#include <stdint.h>

#include "tests/bench/distance.h"
#include "tests/bench/etcd.h"
#include "tests/bench/proxy.h"
#include "tests/bench/sheet.h"
#include "tests/e2e/stage.h"

enum { SCENARIO_MASTERS = 5, SCENARIO_NODE_TIMEOUT_MS = 50 };

enum scenario_kind {
    THE_LIMIT,     /* limit.h, without a daemon */
    OWN_RESOURCES, /* load.h; each request in flight has a resource of its own */
    ONE_RESOURCE,  /* load.h; all requests are for one resource */
    PEER,          /* peer.h; each client has a resource of its own */
    PEER_LINE,     /* peer.h; all clients want one resource */
    PEER_TURNS,    /* peer.h; one resource; after its turn a client waits until another one
                       has been granted the lock */
};

enum scenario_fault {
    NO_FAULT,
    ONE_HUNG,   /* a master hangs, and the daemon knows this before the measurement begins */
    TWO_HUNG,   /* two masters hang, and the daemon knows */
    ONE_KILLED, /* a master was killed, and the daemon knows */
    ONE_HANGS,  /* a master begins to hang at half-time */
};

struct scenario {
    const char *name;
    enum scenario_kind kind;
    unsigned connections; /* for the limit and peers: locks in flight */
    unsigned depth;       /* requests in flight on each connection */
    unsigned hold_ms;     /* how long a client keeps a lock */
    bool guarded;         /* for the limit and the proxy: see rounds.h */
    unsigned semaphore;   /* with ONE_RESOURCE: the number of slots; 0: a lock */
    unsigned daemons;     /* number of daemons that take part */
    unsigned far_ms; /* the last connection goes to a daemon with this round trip to the masters;
                        0: none */
    bool by_proxy;   /* the proxy (proxy.h) in place of daemons */
    bool over_unix;  /* by the unix socket of the first daemon, not by TCP */
    bool batch; /* the first daemon runs under SCHED_BATCH: it preempts no process when it wakes */
    bool busy;  /* busy loops run at the same time, one process for each processor */
    enum scenario_fault fault;
    bool soak; /* lasts arena.soak_ns; left out if that is 0. The bench runs all scenarios several
                  times; this one only the first time */
    const char *peer; /* see peer.h */
    bool on_etcd;     /* on etcd instead of the masters */
};

/* The processes that the scenarios use, and their settings. */
struct arena {
    struct stage stage;       /* SCENARIO_MASTERS and a daemon */
    struct daemon second;     /* on the same masters, for scenarios with two daemons */
    struct etcd etcd;         /* for scenarios with etcd */
    struct bench_proxy proxy; /* running during a scenario with the proxy */
    struct daemon
        far; /* the far daemon, running during its scenario, and its distance to the masters */
    struct distance distance;
    int64_t for_ns; /* duration of each scenario; with ONE_RESOURCE it lasts longer until there were
                       LINE_TURNS turns for each client on average */
    int64_t soak_ns;
};

/* Start the masters and one or two daemons with node_timeout SCENARIO_NODE_TIMEOUT_MS. */
void scenario_open(struct arena *arena, const char *test, unsigned daemons);
void scenario_close(struct arena *arena);

/* Run a scenario once. Figures that it does not measure are NAN. */
void scenario_run(struct arena *arena, const struct scenario *scenario,
                  double values[FIGURE_COUNT]);

#endif
