/*
 * One thing that is measured, and the measuring of it once.
 */
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
    THE_LIMIT,  /* limit.h, without a daemon */
    APART,      /* load.h: each a resource of its own */
    TOGETHER,   /* load.h: all one */
    PEER,       /* peer.h: each a resource of its own */
    PEER_LINE,  /* peer.h: all one */
    PEER_TURNS, /* peer.h: all one, asked for again when another has it */
};

enum scenario_fault {
    NO_FAULT,
    ONE_HUNG, /* since so long ago that the daemon knows */
    TWO_HUNG,
    ONE_KILLED,
    ONE_HANGS, /* at half-time */
};

struct scenario {
    const char *name;
    enum scenario_kind kind;
    unsigned connections; /* of the limit and of peers: in flight */
    unsigned depth;
    unsigned hold_ms;
    bool guarded;     /* the limit and the proxy: see rounds.h */
    unsigned daemons; /* of ours that take part */
    unsigned far_ms;  /* the last connection is to one more, so far from the masters; 0: none */
    bool by_proxy;    /* in their place, see proxy.h */
    bool over_unix;   /* the clients, by the socket of the first of them; else by TCP */
    bool batch;       /* the first of them by SCHED_BATCH: it preempts nobody when it wakes */
    bool busy;        /* beside as many others as there are processors, who never rest */
    enum scenario_fault fault;
    bool soak;        /* for arena.soak_ns, in the first round only; not at all if that is 0 */
    const char *peer; /* see peer.h */
    bool on_etcd;     /* instead of the masters */
};

/* What scenarios need; the owner opens and closes it. */
struct arena {
    struct stage stage;   /* SCENARIO_MASTERS, a daemon */
    struct daemon second; /* on the same masters, where a scenario has two */
    struct etcd etcd;     /* where a peer is etcd */
    struct proxy proxy;   /* while a scenario has it */
    struct daemon far;    /* likewise, and what is between it and the masters */
    struct distance distance;
    int64_t for_ns; /* how long each lasts; lines longer, until all had their turns */
    int64_t soak_ns;
};

/* Masters and daemons as they are by default, with a node_timeout of SCENARIO_NODE_TIMEOUT_MS. */
void scenario_open(struct arena *arena, const char *test, unsigned daemons);
void scenario_close(struct arena *arena);

/* NAN for what this scenario does not tell. */
void scenario_run(struct arena *arena, const struct scenario *scenario,
                  double values[FIGURE_COUNT]);

#endif
