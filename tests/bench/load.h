/*
 * Clients of the daemon, in one thread. They have connections with some requests in flight on each,
 * and send the next request as soon as they get a reply.
 *
 * By default each request in flight is for a resource of its own, which is locked and unlocked over
 * and over. With one_resource, all requests are for one resource and wait in its queue. The holder
 * keeps the lock for hold_ns, unlocks, and goes to the end of the queue. With semaphore, they are
 * LOCKs with SLOTS.
 *
 * With pings, each LOCK and each UNLOCK is a PING instead.
 *
 * With per_s, requests are sent at a fixed rate, whether there are replies or not. Requests for
 * which no connection has room are counted and not sent.
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
    int ports[LOAD_DAEMONS]; /* ports of the daemons, which the connections use in turn; 0 ends
                                the list */
    const char *path;        /* a unix socket in place of the ports; NULL: none */
    unsigned connections;
    unsigned depth;     /* requests in flight on each connection */
    bool pings;         /* send PINGs only */
    bool one_resource;  /* all requests are for one resource */
    unsigned semaphore; /* with one_resource: the number of slots; 0: a lock */
    unsigned pollers;   /* with one_resource: how many of the requests in flight are without WAIT */
    unsigned ttl_ms;    /* 0: 2000 */
    unsigned wait_ms;   /* 0: without WAIT, or 60000 with one_resource */
    int64_t hold_ns;    /* with one_resource: how long a lock is held */
    unsigned per_s;     /* LOCKs sent in a second; 0: as many as there are replies */
    int64_t for_ns;     /* duration of the measurement; it lasts longer until min_pairs are done */
    uint64_t min_pairs;
    int64_t at_most_ns; /* ends the measurement even before min_pairs are done; 0: no limit */
    uint64_t max_pairs; /* end after this many pairs; 0: no limit */
    /* Called when all connections are open, and at the end of the measurement; NULL: none. */
    void (*on_phase)(void *arg, bool starts);
    void *arg;
    pid_t hangs;        /* process of a master that is stopped at half-time; 0: none */
    pid_t in_sync_with; /* process of the daemon, for repeatable runs: when all requests in flight
                           have their replies, the daemon is stopped while all next requests are
                           sent; 0: each next request is sent without waiting for the others */
};

struct load_result {
    double seconds;
    uint64_t pairs;            /* pairs of LOCK and UNLOCK */
    uint64_t all_pairs;        /* pairs including those before and after the measurement */
    int64_t client_ns;         /* processor time of the clients */
    uint64_t failed;           /* replies that are not OK */
    char failure[LOAD_ANSWER]; /* the first failed reply */
    uint64_t polled;           /* replies to pollers that are not OK; not counted in `failed` */
    uint64_t unsent;           /* with per_s: requests without room */
    uint64_t late;             /* with per_s: grants after wait_ms, by the client's clock */
    int64_t ended_ns;          /* end of the measurement, by clock.h */
    struct spread acquire;     /* from LOCK to its OK; with one_resource: the time in the queue */
    struct spread handover;    /* with one_resource, but not with semaphore: from UNLOCK to the OK
                                  of the next client */
    double jain_within;        /* the lower of the indexes of the clients of each daemon */
    double jain;  /* Jain's fairness index of the grants for each request in flight; 1: all equal */
    double least; /* the fewest grants for a request in flight, divided by an equal share */
    int64_t longest_ns; /* the longest acquire, including the waits that are not over at the end */
};

/* Run the plan. The test fails if a connection cannot be made or is lost. */
void load_run(const struct load_plan *plan, struct load_result *result);

#endif
