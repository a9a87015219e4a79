/*
 * Which masters' clocks have stepped, and who has watched them: the guard in the engine, on fake
 * masters and virtual time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_guard.h"

static struct cluster w;

static void five(void)
{
    cluster_init(&w, 5);
}

static void end(void)
{
    cluster_deinit(&w);
}

/* --- steps --- */

START_TEST(stepped_clock_costs_the_vote_for_max_ttl)
{
    cluster_step_clock(&w, 0, 0, 60);
    cluster_expect_quarantine(&w, 0, 0, "stepped");
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "why=stepped"));
}
END_TEST

/* It goes on from there, and it comes back. */
START_TEST(clock_beyond_the_year_2200_is_a_stepped_one)
{
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 0, 0, INT64_C(7500000000));
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_expect_votes(&w, 0, 0, "stepped");
    cluster_step_clock(&w, 0, 0, -INT64_C(7500000000));
    cluster_expect_no_grant_for_s(&w, 55);
}
END_TEST

START_TEST(two_stepped_clocks_cost_two_votes)
{
    cluster_step_clock(&w, 3, 4, 60);
    cluster_expect_quarantine(&w, 3, 4, "stepped");
}
END_TEST

START_TEST(majority_of_stepped_clocks_is_a_doubt_about_our_own)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    cluster_step_clock(&w, 0, 2, 60);
    cluster_expect_quarantine(&w, 0, 4, "ownclock");
    ck_assert_str_eq(cluster_value(&w, 0, RECORD_KEY), record);
}
END_TEST

START_TEST(clock_that_steps_back_keeps_its_vote)
{
    cluster_step_clock(&w, 0, 4, -60);
    cluster_pass_ms(&w, 3 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        ck_assert_int_ge(w.stepped_back_ns[i], 60 * NS_PER_S - 10 * NS_PER_MS);
        ck_assert_int_le(w.stepped_back_ns[i], 60 * NS_PER_S + 10 * NS_PER_MS);
    }
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
}
END_TEST

/* Nor does it fill the log. */
START_TEST(clock_that_jumps_back_all_the_time_is_told_now_and_then)
{
    cluster_step_clock(&w, 0, 0, -1);
    cluster_pass_ms(&w, LOOKED_MS);
    int64_t told_ns = w.stepped_back_ns[0];
    ck_assert_int_ge(told_ns, NS_PER_S - 10 * NS_PER_MS);
    for (unsigned i = 0; i < 5; i++) {
        cluster_step_clock(&w, 0, 0, -1);
        cluster_pass_ms(&w, LOOKED_MS);
        ck_assert_int_eq(w.stepped_back_ns[0], told_ns);
    }
    cluster_pass_ms(&w, 10000);
    ck_assert_int_ge(w.stepped_back_ns[0], 6 * NS_PER_S - 60 * NS_PER_MS);
}
END_TEST

/* Keys that would outlive every lock by an hour are cut to what a lock may live. */
START_TEST(lock_on_clocks_that_stepped_back_ends_by_max_ttl)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
    cluster_step_clock(&w, 0, 2, -3600);
    cluster_pass_ms(&w, 1000);
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 60s"), "HELD 60000");
    cluster_pass_ms(&w, 59000);
    ck_assert(!cluster_granted(cluster_ask(&w, "LOCK a 60s")));
    cluster_pass_ms(&w, 1001);
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
}
END_TEST

/* Found in the probe behind a vote, before any heartbeat. */
START_TEST(step_right_before_a_lock_lends_no_vote)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
    cluster_step_clock(&w, 0, 1, 60);
    w.masters[4].hung = true;
    const char *reply = cluster_ask(&w, "LOCK a 10s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
}
END_TEST

/* "How to do distributed locking", the example against Redlock: client 1 has A, B and C; the clock
 * of C jumps, so the key ends early there; client 2 gets C, D and E. */
START_TEST(critics_example)
{
    w.masters[3].hung = w.masters[4].hung = true;
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
    cluster_pass_ms(&w, 100);
    w.masters[3].hung = w.masters[4].hung = false;
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_delete(&w, 3, "a");
    cluster_delete(&w, 4, "a");
    cluster_step_clock(&w, 2, 2, 60);
    const char *reply = cluster_ask(&w, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
}
END_TEST

/* The votes of a batch that was written before the one that revealed the step match the new time:
 * the epoch tells them apart. */
START_TEST(vote_written_before_a_step_was_found_does_not_count_after)
{
    for (unsigned i = 3; i < 5; i++)
        cluster_kill(&w, i);
    cluster_step_clock(&w, 2, 2, 60);
    cluster_send(&w, "LOCK a 60s");
    engine_flush(&w.engine, w.now_ns);
    cluster_send(&w, "#second LOCK b 60s");
    engine_flush(&w.engine, w.now_ns);
    cluster_pass_ms(&w, 60);
    ck_assert_uint_eq(w.reply_count, 2);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_msg(strstr(w.replies[i], "OK") == NULL, "%s", w.replies[i]);
}
END_TEST

START_TEST(flushed_scripts_lend_no_vote_to_a_stepped_master)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 30s")));
    w.masters[3].hung = w.masters[4].hung = true;
    cluster_step_clock(&w, 2, 2, 5);
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].redis.deaf_to_scripts = true;
    cluster_send(&w, "#one LOCK b 60s");
    engine_flush(&w.engine, w.now_ns);
    cluster_send(&w, "#two EXTEND a %s 60s", token);
    cluster_pass_ms(&w, 60);
    ck_assert_uint_eq(w.reply_count, 3);
    ck_assert_int_eq(strncmp(w.replies[1], "#one NOQUORUM", 13), 0);
    ck_assert_int_eq(strncmp(w.replies[2], "#two NOQUORUM", 13), 0);
}
END_TEST

/* One of three is dead, so that nobody can tell whose clock it was: then it stays our own affair.
 */
START_TEST(step_that_cannot_be_confirmed_is_not_recorded_later)
{
    cluster_deinit(&w);
    cluster_init(&w, 3);
    cluster_pass_ms(&w, 2000);
    cluster_kill(&w, 2);
    cluster_pass_ms(&w, 3000);
    cluster_step_clock(&w, 1, 1, 60);
    cluster_pass_ms(&w, QUARANTINE_MS + 5000);
    cluster_expect_votes(&w, 1, 1, "-");
    ck_assert_ptr_null(strstr(cluster_value(&w, 1, RECORD_KEY), "why=stepped"));
}
END_TEST

/* Slow answers have found a step, and after it they tell nothing of another, a smaller one: what
 * was not watched does not count as watched. */
START_TEST(step_behind_a_slow_answer_is_waited_out)
{
    w.masters[0].delay_ns = 200 * NS_PER_MS;
    cluster_step_clock(&w, 0, 0, 10);
    cluster_pass_ms(&w, QUARANTINE_MS + LOOKED_MS);
    w.masters[0].clock_ns += 50 * NS_PER_MS;
    cluster_delete(&w, 0, cluster_guard_key(&w, "clock", ":here"));
    w.masters[0].delay_ns = 0;
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_expect_votes(&w, 0, 0, "clockunproven");
    cluster_pass_ms(&w, QUARANTINE_MS + LOOKED_MS);
    cluster_expect_votes(&w, 0, 0, "-");
}
END_TEST

START_TEST(step_back_that_a_slow_answer_finds_costs_no_vote)
{
    cluster_step_clock(&w, 0, 0, -60);
    w.masters[0].delay_ns = 30 * NS_PER_MS;
    cluster_pass_ms(&w, 1100);
    w.masters[0].delay_ns = 0;
    cluster_pass_ms(&w, 3000);
    cluster_expect_votes(&w, 0, 0, "-");
}
END_TEST

/* --- daemons that come and go --- */

START_TEST(daemon_that_restarts_on_its_host_votes_at_once)
{
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 2 * 1000);
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
}
END_TEST

START_TEST(first_daemon_on_another_host_waits_for_max_ttl)
{
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_restart_engine(&w, "elsewhere");
    cluster_expect_quarantine(&w, 0, 4, "clockunproven");
}
END_TEST

START_TEST(newcomer_beside_a_settled_daemon_votes_within_two_heartbeats)
{
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 500);
    cluster_expect_votes(&w, 0, 4, "clockunproven");
    /* What the other daemon's heartbeat leaves, having looked a moment ago. */
    for (unsigned i = 0; i < 5; i++) {
        char attestation[GUARD_ATTESTATION_MAX];
        snprintf(attestation, sizeof(attestation), "%" PRId64 ":200", cluster_clock_us(&w, i));
        cluster_set(&w, i, cluster_guard_key(&w, "vouch", ""), attestation, 3000);
    }
    cluster_pass_ms(&w, 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}
END_TEST

/* What the daemon of another host, which has watched all along, leaves now. */
static void attest(const char hidden[CLUSTER_NODES][GUARD_ATTESTATION_MAX])
{
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        char attestation[2 * GUARD_ATTESTATION_MAX];
        snprintf(attestation, sizeof(attestation), "%" PRId64 "%s", cluster_clock_us(&w, i),
                 hidden[i]);
        cluster_set(&w, i, cluster_guard_key(&w, "vouch", ""), attestation, 3000);
    }
}

static void step_all_ms(int64_t ms)
{
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        w.masters[i].clock_ns += ms * NS_PER_MS;
}

/* A key of before would have lost 14 ms, where it has paid for the margin of 10. */
START_TEST(newcomer_does_not_begin_with_a_margin_of_its_own)
{
    char hidden[CLUSTER_NODES][GUARD_ATTESTATION_MAX];
    cluster_pass_ms(&w, LOOKED_MS);
    step_all_ms(7);
    cluster_pass_ms(&w, 2 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        snprintf(hidden[i], sizeof(hidden[i]), "%s",
                 strchr(cluster_value(&w, i, cluster_guard_key(&w, "vouch", "")), ':'));
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 500);
    attest(hidden);
    cluster_pass_ms(&w, 1000);
    cluster_expect_votes(&w, 0, 4, "-");
    step_all_ms(7);
    const char *reply = cluster_ask(&w, "LOCK a 10s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
}
END_TEST

START_TEST(attestation_that_makes_no_sense_settles_nobody)
{
    static const char *const senseless[] = {"", ":", ":-1", ":x", ":99999999999999", "x:1"};
    char hidden[CLUSTER_NODES][GUARD_ATTESTATION_MAX];
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        snprintf(hidden[i], sizeof(hidden[i]), "%s", senseless[_i]);
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 500);
    attest(hidden);
    cluster_pass_ms(&w, 1000);
    cluster_expect_votes(&w, 0, 4, "clockunproven");
}
END_TEST

START_TEST(attestation_from_before_the_newcomer_looked_is_worth_nothing)
{
    cluster_pass_ms(&w, LOOKED_MS);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, cluster_guard_key(&w, "vouch", "")));
    cluster_step_clock(&w, 0, 0, 5);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 3 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "clockunproven");
}
END_TEST

/* Found by trying a first draft of the guard: the granting daemon dies, a master that carries the
 * lock steps, the two that did not carry it come back, a fresh daemon starts. */
static void step_that_nobody_saw(const char *clock_id)
{
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 2, 2, 61);
    cluster_restart_engine(&w, clock_id);
    cluster_expect_no_grant_for_s(&w, 59);
    cluster_pass_ms(&w, 5 * 1000);
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
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

/* The daemon saw the clock go back, and dies. Until it has left that on the master, it counts no
 * vote of it; from then on the next daemon knows. */
static void step_back_and_forward(int64_t forward)
{
    cluster_pass_ms(&w, 120 * 1000 + LOOKED_MS);
    cluster_step_clock(&w, 2, 2, -100);
    w.masters[3].hung = w.masters[4].hung = true;
    const char *reply = cluster_ask(&w, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
    w.masters[3].hung = w.masters[4].hung = false;
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 2, 2, forward);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 2500);
    reply = cluster_ask(&w, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
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

/* What the keys lived through, and the daemon saw, does not go away with the daemon. */
START_TEST(step_forward_and_back_around_a_restart)
{
    unsigned last = _i == 0 ? 2 : 4;
    cluster_pass_ms(&w, 120 * 1000 + LOOKED_MS);
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 0, last, 70);
    cluster_pass_ms(&w, 2 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    cluster_step_clock(&w, 0, last, -70);
    cluster_restart_engine(&w, "here");
    cluster_expect_no_grant_for_s(&w, 55);
}
END_TEST

/* They go back further than they went forward: what a settled daemon had vouched for then lies
 * ahead of who starts, who would take it for a look after his own first one. */
START_TEST(step_forward_and_further_back_around_a_restart)
{
    cluster_pass_ms(&w, 120 * 1000 + LOOKED_MS);
    cluster_lock_on_three(&w);
    cluster_pass_ms(&w, 51500);
    cluster_step_clock(&w, 0, 4, 9);
    cluster_pass_ms(&w, 2 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_null(cluster_value(&w, i, "a"));
    cluster_step_clock(&w, 0, 4, -9 - 3);
    cluster_pass_ms(&w, 10);
    cluster_restart_engine(&w, _i == 0 ? "here" : "elsewhere");
    cluster_expect_no_grant_for_s(&w, 5);
}
END_TEST

/* The others' clocks went on as ours did, but which of us is right nobody knows. */
START_TEST(own_clock_suspect_voids_entries_and_attestations_everywhere)
{
    cluster_pass_ms(&w, 120 * 1000 + LOOKED_MS);
    cluster_step_clock(&w, 0, 2, 70);
    for (unsigned ms = 0; strcmp(cluster_vote(&w, 4), "ownclock") != 0; ms++) {
        ck_assert_uint_lt(ms, LOOKED_MS);
        cluster_pass_ms(&w, 1);
    }
    /* Not with the next heartbeat. */
    cluster_pass_ms(&w, 10);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_ptr_null(cluster_value(&w, i, cluster_guard_key(&w, "clock", ":here")));
        ck_assert_ptr_null(cluster_value(&w, i, cluster_guard_key(&w, "vouch", "")));
        ck_assert_ptr_nonnull(cluster_value(&w, i, cluster_guard_key(&w, "step", "")));
    }
}
END_TEST

/* One alone, and no quorum to write down that it did. */
START_TEST(step_that_could_not_be_recorded_outlives_the_daemon)
{
    cluster_pass_ms(&w, 120 * 1000 + LOOKED_MS);
    cluster_lock_on_three(&w);
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = true;
    cluster_pass_ms(&w, 5 * LOOKED_MS);
    cluster_step_clock(&w, 0, 0, 70);
    cluster_pass_ms(&w, 2 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 0, "stepped");
    ck_assert_ptr_null(strstr(cluster_value(&w, 0, RECORD_KEY), "why=stepped"));
    cluster_step_clock(&w, 0, 0, -70);
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = false;
    cluster_restart_engine(&w, "here");
    cluster_expect_no_grant_for_s(&w, 45);
}
END_TEST

START_TEST(clock_entry_that_makes_no_sense_is_none)
{
    cluster_set(&w, 1, cluster_guard_key(&w, "clock", ":there"),
                "-9223372036854775808:-9223372036854775808:9223372036854775807:"
                "9223372036854775807:-9223372036854775808",
                0);
    cluster_restart_engine(&w, "there");
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_expect_votes(&w, 1, 1, "clockunproven");
}
END_TEST

/* As far as a master's TIME is believed, again and again. */
START_TEST(steps_back_of_centuries_add_up_to_no_less)
{
    const int64_t centuries_s = INT64_C(6200000000);
    for (unsigned i = 0; i < 3; i++) {
        cluster_step_clock(&w, 0, 0, centuries_s);
        cluster_pass_ms(&w, LOOKED_MS);
        cluster_step_clock(&w, 0, 0, -centuries_s);
        cluster_pass_ms(&w, LOOKED_MS);
        ck_assert_int_ge(w.engine.flights.guard.nodes[0].clock.back_ns, 0);
    }
    ck_assert_int_ge(w.engine.flights.guard.nodes[0].clock.back_ns, centuries_s * NS_PER_S);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("guard_clocks");
    TCase *tests = tcase_create("votes");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, five, end);
    tcase_add_test(tests, stepped_clock_costs_the_vote_for_max_ttl);
    tcase_add_test(tests, clock_beyond_the_year_2200_is_a_stepped_one);
    tcase_add_test(tests, two_stepped_clocks_cost_two_votes);
    tcase_add_test(tests, majority_of_stepped_clocks_is_a_doubt_about_our_own);
    tcase_add_test(tests, clock_that_steps_back_keeps_its_vote);
    tcase_add_test(tests, clock_that_jumps_back_all_the_time_is_told_now_and_then);
    tcase_add_test(tests, lock_on_clocks_that_stepped_back_ends_by_max_ttl);
    tcase_add_test(tests, step_right_before_a_lock_lends_no_vote);
    tcase_add_test(tests, critics_example);
    tcase_add_test(tests, vote_written_before_a_step_was_found_does_not_count_after);
    tcase_add_test(tests, flushed_scripts_lend_no_vote_to_a_stepped_master);
    tcase_add_test(tests, step_that_cannot_be_confirmed_is_not_recorded_later);
    tcase_add_test(tests, step_behind_a_slow_answer_is_waited_out);
    tcase_add_test(tests, step_back_that_a_slow_answer_finds_costs_no_vote);
    tcase_add_test(tests, daemon_that_restarts_on_its_host_votes_at_once);
    tcase_add_test(tests, first_daemon_on_another_host_waits_for_max_ttl);
    tcase_add_test(tests, newcomer_beside_a_settled_daemon_votes_within_two_heartbeats);
    tcase_add_test(tests, newcomer_does_not_begin_with_a_margin_of_its_own);
    tcase_add_loop_test(tests, attestation_that_makes_no_sense_settles_nobody, 0, 6);
    tcase_add_test(tests, attestation_from_before_the_newcomer_looked_is_worth_nothing);
    tcase_add_test(tests, step_that_nobody_saw_on_the_same_host);
    tcase_add_test(tests, step_that_nobody_saw_on_another_host);
    tcase_add_test(tests, step_back_and_forward_around_a_restart);
    tcase_add_test(tests, step_back_and_less_forward_around_a_restart);
    tcase_add_loop_test(tests, step_forward_and_back_around_a_restart, 0, 2);
    tcase_add_loop_test(tests, step_forward_and_further_back_around_a_restart, 0, 2);
    tcase_add_test(tests, own_clock_suspect_voids_entries_and_attestations_everywhere);
    tcase_add_test(tests, step_that_could_not_be_recorded_outlives_the_daemon);
    tcase_add_test(tests, clock_entry_that_makes_no_sense_is_none);
    tcase_add_test(tests, steps_back_of_centuries_add_up_to_no_less);
    suite_add_tcase(suite, tests);
    return suite;
}
