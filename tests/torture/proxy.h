/*
 * A proxy between one daemon and the masters, in a thread: it delays what passes, lets it wait, and
 * cuts connections. It never loses or changes a byte of a connection that lives, as TCP does not.
 */
#ifndef TESTS_TORTURE_PROXY_H
#define TESTS_TORTURE_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/master.h"
#include "tests/prng.h"

enum { PROXY_LINES = 5, PROXY_PAIRS = 128 };

enum proxy_way { PROXY_TO_MASTER, PROXY_TO_DAEMON, PROXY_WAYS };

/* How all connections to one master fare; set at any time, from any thread. */
struct proxy_line {
    const char *socket; /* the master's */
    int listen_fd;
    int port;
    atomic_uint delay_ms[PROXY_WAYS];
    atomic_uint jitter_ms[PROXY_WAYS]; /* up to so much more, at random */
    atomic_bool stalled[PROXY_WAYS];
    atomic_uint resets; /* one more: all its connections are reset */
};

struct pair;

struct proxy {
    struct proxy_line lines[PROXY_LINES];
    struct pair *pairs; /* PROXY_PAIRS */
    struct prng prng;
    atomic_bool over;
    pthread_t thread;
};

void proxy_start(struct proxy *proxy, const struct master *masters, uint64_t seed);
void proxy_end(struct proxy *proxy);

#endif
