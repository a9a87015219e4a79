#include "engine/guard/name_lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/round/node_set.h"

void name_lease_begin(struct name_lease *lease)
{
    lease->held_on = lease->ending = 0;
    memset(lease->doubted_ns, 0, sizeof(lease->doubted_ns));
    lease->wanted = true;
}

/* Note whether this master names another process with the same data. If it is the first to do so,
 * the handover time begins. */
static void note_process(struct name_lease *lease, const struct guard_periods *periods,
                         unsigned master, bool other_process, int64_t now_ns)
{
    if (other_process && lease->other_process == 0)
        lease->handover_ns = now_ns + periods->fresh_ns + 2 * periods->heartbeat_ns;
    lease->other_process &= ~nodes_only(master);
    if (other_process)
        lease->other_process |= nodes_only(master);
}

/* For fresh_ns after a master has reported a conflict, a daemon may grant locks by the votes of the
 * other server. */
static int64_t conflict_lasts_ns(const struct guard_periods *periods)
{
    return periods->fresh_ns + periods->quarantine_ns;
}

int64_t name_lease_reported_ns(const struct name_lease *lease, const struct guard_periods *periods)
{
    return lease->conflict_until_ns - conflict_lasts_ns(periods);
}

static void report_conflict(struct name_lease *lease, const struct guard_periods *periods,
                            unsigned master, int64_t now_ns)
{
    if (lease->conflicts == 0 || now_ns >= lease->conflict_until_ns)
        lease->conflict_since_ns = now_ns;
    lease->conflicts |= nodes_only(master);
    lease->conflict_until_ns = now_ns + conflict_lasts_ns(periods);
}

/* The master names our server. Does this end the conflict that it may have reported? */
static bool ends_conflict(struct name_lease *lease, const struct guard_periods *periods,
                          unsigned master, bool keeps, int64_t now_ns)
{
    bool repeated = (lease->ending & nodes_only(master)) != 0;
    lease->ending &= ~nodes_only(master);
    if (!(lease->conflicts & nodes_only(master)) || (keeps && repeated))
        return true;
    if (keeps) {
        lease->ending |= nodes_only(master);
        return false;
    }
    if (lease->doubted_ns[master] != 0)
        return now_ns >= lease->doubted_ns[master] + conflict_lasts_ns(periods);
    /* The other server may have been leased, and its votes counted, until now. */
    lease->doubted_ns[master] = now_ns;
    report_conflict(lease, periods, master, now_ns);
    return false;
}

void name_lease_forget(struct name_lease *lease, unsigned master)
{
    uint32_t others = ~nodes_only(master);
    lease->conflicts &= others;
    lease->other_process &= others;
    lease->ending &= others;
    lease->doubted_ns[master] = 0;
}

void name_lease_on_digit(struct name_lease *lease, const struct guard_periods *periods,
                         unsigned master, char digit, bool ours, bool keeps, int64_t now_ns)
{
    /* If our server has changed since the lease was requested, the lease was for the previous
     * server, and the digit says nothing about the present one. */
    if (digit == LEASE_OTHER || (digit == LEASE_OTHER_PROCESS && ours)) {
        report_conflict(lease, periods, master, now_ns);
        lease->ending &= ~nodes_only(master);
        lease->reported_ns[master] = now_ns;
        lease->doubted_ns[master] = 0;
        note_process(lease, periods, master, digit == LEASE_OTHER_PROCESS, now_ns);
    } else if (digit == LEASE_OURS && ours &&
               ends_conflict(lease, periods, master, keeps, now_ns)) {
        name_lease_forget(lease, master);
        lease->held_on |= nodes_only(master);
    }
}

enum reason name_lease_refuses(const struct name_lease *lease, int64_t now_ns)
{
    if (lease->conflicts == 0 || now_ns >= lease->conflict_until_ns)
        return REASON_NONE;
    return lease->conflicts == lease->other_process && now_ns < lease->handover_ns
               ? REASON_OTHERPROCESS
               : REASON_REPOINTED;
}

void name_lease_server(unsigned database, const char *id, const char *run_id,
                       char server[GUARD_SERVER_MAX])
{
    int len = database != 0 ? snprintf(server, GUARD_SERVER_MAX, "%u/", database) : 0;
    snprintf(server + len, GUARD_SERVER_MAX - (size_t)len, "%s %s", id, run_id);
}

enum reason name_lease_conflict(const char *lease, const char *server, int64_t fresh_ms)
{
    size_t len = strlen(server);
    if (strncmp(lease, server, len) == 0 && (lease[len] == ' ' || lease[len] == '\0'))
        return REASON_NONE;
    if (strncmp(lease, server, RECORD_ID) != 0)
        return REASON_REPOINTED;
    /* The latest signature comes first. */
    const char *signed_at = strchr(lease, '=');
    int64_t at_ms = signed_at != NULL ? strtoll(signed_at + 1, NULL, 10) : INT64_MAX;
    return at_ms < fresh_ms ? REASON_NONE : REASON_OTHERPROCESS;
}
