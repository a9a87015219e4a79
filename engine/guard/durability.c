#include "engine/guard/durability.h"

void durability_on_facts(struct durability *durability, bool wanted, bool durable)
{
    durability->seen = !wanted   ? DURABILITY_NOT_WANTED
                       : durable ? DURABILITY_SEEN
                                 : DURABILITY_MISSING;
}

void durability_on_replicas(struct durability *durability)
{
    if (durability->seen == DURABILITY_SEEN)
        durability->seen = DURABILITY_MISSING;
}

void durability_on_record(struct durability *durability, bool recorded, int64_t now_ns)
{
    durability->recorded = recorded;
    durability->recorded_ns = now_ns;
}

/* A daemon without the option leaves what others have found out. Two that disagree must not write
 * against each other all the time, so durability is granted later than it is withdrawn. */
bool durability_wants_record(const struct durability *durability,
                             const struct guard_periods *periods, int64_t now_ns)
{
    bool seen = durability->seen == DURABILITY_SEEN;
    return durability->seen != DURABILITY_NOT_WANTED && seen != durability->recorded &&
           (!seen || now_ns - durability->recorded_ns >= periods->quarantine_ns);
}
