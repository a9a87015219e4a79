/*
 * Does a master keep on disk whatever it has answered? Pure.
 *
 * The settings show it with each heartbeat ("seen"), and the record tells it to all daemons
 * ("recorded"). Only what was recorded before a restart, and is seen after it, makes that harmless.
 */
#ifndef ENGINE_GUARD_DURABILITY_H
#define ENGINE_GUARD_DURABILITY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/guard/periods.h"

enum durability_seen { DURABILITY_NOT_WANTED, DURABILITY_MISSING, DURABILITY_SEEN };

struct durability {
    enum durability_seen seen;
    bool recorded;
    int64_t recorded_ns; /* when that record was adopted */
};

/* Its settings were read. wanted: the configuration says that it is durable. */
void durability_on_facts(struct durability *durability, bool wanted, bool durable);

/* It has replicas, so it may fail over to one. */
void durability_on_replicas(struct durability *durability);

/* A record was adopted. */
void durability_on_record(struct durability *durability, bool recorded, int64_t now_ns);

/* Is the record to be replaced by one that says what is seen? */
bool durability_wants_record(const struct durability *durability,
                             const struct guard_periods *periods, int64_t now_ns);

#endif
