/*
 * What the guard goes by, and how long things last for it; its parts are given these.
 */
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
    /* Nodes that keep on disk whatever they have answered, if their settings say so too. */
    uint32_t durable;
    /* An operator's word that no lock is held: masters without a record are trusted at once, if all
     * of them are there and none has one. */
    bool bootstrap;
    /* An operator's word that the set has changed, and no daemon of the old one runs any more: the
     * records of the set with this id are replaced, once all nodes are there. If one shows all the
     * same that a daemon of the old set runs, none is. NULL without one. */
    const char *reset_set;
    /* Only to look: no master is written to, and none has a vote. */
    bool read_only;
};

struct guard_periods {
    struct drift drift;
    int64_t quarantine_ns; /* max_ttl and its drift: no lock outlives it */
    int64_t heartbeat_ns;  /* how often each master is to be looked at */
    int64_t fresh_ns;      /* how long such a look is good for */
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
