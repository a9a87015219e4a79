/* A proxy between one daemon and the masters, which runs in a thread. It delays bytes, stalls them,
 * and resets connections. Like TCP, it never loses or changes a byte of an open connection. */
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

/* Settings for all connections to one master. Any thread may change the atomic ones at any time. */
struct proxy_line {
    const char *socket; /* path of the master's socket */
    int listen_fd;
    int port;
    atomic_uint delay_ms[PROXY_WAYS];
    atomic_uint jitter_ms[PROXY_WAYS]; /* maximum of a random additional delay */
    atomic_bool stalled[PROXY_WAYS];
    atomic_uint resets; /* each increment resets all connections to this master */
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
