/*
 * An etcd of one member, from the Debian package etcd-server, whose data lies in the sandbox.
 */
#ifndef TESTS_BENCH_ETCD_H
#define TESTS_BENCH_ETCD_H

#include <sys/types.h>

#include "tests/e2e/sandbox.h"

struct etcd {
    pid_t pid; /* 0: there is none */
    int port;  /* of 127.0.0.1, for clients */
};

/* Start it, and wait until it accepts connections. */
void etcd_start(struct etcd *etcd, const struct sandbox *sandbox);

/* What it has written ends with the sandbox. */
void etcd_stop(struct etcd *etcd);

#endif
