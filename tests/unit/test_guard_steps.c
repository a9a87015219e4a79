/*
 * What one daemon saw of a master's clock is known to the others: to those that start later, on
 * whatever host, and to those that did not look meanwhile. The guard in the engine, on fake masters
 * and virtual time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_guard.h"

/* Daemons on the same masters: "here", "elsewhere" and, where it says so, a third one. */
static struct cluster w;
static struct cluster v;
static struct cluster third;

static void five(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, LOOKED_MS);
}

static void end(void)
{
    cluster_deinit(&w);
}

/* The clocks of a quorum. */
static void step(int64_t seconds)
{
    cluster_step_clock(&w, 0, 2, seconds);
}

/* Both in turns, for so long. */
static void pass_both(struct cluster *other, int64_t ms)
{
    for (int64_t i = 0; i < ms; i++) {
        cluster_pass_ms(&w, 1);
        cluster_share(other, &w);
        other->now_ns -= NS_PER_MS;
        cluster_pass_ms(other, 1);
        cluster_share(&w, other);
    }
}

static void join(struct cluster *other, const char *clock_id)
{
    cluster_join(other, &w, clock_id);
    w.now_ns = other->now_ns;
}

/* --- those that start later --- */

/* A daemon of another host has been here, and ended less than ten minutes ago: its bounds are still
 * there, and fit again once the clocks are back where they were. */
static void with_bounds_of_elsewhere(void)
{
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, QUARANTINE_MS + 2 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 120 * 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}

START_TEST(step_forward_and_back_is_known_on_another_host)
{
    with_bounds_of_elsewhere();
    cluster_lock_on_three(&w);
    step(70);
    cluster_pass_ms(&w, 2 * LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    step(-70);
    cluster_restart_engine(&w, "elsewhere");
    cluster_expect_no_grant_for_s(&w, 55);
}
END_TEST

/* Seen by a look, or by who starts, in the bounds of its own host. */
START_TEST(step_back_and_forward_is_known_on_another_host)
{
    with_bounds_of_elsewhere();
    step(-70);
    if (_i == 1)
        cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 2 * LOOKED_MS);
    cluster_lock_on_three(&w);
    step(70);
    cluster_restart_engine(&w, "elsewhere");
    cluster_expect_no_grant_for_s(&w, 55);
}
END_TEST

/* Else bounds from before the step would be left as if they were from after it. */
START_TEST(bounds_go_by_a_step_only_if_they_are_from_after_it_was_heard_of)
{
    static const char told[] = "1700000000000000";
    const struct clock_trust *clock = &w.engine.flights.guard.nodes[0].clock;
    const char *entry;
    w.masters[0].delay_ns = NS_PER_MS;
    cluster_set(&w, 0, cluster_guard_key(&w, "step", ""), told, 0);
    for (unsigned ms = 0;; ms++) {
        ck_assert_uint_lt(ms, 2 * LOOKED_MS);
        cluster_pass_ms(&w, 1);
        entry = cluster_value(&w, 0, cluster_guard_key(&w, "clock", ":here"));
        ck_assert_ptr_nonnull(entry);
        if (strstr(entry, told) != NULL)
            break;
    }
    ck_assert_int_gt(atoll(entry), clock->known_step_ns);
    /* Not with the next heartbeat. */
    ck_assert_int_lt(w.now_ns, clock->known_step_ns + 10 * NS_PER_MS);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}
END_TEST

/* It may have looked before the step. */
START_TEST(a_daemon_without_the_last_step_leaves_no_attestation)
{
    static const char told[] = "1700000000000000";
    const struct clock_trust *clock = &w.engine.flights.guard.nodes[0].clock;
    w.masters[0].delay_ns = NS_PER_MS;
    cluster_set(&w, 0, cluster_guard_key(&w, "step", ""), told, 0);
    cluster_delete(&w, 0, cluster_guard_key(&w, "vouch", ""));
    for (unsigned ms = 0; strcmp(clock->known_step, told) != 0; ms++) {
        ck_assert_uint_lt(ms, LOOKED_MS);
        cluster_pass_ms(&w, 1);
    }
    ck_assert_ptr_null(cluster_value(&w, 0, cluster_guard_key(&w, "vouch", "")));
    cluster_pass_ms(&w, 10);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, cluster_guard_key(&w, "vouch", "")));
}
END_TEST

/* Not with the next heartbeat: whoever starts then would have to wait. */
START_TEST(bounds_are_left_as_soon_as_there_are_votes)
{
    cluster_restart_engine(&w, "elsewhere");
    for (unsigned ms = 0; strcmp(cluster_vote(&w, 0), "-") != 0; ms++) {
        ck_assert_uint_lt(ms, QUARANTINE_MS + LOOKED_MS);
        cluster_pass_ms(&w, 1);
    }
    cluster_pass_ms(&w, 10);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, LOOKED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}
END_TEST

/* --- those that do not look meanwhile --- */

static struct bytes unread[CLUSTER_NODES];

/* It waits in the socket of who is stopped. */
static void leave_unread(struct cluster *cluster, unsigned node, enum channel channel,
                         const char *bytes, size_t len)
{
    (void)cluster;
    ck_assert_int_eq(channel, CHANNEL_COMMANDS);
    bytes_add(&unread[node], bytes, len);
}

static void read_all(struct cluster *cluster)
{
    cluster->diverted = 0;
    for (unsigned i = 0; i < CLUSTER_NODES; i++) {
        cluster_feed(cluster, i, CHANNEL_COMMANDS, bytes_at(&unread[i]), bytes_len(&unread[i]));
        bytes_free(&unread[i]);
    }
}

static const struct {
    int64_t stopped_ms;
    bool probe_under_way;
} stops[] = {{2500, false}, {30000, false}, {5000, true}};

START_TEST(who_did_not_look_begins_anew_after_a_step)
{
    join(&v, "elsewhere");
    pass_both(&v, 4000);
    cluster_expect_votes(&v, 0, 4, "-");
    cluster_lock_on_three(&v);
    cluster_share(&w, &v);
    if (stops[_i].probe_under_way) {
        v.diverted = 0x1f;
        v.divert = leave_unread;
        cluster_say(&v, "LOCK other 1s");
        cluster_share(&w, &v);
    }
    step(70);
    cluster_pass_ms(&w, stops[_i].stopped_ms - 100);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    step(-70);
    cluster_pass_ms(&w, 100);
    cluster_share(&v, &w);
    /* Sockets are read before timers run. */
    read_all(&v);
    v.reply_count = 0;
    const char *reply = cluster_ask(&v, "LOCK a 60s");
    ck_assert_msg(!cluster_granted(reply), "%s", reply);
    v.reply_count = 0;
    cluster_expect_no_grant_for_s(&v, 25);
    cluster_deinit(&v);
}
END_TEST

/* Its first heartbeat is about what it saw before it was stopped, and the clocks went further back
 * than forward: to who has begun to look since, that lies ahead. */
START_TEST(a_daemon_attests_nothing_from_before_it_looked)
{
    join(&v, "elsewhere");
    pass_both(&v, 4000);
    cluster_lock_on_three(&w);
    cluster_share(&v, &w);
    pass_both(&v, 49000);
    step(12);
    cluster_pass_ms(&w, 1500);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    step(-12 - 4);
    cluster_pass_ms(&w, 1500);
    join(&third, "third");
    pass_both(&third, 3000);
    cluster_share(&v, &w);
    cluster_pass_ms(&v, 500);
    cluster_share(&third, &v);
    cluster_expect_no_grant_for_s(&third, 3);
    cluster_deinit(&third);
    cluster_deinit(&v);
}
END_TEST

/* --- in small --- */

/* A probe of the node that is executed when it is answered. */
static enum guard_result look(unsigned node, int64_t sent_ns)
{
    const char *record = cluster_value(&w, node, RECORD_KEY);
    const struct guard_sample sample = {
        .clock = {.sent_ns = sent_ns,
                  .received_ns = w.now_ns,
                  .time_us = cluster_clock_us(&w, node)},
        .record = record,
        .record_len = strlen(record),
        .master = true,
        .replid = w.masters[node].redis.replid,
    };
    return guard_on_sample(&w.engine.flights.guard, node, &sample);
}

/* The answer to a heartbeat: "<attestation> <step> <entry>". */
static void hear(unsigned node, int64_t sent_ns, const char *answer)
{
    struct guard_heartbeat heartbeat;
    char text[96];
    guard_heartbeat(&w.engine.flights.guard, node, sent_ns, &heartbeat);
    heartbeat.names = 0;
    size_t len = (size_t)snprintf(text, sizeof(text), " %s", answer);
    guard_on_heartbeat(&w.engine.flights.guard, node, &heartbeat, sent_ns, text, len, w.now_ns);
}

/* By a heartbeat that was sent behind it. */
START_TEST(step_back_is_told_before_the_node_votes)
{
    cluster_step_clock(&w, 0, 0, -60);
    ck_assert_int_eq(look(0, w.now_ns), GUARD_FAIL);
    cluster_expect_votes(&w, 0, 0, "unchecked");
    hear(0, w.now_ns - 1, "- - -");
    cluster_expect_votes(&w, 0, 0, "unchecked");
    hear(0, w.now_ns, "- - -");
    cluster_expect_votes(&w, 0, 0, "-");
}
END_TEST

START_TEST(who_did_not_look_hears_the_others_before_a_vote_counts)
{
    struct guard_heartbeat heartbeat;
    w.now_ns += 3 * NS_PER_S;
    ck_assert_int_eq(look(0, w.now_ns), GUARD_WAIT);
    guard_heartbeat(&w.engine.flights.guard, 0, w.now_ns, &heartbeat);
    ck_assert_str_eq(heartbeat.attestation, "");
    hear(0, w.now_ns - 1, "- - -");
    ck_assert_int_eq(look(0, w.now_ns), GUARD_WAIT);
    hear(0, w.now_ns, "- - -");
    ck_assert_int_eq(look(0, w.now_ns), GUARD_PASS);
}
END_TEST

START_TEST(answer_that_is_read_late_is_no_look_of_then)
{
    int64_t sent_ns = w.now_ns;
    w.now_ns += 30 * NS_PER_S;
    const struct cluster_master *master = &w.masters[0];
    const char *record = cluster_value(&w, 0, RECORD_KEY);
    const struct guard_sample late = {
        .clock = {sent_ns, w.now_ns, (sent_ns + master->clock_ns) / 1000},
        .record = record,
        .record_len = strlen(record),
        .master = true,
        .replid = master->redis.replid,
    };
    guard_on_sample(&w.engine.flights.guard, 0, &late);
    ck_assert_int_eq(look(0, w.now_ns), GUARD_WAIT);
}
END_TEST

/* A watch that began with a slow answer, but is trusted, begins once more with a quick one. */
START_TEST(watch_that_begins_anew_takes_the_votes_under_way)
{
    struct guard *guard = &w.engine.flights.guard;
    w.now_ns += NS_PER_MS;
    guard->nodes[0].clock.watch.loose = true;
    uint32_t epoch = guard_epoch(guard, 0);
    look(0, w.now_ns);
    cluster_expect_votes(&w, 0, 0, "clockunproven");
    ck_assert_uint_ne(guard_epoch(guard, 0), epoch);
}
END_TEST

/* The looks beside it had told nothing, so it is as if nobody had looked. */
START_TEST(step_that_was_heard_of_with_unclear_looks_counts_for_the_next)
{
    ck_assert_int_eq(look(0, w.now_ns), GUARD_PASS);
    w.now_ns += NS_PER_S;
    ck_assert_int_eq(look(0, w.now_ns - 40 * NS_PER_MS), GUARD_WAIT);
    hear(0, w.now_ns, "- 1700000000000000 -");
    w.now_ns += 50 * NS_PER_MS;
    ck_assert_int_eq(look(0, w.now_ns - 40 * NS_PER_MS), GUARD_WAIT);
    w.now_ns += 30 * NS_PER_S;
    look(0, w.now_ns);
    hear(0, w.now_ns, "- 1700000000000000 -");
    cluster_expect_votes(&w, 0, 0, "clockunproven");
}
END_TEST

/* Whatever its first look was: nothing, or that the clock has gone back. */
START_TEST(a_new_baseline_ignores_earlier_attestations)
{
    char answer[64];
    ck_assert_int_eq(look(0, w.now_ns), GUARD_PASS);
    int64_t attestation_us = (w.now_ns + NS_PER_S / 10 + w.masters[0].clock_ns) / 1000;
    snprintf(answer, sizeof(answer), "%" PRId64 ":200 1700000000000000 -", attestation_us);
    w.now_ns += 5 * NS_PER_S;
    cluster_step_clock(&w, 0, 0, _i == 0 ? 0 : -1);
    look(0, w.now_ns - (_i == 0 ? 40 * NS_PER_MS : 0));
    for (unsigned i = 0; i < 3; i++) {
        hear(0, w.now_ns, answer);
        w.now_ns += NS_PER_MS;
        look(0, w.now_ns);
    }
    cluster_expect_votes(&w, 0, 0, "clockunproven");
}
END_TEST

static uint64_t count_heartbeats(void)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += w.engine.flights.masters[0].link.round_trips.counts[i];
    return count;
}

START_TEST(slow_answers_cause_no_more_heartbeats)
{
    w.masters[0].delay_ns = 20 * NS_PER_MS;
    cluster_pass_ms(&w, 5000);
    uint64_t before = count_heartbeats();
    cluster_pass_ms(&w, 10000);
    ck_assert_uint_le(count_heartbeats() - before, 11);
}
END_TEST

/* Not with the next heartbeat: until then there is no vote. */
START_TEST(step_is_told_at_once_though_scripts_are_gone)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.deaf_to_scripts = true;
    cluster_step_clock(&w, 0, 4, -60);
    ck_assert(!cluster_granted(cluster_ask(&w, "LOCK a 10s")));
    cluster_pass_ms(&w, 10);
    cluster_expect_votes(&w, 0, 4, "-");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("guard_steps");
    TCase *tests = tcase_create("told");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, five, end);
    tcase_add_test(tests, step_forward_and_back_is_known_on_another_host);
    tcase_add_loop_test(tests, step_back_and_forward_is_known_on_another_host, 0, 2);
    tcase_add_test(tests, bounds_go_by_a_step_only_if_they_are_from_after_it_was_heard_of);
    tcase_add_test(tests, a_daemon_without_the_last_step_leaves_no_attestation);
    tcase_add_test(tests, bounds_are_left_as_soon_as_there_are_votes);
    tcase_add_loop_test(tests, who_did_not_look_begins_anew_after_a_step, 0,
                        sizeof(stops) / sizeof(stops[0]));
    tcase_add_test(tests, a_daemon_attests_nothing_from_before_it_looked);
    tcase_add_test(tests, step_back_is_told_before_the_node_votes);
    tcase_add_test(tests, who_did_not_look_hears_the_others_before_a_vote_counts);
    tcase_add_test(tests, answer_that_is_read_late_is_no_look_of_then);
    tcase_add_test(tests, watch_that_begins_anew_takes_the_votes_under_way);
    tcase_add_test(tests, step_that_was_heard_of_with_unclear_looks_counts_for_the_next);
    tcase_add_loop_test(tests, a_new_baseline_ignores_earlier_attestations, 0, 2);
    tcase_add_test(tests, slow_answers_cause_no_more_heartbeats);
    tcase_add_test(tests, step_is_told_at_once_though_scripts_are_gone);
    suite_add_tcase(suite, tests);
    return suite;
}
