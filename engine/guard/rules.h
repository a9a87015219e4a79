/* The settings of the guard and its periods, shared by its modules. */
#ifndef ENGINE_GUARD_RULES_H
#define ENGINE_GUARD_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"
#include "protocol/limits.h"

struct guard_rules {
    unsigned node_count;
    unsigned quorum;
    struct drift drift;
    int64_t max_ttl_ns;
    int64_t fence_ttl_ns;
    const char *cluster;
    const char *node_names[LIMIT_NODES];
    unsigned databases[LIMIT_NODES]; /* number of the database on the server of each node */
    /* Nodes that the configuration declares durable. Their own settings must confirm it. */
    uint32_t durable;
    /* Operator override --bootstrap: no lock is held anywhere. Masters without a record are trusted
     * at once, provided that all masters are present and none has a record. */
    bool bootstrap;
    /*
     * Operator override --reset-set: the set has changed, and no daemon of the old set runs any
     * more. The records of the set with this id are replaced once all nodes are present. If any
     * node shows that a daemon of the old set runs, no record is replaced. NULL: no such override.
     */
    const char *reset_set;
    /* Only observe: write to no master, and let none vote. */
    bool read_only;
};

struct guard_periods {
    struct drift drift;
    int64_t quarantine_ns; /* max_ttl and its drift: no lock lives longer than this */
    int64_t heartbeat_ns;  /* interval of heartbeats to each master */
    int64_t fresh_ns;      /* how long votes may be counted after a heartbeat was sent */
};

#endif
