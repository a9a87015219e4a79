/*
 * What the engine goes by: the configuration, as checked data. Texts belong to the caller and
 * outlive the engine.
 */
#ifndef ENGINE_FLIGHT_RULES_H
#define ENGINE_FLIGHT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/master/link.h"
#include "engine/round/round.h"
#include "protocol/limits.h"

struct engine_rules {
    struct round_rules round;
    const char *key_prefix;
    size_t key_prefix_len;
    bool shared_names; /* keys are also those of other libraries */
    const char *node_names[LIMIT_NODES];
    struct link_login logins[LIMIT_NODES];
    const char *cluster;
    int64_t max_ttl_ns;
    int64_t fence_ttl_ns;
    int64_t max_extensions;
    int64_t max_hold_ns;
    int64_t backoff_min_ns;
    int64_t backoff_max_ns;
    size_t waiters; /* at most so many wait, in all and for one resource */
    size_t waiters_per_resource;
    bool fence_always; /* each LOCK, whether it asks for it or not */
    uint32_t durable;  /* see guard_rules, for these four */
    bool bootstrap;
    const char *reset_set;
    bool looks_on;
    /* Names this host's clock: the same for two daemons if and only if they read the same
     * CLOCK_BOOTTIME, so a boot has its own. Letters, digits and dashes. */
    const char *clock_id;
};

enum { ENGINE_CLOCK_ID_MAX = 80 };

#endif
