#include "engine/master/master.h"

#include <assert.h>

#include "protocol/units.h"

enum reason master_refuses_vote(const struct master *master, int64_t now_ns)
{
    enum reason reason = link_refuses_vote(&master->link);
    if (reason != REASON_NONE)
        return reason;
    return guard_refuses_vote(master->guard, master->link.node, now_ns);
}

int64_t master_refuses_until_ns(const struct master *master, int64_t now_ns)
{
    enum reason reason = link_refuses_vote(&master->link);
    /* A full link empties by itself, and nothing reports that. */
    if (reason != REASON_NONE && reason != REASON_BACKLOG)
        return INT64_MAX;
    return guard_refuses_until_ns(master->guard, master->link.node, now_ns);
}

bool master_is_connected(const struct master *master)
{
    return link_is_connected(master->link.state);
}

void master_on_lost(struct master *master)
{
    guard_on_lost(master->guard, master->link.node);
    master->probes = 0;
    master->signs_of_life_due = 0;
    master->refused_reasons = 0;
}

bool master_note_refusal(struct master *master, enum reason reason)
{
    static_assert(REASON_COUNT <= 64, "one bit for each reason");
    uint64_t bit = UINT64_C(1) << reason;
    if (reason == REASON_NOSCRIPT || (master->refused_reasons & bit) != 0)
        return false;
    master->refused_reasons |= bit;
    return true;
}

int64_t master_begun_ns(const struct master *master, const struct drift *drift, int64_t now_ns)
{
    int64_t uptime_s = master->link.uptime_s;
    if (uptime_s < 0)
        return INT64_MIN;
    /* The last of the reported seconds may have only just begun, and the clock of the server may
     * run faster than ours. */
    return now_ns - (uptime_s - 1) * NS_PER_S + drift_of(drift, uptime_s * NS_PER_S);
}
