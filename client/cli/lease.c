#include "client/cli/lease.h"

#include <assert.h>
#include <stdio.h>

#include "protocol/units.h"

static const int64_t MARGIN_MAX_NS = INT64_C(1000000000);
static const int64_t ANSWER_TIMEOUT_MIN_NS = INT64_C(100000000);
static const int64_t RETRY_MAX_NS = INT64_C(500000000);

void lease_init(struct lease *lease, int64_t ttl_ns, int64_t grace_ns, int64_t deadline_ns)
{
    assert(ttl_ns > 0);
    assert(grace_ns >= 0);
    *lease = (struct lease){
        .ttl_ns = ttl_ns,
        .grace_ns = grace_ns,
        .deadline_ns = deadline_ns,
        .asked_ns = INT64_MAX,
        .lost_ns = INT64_MAX,
        .gone_ns = INT64_MAX,
    };
}

void lease_on_extending(struct lease *lease, int64_t now_ns)
{
    assert(!lease->extending);
    lease->extending = true;
    lease->asked_ns = min(lease->asked_ns, now_ns);
}

void lease_on_extended(struct lease *lease, int64_t deadline_ns)
{
    lease->extending = false;
    /* A loss is final, because the command is already told to end, or is killed. So a late success
     * does not move the deadline. */
    if (lease_is_lost(lease))
        return;
    lease->extend_now = false;
    lease->asked_ns = INT64_MAX;
    lease->why[0] = '\0';
    lease->deadline_ns = max(lease->deadline_ns, deadline_ns);
}

void lease_on_failed(struct lease *lease, const char *why, int64_t now_ns)
{
    lease->extending = false;
    /* The retry interval is short enough that the lock survives a short outage of the daemon, and
     * long enough not to flood a busy daemon. */
    lease->retry_ns = now_ns + min(lease->ttl_ns / 30, RETRY_MAX_NS);
    if (!lease_is_lost(lease))
        snprintf(lease->why, sizeof(lease->why), "%s", why);
}

void lease_on_closed(struct lease *lease, int64_t now_ns)
{
    if (lease_is_lost(lease))
        return;
    /* Retry at once only the first time, in case the daemon closes every new connection. */
    if (!lease->extend_now)
        lease->retry_ns = now_ns;
    lease->extend_now = true;
}

void lease_lose(struct lease *lease, const char *why, int64_t now_ns)
{
    lease->extending = false;
    if (lease_is_lost(lease))
        return;
    lease->lost_ns = now_ns;
    if (why != lease->why)
        snprintf(lease->why, sizeof(lease->why), "%s", why);
}

void lease_on_gone(struct lease *lease, const char *why, int64_t now_ns)
{
    lease_lose(lease, why, now_ns);
    lease->gone_ns = min(lease->gone_ns, now_ns);
}

bool lease_is_lost(const struct lease *lease)
{
    return lease->lost_ns != INT64_MAX;
}

int64_t lease_extend_ns(const struct lease *lease)
{
    if (lease->extending || lease_is_lost(lease))
        return INT64_MAX;
    if (lease->extend_now)
        return lease->retry_ns;
    return max(lease->deadline_ns - lease->ttl_ns / 3 * 2, lease->retry_ns);
}

int64_t lease_give_up_ns(const struct lease *lease)
{
    if (lease_is_lost(lease))
        return INT64_MAX;
    if (lease->asked_ns == INT64_MAX)
        return lease_kill_ns(lease);
    return max(lease->deadline_ns - lease->ttl_ns / 3,
               lease->asked_ns + lease_answer_timeout_ns(lease));
}

int64_t lease_answer_timeout_ns(const struct lease *lease)
{
    return min(lease->ttl_ns / 6, max(lease->ttl_ns / 10, ANSWER_TIMEOUT_MIN_NS));
}

int64_t lease_margin_ns(const struct lease *lease)
{
    return min(lease->ttl_ns / 10, MARGIN_MAX_NS);
}

int64_t lease_kill_ns(const struct lease *lease)
{
    int64_t kill_ns = min(lease->deadline_ns - lease_margin_ns(lease), lease->gone_ns);
    return lease_is_lost(lease) ? min(kill_ns, lease->lost_ns + lease->grace_ns) : kill_ns;
}

int64_t lease_next_ns(const struct lease *lease)
{
    return min(lease_kill_ns(lease), min(lease_give_up_ns(lease), lease_extend_ns(lease)));
}
