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
    unsigned databases[LIMIT_NODES]; /* of the servers that the names lead to */
    /* Nodes that the configuration declares durable; their own settings must confirm it. */
    uint32_t durable;
    /* Operator override: no lock is held. Masters without a record are trusted at once, if all
     * masters are present and none has a record. */
    bool bootstrap;
    /*
     * Operator override: the set has changed, and no daemon of the old set runs any more. The
     * records of the set with this id are replaced once all nodes are present. If any node shows
     * that a daemon of the old set runs, none is replaced. NULL without the override.
     */
    const char *reset_set;
    /* Observe only: write to no master, and give none a vote. */
    bool read_only;
};

struct guard_periods {
    struct drift drift;
    int64_t quarantine_ns; /* max_ttl and its drift: no lock lives longer */
    int64_t heartbeat_ns;  /* interval of heartbeats to each master */
    int64_t fresh_ns;      /* how long a heartbeat is valid */
};

static inline int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
