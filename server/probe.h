/*
 * `redlockd -t --probe`: checks whether each master would vote. The daemon connects to each master,
 * runs the guard's checks without writing a record, and executes every command that rounds use, on
 * a key that only this check uses.
 */
#ifndef SERVER_PROBE_H
#define SERVER_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/view.h"
#include "protocol/limits.h"
#include "protocol/reason.h"

struct connections;

enum { PROBE_ROUND_TRIPS = 10, PROBE_LEASE = ENGINE_LEASE_MAX + 48 };

struct probe_node {
    bool self_test_started; /* the self-test of the commands has been started */
    unsigned replies;       /* replies to the self-test and to its reads of the name leases */
    const char *refused;    /* the first command that the master refused, NULL: none */
    enum reason reason;     /* why it refused that command */
    char meaning[LINK_ERROR_TEXT_MAX + 1]; /* the text of that reason */
    /* The name leases stored on this master, one for each name, truncated to what the probe
     * compares. */
    char leases[LIMIT_NODES][PROBE_LEASE];
    bool measuring; /* waiting for the reply to a heartbeat */
    unsigned heartbeat_count;
    int64_t round_trips_ns[PROBE_ROUND_TRIPS];
};

struct probe {
    struct connections *connections; /* the server's */
    struct probe_node nodes[LIMIT_NODES];
};

/* Take the next step with each master. True once all results have arrived. */
bool probe_step(struct probe *probe, int64_t now_ns);

/* The callbacks self_tested and lease_found of struct engine_io. */
void probe_on_self_tested(struct probe *probe, unsigned node, const char *what,
                          enum reason refused);

void probe_on_lease_found(struct probe *probe, unsigned node, unsigned named, const char *lease);

/* Write a line for each node. True if no master has an error. */
bool probe_report(const struct probe *probe, int64_t now_ns, FILE *out);

#endif
