#include "engine/round/validity.h"
#include "protocol/units.h"

#include <assert.h>

/* The share of a duration that clocks may drift. Rounded up, because a drift is subtracted from
 * what a client is promised. */
static int64_t rate_share(const struct drift *drift, int64_t duration_ns)
{
    assert(drift->rate_ppm >= 0);
    assert(drift->rate_ppm <= 1000000);
    /* Computed in two parts: a day in nanoseconds times a million would overflow. */
    int64_t whole = duration_ns / 1000000 * drift->rate_ppm;
    int64_t rest = (duration_ns % 1000000 * drift->rate_ppm + 999999) / 1000000;
    return whole + rest;
}

int64_t drift_of(const struct drift *drift, int64_t ttl_ns)
{
    assert(ttl_ns >= 0);
    return rate_share(drift, ttl_ns) + drift->margin_ns;
}

int64_t valid_until(const struct drift *drift, int64_t ttl_ns, int64_t started_ns)
{
    return started_ns + ttl_ns - drift_of(drift, ttl_ns);
}

int64_t elapsed_for_client_ms(const struct drift *drift, int64_t received_ns, int64_t now_ns)
{
    assert(now_ns >= received_ns);
    int64_t elapsed_ns = now_ns - received_ns;
    int64_t counted_ns = elapsed_ns - rate_share(drift, elapsed_ns);
    return counted_ns > 0 ? counted_ns / NS_PER_MS : 0;
}
