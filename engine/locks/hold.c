#include "engine/locks/hold.h"

#include "protocol/units.h"

void hold_init(struct hold *hold, int64_t ttl_ns, int64_t since_ns, int64_t until_ns)
{
    *hold = (struct hold){
        .ttl_ns = ttl_ns,
        .drift_ns = since_ns + ttl_ns - until_ns,
        .since_ns = since_ns,
        .until_ns = until_ns,
    };
}

void hold_on_extended(struct hold *hold, int64_t until_ns)
{
    hold->until_ns = max(hold->until_ns, until_ns);
    hold->retry_ns = 0;
}

void hold_on_failed(struct hold *hold, int64_t backoff_ns, int64_t now_ns)
{
    /* The delay is short enough for several attempts before the hold is lost, but not so short that
     * the attempts only load the masters. */
    hold->retry_ns = now_ns + max(min(hold->ttl_ns / 30, NS_PER_S), backoff_ns);
}

int64_t hold_renew_ns(const struct hold *hold, int64_t max_hold_ns)
{
    /* The extension is due when a third of the TTL has passed since the start of the round from
     * which the present validity comes. */
    int64_t renew_ns = hold->until_ns + hold->drift_ns - hold->ttl_ns / 3 * 2;
    renew_ns = max(renew_ns, hold->retry_ns);
    return hold_may_extend(hold, hold->ttl_ns, max_hold_ns, renew_ns) ? renew_ns : INT64_MAX;
}

bool hold_may_extend(const struct hold *hold, int64_t ttl_ns, int64_t max_hold_ns, int64_t now_ns)
{
    return now_ns + ttl_ns - hold->since_ns <= max_hold_ns;
}

int64_t hold_lost_ns(const struct hold *hold)
{
    return hold->until_ns - (hold->ttl_ns + 2) / 3;
}

int64_t hold_shortest_ms(const struct drift *drift, int64_t node_timeout_ns)
{
    struct hold hold;
    int64_t ttl_ms = 1;
    for (;; ttl_ms++) {
        int64_t ttl_ns = ttl_ms * NS_PER_MS;
        hold_init(&hold, ttl_ns, 0, valid_until(drift, ttl_ns, 0));
        if (hold_lost_ns(&hold) - hold_renew_ns(&hold, INT64_MAX) >= node_timeout_ns)
            return ttl_ms;
    }
}
