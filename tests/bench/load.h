/*
 * Clients of the daemon that send as fast as they get replies: connections, each with some requests
 * in flight, in one thread.
 *
 * By default each request locks and unlocks a resource of its own. With one_resource, all requests
 * want one resource and wait in a queue; the holder keeps it for a time, and goes to the end of the
 * queue.
 *
 * With per_s, requests are sent at a fixed rate, whether there are replies or not. Those for which
 * no connection has room are counted and not sent.
 */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/bench/client_pool.h"
#include "tests/bench/spread.h"

enum { LOAD_SLOTS = 131072, LOAD_DAEMONS = CLIENT_POOL_PORTS, LOAD_ANSWER = 160 };

struct load_plan {
    const char *host;
    int ports[LOAD_DAEMONS]; /* ports of the daemons, used in turns by the connections; 0 ends the
                                list */
    const char *path;        /* a unix socket in place of the ports; NULL: none */
    unsigned connections;
    unsigned depth;    /* requests in flight on each connection */
    bool one_resource; /* all requests are for one resource */
    unsigned pollers;  /* with one_resource: so many of the requests are without WAIT */
    unsigned ttl_ms;   /* 0: 2000 */
    unsigned wait_ms;  /* 0: without WAIT; with one_resource 60000 */
    int64_t hold_ns;   /* how long a lock is held */
    unsigned per_s;    /* LOCKs sent in a second; 0: as many as there are replies */
    int64_t for_ns;    /* duration of the measurement, longer if min_pairs are not done */
    uint64_t min_pairs;
    int64_t at_most_ns; /* ends the measurement also without min_pairs; 0: never */
    uint64_t max_pairs; /* end after this many pairs; 0: no limit */
    /* Called when all connections are open, and at the end of the measurement; NULL: none. */
    void (*on_phase)(void *arg, bool starts);
    void *arg;
    pid_t hangs;   /* a process, a master, that is stopped at half-time; 0: none */
    pid_t in_step; /* For repeatable runs: this process, the daemon, is stopped while all requests
                      are sent; 0: none. */
};

struct load_result {
    double seconds;
    uint64_t pairs;            /* pairs of LOCK and UNLOCK */
    uint64_t all_pairs;        /* pairs including those before and after the measurement */
    int64_t client_ns;         /* processor time of the clients */
    uint64_t failed;           /* replies that are not OK */
    char failure[LOAD_ANSWER]; /* the first failed reply */
    uint64_t polled;           /* replies to pollers that are not OK; none of the failed */
    uint64_t unsent;           /* with per_s: requests without room */
    uint64_t late;             /* with per_s: grants after wait_ms, by the client's clock */
    int64_t ended_ns;          /* end of the measurement, by clock.h */
    struct spread acquire;     /* from LOCK to its OK; with one_resource: the time in the queue */
    struct spread handover;    /* with one_resource: from UNLOCK to the OK of the next client */
    double jain;  /* fairness index of the requests in flight, 1 if all had as many turns */
    double least; /* the fewest turns, divided by an equal share */
    int64_t
        longest_ns; /* the longest of acquire, including the waits that are not over at the end */
};

/* Run the plan. The test fails if a connection cannot be made or is lost. */
void load_run(const struct load_plan *plan, struct load_result *result);

#endif
