/*
 * What heartbeat.lua does with the lease of one name, for the fake master.
 */
#ifndef TESTS_FAKE_LEASE_H
#define TESTS_FAKE_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct lease {
    char value[LIMIT_RECORD]; /* "" for none */
    int64_t left_ms;          /* its time to live; negative: without one */
};

struct lease_options {
    const char *server; /* NUL-terminated, like the daemon */
    const char *daemon;
    int64_t now_ms; /* on the master's clock */
    int64_t lease_ms;
    int64_t fresh_ms;
};

/* The digit of the answer. What the name is leased to from then on, and for how long. */
char lease_ask(struct lease *lease, const struct lease_options *options);

#endif
