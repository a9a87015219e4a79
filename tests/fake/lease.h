/* The fake master's version of the name lease in heartbeat.lua. */
#ifndef TESTS_FAKE_LEASE_H
#define TESTS_FAKE_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct lease {
    char value[LIMIT_RECORD]; /* "" for none */
    int64_t left_ms;          /* its TTL; negative: none */
};

struct lease_options {
    const char *server; /* NUL-terminated, like the daemon */
    const char *daemon;
    int64_t now_ms; /* on the master's clock */
    int64_t lease_ms;
    int64_t fresh_ms;
};

/* Ask for the lease. Returns the digit of the reply, and updates the lease and its TTL. */
char lease_ask(struct lease *lease, const struct lease_options *options);

#endif
