/*
 * protocol/guard.h in the engine, on fake masters and virtual time: who may vote, from when on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/world_guard.h"

static struct world w;

static void five(void)
{
    world_init(&w, 5);
}

static void end(void)
{
    world_deinit(&w);
}

/* --- the record --- */

START_TEST(new_masters_vote_after_max_ttl)
{
    world_deinit(&w);
    world_init_unknown(&w, 5);
    world_expect_quarantine(&w, 0, 4, "new");
    ck_assert(world_granted(world_ask(&w, "LOCK a 10s")));
}
END_TEST

START_TEST(masters_that_an_operator_vouches_for_vote_at_once)
{
    ck_assert(world_granted(world_ask(&w, "LOCK a 10s")));
}
END_TEST

START_TEST(restarted_master_has_no_vote_for_max_ttl)
{
    world_restart(&w, 1);
    world_expect_quarantine(&w, 1, 1, "restarted");
}
END_TEST

START_TEST(flushed_master_has_no_vote_for_max_ttl)
{
    world_flush(&w, 2);
    world_expect_quarantine(&w, 2, 2, "flushed");
}
END_TEST

START_TEST(failed_over_master_has_no_vote_for_max_ttl)
{
    snprintf(w.masters[3].replid, sizeof(w.masters[3].replid), "%040u", 99);
    world_expect_quarantine(&w, 3, 3, "failedover");
}
END_TEST

/* Who writes the record has seen none before; we have, and it ends at the same time, since the
 * clock was set back and the end of a quarantine only rises. It is a new quarantine all the same.
 */
START_TEST(failover_that_a_newcomer_records_after_a_step_back)
{
    static struct world newcomer;
    world_step_clock(&w, 3, 3, -1000);
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
    snprintf(w.masters[3].replid, sizeof(w.masters[3].replid), "%040u", 99);
    world_join(&newcomer, &w, "elsewhere");
    world_pass_ms(&newcomer, 10);
    ck_assert_str_eq(world_vote(&newcomer, 3), "failedover");
    world_share(&w, &newcomer);
    world_deinit(&newcomer);
    world_expect_quarantine(&w, 3, 3, "failedover");
}
END_TEST

/* Likewise where another daemon records the second of two losses, and knows nothing of the first:
 * it would write what we wrote, to the byte. */
START_TEST(loss_that_another_daemon_records_after_a_step_back)
{
    static struct world other;
    world_join(&other, &w, "elsewhere");
    world_pass_ms(&other, 1);
    world_share(&w, &other);
    world_step_clock(&w, 3, 3, -1000);
    world_flush(&w, 3);
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 3, 3, "flushed");
    world_pass_ms(&w, QUARANTINE_MS / 2);
    world_flush(&w, 3);
    world_share(&other, &w);
    world_pass_ms(&other, LOOKED_MS);
    ck_assert_str_eq(world_vote(&other, 3), "flushed");
    world_share(&w, &other);
    world_deinit(&other);
    world_expect_quarantine(&w, 3, 3, "flushed");
}
END_TEST

START_TEST(older_record_of_the_same_run_is_lost_data)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    world_flush(&w, 0);
    world_expect_quarantine(&w, 0, 0, "flushed");
    world_set(&w, 0, RECORD_KEY, record, 0);
    world_expect_quarantine(&w, 0, 0, "olddata");
}
END_TEST

START_TEST(strange_record_is_left_alone)
{
    world_set(&w, 0, RECORD_KEY, "what is this", 0);
    world_pass_ms(&w, QUARANTINE_MS + 3 * LOOKED_MS);
    world_expect_votes(&w, 0, 0, "record");
    ck_assert_str_eq(world_value(&w, 0, RECORD_KEY), "what is this");
}
END_TEST

/* The loss between two looks: nothing tells of it but the probe behind the votes. */
START_TEST(flush_right_before_a_lock_lends_no_vote)
{
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        world_flush(&w, i);
    const char *reply = world_ask(&w, "LOCK a 60s");
    ck_assert_msg(!world_granted(reply), "%s", reply);
}
END_TEST

START_TEST(no_second_grant_after_a_majority_restarted)
{
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        world_restart(&w, i);
    world_expect_no_grant_for_s(&w, 60);
    world_pass_ms(&w, 3000);
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
}
END_TEST

/* What a daemon wrote, the next one keeps to, though it saw nothing happen. */
START_TEST(quarantine_outlives_the_daemon)
{
    world_restart(&w, 0);
    world_pass_ms(&w, 10 * 1000);
    world_restart_engine(&w, "here");
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "restarted");
    world_expect_votes(&w, 1, 4, "-");
    world_pass_ms(&w, QUARANTINE_MS - 10 * 1000);
    world_expect_votes(&w, 0, 4, "-");
}
END_TEST

START_TEST(clock_set_back_does_not_prolong_a_quarantine)
{
    world_restart(&w, 0);
    world_pass_ms(&w, LOOKED_MS);
    world_step_clock(&w, 0, 0, -3600);
    world_restart_engine(&w, "here");
    world_expect_quarantine(&w, 0, 0, "restarted");
}
END_TEST

START_TEST(record_of_another_set_is_respected)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    memset(strstr(record, "set=") + 4, 'f', RECORD_SET_ID);
    world_set(&w, 0, RECORD_KEY, record, 0);
    world_pass_ms(&w, QUARANTINE_MS);
    world_expect_votes(&w, 0, 0, "otherset");
    ck_assert_str_eq(world_value(&w, 0, RECORD_KEY), record);
}
END_TEST

START_TEST(daemon_with_another_set_than_most_writes_nothing)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    memset(strstr(record, "set=") + 4, 'f', RECORD_SET_ID);
    for (unsigned i = 0; i < 4; i++)
        world_set(&w, i, RECORD_KEY, record, 0);
    world_pass_ms(&w, LOOKED_MS);
    world_flush(&w, 4);
    world_pass_ms(&w, QUARANTINE_MS);
    world_expect_votes(&w, 4, 4, "flushed");
    ck_assert_ptr_null(world_value(&w, 4, RECORD_KEY));
}
END_TEST

/* --- clocks --- */

START_TEST(stepped_clock_costs_the_vote_for_max_ttl)
{
    world_step_clock(&w, 0, 0, 60);
    world_expect_quarantine(&w, 0, 0, "stepped");
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "why=stepped"));
}
END_TEST

START_TEST(two_stepped_clocks_cost_two_votes)
{
    world_step_clock(&w, 3, 4, 60);
    world_expect_quarantine(&w, 3, 4, "stepped");
}
END_TEST

START_TEST(majority_of_stepped_clocks_is_a_doubt_about_our_own)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    world_step_clock(&w, 0, 2, 60);
    world_expect_quarantine(&w, 0, 4, "doubt");
    ck_assert_str_eq(world_value(&w, 0, RECORD_KEY), record);
}
END_TEST

START_TEST(clock_that_steps_back_keeps_its_vote)
{
    world_step_clock(&w, 0, 4, -60);
    world_pass_ms(&w, 3 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
    ck_assert(world_granted(world_ask(&w, "LOCK a 10s")));
}
END_TEST

/* Keys that would outlive every lock by an hour are cut to what a lock may live. */
START_TEST(lock_on_clocks_that_stepped_back_ends_by_max_ttl)
{
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
    world_step_clock(&w, 0, 2, -3600);
    world_pass_ms(&w, 1000);
    ck_assert_str_eq(world_ask(&w, "LOCK a 60s"), "HELD 60000");
    world_pass_ms(&w, 59000);
    ck_assert(!world_granted(world_ask(&w, "LOCK a 60s")));
    world_pass_ms(&w, 1001);
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
}
END_TEST

/* Found in the probe behind a vote, before any heartbeat. */
START_TEST(step_right_before_a_lock_lends_no_vote)
{
    ck_assert(world_granted(world_ask(&w, "LOCK a 10s")));
    world_step_clock(&w, 0, 1, 60);
    w.masters[4].hung = true;
    const char *reply = world_ask(&w, "LOCK a 10s");
    ck_assert_msg(!world_granted(reply), "%s", reply);
}
END_TEST

/* "How to do distributed locking", the example against Redlock: client 1 has A, B and C; the clock
 * of C jumps, so the key ends early there; client 2 gets C, D and E. */
START_TEST(critics_example)
{
    w.masters[3].hung = w.masters[4].hung = true;
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
    world_pass_ms(&w, 100);
    w.masters[3].hung = w.masters[4].hung = false;
    world_pass_ms(&w, LOOKED_MS);
    world_delete(&w, 3, "a");
    world_delete(&w, 4, "a");
    world_step_clock(&w, 2, 2, 60);
    const char *reply = world_ask(&w, "LOCK a 60s");
    ck_assert_msg(!world_granted(reply), "%s", reply);
}
END_TEST

/* The votes of a batch that was written before the one that revealed the step match the new time:
 * the epoch tells them apart. */
START_TEST(vote_written_before_a_step_was_found_does_not_count_after)
{
    for (unsigned i = 3; i < 5; i++)
        world_kill(&w, i);
    world_step_clock(&w, 2, 2, 60);
    world_send(&w, "LOCK a 60s");
    engine_flush(&w.engine, w.now_ns);
    world_send(&w, "#second LOCK b 60s");
    engine_flush(&w.engine, w.now_ns);
    world_pass_ms(&w, 60);
    ck_assert_uint_eq(w.reply_count, 2);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_msg(strstr(w.replies[i], "OK") == NULL, "%s", w.replies[i]);
}
END_TEST

START_TEST(slow_answer_is_probed_again_in_the_same_round)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].hung = true;
    world_send(&w, "LOCK a 10s");
    world_settle(&w);
    world_pass_ms(&w, 30);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].hung = false;
    world_pass_ms(&w, 1);
    ck_assert_uint_eq(w.reply_count, 1);
    ck_assert(world_granted(w.replies[0]));
}
END_TEST

/* --- daemons that come and go --- */

START_TEST(daemon_that_restarts_on_its_host_votes_at_once)
{
    world_pass_ms(&w, LOOKED_MS);
    world_restart_engine(&w, "here");
    world_pass_ms(&w, 2 * 1000);
    ck_assert(world_granted(world_ask(&w, "LOCK a 10s")));
}
END_TEST

START_TEST(first_daemon_on_another_host_waits_for_max_ttl)
{
    world_pass_ms(&w, LOOKED_MS);
    world_restart_engine(&w, "elsewhere");
    world_expect_quarantine(&w, 0, 4, "unsettled");
}
END_TEST

START_TEST(newcomer_beside_a_settled_daemon_votes_within_two_heartbeats)
{
    world_pass_ms(&w, LOOKED_MS);
    world_restart_engine(&w, "elsewhere");
    world_pass_ms(&w, 500);
    world_expect_votes(&w, 0, 4, "unsettled");
    /* What the other daemon's heartbeat leaves, having looked a moment ago. */
    for (unsigned i = 0; i < 5; i++) {
        char vouch[24];
        snprintf(vouch, sizeof(vouch), "%" PRId64, (w.now_ns + w.masters[i].clock_ns) / 1000);
        world_set(&w, i, world_guard_key(&w, "vouch", ""), vouch, 3000);
    }
    world_pass_ms(&w, 1000);
    world_expect_votes(&w, 0, 4, "-");
}
END_TEST

START_TEST(vouch_from_before_the_newcomer_looked_is_worth_nothing)
{
    world_pass_ms(&w, LOOKED_MS);
    ck_assert_ptr_nonnull(world_value(&w, 0, world_guard_key(&w, "vouch", "")));
    world_step_clock(&w, 0, 0, 5);
    world_restart_engine(&w, "elsewhere");
    world_pass_ms(&w, 3 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "unsettled");
}
END_TEST

/* Found by trying a first draft of the guard: the granting daemon dies, a master that carries the
 * lock steps, the two that did not carry it come back, a fresh daemon starts. */
static void step_that_nobody_saw(const char *clock_id)
{
    world_pass_ms(&w, LOOKED_MS);
    world_lock_on_three(&w);
    world_step_clock(&w, 2, 2, 61);
    world_restart_engine(&w, clock_id);
    world_expect_no_grant_for_s(&w, 59);
    world_pass_ms(&w, 5 * 1000);
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
}

START_TEST(step_that_nobody_saw_on_the_same_host)
{
    step_that_nobody_saw("here");
}
END_TEST

START_TEST(step_that_nobody_saw_on_another_host)
{
    step_that_nobody_saw("elsewhere");
}
END_TEST

/* --- what INFO says --- */

START_TEST(replica_has_no_vote)
{
    w.masters[0].replica = true;
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "replica");
}
END_TEST

/* Redis and Valkey name it by different fields. */
START_TEST(master_in_cluster_mode_has_no_vote)
{
    w.masters[0].version = _i == 0 ? NULL : "valkey_version:9.1.2";
    w.masters[0].clustered = true;
    world_restart(&w, 0);
    world_pass_ms(&w, QUARANTINE_MS + 3 * LOOKED_MS);
    world_expect_votes(&w, 0, 0, "cluster");
    ck_assert(world_granted(world_ask(&w, "LOCK a 10s")));
}
END_TEST

START_TEST(master_that_may_evict_has_no_vote)
{
    w.masters[0].may_evict = true;
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "eviction");
    w.masters[0].may_evict = false;
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "-");
}
END_TEST

START_TEST(master_that_has_evicted_has_no_vote_for_max_ttl)
{
    w.masters[0].evicted = 12;
    world_expect_quarantine(&w, 0, 0, "evicted");
}
END_TEST

/* --- names --- */

START_TEST(doubled_master_has_one_vote)
{
    world_kill(&w, 4);
    w.masters[4] = w.masters[1];
    w.masters[4].current.open = false;
    w.masters[4].dead = false;
    world_pass_ms(&w, 3000);
    world_expect_votes(&w, 1, 1, "-");
    world_expect_votes(&w, 4, 4, "doubled");
}
END_TEST

START_TEST(name_that_others_know_as_another_server_has_no_vote)
{
    world_lease_to_another(&w, 4, ":b", 10000);
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 1, 1, "repointed");
    world_pass_ms(&w, 10 * 1000);
    world_expect_votes(&w, 1, 1, "-");
}
END_TEST

/* --- what a review of the guard has found --- */

static struct world_master saved[2];

/* Another server stands behind the name from now on. */
static void become(unsigned node, const struct world_master *other)
{
    struct world_master *master = &w.masters[node];
    memcpy(master->run_id, other->run_id, sizeof(master->run_id));
    memcpy(master->replid, other->replid, sizeof(master->replid));
    memcpy(master->keys, other->keys, sizeof(master->keys));
    if (master->current.open)
        world_cut(&w, node);
    master->zombie.len = 0;
}

static void make_stranger(struct world_master *stranger)
{
    memset(stranger->keys, 0, sizeof(stranger->keys));
    memset(stranger->run_id, 'e', RECORD_ID);
    memset(stranger->replid, 'f', RECORD_ID);
}

START_TEST(slow_master_under_load_piles_up_no_votes)
{
    w.masters[0].delay_ns = 20 * NS_PER_MS;
    for (unsigned i = 0; i < 3000; i++) {
        for (unsigned j = 0; j < 2; j++)
            world_send(&w, "#t%u LOCK k%u 1s", 2 * i + j, j);
        w.reply_count = 0;
        world_pass_ms(&w, 1);
        w.reply_count = 0;
        ck_assert_uint_lt(w.engine.vote_count[0], 300);
    }
}
END_TEST

START_TEST(record_that_cannot_be_written_is_tried_with_the_heartbeats)
{
    strcpy(w.masters[0].mark_error, "MISCONF Redis is configured to save RDB snapshots");
    world_flush(&w, 0);
    unsigned before = w.masters[0].marks;
    world_pass_ms(&w, 5000);
    ck_assert_uint_ge(w.masters[0].marks - before, 3);
    ck_assert_uint_le(w.masters[0].marks - before, 6);
    w.masters[0].mark_error[0] = '\0';
    world_expect_quarantine(&w, 0, 0, "flushed");
}
END_TEST

START_TEST(name_that_leads_back_to_an_old_server_has_no_vote_for_max_ttl)
{
    saved[0] = saved[1] = w.masters[0];
    make_stranger(&saved[1]);
    become(0, &saved[1]);
    world_pass_ms(&w, QUARANTINE_MS + 5 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
    world_lock_on_three(&w);
    become(0, &saved[0]);
    world_expect_no_grant_for_s(&w, 59);
}
END_TEST

START_TEST(name_that_leads_back_while_the_daemon_is_down_has_none_either)
{
    saved[0] = saved[1] = w.masters[0];
    make_stranger(&saved[1]);
    become(0, &saved[1]);
    world_pass_ms(&w, QUARANTINE_MS + 5 * LOOKED_MS);
    world_lock_on_three(&w);
    world_pass_ms(&w, LOOKED_MS);
    memcpy(w.masters[0].run_id, saved[0].run_id, sizeof(saved[0].run_id));
    memcpy(w.masters[0].replid, saved[0].replid, sizeof(saved[0].replid));
    memcpy(w.masters[0].keys, saved[0].keys, sizeof(saved[0].keys));
    world_restart_engine(&w, "here");
    world_expect_no_grant_for_s(&w, 57);
}
END_TEST

START_TEST(contest_is_remembered_when_its_witness_is_lost)
{
    for (unsigned i = 0; i < 2; i++)
        world_lease_to_another(&w, i, ":e", 3600 * 1000);
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 4, 4, "repointed");
    w.masters[0].hung = w.masters[1].hung = true;
    world_pass_ms(&w, 5000);
    world_expect_votes(&w, 4, 4, "repointed");
}
END_TEST

START_TEST(lease_is_taken_anew_after_a_reconnect)
{
    saved[0] = w.masters[4];
    world_kill(&w, 4);
    memcpy(w.masters[4].keys, saved[0].keys, sizeof(saved[0].keys));
    world_pass_ms(&w, 12000);
    for (unsigned i = 0; i < 4; i++)
        world_lease_to_another(&w, i, ":e", 3600 * 1000);
    w.masters[4].dead = false;
    for (unsigned i = 0; i < 5000; i++) {
        world_pass_ms(&w, 1);
        ck_assert_str_ne(world_vote(&w, 4), "-");
    }
}
END_TEST

/* The daemon saw the clock go back, and died before it had left that on the master. */
static void step_back_and_forward(int64_t forward)
{
    world_pass_ms(&w, 120 * 1000 + LOOKED_MS);
    world_step_clock(&w, 2, 2, -100);
    w.masters[3].hung = w.masters[4].hung = true;
    bool held = world_granted(world_ask(&w, "LOCK a 60s"));
    w.masters[3].hung = w.masters[4].hung = false;
    world_settle(&w);
    world_delete(&w, 3, "a");
    world_delete(&w, 4, "a");
    world_step_clock(&w, 2, 2, forward);
    world_restart_engine(&w, "here");
    world_pass_ms(&w, 2500);
    ck_assert(!held || !world_granted(world_ask(&w, "LOCK a 60s")));
}

START_TEST(step_back_and_forward_around_a_restart)
{
    step_back_and_forward(100);
}
END_TEST

START_TEST(step_back_and_less_forward_around_a_restart)
{
    step_back_and_forward(96);
}
END_TEST

START_TEST(nothing_is_left_on_a_master_of_another_set)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    memset(strstr(record, "set=") + 4, 'f', RECORD_SET_ID);
    world_flush(&w, 0);
    world_set(&w, 0, RECORD_KEY, record, 0);
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "otherset");
    ck_assert(world_granted(world_ask(&w, "LOCK a 10s")));
    world_settle(&w);
    ck_assert_ptr_null(world_value(&w, 0, "a"));
}
END_TEST

START_TEST(evicting_master_with_a_strange_record_keeps_that)
{
    w.lazy = true;
    w.masters[0].evicted = 12;
    world_set(&w, 0, RECORD_KEY, "what is this", 0);
    world_pass_ms(&w, 3 * LOOKED_MS);
    ck_assert_str_eq(world_value(&w, 0, RECORD_KEY), "what is this");
}
END_TEST

START_TEST(quarantine_without_a_cause_is_one_all_the_same)
{
    world_flush(&w, 0);
    world_pass_ms(&w, LOOKED_MS);
    world_forge(&w, 0, "why=flushed", "why=-");
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "record");
}
END_TEST

START_TEST(restart_that_another_daemon_has_recorded_is_recorded_once)
{
    w.masters[0].evicted = 12;
    world_pass_ms(&w, QUARANTINE_MS + 3 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
    world_restart_recorded(&w, 0);
    w.masters[0].evicted = 0;
    world_forge(&w, 0, "evicted=12", "evicted=0");
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    world_pass_ms(&w, 5000);
    ck_assert_str_eq(world_value(&w, 0, RECORD_KEY), record);
}
END_TEST

START_TEST(flushed_scripts_lend_no_vote_to_a_stepped_master)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", world_token(world_ask(&w, "LOCK a 30s")));
    w.masters[3].hung = w.masters[4].hung = true;
    world_step_clock(&w, 2, 2, 5);
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].scripts_flushed = true;
    world_send(&w, "#one LOCK b 60s");
    engine_flush(&w.engine, w.now_ns);
    world_send(&w, "#two EXTEND a %s 60s", token);
    world_pass_ms(&w, 60);
    for (unsigned i = 1; i < w.reply_count; i++)
        ck_assert_msg(strncmp(w.replies[i], "#two OK", 7) != 0, "%s", w.replies[i]);
}
END_TEST

START_TEST(flushed_scripts_do_not_overflow_a_link)
{
    w.masters[0].hung = true;
    for (unsigned i = 0; i < 60; i++)
        world_send(&w, "#e%u EXTEND x%u %040u 1s", i, i % 4, i);
    world_settle(&w);
    for (unsigned i = 0; i < 4200; i++) {
        w.reply_count = 0;
        world_send(&w, "#u%u UNLOCK x%u %040u", i, i % 4, i + 1000);
        if (i % 40 == 39)
            world_settle(&w);
    }
    w.masters[0].scripts_flushed = true;
    w.masters[0].hung = false;
    w.reply_count = 0;
    world_settle(&w);
    world_pass_ms(&w, 5000);
    world_expect_votes(&w, 0, 0, "-");
}
END_TEST

/* One of three is dead, so that nobody can tell whose clock it was: then it stays our own affair.
 */
START_TEST(step_that_cannot_be_confirmed_is_not_recorded_later)
{
    world_deinit(&w);
    world_init(&w, 3);
    world_pass_ms(&w, 2000);
    world_kill(&w, 2);
    world_pass_ms(&w, 3000);
    world_step_clock(&w, 1, 1, 60);
    world_pass_ms(&w, QUARANTINE_MS + 5000);
    world_expect_votes(&w, 1, 1, "-");
    ck_assert_ptr_null(strstr(world_value(&w, 1, RECORD_KEY), "why=stepped"));
}
END_TEST

/* Slow answers have found a step, and after it they tell nothing of another, a smaller one: what
 * was not watched does not count as watched. */
START_TEST(step_behind_a_slow_answer_is_waited_out)
{
    w.masters[0].delay_ns = 200 * NS_PER_MS;
    world_step_clock(&w, 0, 0, 10);
    world_pass_ms(&w, QUARANTINE_MS + LOOKED_MS);
    w.masters[0].clock_ns += 50 * NS_PER_MS;
    world_delete(&w, 0, world_guard_key(&w, "clock", ":here"));
    w.masters[0].delay_ns = 0;
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "unsettled");
    world_pass_ms(&w, QUARANTINE_MS + LOOKED_MS);
    world_expect_votes(&w, 0, 0, "-");
}
END_TEST

START_TEST(step_back_that_a_slow_answer_finds_costs_no_vote)
{
    world_step_clock(&w, 0, 0, -60);
    w.masters[0].delay_ns = 30 * NS_PER_MS;
    world_pass_ms(&w, 1100);
    w.masters[0].delay_ns = 0;
    world_pass_ms(&w, 3000);
    world_expect_votes(&w, 0, 0, "-");
}
END_TEST

/* A lock of the old set may live a minute; a master that forgets it must be out for as long. */
START_TEST(quarantine_of_an_old_set_holds_for_those_who_forget_during_it)
{
    for (unsigned i = 0; i < 5; i++)
        world_flush(&w, i);
    world_pass_ms(&w, LOOKED_MS);
    for (unsigned i = 1; i < 5; i++)
        world_forge(&w, i, "quarantine_ms=60611", "quarantine_ms=120000");
    world_pass_ms(&w, LOOKED_MS);
    world_flush(&w, 0);
    world_pass_ms(&w, LOOKED_MS);
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "quarantine_ms=120000"));
}
END_TEST

/* --- masters that keep their data --- */

/* A world whose first master is said to be durable, and is, as far as its settings tell. */
static void open_durable(const char *fsync)
{
    world_deinit(&w);
    world_init_unknown(&w, 5);
    snprintf(w.masters[0].fsync, sizeof(w.masters[0].fsync), "%s", fsync);
    w.durable = 1;
    world_restart_engine(&w, "here");
    world_pass_ms(&w, QUARANTINE_MS + 3 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
}

START_TEST(durable_master_keeps_its_vote_through_a_restart)
{
    open_durable("always");
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "durable=yes"));
    ck_assert(world_granted(world_ask(&w, "LOCK a 60s")));
    world_restart_with_data(&w, 0);
    world_pass_ms(&w, 8 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
    ck_assert_ptr_nonnull(world_value(&w, 0, "a"));
    /* And through the next one. */
    world_restart_with_data(&w, 0);
    world_pass_ms(&w, 8 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
}
END_TEST

START_TEST(master_that_syncs_every_second_is_not_durable)
{
    open_durable("everysec");
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "durable=no"));
    world_restart_with_data(&w, 0);
    world_expect_quarantine(&w, 0, 0, "restarted");
}
END_TEST

START_TEST(durability_has_to_be_recorded_before_the_restart)
{
    open_durable("everysec");
    snprintf(w.masters[0].fsync, sizeof(w.masters[0].fsync), "always");
    world_restart_with_data(&w, 0);
    world_expect_quarantine(&w, 0, 0, "restarted");
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "durable=yes"));
    snprintf(w.masters[0].fsync, sizeof(w.masters[0].fsync), "everysec");
    world_pass_ms(&w, 2 * LOOKED_MS);
    world_expect_votes(&w, 0, 4, "-");
    snprintf(w.masters[0].fsync, sizeof(w.masters[0].fsync), "always");
    world_restart_with_data(&w, 0);
    world_expect_quarantine(&w, 0, 0, "restarted");
}
END_TEST

START_TEST(master_with_a_replica_is_not_durable)
{
    open_durable("always");
    w.masters[0].replicas = 1;
    world_pass_ms(&w, 2 * LOOKED_MS);
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "durable=no"));
    world_restart_with_data(&w, 0);
    world_expect_quarantine(&w, 0, 0, "restarted");
}
END_TEST

START_TEST(durable_restart_does_not_shorten_a_quarantine)
{
    open_durable("always");
    world_flush(&w, 0);
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 0, 0, "flushed");
    world_pass_ms(&w, 20 * 1000);
    world_restart_with_data(&w, 0);
    world_pass_ms(&w, QUARANTINE_MS - 25 * 1000);
    ck_assert_str_ne(world_vote(&w, 0), "-");
    world_pass_ms(&w, 30 * 1000);
    world_expect_votes(&w, 0, 4, "-");
}
END_TEST

START_TEST(durable_master_that_lost_its_data_all_the_same_has_no_vote)
{
    open_durable("always");
    world_restart(&w, 0);
    world_expect_quarantine(&w, 0, 0, "restarted");
}
END_TEST

/* The settings were others for a while, but what said so was not on disk yet. */
START_TEST(durable_restart_with_an_older_record_is_none)
{
    open_durable("always");
    saved[1] = w.masters[0];
    snprintf(w.masters[0].fsync, sizeof(w.masters[0].fsync), "everysec");
    world_pass_ms(&w, 2 * LOOKED_MS);
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "durable=no"));
    world_lock_on_three(&w);
    world_restart(&w, 0);
    memcpy(w.masters[0].keys, saved[1].keys, sizeof(saved[1].keys));
    snprintf(w.masters[0].fsync, sizeof(w.masters[0].fsync), "always");
    world_expect_no_grant_for_s(&w, 57);
}
END_TEST

START_TEST(durable_restart_from_two_runs_back_is_none)
{
    open_durable("always");
    saved[1] = w.masters[0];
    world_restart_with_data(&w, 0);
    world_pass_ms(&w, 8 * LOOKED_MS);
    world_expect_votes(&w, 0, 0, "-");
    world_lock_on_three(&w);
    world_restart(&w, 0);
    memcpy(w.masters[0].keys, saved[1].keys, sizeof(saved[1].keys));
    world_expect_no_grant_for_s(&w, 57);
}
END_TEST

/* The name leads to a copy of the data, while another daemon keeps its link to the original. */
START_TEST(copy_of_a_durable_master_is_another_server)
{
    char server[2 * RECORD_ID + 2];
    open_durable("always");
    snprintf(server, sizeof(server), "%s", world_value(&w, 1, world_guard_key(&w, "name", ":a")));
    world_restart_with_data(&w, 0);
    for (unsigned i = 0; i < 40; i++) {
        for (unsigned node = 1; node < 5; node++)
            world_set(&w, node, world_guard_key(&w, "name", ":a"), server, QUARANTINE_MS);
        world_pass_ms(&w, 500);
        ck_assert_str_ne(world_vote(&w, 0), "-");
    }
}
END_TEST

START_TEST(loss_that_was_not_recorded_outlives_a_durable_restart)
{
    open_durable("always");
    for (unsigned i = 1; i < 4; i++)
        world_kill(&w, i); /* no quorum is looked at: nothing may be written */
    world_pass_ms(&w, 1000);
    snprintf(w.masters[0].replid, sizeof(w.masters[0].replid), "%040u", 99);
    world_pass_ms(&w, 2 * LOOKED_MS);
    world_expect_votes(&w, 0, 0, "failedover");
    world_restart_with_data(&w, 0);
    for (unsigned i = 1; i < 4; i++)
        world_restart(&w, i);
    world_pass_ms(&w, 10 * LOOKED_MS);
    ck_assert_str_ne(world_vote(&w, 0), "-");
}
END_TEST

START_TEST(change_of_durability_begins_no_quarantine)
{
    open_durable("always");
    world_step_clock(&w, 0, 0, -3600);
    world_pass_ms(&w, 3000);
    world_expect_votes(&w, 0, 0, "-");
    snprintf(w.masters[0].fsync, sizeof(w.masters[0].fsync), "everysec");
    world_pass_ms(&w, 3000);
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "durable=no"));
    world_expect_votes(&w, 0, 0, "-");
}
END_TEST

START_TEST(daemons_that_disagree_on_durability_do_not_write_against_each_other)
{
    open_durable("always");
    unsigned before = w.masters[0].marks;
    for (unsigned i = 0; i < 10; i++) {
        if (strstr(world_value(&w, 0, RECORD_KEY), "durable=yes") != NULL)
            world_forge(&w, 0, "durable=yes", "durable=no");
        world_pass_ms(&w, 1000);
    }
    ck_assert_uint_le(w.masters[0].marks, before + 1);
}
END_TEST

/* A new daemon, to which the longer quarantine is only what the record says. */
START_TEST(durable_restart_keeps_the_length_of_a_quarantine)
{
    open_durable("always");
    world_flush(&w, 0);
    world_pass_ms(&w, LOOKED_MS);
    world_forge(&w, 0, "quarantine_ms=60611", "quarantine_ms=120000");
    struct record record;
    const char *text = world_value(&w, 0, RECORD_KEY);
    ck_assert(record_parse(text, strlen(text), &record));
    char join[32];
    char later[32];
    snprintf(join, sizeof(join), "join_us=%" PRId64, record.join_us);
    snprintf(later, sizeof(later), "join_us=%" PRId64, record.join_us + 59389000);
    world_forge(&w, 0, join, later);
    saved[0] = w.masters[0];
    world_kill(&w, 0);
    world_restart_engine(&w, "here");
    world_pass_ms(&w, 2000);
    world_restart(&w, 0);
    memcpy(w.masters[0].keys, saved[0].keys, sizeof(saved[0].keys));
    while ((w.now_ns + w.masters[0].clock_ns) / 1000 < record.join_us + 59389000) {
        ck_assert_str_ne(world_vote(&w, 0), "-");
        world_pass_ms(&w, 1000);
    }
    world_pass_ms(&w, 3000);
    world_expect_votes(&w, 0, 0, "-");
}
END_TEST

START_TEST(name_is_leased_anew_after_a_master_was_busy_for_long)
{
    w.masters[0].busy = true;
    world_pass_ms(&w, QUARANTINE_MS + 5000);
    for (unsigned i = 1; i < 5; i++) {
        ck_assert_ptr_null(world_value(&w, i, world_guard_key(&w, "name", ":a")));
        world_lease_to_another(&w, i, ":a", 3600 * 1000);
    }
    w.masters[0].busy = false;
    for (unsigned i = 0; i < 3000; i++) {
        world_pass_ms(&w, 1);
        ck_assert_str_ne(world_vote(&w, 0), "-");
    }
}
END_TEST

START_TEST(fenced_vote_is_not_sent_again_behind_its_undo)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].fence_flushed = true;
        w.masters[i].delay_ns = 5 * NS_PER_MS;
    }
    world_send(&w, "LOCK a 60s FENCE");
    engine_flush(&w.engine, w.now_ns);
    world_pass_ms(&w, 1);
    w.client.gone = true;
    engine_client_gone(&w.engine, &w.client, w.now_ns);
    world_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.operations.pool.in_use, 0);
    ck_assert_uint_eq(world_count(&w, "a"), 0);
}
END_TEST

/* 1 and 2 answer a heartbeat late, which was about the server that the name led to before. */
START_TEST(late_heartbeat_is_judged_by_what_it_asked)
{
    world_pass_ms(&w, 2000);
    w.masters[1].hung = w.masters[2].hung = true;
    world_pass_ms(&w, 1200);
    world_restart_recorded(&w, 0);
    world_pass_ms(&w, (w.engine.links[0].retry_ns - w.now_ns) / NS_PER_MS);
    w.masters[3].delay_ns = w.masters[4].delay_ns = 3 * NS_PER_MS;
    for (unsigned i = 3; i < 5; i++)
        link_heartbeat(&w.engine.links[i], w.now_ns);
    world_pass_ms(&w, 1);
    w.masters[1].delay_ns = w.masters[2].delay_ns = 2 * NS_PER_MS;
    w.masters[1].hung = w.masters[2].hung = false;
    world_settle(&w);
    ck_assert(!world_granted(world_ask(&w, "LOCK a 60s")));
}
END_TEST

START_TEST(master_that_flaps_does_not_busy_the_others)
{
    world_pass_ms(&w, 3000);
    unsigned beats = 0;
    int64_t last_ns = w.engine.links[1].heartbeat_ns;
    for (unsigned ms = 0; ms < 10000; ms++) {
        world_pass_ms(&w, 1);
        beats += w.engine.links[1].heartbeat_ns != last_ns;
        last_ns = w.engine.links[1].heartbeat_ns;
        if (w.engine.links[0].state == LINK_UP)
            world_cut(&w, 0);
    }
    ck_assert_uint_le(beats, 30);
}
END_TEST

START_TEST(clock_entry_that_makes_no_sense_is_none)
{
    world_set(&w, 1, world_guard_key(&w, "clock", ":there"),
              "-9223372036854775808:-9223372036854775808:9223372036854775807:"
              "9223372036854775807:-9223372036854775808",
              0);
    world_restart_engine(&w, "there");
    world_pass_ms(&w, LOOKED_MS);
    world_expect_votes(&w, 1, 1, "unsettled");
}
END_TEST

/* --- the rounds of others --- */

START_TEST(node_without_a_vote_gets_releases_and_carries_locks)
{
    char token[LIMIT_TOKEN + 1];
    world_restart(&w, 0);
    world_pass_ms(&w, LOOKED_MS);
    snprintf(token, sizeof(token), "%s", world_token(world_ask(&w, "LOCK a 10s")));
    ck_assert_str_eq(world_value(&w, 0, "a"), token);
    world_delete(&w, 0, "a");
    ck_assert(world_granted(world_ask(&w, "EXTEND a %s 20s", token)));
    ck_assert_str_eq(world_value(&w, 0, "a"), token);
    ck_assert_str_eq(world_ask(&w, "UNLOCK a %s", token), "OK");
    ck_assert_uint_eq(world_count(&w, "a"), 0);
}
END_TEST

START_TEST(nodes_that_forgot_do_not_make_a_token_gone)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", world_token(world_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        world_flush(&w, i);
    const char *reply = world_ask(&w, "EXTEND a %s 60s", token);
    ck_assert_msg(strncmp(reply, "NOQUORUM 2/5", 12) == 0, "%s", reply);
    ck_assert_uint_eq(world_count(&w, "a"), 2);
}
END_TEST

START_TEST(token_that_is_gone_stays_gone)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", world_token(world_ask(&w, "LOCK a 1s")));
    world_pass_ms(&w, 1001);
    ck_assert_str_eq(world_ask(&w, "EXTEND a %s 60s", token), "GONE");
    /* Planted by somebody, on a minority; flushed elsewhere; and time passes. */
    world_set(&w, 0, "a", token, 200000);
    world_set(&w, 1, "a", token, 200000);
    ck_assert_str_eq(world_ask(&w, "EXTEND a %s 60s", token), "GONE");
    world_flush(&w, 4);
    world_pass_ms(&w, QUARANTINE_MS + 3 * LOOKED_MS);
    ck_assert_str_eq(world_ask(&w, "EXTEND a %s 60s", token), "GONE");
    ck_assert_uint_eq(world_count(&w, "a"), 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("guard");
    TCase *tests = tcase_create("votes");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, five, end);
    tcase_add_test(tests, new_masters_vote_after_max_ttl);
    tcase_add_test(tests, masters_that_an_operator_vouches_for_vote_at_once);
    tcase_add_test(tests, restarted_master_has_no_vote_for_max_ttl);
    tcase_add_test(tests, flushed_master_has_no_vote_for_max_ttl);
    tcase_add_test(tests, failed_over_master_has_no_vote_for_max_ttl);
    tcase_add_test(tests, failover_that_a_newcomer_records_after_a_step_back);
    tcase_add_test(tests, loss_that_another_daemon_records_after_a_step_back);
    tcase_add_test(tests, older_record_of_the_same_run_is_lost_data);
    tcase_add_test(tests, strange_record_is_left_alone);
    tcase_add_test(tests, flush_right_before_a_lock_lends_no_vote);
    tcase_add_test(tests, no_second_grant_after_a_majority_restarted);
    tcase_add_test(tests, quarantine_outlives_the_daemon);
    tcase_add_test(tests, clock_set_back_does_not_prolong_a_quarantine);
    tcase_add_test(tests, record_of_another_set_is_respected);
    tcase_add_test(tests, daemon_with_another_set_than_most_writes_nothing);
    tcase_add_test(tests, stepped_clock_costs_the_vote_for_max_ttl);
    tcase_add_test(tests, two_stepped_clocks_cost_two_votes);
    tcase_add_test(tests, majority_of_stepped_clocks_is_a_doubt_about_our_own);
    tcase_add_test(tests, clock_that_steps_back_keeps_its_vote);
    tcase_add_test(tests, lock_on_clocks_that_stepped_back_ends_by_max_ttl);
    tcase_add_test(tests, step_right_before_a_lock_lends_no_vote);
    tcase_add_test(tests, critics_example);
    tcase_add_test(tests, vote_written_before_a_step_was_found_does_not_count_after);
    tcase_add_test(tests, slow_answer_is_probed_again_in_the_same_round);
    tcase_add_test(tests, daemon_that_restarts_on_its_host_votes_at_once);
    tcase_add_test(tests, first_daemon_on_another_host_waits_for_max_ttl);
    tcase_add_test(tests, newcomer_beside_a_settled_daemon_votes_within_two_heartbeats);
    tcase_add_test(tests, vouch_from_before_the_newcomer_looked_is_worth_nothing);
    tcase_add_test(tests, step_that_nobody_saw_on_the_same_host);
    tcase_add_test(tests, step_that_nobody_saw_on_another_host);
    tcase_add_test(tests, replica_has_no_vote);
    tcase_add_loop_test(tests, master_in_cluster_mode_has_no_vote, 0, 2);
    tcase_add_test(tests, master_that_may_evict_has_no_vote);
    tcase_add_test(tests, master_that_has_evicted_has_no_vote_for_max_ttl);
    tcase_add_test(tests, doubled_master_has_one_vote);
    tcase_add_test(tests, name_that_others_know_as_another_server_has_no_vote);
    tcase_add_test(tests, slow_master_under_load_piles_up_no_votes);
    tcase_add_test(tests, record_that_cannot_be_written_is_tried_with_the_heartbeats);
    tcase_add_test(tests, name_that_leads_back_to_an_old_server_has_no_vote_for_max_ttl);
    tcase_add_test(tests, name_that_leads_back_while_the_daemon_is_down_has_none_either);
    tcase_add_test(tests, contest_is_remembered_when_its_witness_is_lost);
    tcase_add_test(tests, lease_is_taken_anew_after_a_reconnect);
    tcase_add_test(tests, step_back_and_forward_around_a_restart);
    tcase_add_test(tests, step_back_and_less_forward_around_a_restart);
    tcase_add_test(tests, nothing_is_left_on_a_master_of_another_set);
    tcase_add_test(tests, evicting_master_with_a_strange_record_keeps_that);
    tcase_add_test(tests, quarantine_without_a_cause_is_one_all_the_same);
    tcase_add_test(tests, restart_that_another_daemon_has_recorded_is_recorded_once);
    tcase_add_test(tests, flushed_scripts_lend_no_vote_to_a_stepped_master);
    tcase_add_test(tests, flushed_scripts_do_not_overflow_a_link);
    tcase_add_test(tests, step_that_cannot_be_confirmed_is_not_recorded_later);
    tcase_add_test(tests, step_behind_a_slow_answer_is_waited_out);
    tcase_add_test(tests, step_back_that_a_slow_answer_finds_costs_no_vote);
    tcase_add_test(tests, quarantine_of_an_old_set_holds_for_those_who_forget_during_it);
    tcase_add_test(tests, durable_master_keeps_its_vote_through_a_restart);
    tcase_add_test(tests, master_that_syncs_every_second_is_not_durable);
    tcase_add_test(tests, durability_has_to_be_recorded_before_the_restart);
    tcase_add_test(tests, master_with_a_replica_is_not_durable);
    tcase_add_test(tests, durable_restart_does_not_shorten_a_quarantine);
    tcase_add_test(tests, durable_master_that_lost_its_data_all_the_same_has_no_vote);
    tcase_add_test(tests, durable_restart_with_an_older_record_is_none);
    tcase_add_test(tests, durable_restart_from_two_runs_back_is_none);
    tcase_add_test(tests, copy_of_a_durable_master_is_another_server);
    tcase_add_test(tests, loss_that_was_not_recorded_outlives_a_durable_restart);
    tcase_add_test(tests, change_of_durability_begins_no_quarantine);
    tcase_add_test(tests, daemons_that_disagree_on_durability_do_not_write_against_each_other);
    tcase_add_test(tests, durable_restart_keeps_the_length_of_a_quarantine);
    tcase_add_test(tests, name_is_leased_anew_after_a_master_was_busy_for_long);
    tcase_add_test(tests, fenced_vote_is_not_sent_again_behind_its_undo);
    tcase_add_test(tests, late_heartbeat_is_judged_by_what_it_asked);
    tcase_add_test(tests, master_that_flaps_does_not_busy_the_others);
    tcase_add_test(tests, clock_entry_that_makes_no_sense_is_none);
    tcase_add_test(tests, node_without_a_vote_gets_releases_and_carries_locks);
    tcase_add_test(tests, nodes_that_forgot_do_not_make_a_token_gone);
    tcase_add_test(tests, token_that_is_gone_stays_gone);
    suite_add_tcase(suite, tests);
    return suite;
}
