/*
 * Steps of masters' clocks, and which daemons may trust a clock. The tests run the guard in the
 * engine, on fake masters and virtual time.
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

/* --- steps --- */

TEST(stepped_clock_costs_the_vote_for_max_ttl)
{
    cluster_step_clock(&w, 0, 0, 60);
    cluster_expect_quarantine(&w, 0, 0, "stepped");
    ck_assert_ptr_nonnull(strstr(cluster_value(&w, 0, RECORD_KEY), "why=stepped"));
}

/* A's clock steps forward by 238 years, runs on from there, and later steps back. */
TEST(clock_after_the_year_2200_counts_as_stepped)
{
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 0, 0, INT64_C(7500000000));
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "stepped");
    cluster_step_clock(&w, 0, 0, -INT64_C(7500000000));
    cluster_expect_no_grant_for_s(&w, 55);
}

TEST(two_stepped_clocks_cost_two_votes)
{
    cluster_step_clock(&w, 3, 4, 60);
    cluster_expect_quarantine(&w, 3, 4, "stepped");
}

TEST(majority_of_stepped_clocks_makes_the_own_clock_suspect)
{
    char record[LIMIT_RECORD];
    snprintf(record, sizeof(record), "%s", cluster_value(&w, 0, RECORD_KEY));
    cluster_step_clock(&w, 0, 2, 60);
    cluster_expect_quarantine(&w, 0, 4, "ownclock");
    ck_assert_str_eq(cluster_value(&w, 0, RECORD_KEY), record);
}

TEST(clock_that_steps_back_keeps_its_vote)
{
    cluster_step_clock(&w, 0, 4, -60);
    cluster_pass_ms(&w, 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        ck_assert_int_ge(w.stepped_back_ns[i], 60 * NS_PER_S - 10 * NS_PER_MS);
        ck_assert_int_le(w.stepped_back_ns[i], 60 * NS_PER_S + 10 * NS_PER_MS);
    }
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
}

/* The announcement of a step voids the entry on the master. If the daemon restarts before it has
 * left another one, its successor does not trust the clock. */
TEST(entry_is_left_again_right_after_a_step)
{
    cluster_pass_ms(&w, 120 * 1000 + OBSERVED_MS);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, cluster_guard_key(&w, "clock", ":here")));
    cluster_step_clock(&w, 0, 0, -1);
    while (cluster_value(&w, 0, cluster_guard_key(&w, "step", "")) == NULL)
        cluster_pass_ms(&w, 1);
    cluster_pass_ms(&w, 20);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, cluster_guard_key(&w, "clock", ":here")));
}

/* The log gets at most one line in ten seconds. */
TEST(clock_that_steps_back_repeatedly_is_reported_now_and_then)
{
    cluster_step_clock(&w, 0, 0, -1);
    cluster_pass_ms(&w, OBSERVED_MS);
    int64_t reported_ns = w.stepped_back_ns[0];
    ck_assert_int_ge(reported_ns, NS_PER_S - 10 * NS_PER_MS);
    for (unsigned i = 0; i < 5; i++) {
        cluster_step_clock(&w, 0, 0, -1);
        cluster_pass_ms(&w, OBSERVED_MS);
        ck_assert_int_eq(w.stepped_back_ns[0], reported_ns);
    }
    cluster_pass_ms(&w, 10000);
    ck_assert_int_ge(w.stepped_back_ns[0], 6 * NS_PER_S - 60 * NS_PER_MS);
}

/* The clocks step back by an hour, so the keys would live an hour longer than the lock. The next
 * LOCK cuts their TTL to max_ttl. */
TEST(lock_on_clocks_that_stepped_back_ends_after_max_ttl)
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

/* The probe after a vote finds the step, before any heartbeat. */
TEST(step_right_before_a_lock_costs_the_vote)
{
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
    cluster_step_clock(&w, 0, 1, 60);
    w.masters[4].hung = true;
    const char *reply = cluster_ask(&w, "LOCK a 10s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
}

/* The example against Redlock in Kleppmann's "How to do distributed locking". Client 1 has A, B and
 * C. The clock of C jumps, so the key expires early there. Client 2 then asks C, D and E. */
TEST(clock_jump_of_the_critics_example_allows_no_second_grant)
{
    w.masters[3].hung = w.masters[4].hung = true;
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
    cluster_pass_ms(&w, 100);
    w.masters[3].hung = w.masters[4].hung = false;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_delete(&w, 3, "a");
    cluster_delete(&w, 4, "a");
    cluster_step_clock(&w, 2, 2, 60);
    const char *reply = cluster_ask(&w, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
}

/* The probe after the first batch reveals C's step. The second batch was written before that, and
 * its probe agrees with the new time. Only the epoch shows that its votes must not count. */
TEST(vote_written_before_a_step_was_found_does_not_count)
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

/* C's clock has stepped and all scripts are flushed, so the daemon sends the votes of the LOCK and
 * of the EXTEND again in full. As D and E hang, only A, B and C could form a quorum, and the votes
 * of C must not count. */
TEST(flushed_scripts_give_a_stepped_master_no_vote)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 30s")));
    w.masters[3].hung = w.masters[4].hung = true;
    cluster_step_clock(&w, 2, 2, 5);
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].redis.scripts_flushed = true;
    cluster_send(&w, "#one LOCK b 60s");
    engine_flush(&w.engine, w.now_ns);
    cluster_send(&w, "#two EXTEND a %s 60s", token);
    cluster_pass_ms(&w, 60);
    ck_assert_uint_eq(w.reply_count, 3);
    ck_assert_int_eq(strncmp(w.replies[1], "#one NOQUORUM", 13), 0);
    ck_assert_int_eq(strncmp(w.replies[2], "#two NOQUORUM", 13), 0);
}

/* One of three masters is dead, so the daemon cannot tell whose clock has stepped. It must not
 * record a step of B, even when the vote of B counts again. */
TEST(unconfirmed_step_is_not_recorded_later)
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

/* A slow answer reveals a step of 10 s. The slow answers after it cannot show a second step of 50
 * ms, so the clock counts as unmonitored. */
TEST(step_hidden_by_a_slow_answer_is_waited_out)
{
    w.masters[0].delay_ns = 200 * NS_PER_MS;
    cluster_step_clock(&w, 0, 0, 10);
    cluster_pass_ms(&w, QUARANTINE_MS + OBSERVED_MS);
    w.masters[0].clock_ns += 50 * NS_PER_MS;
    cluster_delete(&w, 0, cluster_guard_key(&w, "clock", ":here"));
    w.masters[0].delay_ns = 0;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "clockunproven");
    cluster_pass_ms(&w, QUARANTINE_MS + OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "-");
}

TEST(step_back_found_by_a_slow_answer_costs_no_vote)
{
    cluster_step_clock(&w, 0, 0, -60);
    w.masters[0].delay_ns = 30 * NS_PER_MS;
    cluster_pass_ms(&w, 1100);
    w.masters[0].delay_ns = 0;
    cluster_pass_ms(&w, 3000);
    cluster_expect_votes(&w, 0, 0, "-");
}

/* --- restarts and newcomers --- */

TEST(daemon_restarted_on_its_host_votes_at_once)
{
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 2 * 1000);
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 10s")));
}

TEST(first_daemon_on_another_host_waits_for_max_ttl)
{
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_restart_engine(&w, "elsewhere");
    cluster_expect_quarantine(&w, 0, 4, "clockunproven");
}

TEST(newcomer_with_attestations_votes_within_two_heartbeats)
{
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 500);
    cluster_expect_votes(&w, 0, 4, "clockunproven");
    /* Leave an attestation of a recent sample, as the heartbeat of another daemon does. */
    for (unsigned i = 0; i < 5; i++) {
        char attestation[GUARD_ATTESTATION_MAX];
        snprintf(attestation, sizeof(attestation), "%" PRId64 ":200", cluster_clock_us(&w, i));
        cluster_set(&w, i, cluster_guard_key(&w, "vouch", ""), attestation, 3000);
    }
    cluster_pass_ms(&w, 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* Write the attestations of a daemon on another host that has monitored the clocks all the time.
 * `hidden` is what follows the time of the sample: a colon, and the growth of the offset that the
 * other daemon may have missed. */
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

/* The clocks step by 7 ms before the newcomer starts, and by 7 ms after. A key from before both
 * steps has lost 14 ms, more than the margin of 10 ms. */
TEST(newcomer_inherits_the_margin_that_is_left)
{
    char hidden[CLUSTER_NODES][GUARD_ATTESTATION_MAX];
    cluster_pass_ms(&w, OBSERVED_MS);
    step_all_ms(7);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
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

TEST_LOOP(malformed_attestation_is_not_trusted, 0, 6)
{
    static const char *const malformed[] = {"", ":", ":-1", ":x", ":99999999999999", "x:1"};
    char hidden[CLUSTER_NODES][GUARD_ATTESTATION_MAX];
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        snprintf(hidden[i], sizeof(hidden[i]), "%s", malformed[_i]);
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 500);
    attest(hidden);
    cluster_pass_ms(&w, 1000);
    cluster_expect_votes(&w, 0, 4, "clockunproven");
}

/* The attestations that the first daemon left are still on the masters. The clock of A steps before
 * the newcomer takes its first sample, so they prove nothing to the newcomer. */
TEST(attestation_from_before_the_newcomers_sample_is_not_trusted)
{
    cluster_pass_ms(&w, OBSERVED_MS);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, cluster_guard_key(&w, "vouch", "")));
    cluster_step_clock(&w, 0, 0, 5);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, 3 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "clockunproven");
}

/* A lock has its keys on A, B and C only. While no daemon runs, C's clock steps, so C's key ends
 * early, and C, D and E could grant the lock again. The daemon that starts then must not let them.
 * A first draft of the guard granted the lock twice. */
static void check_unseen_step(const char *clock_id)
{
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 2, 2, 61);
    cluster_restart_engine(&w, clock_id);
    cluster_expect_no_grant_for_s(&w, 59);
    cluster_pass_ms(&w, 5 * 1000);
    ck_assert(cluster_granted(cluster_ask(&w, "LOCK a 60s")));
}

TEST(unseen_step_on_the_same_host_allows_no_second_grant)
{
    check_unseen_step("here");
}

TEST(unseen_step_on_another_host_allows_no_second_grant)
{
    check_unseen_step("elsewhere");
}

/* The daemon sees C's clock step back by 100 s. It counts no vote of C until it has announced the
 * step on C. Later the clock steps forward and the daemon dies. The next daemon finds the
 * announcement, so it does not trust the clock. */
static void step_back_and_forward(int64_t forward)
{
    cluster_pass_ms(&w, 120 * 1000 + OBSERVED_MS);
    cluster_step_clock(&w, 2, 2, -100);
    w.masters[3].hung = w.masters[4].hung = true;
    const char *reply = cluster_ask(&w, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
    w.masters[3].hung = w.masters[4].hung = false;
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 2, 2, forward);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 2500);
    reply = cluster_ask(&w, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
}

TEST(step_back_and_forward_around_a_restart_costs_the_vote)
{
    step_back_and_forward(100);
}

TEST(step_back_and_less_forward_around_a_restart_costs_the_vote)
{
    step_back_and_forward(96);
}

/* The clocks of A, B and C (_i is 0) or of all masters (_i is 1) step forward, which expires the
 * lock's keys, and back again while the daemon restarts. The old daemon saw the first step, so the
 * next daemon must know of it. */
TEST_LOOP(step_forward_and_back_around_a_restart_allows_no_grant, 0, 2)
{
    unsigned last = _i == 0 ? 2 : 4;
    cluster_pass_ms(&w, 120 * 1000 + OBSERVED_MS);
    cluster_lock_on_three(&w);
    cluster_step_clock(&w, 0, last, 70);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    cluster_step_clock(&w, 0, last, -70);
    cluster_restart_engine(&w, "here");
    cluster_expect_no_grant_for_s(&w, 55);
}

/* The clocks step 9 s forward and 12 s back. The attestations of the old daemon then lie ahead of
 * the new daemon's first sample, and must not be taken for later ones. */
TEST_LOOP(step_forward_and_further_back_around_a_restart_allows_no_grant, 0, 2)
{
    cluster_pass_ms(&w, 120 * 1000 + OBSERVED_MS);
    cluster_lock_on_three(&w);
    cluster_pass_ms(&w, 51500);
    cluster_step_clock(&w, 0, 4, 9);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_null(cluster_value(&w, i, "a"));
    cluster_step_clock(&w, 0, 4, -9 - 3);
    cluster_pass_ms(&w, 10);
    cluster_restart_engine(&w, _i == 0 ? "here" : "elsewhere");
    cluster_expect_no_grant_for_s(&w, 5);
}

/* The clocks of A, B and C step. Those of D and E agree with the daemon's, but the daemon cannot
 * tell which side is right. */
TEST(suspect_own_clock_voids_entries_and_attestations_everywhere)
{
    cluster_pass_ms(&w, 120 * 1000 + OBSERVED_MS);
    cluster_step_clock(&w, 0, 2, 70);
    for (unsigned ms = 0; strcmp(cluster_vote(&w, 4), "ownclock") != 0; ms++) {
        ck_assert_uint_lt(ms, OBSERVED_MS);
        cluster_pass_ms(&w, 1);
    }
    /* The daemon deletes the entries and attestations at once, without waiting for the next
     * heartbeat. */
    cluster_pass_ms(&w, 10);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_ptr_null(cluster_value(&w, i, cluster_guard_key(&w, "clock", ":here")));
        ck_assert_ptr_null(cluster_value(&w, i, cluster_guard_key(&w, "vouch", "")));
        ck_assert_ptr_nonnull(cluster_value(&w, i, cluster_guard_key(&w, "step", "")));
    }
}

/* Only A's clock steps, and no quorum is reachable, so the daemon cannot record the step. The next
 * daemon must still know of it. */
TEST(unrecorded_step_outlives_the_daemon)
{
    cluster_pass_ms(&w, 120 * 1000 + OBSERVED_MS);
    cluster_lock_on_three(&w);
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = true;
    cluster_pass_ms(&w, 5 * OBSERVED_MS);
    cluster_step_clock(&w, 0, 0, 70);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 0, "stepped");
    ck_assert_ptr_null(strstr(cluster_value(&w, 0, RECORD_KEY), "why=stepped"));
    cluster_step_clock(&w, 0, 0, -70);
    for (unsigned i = 2; i < 5; i++)
        w.masters[i].hung = false;
    cluster_restart_engine(&w, "here");
    cluster_expect_no_grant_for_s(&w, 45);
}

TEST(malformed_clock_entry_is_ignored)
{
    cluster_set(&w, 1, cluster_guard_key(&w, "clock", ":there"),
                "-9223372036854775808:-9223372036854775808:9223372036854775807:"
                "9223372036854775807:-9223372036854775808",
                0);
    cluster_restart_engine(&w, "there");
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 1, 1, "clockunproven");
}

/* Each step back is about the largest that a TIME reply can show. The sum of three is too large for
 * an int64_t in nanoseconds. */
TEST(huge_steps_back_saturate_their_sum)
{
    const int64_t centuries_s = INT64_C(6200000000);
    for (unsigned i = 0; i < 3; i++) {
        cluster_step_clock(&w, 0, 0, centuries_s);
        cluster_pass_ms(&w, OBSERVED_MS);
        cluster_step_clock(&w, 0, 0, -centuries_s);
        cluster_pass_ms(&w, OBSERVED_MS);
        ck_assert_int_ge(w.engine.flights.guard.nodes[0].clock.back_ns, 0);
    }
    ck_assert_int_ge(w.engine.flights.guard.nodes[0].clock.back_ns, centuries_s * NS_PER_S);
}
