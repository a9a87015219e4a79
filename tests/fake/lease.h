/* The part of heartbeat.lua that handles a name lease, as the fake master plays it. */
#ifndef TESTS_FAKE_LEASE_H
#define TESTS_FAKE_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct lease {
    char value[LIMIT_RECORD]; /* "" for none */
    int64_t left_ms;          /* its TTL; negative: no TTL, or no lease */
};

struct lease_options {
    const char *server; /* the server that the daemon found under the name */
    const char *daemon;
    int64_t now_ms;   /* on the master's clock */
    int64_t lease_ms; /* TTL of the lease */
    int64_t fresh_ms; /* a renewal older than this no longer counts */
};

/* Request or renew the lease for a daemon, and update the lease and its TTL. Returns the digit of
 * the reply (enum in engine/guard/name_lease.h): whether the name is leased to this daemon's
 * server, to another server, or to another process with the same data. */
char lease_ask(struct lease *lease, const struct lease_options *options);

#endif
