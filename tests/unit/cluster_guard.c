#include "tests/unit/cluster_guard.h"

#include "protocol/units.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- votes --- */

void cluster_expect_votes(const struct cluster *cluster, unsigned first, unsigned last,
                          const char *reason)
{
    for (unsigned i = first; i <= last; i++)
        ck_assert_msg(strcmp(cluster_vote(cluster, i), reason) == 0, "node %u: %s, not %s", i,
                      cluster_vote(cluster, i), reason);
}

void cluster_expect_quarantine(struct cluster *cluster, unsigned first, unsigned last,
                               const char *reason)
{
    cluster_pass_ms(cluster, OBSERVED_MS);
    cluster_expect_votes(cluster, first, last, reason);
    cluster_pass_ms(cluster, QUARANTINE_MS - 2 * OBSERVED_MS);
    cluster_expect_votes(cluster, first, last, reason);
    cluster_pass_ms(cluster, 3 * OBSERVED_MS);
    cluster_expect_votes(cluster, 0, 4, "-");
}

void cluster_expect_no_grant_for_s(struct cluster *cluster, unsigned seconds)
{
    for (unsigned s = 0; s < seconds; s++) {
        cluster_pass_ms(cluster, 1000);
        const char *reply = cluster_ask(cluster, "LOCK a 60s");
        ck_assert_msg(!cluster_granted(reply), "after %u s: %s", s, reply);
        cluster->reply_count = 0;
    }
}

/* --- keys of the guard --- */

const char *cluster_guard_key(const struct cluster *cluster, const char *kind, const char *rest)
{
    static char key[64];
    snprintf(key, sizeof(key), "redlockd:%s:%s%s", kind, cluster->engine.flights.guard.set_id,
             rest);
    return key;
}

void cluster_forge(struct cluster *cluster, unsigned node, const char *word, const char *by)
{
    char record[LIMIT_RECORD];
    char forged[2 * LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", cluster_value(cluster, node, RECORD_KEY));
    const char *at = strstr(record, word);
    ck_assert_ptr_nonnull(at);
    snprintf(forged, sizeof(forged), "%.*s%s%s", (int)(at - record), record, by, at + strlen(word));
    cluster_set(cluster, node, RECORD_KEY, forged, 0);
}

void cluster_lease_to_another(struct cluster *cluster, unsigned node, const char *rest,
                              int64_t ttl_ms)
{
    char run_id[RECORD_ID + 1];
    snprintf(run_id, sizeof(run_id), "%040d", 77);
    cluster_set(cluster, node, cluster_guard_key(cluster, "name", rest), run_id, ttl_ms);
}

void cluster_next_beats(struct cluster *cluster, unsigned node, char beats[IDENTITY_BEATS])
{
    const char *last = cluster->engine.flights.guard.nodes[node].identity.beats;
    const char *number = strrchr(last, '.');
    ck_assert_ptr_nonnull(number);
    snprintf(beats, IDENTITY_BEATS, "%.*s.%ld", (int)(number - last), last,
             strtol(number + 1, NULL, 10) + 1);
}

/* --- faults of masters --- */

void cluster_step_clock(struct cluster *cluster, unsigned first, unsigned last, int64_t seconds)
{
    for (unsigned i = first; i <= last; i++)
        cluster->masters[i].clock_ns += seconds * NS_PER_S;
}

void cluster_lock_on_three(struct cluster *cluster)
{
    cluster->masters[3].hung = cluster->masters[4].hung = true;
    cluster_token(cluster_ask(cluster, "LOCK a 60s"));
    cluster->masters[3].hung = cluster->masters[4].hung = false;
    cluster_settle(cluster);
    cluster_delete(cluster, 3, "a");
    cluster_delete(cluster, 4, "a");
}

void cluster_restart_with_data(struct cluster *cluster, unsigned node)
{
    struct cluster_master *master = &cluster->masters[node];
    static struct fake_data data;
    data = master->redis.data;
    cluster_restart(cluster, node);
    master->redis.data = data;
}

void cluster_restart_recorded(struct cluster *cluster, unsigned node)
{
    const struct fake_master *master = &cluster->masters[node].redis;
    char run_id[sizeof(master->run_id)];
    char replid[sizeof(master->replid)];
    memcpy(run_id, master->run_id, sizeof(run_id));
    memcpy(replid, master->replid, sizeof(replid));
    cluster_restart_with_data(cluster, node);
    /* The record holds the run id twice, as `id` and as `run_id`. The first call replaces it in
     * `id`, the second one in `run_id`. */
    cluster_forge(cluster, node, run_id, master->run_id);
    cluster_forge(cluster, node, run_id, master->run_id);
    cluster_forge(cluster, node, replid, master->replid);
}
