/*
 * A durable master (fsync always, no replica, no eviction) keeps its vote when it restarts with its
 * data. These tests check which restarts the guard accepts as durable. They run the engine with
 * fake masters and virtual time. The masters are A to E, and A is the one under test.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"
#include "tests/unit/cluster_guard.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

static void set_fsync(const char *fsync)
{
    w.masters[0].redis.fsync = fsync;
}

/* Restart the first master with these keys on its disk. */
static void restart_with_keys(const struct fake_data *keys)
{
    cluster_restart(&w, 0);
    w.masters[0].redis.data = *keys;
}

/* Set up a cluster whose first master is configured as durable, with this fsync policy. */
static void open_durable(const char *fsync)
{
    cluster_deinit(&w);
    cluster_init_unknown(&w, 5);
    set_fsync(fsync);
    w.durable = 1;
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, QUARANTINE_MS + 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}

TEST(durable_master_keeps_its_vote_through_a_restart)
{
    open_durable("always");
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "durable=yes"));
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
    cluster_restart_with_data(&w, 0);
    cluster_pass_ms(&w, 8 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    ck_assert_ptr_nonnull(cluster_value(&w, 0, "a"));
    /* The master also keeps its vote through a second restart. */
    cluster_restart_with_data(&w, 0);
    cluster_pass_ms(&w, 8 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}

TEST(master_that_syncs_every_second_is_not_durable)
{
    open_durable("everysec");
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "durable=no"));
    cluster_restart_with_data(&w, 0);
    cluster_expect_quarantine(&w, 0, 0, "restarted");
}

/* Twice, fsync is set to "always" only right before a restart. The record with which A restarts
 * still says durable=no, so the restart does not count as durable. */
TEST(durability_must_be_recorded_before_the_restart)
{
    open_durable("everysec");
    set_fsync("always");
    cluster_restart_with_data(&w, 0);
    cluster_expect_quarantine(&w, 0, 0, "restarted");
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "durable=yes"));
    set_fsync("everysec");
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    set_fsync("always");
    cluster_restart_with_data(&w, 0);
    cluster_expect_quarantine(&w, 0, 0, "restarted");
}

TEST(master_with_a_replica_is_not_durable)
{
    open_durable("always");
    w.masters[0].redis.replicas = 1;
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "durable=no"));
    cluster_restart_with_data(&w, 0);
    cluster_expect_quarantine(&w, 0, 0, "restarted");
}

/* A replica can have the old data of its master, with this daemon's record in it. */
TEST(restart_as_a_replica_is_not_durable)
{
    open_durable("always");
    cluster_restart_with_data(&w, 0);
    w.masters[0].redis.was_replica = true;
    cluster_expect_quarantine(&w, 0, 0, "restarted");
}

TEST(durable_restart_does_not_shorten_a_quarantine)
{
    open_durable("always");
    cluster_flush(&w, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "flushed");
    cluster_pass_ms(&w, 20 * 1000);
    cluster_restart_with_data(&w, 0);
    cluster_pass_ms(&w, QUARANTINE_MS - 25 * 1000);
    ck_assert_str_ne(cluster_vote(&w, 0), "-");
    cluster_pass_ms(&w, 30 * 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}

TEST(durable_master_that_lost_its_data_has_no_vote)
{
    open_durable("always");
    cluster_restart(&w, 0);
    cluster_expect_quarantine(&w, 0, 0, "restarted");
}

/* The fsync policy was weaker for a while, and the record said so (durable=no). The master restarts
 * with older data, in which the record still says durable=yes. */
TEST(restart_with_an_older_record_is_not_durable)
{
    open_durable("always");
    static struct fake_data keys;
    keys = w.masters[0].redis.data;
    set_fsync("everysec");
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "durable=no"));
    cluster_lock_on_three(&w);
    restart_with_keys(&keys);
    set_fsync("always");
    cluster_expect_no_grant_for_s(&w, 57);
}

/* Replace a field of A's record. */
static void forge_field(const char *name, const char *value)
{
    char old[RECORD_ID + 32], new[RECORD_ID + 32];
    const char *at = strstr(cluster_value(&w, 0, RECORD_KEY), name);
    ck_assert_ptr_nonnull(at);
    snprintf(old, sizeof(old), "%.*s", (int)strcspn(at + 1, " ") + 1, at);
    snprintf(new, sizeof(new), "%s%s", name, value);
    cluster_forge(&w, 0, old, new);
}

/* The same, but another daemon, which has seen neither durable=no nor the lock, has already
 * recorded the restart as harmless. */
TEST(older_record_that_another_daemon_has_renewed_is_not_durable)
{
    const struct fake_master *master = &w.masters[0].redis;
    char time_us[24];
    open_durable("always");
    static struct fake_data keys;
    keys = w.masters[0].redis.data;
    set_fsync("everysec");
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_lock_on_three(&w);
    restart_with_keys(&keys);
    set_fsync("always");
    snprintf(time_us, sizeof(time_us), "%" PRId64, cluster_clock_us(&w, 0));
    forge_field(" run_id=", master->run_id);
    forge_field(" replid=", master->replid);
    forge_field(" join_us=", time_us);
    cluster_expect_no_grant_for_s(&w, 57);
}

/* The master starts with an older file than its last one. Its record has not changed since. */
TEST(restart_with_an_older_file_is_not_durable)
{
    open_durable("always");
    static struct fake_data keys;
    keys = w.masters[0].redis.data;
    cluster_pass_ms(&w, 3000);
    cluster_lock_on_three(&w);
    restart_with_keys(&keys);
    cluster_expect_no_grant_for_s(&w, 57);
}

/* A restarts twice. After the second restart it has the data from before the first one, without the
 * lock that was granted in between. */
TEST(restart_with_data_from_two_runs_ago_is_not_durable)
{
    open_durable("always");
    static struct fake_data keys;
    keys = w.masters[0].redis.data;
    cluster_restart_with_data(&w, 0);
    cluster_pass_ms(&w, 8 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "-");
    cluster_lock_on_three(&w);
    restart_with_keys(&keys);
    cluster_expect_no_grant_for_s(&w, 57);
}

/* A name lease protects against other daemons that still count votes of the earlier process. A
 * single daemon finds only its own lease, so it need not wait. */
TEST(single_daemon_does_not_wait_for_its_own_lease)
{
    open_durable("always");
    cluster_restart_with_data(&w, 0);
    for (unsigned ms = 0; strcmp(cluster_vote(&w, 0), "-") != 0; ms++) {
        ck_assert_str_ne(cluster_vote(&w, 0), "repointed");
        ck_assert_uint_lt(ms, 1500);
        cluster_pass_ms(&w, 1);
    }
}

/* On each master, write a name lease that leases A's name to this server, as if another daemon
 * ("feed") had just renewed the lease. */
static void renew_as_another(const char *server)
{
    char lease[LIMIT_RECORD];
    for (unsigned i = 0; i < 5; i++) {
        snprintf(lease, sizeof(lease), "%s feed=%" PRId64, server, cluster_clock_us(&w, i) / 1000);
        cluster_set(&w, i, cluster_guard_key(&w, "name", ":a"), lease, QUARANTINE_MS);
    }
}

static int64_t reported_ms(void)
{
    return (guard_refuses_until_ns(&w.engine.flights.guard, 0, w.now_ns) - w.now_ns) / NS_PER_MS;
}

/* Another daemon renews A's name lease for three seconds as if it still talked to A's earlier
 * process. A's new process has no vote until five to seven seconds after the last renewal. */
TEST(new_process_waits_for_another_daemon_on_the_earlier_one)
{
    char server[2 * RECORD_ID + 2];
    open_durable("always");
    snprintf(server, sizeof(server), "%s",
             cluster_value(&w, 1, cluster_guard_key(&w, "name", ":a")));
    cluster_restart_with_data(&w, 0);
    for (unsigned i = 0; i < 6; i++) {
        renew_as_another(server);
        cluster_pass_ms(&w, 500);
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
    }
    cluster_expect_votes(&w, 0, 0, "otherprocess");
    ck_assert_int_gt(reported_ms(), 0);
    ck_assert_int_lt(reported_ms(), 8000);
    cluster_pass_ms(&w, 4900);
    ck_assert_str_ne(cluster_vote(&w, 0), "-");
    cluster_pass_ms(&w, 1500);
    cluster_expect_votes(&w, 0, 0, "-");
}

/* Another daemon still uses the earlier process of A. It renews its name lease on B and C only,
 * which answer later than D and E. The new process must not vote before B and C have
 * answered. */
TEST(new_process_waits_for_the_leases_of_all_masters)
{
    char server[2 * RECORD_ID + 2];
    char lease[LIMIT_RECORD];
    open_durable("always");
    snprintf(server, sizeof(server), "%s",
             cluster_value(&w, 1, cluster_guard_key(&w, "name", ":a")));
    w.masters[1].delay_ns = w.masters[2].delay_ns = 3 * NS_PER_MS;
    cluster_pass_ms(&w, 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    /* A client of the other daemon holds the lock on B, C and the earlier process of A. */
    cluster_set(&w, 1, "a", "feed", 60000);
    cluster_set(&w, 2, "a", "feed", 60000);
    cluster_restart_with_data(&w, 0);
    cluster_submit(&w, "LOCK a 60s WAIT 60s");
    for (unsigned i = 0; i < 4000; i++) {
        for (unsigned node = 1; node < 3; node++) {
            snprintf(lease, sizeof(lease), "%s feed=%" PRId64, server,
                     cluster_clock_us(&w, node) / 1000);
            cluster_set(&w, node, cluster_guard_key(&w, "name", ":a"), lease, QUARANTINE_MS);
        }
        cluster_pass_ms(&w, 1);
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
    }
    cluster_expect_votes(&w, 0, 0, "otherprocess");
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
}

/* Each daemon announces in the name lease that it has left the earlier process. After that, no
 * daemon can count votes of that process, and the new process may vote. */
TEST(daemons_that_all_saw_the_restart_do_not_wait)
{
    static struct cluster v;
    open_durable("always");
    v.durable = 1;
    cluster_join(&v, &w, "elsewhere");
    v.durable = 1;
    w.now_ns = v.now_ns;
    cluster_pass_both_ms(&w, &v, 3000);
    cluster_restart_with_data(&w, 0);
    cluster_pass_both_ms(&w, &v, 600);
    cluster_expect_votes(&w, 0, 0, "otherprocess");
    cluster_cut(&v, 0); /* v loses its connection to the earlier process only now */
    cluster_pass_both_ms(&w, &v, 2500);
    cluster_expect_votes(&w, 0, 0, "-");
    cluster_deinit(&v);
}

/* The new process began 3 s ago, while this daemon still talked to the original. So the new process
 * is a copy, and lacks the keys that the original got since then. In the second run another daemon,
 * which had left the original earlier, has already recorded the copy as a restart. */
TEST_LOOP(copy_that_ran_beside_its_original_is_no_restart, 0, 2)
{
    open_durable("always");
    cluster_pass_ms(&w, 10000);
    if (_i == 0)
        cluster_restart_with_data(&w, 0);
    else
        cluster_restart_recorded(&w, 0);
    w.masters[0].redis.begun_us = cluster_clock_us(&w, 0) - 3000000;
    cluster_expect_quarantine(&w, 0, 0, "restarted");
}

/* A's name leads to the earlier process again, which lacks the lock that its successor granted. */
TEST(earlier_process_cannot_come_back_after_its_successor_voted)
{
    static struct fake_data keys;
    char run_id[RECORD_ID + 1];
    char replid[RECORD_ID + 1];
    open_durable("always");
    keys = w.masters[0].redis.data;
    memcpy(run_id, w.masters[0].redis.run_id, sizeof(run_id));
    memcpy(replid, w.masters[0].redis.replid, sizeof(replid));
    cluster_restart_with_data(&w, 0);
    cluster_pass_ms(&w, 8 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    cluster_lock_on_three(&w);
    w.masters[0].redis.data = keys;
    memcpy(w.masters[0].redis.run_id, run_id, sizeof(run_id));
    memcpy(w.masters[0].redis.replid, replid, sizeof(replid));
    cluster_cut(&w, 0);
    cluster_pass_ms(&w, 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "olddata");
    cluster_expect_no_grant_for_s(&w, 56);
}

/* The master's name now leads to a server with a copy of the data, while another daemon still talks
 * to the original server. */
TEST(copy_of_a_durable_master_is_another_server)
{
    char server[2 * RECORD_ID + 2];
    open_durable("always");
    snprintf(server, sizeof(server), "%s",
             cluster_value(&w, 1, cluster_guard_key(&w, "name", ":a")));
    cluster_restart_with_data(&w, 0);
    for (unsigned i = 0; i < 40; i++) {
        for (unsigned node = 1; node < 5; node++)
            cluster_set(&w, node, cluster_guard_key(&w, "name", ":a"), server, QUARANTINE_MS);
        cluster_pass_ms(&w, 500);
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
    }
    cluster_expect_votes(&w, 0, 0, "repointed");
    ck_assert_int_gt(reported_ms(), 3600 * 1000);
}

/* A fails over while too few masters run for this daemon to record that. Then A restarts with its
 * data, and by its record this is a durable restart. The daemon must still remember the
 * failover. */
TEST(unrecorded_loss_costs_the_vote_after_a_durable_restart)
{
    open_durable("always");
    for (unsigned i = 1; i < 4; i++)
        cluster_kill(&w, i); /* the daemon writes no record unless it observes a quorum */
    cluster_pass_ms(&w, 1000);
    snprintf(w.masters[0].redis.replid, sizeof(w.masters[0].redis.replid), "%040u", 99);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "failedover");
    cluster_restart_with_data(&w, 0);
    for (unsigned i = 1; i < 4; i++)
        cluster_restart(&w, i);
    cluster_pass_ms(&w, 10 * OBSERVED_MS);
    ck_assert_str_ne(cluster_vote(&w, 0), "-");
}

/* Another daemon, which did not see that the master lost data, writes a record that does not
 * mention the loss. */
TEST_LOOP(unrecorded_loss_costs_the_vote_despite_another_daemons_record, 0, 2)
{
    char replid[RECORD_ID + 1];
    open_durable("always");
    memcpy(replid, w.masters[0].redis.replid, sizeof(replid));
    for (unsigned i = 1; i < 4; i++)
        cluster_kill(&w, i);
    if (_i == 1) { /* the master had been unobserved for a long time */
        w.masters[0].hung = true;
        cluster_pass_ms(&w, QUARANTINE_MS + 10000);
        w.masters[0].hung = false;
    }
    cluster_pass_ms(&w, 1000);
    snprintf(w.masters[0].redis.replid, sizeof(w.masters[0].redis.replid), "%040u", 99);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "failedover");
    /* Restore the replication id of the record, because cluster_restart_recorded() looks for it
     * there. */
    memcpy(w.masters[0].redis.replid, replid, sizeof(replid));
    cluster_restart_recorded(&w, 0);
    for (unsigned i = 1; i < 4; i++)
        cluster_restart(&w, i);
    cluster_pass_ms(&w, 10 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "restarted");
}

/* A master whose policy allows eviction can have evicted a lock. After a restart nothing shows
 * whether it did. */
TEST(master_that_may_evict_is_not_durable)
{
    open_durable("always");
    w.masters[0].redis.may_evict = true;
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "durable=no"));
    w.masters[0].redis.may_evict = false;
    cluster_restart_with_data(&w, 0);
    cluster_pass_ms(&w, 8 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "restarted");
}

/* A's clock is set back to before the recorded end of its quarantine. The record that notes the new
 * fsync policy must not bring the quarantine back. */
TEST(change_of_durability_starts_no_quarantine)
{
    open_durable("always");
    cluster_step_clock(&w, 0, 0, -3600);
    cluster_pass_ms(&w, 3000);
    cluster_expect_votes(&w, 0, 0, "-");
    set_fsync("everysec");
    cluster_pass_ms(&w, 3000);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "durable=no"));
    cluster_expect_votes(&w, 0, 0, "-");
}

/* The test plays a daemon that takes A for not durable, and rewrites its record whenever the record
 * says durable=yes. */
TEST(daemons_that_disagree_on_durability_do_not_keep_rewriting_the_record)
{
    open_durable("always");
    unsigned before = w.masters[0].redis.runs[REDIS_SCRIPT_WRITE_RECORD];
    for (unsigned i = 0; i < 10; i++) {
        if (strstr(cluster_value(&w, 0, RECORD_KEY), "durable=yes") != NULL)
            cluster_forge(&w, 0, "durable=yes", "durable=no");
        cluster_pass_ms(&w, 1000);
    }
    ck_assert_uint_le(w.masters[0].redis.runs[REDIS_SCRIPT_WRITE_RECORD], before + 1);
}

/* Another daemon has recorded a quarantine of two minutes. The daemon that starts while A is down
 * knows its length only from the record that A restarts with. */
TEST(durable_restart_keeps_the_length_of_a_quarantine)
{
    open_durable("always");
    cluster_flush(&w, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_forge(&w, 0, "quarantine_ms=60611", "quarantine_ms=120000");
    struct record record;
    const char *text = cluster_value(&w, 0, RECORD_KEY);
    ck_assert(record_parse(text, strlen(text), &record));
    char join[32];
    char later[32];
    snprintf(join, sizeof(join), "join_us=%" PRId64, record.join_us);
    snprintf(later, sizeof(later), "join_us=%" PRId64, record.join_us + 59389000);
    cluster_forge(&w, 0, join, later);
    static struct fake_data keys;
    keys = w.masters[0].redis.data;
    cluster_kill(&w, 0);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 2000);
    restart_with_keys(&keys);
    while (cluster_clock_us(&w, 0) < record.join_us + 59389000) {
        ck_assert_str_ne(cluster_vote(&w, 0), "-");
        cluster_pass_ms(&w, 1000);
    }
    cluster_pass_ms(&w, 3000);
    cluster_expect_votes(&w, 0, 0, "-");
}
