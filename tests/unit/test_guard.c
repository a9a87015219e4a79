/*
 * A master that may have lost locks has no vote for max_ttl, and the record on the master tells all
 * daemons so. The tests run the guard in the engine, on fake masters and virtual time. The comments
 * call the five masters A to E.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/guard/record_write.h"
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"
#include "tests/unit/cluster_guard.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

TEST(new_masters_vote_after_max_ttl)
{
    cluster_deinit(&w);
    cluster_init_unknown(&w, 5);
    cluster_expect_quarantine(&w, 0, 4, "new");
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
}

TEST(masters_with_an_operator_override_vote_at_once)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
}

TEST(restarted_master_has_no_vote_for_max_ttl)
{
    cluster_restart(&w, 1);
    cluster_expect_quarantine(&w, 1, 1, "restarted");
}

TEST(flushed_master_has_no_vote_for_max_ttl)
{
    cluster_flush(&w, 2);
    cluster_expect_quarantine(&w, 2, 2, "flushed");
}

TEST(failed_over_master_has_no_vote_for_max_ttl)
{
    snprintf(w.masters[3].redis.replid, sizeof(w.masters[3].redis.replid), "%040u", 99);
    cluster_expect_quarantine(&w, 3, 3, "failedover");
}

/* Master D's clock is set back by 1000 s. By this clock, the end of the quarantine in D's record is
 * now far ahead. Then D fails over, and the newcomer writes a new record: a daemon that has just
 * started and has never adopted the old one. D has not restarted, so the new record must have a
 * later end than the old one; here it is only 1 us later. The first daemon, which knows the old
 * record, must still treat the new one as the start of another quarantine. */
TEST(failover_recorded_by_a_newcomer_after_a_step_back_costs_the_vote)
{
    static struct cluster newcomer;
    cluster_step_clock(&w, 3, 3, -1000);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    snprintf(w.masters[3].redis.replid, sizeof(w.masters[3].redis.replid), "%040u", 99);
    cluster_join(&newcomer, &w, "elsewhere");
    cluster_pass_ms(&newcomer, 10);
    ck_assert_str_eq(cluster_vote(&newcomer, 3), "failedover");
    cluster_share(&w, &newcomer);
    cluster_deinit(&newcomer);
    cluster_expect_quarantine(&w, 3, 3, "failedover");
}

/* Another daemon, which has not seen the first of two losses, records the second one. D's clock was
 * set back before both. Without a quarantine id, the second record would be the same as the first
 * one, byte for byte. */
TEST(loss_recorded_by_another_daemon_after_a_step_back_costs_the_vote)
{
    static struct cluster other;
    cluster_join(&other, &w, "elsewhere");
    cluster_pass_ms(&other, 1);
    cluster_share(&w, &other);
    cluster_step_clock(&w, 3, 3, -1000);
    cluster_flush(&w, 3);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 3, 3, "flushed");
    cluster_pass_ms(&w, QUARANTINE_MS / 2);
    cluster_flush(&w, 3);
    cluster_share(&other, &w);
    cluster_pass_ms(&other, OBSERVED_MS);
    ck_assert_str_eq(cluster_vote(&other, 3), "flushed");
    cluster_share(&w, &other);
    cluster_deinit(&other);
    cluster_expect_quarantine(&w, 3, 3, "flushed");
}

/* A gets back the record that it had before a flush, without a restart. So its data are older than
 * what this daemon has already seen there. */
TEST(older_record_of_the_same_run_means_lost_data)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    cluster_flush(&w, 0);
    cluster_expect_quarantine(&w, 0, 0, "flushed");
    cluster_set(&w, 0, RECORD_KEY, record, 0);
    cluster_expect_quarantine(&w, 0, 0, "olddata");
}

TEST(unreadable_record_is_left_alone)
{
    cluster_set(&w, 0, RECORD_KEY, "what is this", 0);
    cluster_pass_ms(&w, QUARANTINE_MS + 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "record");
    ck_assert_str_eq(cluster_value(&w, 0, RECORD_KEY), "what is this");
}

/* The loss happens between two heartbeats: only the probe after the votes can find it. */
TEST(flush_right_before_a_lock_costs_the_vote)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        cluster_flush(&w, i);
    const char *reply = cluster_ask(&w, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
}

TEST(restart_of_a_majority_allows_no_second_grant)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        cluster_restart(&w, i);
    cluster_expect_no_grant_for_s(&w, 60);
    cluster_pass_ms(&w, 3000);
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
}

/* A has no vote for two reasons: its quarantine, and its clock, which the restarted daemon has not
 * yet monitored for long enough. The quarantine ends first. The daemon must report the time at
 * which the second reason ends. */
TEST(reported_time_is_the_end_of_the_last_reason)
{
    cluster_flush(&w, 0);
    cluster_pass_ms(&w, 20000);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 2000);
    cluster_expect_votes(&w, 0, 0, "flushed");
    int64_t until_ns = guard_refuses_until_ns(&w.engine.flights.guard, 0, w.now_ns);
    while (strcmp(cluster_vote(&w, 0), "-") != 0) {
        int64_t reported_ns = guard_refuses_until_ns(&w.engine.flights.guard, 0, w.now_ns);
        ck_assert_int_ge(reported_ns, until_ns);
        ck_assert_int_le(reported_ns, until_ns + 2 * OBSERVED_MS * NS_PER_MS);
        cluster_pass_ms(&w, 100);
    }
    ck_assert_int_ge(w.now_ns, until_ns);
    ck_assert_int_le(w.now_ns, until_ns + 2 * OBSERVED_MS * NS_PER_MS);
}

/* Start a daemon of another set with --reset-set. With this option an operator states that no
 * daemon of the old set runs. */
static void begin_reset(char old_set[RECORD_SET_ID + 1])
{
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    memcpy(old_set, w.engine.flights.guard.set_id, RECORD_SET_ID + 1);
    w.reset_set = old_set;
    w.cluster = "another";
    cluster_restart_engine(&w, "here");
}

static enum guard_progress progress(void)
{
    unsigned node;
    return guard_progress(&w.engine.flights.guard, &node);
}

TEST(set_is_reset_once_its_daemons_can_no_longer_vote)
{
    char old_set[RECORD_SET_ID + 1];
    begin_reset(old_set);
    cluster_pass_ms(&w, 3000);
    ck_assert_int_eq(progress(), GUARD_IN_PROGRESS);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(strstr(cluster_value(&w, i, RECORD_KEY), old_set));
    cluster_pass_ms(&w, 4000);
    ck_assert_int_eq(progress(), GUARD_DONE);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(strstr(cluster_value(&w, i, RECORD_KEY), "why=reset"));
}

/* Masters without records do not show how long the locks of the old set live. One that belongs to
 * the old set does. */
TEST_LOOP(set_is_not_reset_on_new_masters_alone, 0, 2)
{
    char old_set[RECORD_SET_ID + 1];
    begin_reset(old_set);
    for (unsigned i = 0; i < 5; i++)
        if (i != 3 || _i == 0)
            cluster_flush(&w, i);
    cluster_pass_ms(&w, 7000);
    ck_assert_int_eq(progress(), _i == 0 ? GUARD_REFUSED : GUARD_DONE);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(cluster_value(&w, i, RECORD_KEY) == NULL, _i == 0);
}

/* After a restart, all daemons of the old set have removed their signatures from the lease of the
 * lost server. The digits of its id are no time. */
TEST(lease_without_signatures_does_not_delay_the_reset_of_a_set)
{
    char old_set[RECORD_SET_ID + 1];
    char key[GUARD_NAME_KEY_MAX];
    begin_reset(old_set);
    snprintf(key, sizeof(key), "redlockd:name:%s:b", old_set);
    cluster_set(&w, 3, key,
                "9876543210987654321098765432109876543210 9876543210987654321098765432109876543210",
                QUARANTINE_MS);
    cluster_pass_ms(&w, 7000);
    ck_assert_int_eq(progress(), GUARD_DONE);
}

/* A daemon of the old set has renewed its name lease (_i is 0) or attested a clock (_i is 1) on one
 * master. */
TEST_LOOP(set_is_not_reset_while_one_of_its_daemons_runs, 0, 2)
{
    char old_set[RECORD_SET_ID + 1];
    char key[GUARD_NAME_KEY_MAX];
    char value[LIMIT_RECORD];
    begin_reset(old_set);
    cluster_pass_ms(&w, 2000);
    int64_t clock_ns = w.now_ns + w.masters[3].clock_ns;
    if (_i == 0) {
        snprintf(key, sizeof(key), "redlockd:name:%s:b", old_set);
        snprintf(value, sizeof(value), "%040u %040u feed=%lld", 1, 1, clock_ns / NS_PER_MS);
    } else {
        snprintf(key, sizeof(key), "redlockd:vouch:%s", old_set);
        snprintf(value, sizeof(value), "%" PRId64 ":200", clock_ns / 1000);
    }
    cluster_set(&w, 3, key, value, QUARANTINE_MS);
    cluster_pass_ms(&w, OBSERVED_MS);
    ck_assert_int_eq(progress(), GUARD_REFUSED);
    ck_assert(guard_old_set_may_run(&w.engine.flights.guard, 3, w.now_ns));
    cluster_pass_ms(&w, 10000);
    ck_assert_int_eq(progress(), GUARD_REFUSED);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(strstr(cluster_value(&w, i, RECORD_KEY), old_set));
}

/* The next daemon has not seen the loss itself, but finds the quarantine in the record. */
TEST(quarantine_outlives_the_daemon)
{
    cluster_restart(&w, 0);
    cluster_pass_ms(&w, 10 * 1000);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "restarted");
    cluster_expect_votes(&w, 1, 4, "-");
    cluster_pass_ms(&w, QUARANTINE_MS - 10 * 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}

TEST(clock_set_back_does_not_prolong_a_quarantine)
{
    cluster_restart(&w, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_step_clock(&w, 0, 0, -3600);
    cluster_restart_engine(&w, "here");
    cluster_expect_quarantine(&w, 0, 0, "restarted");
}

/* A record like that of A, but with another set id. */
static const char *record_of_another_set(void)
{
    static char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    memset(strstr(record, "set=") + 4, 'f', RECORD_SET_ID);
    return record;
}

TEST(record_of_another_set_is_left_alone)
{
    const char *record = record_of_another_set();
    cluster_set(&w, 0, RECORD_KEY, record, 0);
    cluster_pass_ms(&w, QUARANTINE_MS);
    cluster_expect_votes(&w, 0, 0, "otherset");
    ck_assert_str_eq(cluster_value(&w, 0, RECORD_KEY), record);
}

/* Four of the five masters have a record of another set. This daemon's set is a minority, so the
 * daemon must not write a record on E, which has lost its own. */
TEST(daemon_of_a_minority_set_writes_nothing)
{
    const char *record = record_of_another_set();
    for (unsigned i = 0; i < 4; i++)
        cluster_set(&w, i, RECORD_KEY, record, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_flush(&w, 4);
    cluster_pass_ms(&w, QUARANTINE_MS);
    cluster_expect_votes(&w, 4, 4, "flushed");
    ck_assert_ptr_null(cluster_value(&w, 4, RECORD_KEY));
}

TEST(failed_record_write_is_repeated_with_the_heartbeats)
{
    w.masters[0].redis.refusals[REDIS_SCRIPT_WRITE_RECORD] =
        "MISCONF Redis is configured to save RDB snapshots";
    cluster_flush(&w, 0);
    unsigned before = w.masters[0].redis.runs[REDIS_SCRIPT_WRITE_RECORD];
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_ge(w.masters[0].redis.runs[REDIS_SCRIPT_WRITE_RECORD] - before, 3);
    ck_assert_uint_le(w.masters[0].redis.runs[REDIS_SCRIPT_WRITE_RECORD] - before, 6);
    /* Until the record is written no quarantine begins, and the error is what matters. */
    cluster_expect_votes(&w, 0, 0, "misconf");
    w.masters[0].redis.refusals[REDIS_SCRIPT_WRITE_RECORD] = NULL;
    cluster_expect_quarantine(&w, 0, 0, "flushed");
}

TEST(master_that_refuses_evalsha_stays_without_vote)
{
    w.masters[0].redis.refusals[FAKE_BY_SHA1] = "NOPERM this user has no permissions to run it";
    cluster_pass_ms(&w, OBSERVED_MS);
    for (unsigned heartbeats = 0; heartbeats < 4; heartbeats++) {
        cluster_expect_votes(&w, 0, 0, "noperm");
        cluster_pass_ms(&w, 1000);
    }
    w.masters[0].redis.refusals[FAKE_BY_SHA1] = NULL;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* The master refuses only to set keys. It answers everything else that the guard sends. */
TEST(master_that_refuses_to_set_locks_has_no_vote)
{
    static const char refusal[] = "NOPERM this user has no permissions to access one of the keys";
    w.masters[0].redis.refusals[FAKE_SETTING] = refusal;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "noperm");
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
    /* The key of the guard's trial SET is gone from every master. */
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_null(cluster_value(&w, i, w.engine.flights.absent_key));
    w.masters[0].redis.refusals[FAKE_SETTING] = NULL;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* A has no vote because it belongs to another set. Unlike other masters without a vote, it must not
 * keep the key of a granted lock. */
TEST(no_lock_is_left_on_a_master_of_another_set)
{
    const char *record = record_of_another_set();
    cluster_flush(&w, 0);
    cluster_set(&w, 0, RECORD_KEY, record, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "otherset");
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
    cluster_settle(&w);
    ck_assert_ptr_null(cluster_value(&w, 0, "a"));
}

/* A has evicted keys, which the daemon would record. It must not replace a record that it cannot
 * read. */
TEST(unreadable_record_survives_evictions)
{
    w.lazy = true;
    w.masters[0].redis.evicted = 12;
    cluster_set(&w, 0, RECORD_KEY, "what is this", 0);
    cluster_pass_ms(&w, 3 * OBSERVED_MS);
    ck_assert_str_eq(cluster_value(&w, 0, RECORD_KEY), "what is this");
}

/* A's record has a quarantine, but no cause (why=-). The quarantine applies all the same, and the
 * guard gives "record" as its cause. */
TEST(quarantine_without_a_cause_is_enforced)
{
    cluster_flush(&w, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_forge(&w, 0, "why=flushed", "why=-");
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "record");
}

/* A is durable according to other daemons, and its record counts 12 evicted keys. A restarts, which
 * resets its counter, and another daemon has already updated the record. This daemon must leave
 * that record as it is. */
TEST(restart_recorded_by_another_daemon_is_recorded_once)
{
    w.masters[0].redis.evicted = 12;
    cluster_pass_ms(&w, QUARANTINE_MS + 3 * OBSERVED_MS);
    cluster_forge(&w, 0, "durable=no", "durable=yes");
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    cluster_restart_recorded(&w, 0);
    w.masters[0].redis.evicted = 0;
    cluster_forge(&w, 0, "evicted=12", "evicted=0");
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    cluster_pass_ms(&w, 5000);
    ck_assert_str_eq(cluster_value(&w, 0, RECORD_KEY), record);
}

/* B to E have records with a quarantine of two minutes, as if an older set had a longer max_ttl. A
 * lock of that set can live for two minutes, so A, which is flushed now, must have no vote for two
 * minutes. */
TEST(quarantine_of_an_old_set_applies_to_later_losses)
{
    for (unsigned i = 0; i < 5; i++)
        cluster_flush(&w, i);
    cluster_pass_ms(&w, OBSERVED_MS);
    for (unsigned i = 1; i < 5; i++)
        cluster_forge(&w, i, "quarantine_ms=60611", "quarantine_ms=120000");
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_flush(&w, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "quarantine_ms=120000"));
}

/* --- INFO --- */

TEST(replica_has_no_vote)
{
    w.masters[0].redis.replica = true;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "replica");
}

/* Redis and Valkey report cluster mode in different fields. */
TEST_LOOP(master_in_cluster_mode_has_no_vote, 0, 2)
{
    w.masters[0].redis.version = _i == 0 ? NULL : "valkey_version:9.1.2";
    w.masters[0].redis.clustered = true;
    cluster_restart(&w, 0);
    cluster_pass_ms(&w, QUARANTINE_MS + 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "cluster");
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
}

TEST(master_that_may_evict_has_no_vote)
{
    w.masters[0].redis.may_evict = true;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "eviction");
    w.masters[0].redis.may_evict = false;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "-");
}

TEST(master_that_has_evicted_has_no_vote_for_max_ttl)
{
    w.masters[0].redis.evicted = 12;
    cluster_expect_quarantine(&w, 0, 0, "evicted");
}

/* A evicts keys while its policy allows eviction. No quorum is reachable, so no daemon can record
 * that. Then the operator corrects the policy, and A's counter of evicted keys is reset. */
static void evict_unrecorded(void)
{
    w.masters[0].redis.may_evict = true;
    for (unsigned i = 2; i < 5; i++)
        cluster_kill(&w, i);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    w.masters[0].redis.evicted = 6;
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), " evicted=0 "));
    w.masters[0].redis.may_evict = false;
    w.masters[0].redis.evicted = 0;
}

static void bring_back_quorum(void)
{
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].dead = false;
}

/* Another daemon writes a record on A, for a quarantine that ends in `ends_in_ms`. */
static void write_another_record(int64_t ends_in_ms)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    char *quarantine_id = strstr(record, " mark=") + strlen(" mark=");
    *quarantine_id = *quarantine_id == '0' ? '1' : '0';
    sprintf(strstr(record, " join_us=") + strlen(" join_us="), "%" PRId64,
            cluster_clock_us(&w, 0) + ends_in_ms * 1000);
    cluster_set(&w, 0, RECORD_KEY, record, 0);
}

/* A master that may evict has no vote anyway. Its evictions are recorded all the same, so that
 * daemons that start later learn of them. */
TEST(keys_evicted_while_eviction_is_allowed_are_on_record)
{
    w.masters[0].redis.may_evict = true;
    cluster_pass_ms(&w, OBSERVED_MS);
    w.masters[0].redis.evicted = 6;
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), " evicted=6 "));
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), " why=evicted "));
    cluster_expect_votes(&w, 0, 0, "eviction");
    w.masters[0].redis.may_evict = false;
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "evicted");
}

/* CONFIG RESETSTAT has cleared the counter before a record could be written. The daemon that saw
 * the evictions must still count them as a loss. */
TEST(counter_reset_hides_no_eviction)
{
    evict_unrecorded();
    bring_back_quorum();
    cluster_pass_ms(&w, 10 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "evicted");
}

/* The operator's override replaces the record with one whose quarantine has ended. The override
 * does not conflict with anything that this daemon has seen. */
TEST(operator_override_is_left_as_it_is)
{
    char record[LIMIT_RECORD];
    cluster_pass_ms(&w, 5000);
    write_another_record(0);
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    cluster_pass_ms(&w, 3 * OBSERVED_MS);
    ck_assert_str_eq(cluster_value(&w, 0, RECORD_KEY), record);
}

/* Another daemon that has not seen the evictions rewrites the record for another reason. */
TEST(evictions_survive_the_record_of_another_daemon)
{
    evict_unrecorded();
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_forge(&w, 0, "durable=no", "durable=yes");
    bring_back_quorum();
    cluster_pass_ms(&w, 10 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "evicted");
}

/* A quarantine that another daemon recorded ends at the recorded time, however late this daemon
 * reads it. */
TEST(quarantine_seen_late_is_not_prolonged)
{
    cluster_pass_ms(&w, OBSERVED_MS);
    w.masters[0].hung = true;
    write_another_record(QUARANTINE_MS);
    cluster_pass_ms(&w, 30000);
    w.masters[0].hung = false;
    cluster_pass_ms(&w, 10000);
    ck_assert_str_ne(cluster_vote(&w, 0), "-");
    cluster_pass_ms(&w, QUARANTINE_MS - 40000 + 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "-");
}

/* A evicts keys after its record was written for --bootstrap, but before the override is done on
 * all masters. The daemon must not replace that record because of the evictions. */
TEST(operator_override_precedes_evictions)
{
    unsigned node;
    w.masters[0].redis.may_evict = true;
    cluster_pass_ms(&w, OBSERVED_MS);
    /* Make the override unfinished again: it is done only after a heartbeat of E, and E hangs. */
    w.masters[4].hung = true;
    w.engine.flights.guard.nodes[4].clock.entry_left = false;
    w.engine.flights.guard.override_done = false;
    w.masters[0].redis.evicted = 6;
    cluster_pass_ms(&w, OBSERVED_MS);
    ck_assert_int_eq(guard_progress(&w.engine.flights.guard, &node), GUARD_IN_PROGRESS);
    ck_assert_uint_eq(node, 4);
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), " why=bootstrap "));
}

/* The end of the quarantine would not give A its vote: the operator must change the eviction policy
 * first. So A reports eviction, and no time at which it ends. */
TEST(new_master_that_may_evict_reports_eviction)
{
    cluster_deinit(&w);
    cluster_init_unknown(&w, 5);
    w.masters[0].redis.may_evict = true;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "eviction");
    cluster_expect_votes(&w, 1, 4, "new");
    ck_assert_int_eq(guard_refuses_until_ns(&w.engine.flights.guard, 0, w.now_ns), INT64_MAX);
    ck_assert_int_lt(guard_refuses_until_ns(&w.engine.flights.guard, 1, w.now_ns), INT64_MAX);
}

/* As after SWAPDB, the master suddenly has another record than the one that this daemon knows. The
 * new record has the same run id and a quarantine that has ended. */
TEST(replaced_record_is_a_loss)
{
    char record[LIMIT_RECORD];
    cluster_pass_ms(&w, 5000);
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    char *quarantine_id = strstr(record, " mark=") + strlen(" mark=");
    char *last = record + strlen(record) - 1;
    *quarantine_id = *quarantine_id == '0' ? '1' : '0';
    ck_assert_int_lt(*last, '9');
    ++*last;
    cluster_set(&w, 0, RECORD_KEY, record, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    /* A daemon that starts now reads of the loss in the record. */
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), " why=flushed "));
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 50000);
    cluster_expect_votes(&w, 0, 0, "flushed");
    cluster_pass_ms(&w, QUARANTINE_MS - 50000 + OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "-");
}
