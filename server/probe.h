/*
 * `redlockd -t --probe`: would these masters vote? Each is connected to, looked at by the guard,
 * which writes nothing, and asked for all that rounds ask for, on a key of its own.
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
    bool tried;
    unsigned answers;    /* to what was tried */
    const char *refused; /* the first of that which was, NULL: none */
    enum reason reason;  /* ... for this */
    char meaning[LINK_SAID + 1];
    /* Whose servers the names are, as this master has it: as much as is looked at. */
    char leases[LIMIT_NODES][PROBE_LEASE];
    bool beats; /* a round trip is being measured */
    unsigned heartbeat_count;
    int64_t round_trips_ns[PROBE_ROUND_TRIPS];
};

struct probe {
    struct connections *connections; /* the server's */
    struct probe_node nodes[LIMIT_NODES];
};

/* Do what can be done now; true once there is nothing left to wait for. */
bool probe_step(struct probe *probe, int64_t now_ns);

/* As in struct engine_io. */
void probe_on_tried(struct probe *probe, unsigned node, const char *what, enum reason refused);

void probe_on_leased(struct probe *probe, unsigned node, unsigned named, const char *lease);

/* A line for each node. True if nothing stands against any. */
bool probe_report(const struct probe *probe, int64_t now_ns, FILE *out);

#endif
