/*
 * protocol/guard.h in the engine, on fake masters and virtual time: who may vote, from when on.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/world.h"

static struct world w;

/* max_ttl is 60 s, its drift 0.61 s; a heartbeat later at the latest the guard has looked. */
enum { QUARANTINE_MS = 60610, LOOKED_MS = 1100 };

static void five(void)
{
    world_init(&w, 5);
}

static void end(void)
{
    world_deinit(&w);
}

__attribute__((format(printf, 1, 2))) static const char *ask(const char *form, ...)
{
    char line[LIMIT_LINE];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(line, sizeof(line), form, arguments);
    va_end(arguments);
    return world_ask(&w, line);
}

static bool granted(const char *reply)
{
    return strncmp(reply, "OK ", 3) == 0;
}

static void expect_votes(unsigned first, unsigned last, const char *reason)
{
    for (unsigned i = first; i <= last; i++)
        ck_assert_msg(strcmp(world_vote(&w, i), reason) == 0, "node %u: %s, not %s", i,
                      world_vote(&w, i), reason);
}

/* They have no vote, for this reason, until the quarantine is over. */
static void expect_quarantine(unsigned first, unsigned last, const char *reason)
{
    world_pass_ms(&w, LOOKED_MS);
    expect_votes(first, last, reason);
    world_pass_ms(&w, QUARANTINE_MS - 2 * LOOKED_MS);
    expect_votes(first, last, reason);
    world_pass_ms(&w, 3 * LOOKED_MS);
    expect_votes(0, 4, "-");
}

static void step_clock(unsigned first, unsigned last, int64_t seconds)
{
    for (unsigned i = first; i <= last; i++)
        w.masters[i].clock_ns += seconds * NS_PER_S;
}

static void restart(unsigned node)
{
    world_kill(&w, node);
    world_restart(&w, node);
}

/* --- the record --- */

START_TEST(new_masters_vote_after_max_ttl)
{
    world_deinit(&w);
    world_init_unknown(&w, 5);
    expect_quarantine(0, 4, "new");
    ck_assert(granted(ask("LOCK a 10s")));
}
END_TEST

START_TEST(masters_that_an_operator_vouches_for_vote_at_once)
{
    ck_assert(granted(ask("LOCK a 10s")));
}
END_TEST

START_TEST(restarted_master_has_no_vote_for_max_ttl)
{
    restart(1);
    expect_quarantine(1, 1, "restarted");
}
END_TEST

START_TEST(flushed_master_has_no_vote_for_max_ttl)
{
    world_flush(&w, 2);
    expect_quarantine(2, 2, "flushed");
}
END_TEST

START_TEST(failed_over_master_has_no_vote_for_max_ttl)
{
    snprintf(w.masters[3].replid, sizeof(w.masters[3].replid), "%040u", 99);
    expect_quarantine(3, 3, "failedover");
}
END_TEST

START_TEST(older_record_of_the_same_run_is_lost_data)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    world_flush(&w, 0);
    expect_quarantine(0, 0, "flushed");
    world_set(&w, 0, RECORD_KEY, record, 0);
    expect_quarantine(0, 0, "olddata");
}
END_TEST

START_TEST(strange_record_is_left_alone)
{
    world_set(&w, 0, RECORD_KEY, "what is this", 0);
    world_pass_ms(&w, QUARANTINE_MS + 3 * LOOKED_MS);
    expect_votes(0, 0, "record");
    ck_assert_str_eq(world_value(&w, 0, RECORD_KEY), "what is this");
}
END_TEST

/* The loss between two looks: nothing tells of it but the probe behind the votes. */
START_TEST(flush_right_before_a_lock_lends_no_vote)
{
    ck_assert(granted(ask("LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        world_flush(&w, i);
    const char *reply = ask("LOCK a 60s");
    ck_assert_msg(!granted(reply), "%s", reply);
}
END_TEST

START_TEST(no_second_grant_after_a_majority_restarted)
{
    ck_assert(granted(ask("LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        restart(i);
    for (unsigned s = 0; s < 60; s++) {
        world_pass_ms(&w, 1000);
        const char *reply = ask("LOCK a 60s");
        ck_assert_msg(!granted(reply), "after %u s: %s", s, reply);
        w.reply_count = 0;
    }
    world_pass_ms(&w, 3000);
    ck_assert(granted(ask("LOCK a 60s")));
}
END_TEST

/* What a daemon wrote, the next one keeps to, though it saw nothing happen. */
START_TEST(quarantine_outlives_the_daemon)
{
    restart(0);
    world_pass_ms(&w, 10 * 1000);
    world_restart_engine(&w, "here");
    world_pass_ms(&w, LOOKED_MS);
    expect_votes(0, 0, "restarted");
    expect_votes(1, 4, "-");
    world_pass_ms(&w, QUARANTINE_MS - 10 * 1000);
    expect_votes(0, 4, "-");
}
END_TEST

START_TEST(clock_set_back_does_not_prolong_a_quarantine)
{
    restart(0);
    world_pass_ms(&w, LOOKED_MS);
    step_clock(0, 0, -3600);
    world_restart_engine(&w, "here");
    expect_quarantine(0, 0, "restarted");
}
END_TEST

START_TEST(record_of_another_set_is_respected)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    memset(strstr(record, "set=") + 4, 'f', RECORD_SET_ID);
    world_set(&w, 0, RECORD_KEY, record, 0);
    world_pass_ms(&w, QUARANTINE_MS);
    expect_votes(0, 0, "otherset");
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
    expect_votes(4, 4, "flushed");
    ck_assert_ptr_null(world_value(&w, 4, RECORD_KEY));
}
END_TEST

/* --- clocks --- */

START_TEST(stepped_clock_costs_the_vote_for_max_ttl)
{
    step_clock(0, 0, 60);
    expect_quarantine(0, 0, "stepped");
    ck_assert_ptr_nonnull(strstr(world_value(&w, 0, RECORD_KEY), "why=stepped"));
}
END_TEST

START_TEST(two_stepped_clocks_cost_two_votes)
{
    step_clock(3, 4, 60);
    expect_quarantine(3, 4, "stepped");
}
END_TEST

START_TEST(majority_of_stepped_clocks_is_a_doubt_about_our_own)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", world_value(&w, 0, RECORD_KEY));
    step_clock(0, 2, 60);
    expect_quarantine(0, 4, "doubt");
    ck_assert_str_eq(world_value(&w, 0, RECORD_KEY), record);
}
END_TEST

START_TEST(clock_that_steps_back_keeps_its_vote)
{
    step_clock(0, 4, -60);
    world_pass_ms(&w, 3 * LOOKED_MS);
    expect_votes(0, 4, "-");
    ck_assert(granted(ask("LOCK a 10s")));
}
END_TEST

/* Keys that would outlive every lock by an hour are cut to what a lock may live. */
START_TEST(lock_on_clocks_that_stepped_back_ends_by_max_ttl)
{
    ck_assert(granted(ask("LOCK a 60s")));
    step_clock(0, 2, -3600);
    world_pass_ms(&w, 1000);
    ck_assert_str_eq(ask("LOCK a 60s"), "HELD 60000");
    world_pass_ms(&w, 59000);
    ck_assert(!granted(ask("LOCK a 60s")));
    world_pass_ms(&w, 1001);
    ck_assert(granted(ask("LOCK a 60s")));
}
END_TEST

/* Found in the probe behind a vote, before any heartbeat. */
START_TEST(step_right_before_a_lock_lends_no_vote)
{
    ck_assert(granted(ask("LOCK a 10s")));
    step_clock(0, 1, 60);
    w.masters[4].hung = true;
    const char *reply = ask("LOCK a 10s");
    ck_assert_msg(!granted(reply), "%s", reply);
}
END_TEST

/* "How to do distributed locking", the example against Redlock: client 1 has A, B and C; the clock
 * of C jumps, so the key ends early there; client 2 gets C, D and E. */
START_TEST(critics_example)
{
    w.masters[3].hung = w.masters[4].hung = true;
    ck_assert(granted(ask("LOCK a 60s")));
    world_pass_ms(&w, 100);
    w.masters[3].hung = w.masters[4].hung = false;
    world_pass_ms(&w, LOOKED_MS);
    world_delete(&w, 3, "a");
    world_delete(&w, 4, "a");
    step_clock(2, 2, 60);
    const char *reply = ask("LOCK a 60s");
    ck_assert_msg(!granted(reply), "%s", reply);
}
END_TEST

/* The votes of a batch that was written before the one that revealed the step match the new time:
 * the epoch tells them apart. */
START_TEST(vote_written_before_a_step_was_found_does_not_count_after)
{
    for (unsigned i = 3; i < 5; i++)
        world_kill(&w, i);
    step_clock(2, 2, 60);
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
    ck_assert(granted(w.replies[0]));
}
END_TEST

/* --- daemons that come and go --- */

START_TEST(daemon_that_restarts_on_its_host_votes_at_once)
{
    world_pass_ms(&w, LOOKED_MS);
    world_restart_engine(&w, "here");
    world_pass_ms(&w, 2 * 1000);
    ck_assert(granted(ask("LOCK a 10s")));
}
END_TEST

START_TEST(first_daemon_on_another_host_waits_for_max_ttl)
{
    world_pass_ms(&w, LOOKED_MS);
    world_restart_engine(&w, "elsewhere");
    expect_quarantine(0, 4, "unsettled");
}
END_TEST

START_TEST(newcomer_beside_a_settled_daemon_votes_within_two_heartbeats)
{
    world_pass_ms(&w, LOOKED_MS);
    world_restart_engine(&w, "elsewhere");
    world_pass_ms(&w, 500);
    expect_votes(0, 4, "unsettled");
    /* What the other daemon's heartbeat leaves, having looked a moment ago. */
    for (unsigned i = 0; i < 5; i++) {
        char vouch[24];
        snprintf(vouch, sizeof(vouch), "%" PRId64, (w.now_ns + w.masters[i].clock_ns) / 1000);
        world_set(&w, i, "redlockd:vouch", vouch, 3000);
    }
    world_pass_ms(&w, 1000);
    expect_votes(0, 4, "-");
}
END_TEST

START_TEST(vouch_from_before_the_newcomer_looked_is_worth_nothing)
{
    world_pass_ms(&w, LOOKED_MS);
    ck_assert_ptr_nonnull(world_value(&w, 0, "redlockd:vouch"));
    step_clock(0, 0, 5);
    world_restart_engine(&w, "elsewhere");
    world_pass_ms(&w, 3 * LOOKED_MS);
    expect_votes(0, 4, "unsettled");
}
END_TEST

/* Found by trying a first draft of the guard: the granting daemon dies, a master that carries the
 * lock steps, the two that did not carry it come back, a fresh daemon starts. */
static void step_that_nobody_saw(const char *clock_id)
{
    world_pass_ms(&w, LOOKED_MS);
    w.masters[3].hung = w.masters[4].hung = true;
    ck_assert(granted(ask("LOCK a 60s")));
    w.masters[3].hung = w.masters[4].hung = false;
    world_delete(&w, 3, "a");
    world_delete(&w, 4, "a");
    step_clock(2, 2, 61);
    world_restart_engine(&w, clock_id);
    for (unsigned s = 0; s < 59; s++) {
        world_pass_ms(&w, 1000);
        const char *reply = ask("LOCK a 60s");
        ck_assert_msg(!granted(reply), "after %u s: %s", s, reply);
        w.reply_count = 0;
    }
    world_pass_ms(&w, 5 * 1000);
    ck_assert(granted(ask("LOCK a 60s")));
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
    expect_votes(0, 0, "replica");
}
END_TEST

START_TEST(master_that_may_evict_has_no_vote)
{
    w.masters[0].may_evict = true;
    world_pass_ms(&w, LOOKED_MS);
    expect_votes(0, 0, "eviction");
    w.masters[0].may_evict = false;
    world_pass_ms(&w, LOOKED_MS);
    expect_votes(0, 0, "-");
}
END_TEST

START_TEST(master_that_has_evicted_has_no_vote_for_max_ttl)
{
    w.masters[0].evicted = 12;
    expect_quarantine(0, 0, "evicted");
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
    expect_votes(1, 1, "-");
    expect_votes(4, 4, "doubled");
}
END_TEST

START_TEST(name_that_others_know_as_another_server_has_no_vote)
{
    char lease[80];
    snprintf(lease, sizeof(lease), "%040d ffffffffffffffff", 77);
    world_set(&w, 4, "redlockd:name:b", lease, 10000);
    world_pass_ms(&w, LOOKED_MS);
    expect_votes(1, 1, "repointed");
    world_pass_ms(&w, 10 * 1000);
    expect_votes(1, 1, "-");
}
END_TEST

/* --- the rounds of others --- */

START_TEST(node_without_a_vote_gets_releases_and_carries_locks)
{
    char token[LIMIT_TOKEN + 1];
    restart(0);
    world_pass_ms(&w, LOOKED_MS);
    snprintf(token, sizeof(token), "%s", world_token(ask("LOCK a 10s")));
    ck_assert_str_eq(world_value(&w, 0, "a"), token);
    world_delete(&w, 0, "a");
    ck_assert(granted(ask("EXTEND a %s 20s", token)));
    ck_assert_str_eq(world_value(&w, 0, "a"), token);
    ck_assert_str_eq(ask("UNLOCK a %s", token), "OK");
    ck_assert_uint_eq(world_count(&w, "a"), 0);
}
END_TEST

START_TEST(nodes_that_forgot_do_not_make_a_token_gone)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", world_token(ask("LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        world_flush(&w, i);
    const char *reply = ask("EXTEND a %s 60s", token);
    ck_assert_msg(strncmp(reply, "NOQUORUM 2/5", 12) == 0, "%s", reply);
    ck_assert_uint_eq(world_count(&w, "a"), 2);
}
END_TEST

START_TEST(token_that_is_gone_stays_gone)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", world_token(ask("LOCK a 1s")));
    world_pass_ms(&w, 1001);
    ck_assert_str_eq(ask("EXTEND a %s 60s", token), "GONE");
    /* Planted by somebody, on a minority; flushed elsewhere; and time passes. */
    world_set(&w, 0, "a", token, 200000);
    world_set(&w, 1, "a", token, 200000);
    ck_assert_str_eq(ask("EXTEND a %s 60s", token), "GONE");
    world_flush(&w, 4);
    world_pass_ms(&w, QUARANTINE_MS + 3 * LOOKED_MS);
    ck_assert_str_eq(ask("EXTEND a %s 60s", token), "GONE");
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
    tcase_add_test(tests, master_that_may_evict_has_no_vote);
    tcase_add_test(tests, master_that_has_evicted_has_no_vote_for_max_ttl);
    tcase_add_test(tests, doubled_master_has_one_vote);
    tcase_add_test(tests, name_that_others_know_as_another_server_has_no_vote);
    tcase_add_test(tests, node_without_a_vote_gets_releases_and_carries_locks);
    tcase_add_test(tests, nodes_that_forgot_do_not_make_a_token_gone);
    tcase_add_test(tests, token_that_is_gone_stays_gone);
    suite_add_tcase(suite, tests);
    return suite;
}
