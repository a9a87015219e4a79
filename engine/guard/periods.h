/*
 * How long things last for the guard; its parts are given these.
 */
#ifndef ENGINE_GUARD_PERIODS_H
#define ENGINE_GUARD_PERIODS_H

#include <stdint.h>

#include "engine/round/validity.h"

struct guard_periods {
    struct drift drift;
    int64_t quarantine_ns; /* max_ttl and its drift: no lock outlives it */
    int64_t heartbeat_ns;  /* how often each master is to be looked at */
    int64_t fresh_ns;      /* how long such a look is good for */
};

#endif
