/* An etcd of one member, from the Debian package etcd-server. Its data is in the sandbox. */
#ifndef TESTS_BENCH_ETCD_H
#define TESTS_BENCH_ETCD_H

#include <sys/types.h>

#include "tests/e2e/sandbox.h"

struct etcd {
    pid_t pid; /* 0: not running */
    int port;  /* port for clients on 127.0.0.1 */
};

/* Start etcd, and wait until it accepts connections. */
void etcd_start(struct etcd *etcd, const struct sandbox *sandbox);

/* Kill etcd. The sandbox removes the data later. */
void etcd_stop(struct etcd *etcd);

#endif
