/*
 * A process that runs beside a load. It holds locks with HOLD, and measures how long the daemon
 * takes to answer clients that are not part of the load. Each kind of probe has its own connection,
 * and is sent at fixed intervals. If a reply takes longer than the interval, the probes that were
 * due meanwhile count too, as if they had been sent.
 */
#ifndef TESTS_BENCH_PROBER_H
#define TESTS_BENCH_PROBER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/bench/spread.h"

enum { PROBER_LOCKS = 16384, PROBER_SAMPLES = 256 };

/* Name, request, interval in ms. A reply to HTTP ends with the connection. */
#define PROBER_PROBES(X)                                                                           \
    X(PROBER_PING, "PING\n", 2)                                                                    \
    X(PROBER_NODES, "NODES\n", 50)                                                                 \
    X(PROBER_LOCK, "LOCK prober 2000\n", 20)                                                       \
    X(PROBER_CONNECT, "PING\n", 20) /* over a new connection each time */                          \
    X(PROBER_HEALTHZ, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 100)                     \
    X(PROBER_READYZ, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 100)                       \
    X(PROBER_METRICS, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)

enum prober_probe {
#define X(name, request, every_ms) name,
    PROBER_PROBES(X)
#undef X
        PROBER_PROBE_COUNT
};

struct prober_plan {
    int port;
    int admin_port;
    pid_t daemon; /* its memory is sampled every PROBER_SAMPLE_MS */
    unsigned holds;
    unsigned hold_ttl_ms;
};

enum { PROBER_SAMPLE_MS = 500 };

/* A LOCK of the prober; times by clock.h. */
struct prober_lock {
    int64_t replied_ns;
    int64_t took_ns; /* INT64_MAX: not granted */
};

/* Shared with the process, which writes it. */
struct prober {
    pid_t pid;
    atomic_bool ready;
    atomic_bool restart;
    atomic_bool stop;
    atomic_uint lost; /* HOLDs */
    struct spread took[PROBER_PROBE_COUNT];
    /* Probes that failed: no reply, or not the expected one (for LOCK: not OK). */
    unsigned failed[PROBER_PROBE_COUNT];
    atomic_uint lock_count;
    struct prober_lock locks[PROBER_LOCKS]; /* the first ones, in order */
    int64_t started_ns;
    atomic_uint sample_count;
    long memory_kib[PROBER_SAMPLES];
};

/* Start the process, and wait until it has all HOLDs. It ends with the test at the latest. */
struct prober *prober_start(const struct prober_plan *plan);

/* Forget the times and failures so far. */
void prober_restart(struct prober *prober);

/* End the process. Probes without a reply count, and so do HOLDs that are lost in the next
 * second. */
void prober_stop(struct prober *prober);
void prober_free(struct prober *prober);

#endif
