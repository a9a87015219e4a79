#include "engine/flight/need.h"

#include "protocol/units.h"

int64_t need_ns(int64_t backoff_min_ns, int64_t round_trip_ns)
{
    int64_t ns = 3 * round_trip_ns + NS_PER_MS;
    return ns > backoff_min_ns ? ns : 0;
}
