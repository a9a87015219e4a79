/*
 * One daemon finds a step of a master's clock. The other daemons must learn of the step: those that
 * start later, on any host, and those that took no samples while the clock stepped. The tests run
 * the guard in the engine, on fake masters and virtual time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"
#include "tests/unit/cluster_guard.h"

/* Daemons on the same masters. A clock id names a daemon's host. w starts on the host "here", and
 * some tests restart it on the host "elsewhere". v runs on "elsewhere" and third on "third". */
static struct cluster v;
static struct cluster third;

static void setup(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, OBSERVED_MS);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = cluster_teardown};

/* Step the clocks of a quorum. */
static void step_quorum(int64_t seconds)
{
    cluster_step_clock(&w, 0, 2, seconds);
}

static void join(struct cluster *other, const char *clock_id)
{
    cluster_join(other, &w, clock_id);
    w.now_ns = other->now_ns;
}

/* --- daemons that start later --- */

/* Run a daemon on the host "elsewhere" until it leaves its clock entries, then one on "here". The
 * entries stay on the masters for ten minutes. A test that steps the clocks there and back must not
 * let a later daemon on "elsewhere" use these entries, although they fit the clocks again. */
static void leave_entries_of_elsewhere(void)
{
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, QUARANTINE_MS + 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 120 * 1000);
    cluster_expect_votes(&w, 0, 4, "-");
}

TEST(step_forward_and_back_is_known_on_another_host)
{
    leave_entries_of_elsewhere();
    cluster_lock_on_three(&w);
    step_quorum(70);
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    step_quorum(-70);
    cluster_restart_engine(&w, "elsewhere");
    cluster_expect_no_grant_for_s(&w, 55);
}

/* The first step is found by a sample (_i is 0), or by a daemon that starts on the same host after
 * the step and compares the clocks with the entries of the daemon before it (_i is 1). */
TEST_LOOP(step_back_and_forward_is_known_on_another_host, 0, 2)
{
    leave_entries_of_elsewhere();
    step_quorum(-70);
    if (_i == 1)
        cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, 2 * OBSERVED_MS);
    cluster_lock_on_three(&w);
    step_quorum(70);
    cluster_restart_engine(&w, "elsewhere");
    cluster_expect_no_grant_for_s(&w, 55);
}

/* A clock entry names the last step that its daemon knew of. An entry with bounds from before the
 * step must not name it, because it would look as if it was written after the step. */
TEST(entry_names_a_step_only_with_bounds_from_after_it)
{
    static const char announced[] = "1700000000000000";
    const struct clock_trust *clock = &w.engine.flights.guard.nodes[0].clock;
    const char *entry;
    w.masters[0].delay_ns = NS_PER_MS;
    cluster_set(&w, 0, cluster_guard_key(&w, "step", ""), announced, 0);
    for (unsigned ms = 0;; ms++) {
        ck_assert_uint_lt(ms, 2 * OBSERVED_MS);
        cluster_pass_ms(&w, 1);
        entry = cluster_value(&w, 0, cluster_guard_key(&w, "clock", ":here"));
        ck_assert_ptr_nonnull(entry);
        if (strstr(entry, announced) != NULL)
            break;
    }
    ck_assert_int_gt(atoll(entry), clock->known_step_ns);
    /* The daemon writes the new entry at once, without waiting for the next heartbeat. */
    ck_assert_int_lt(w.now_ns, clock->known_step_ns + 10 * NS_PER_MS);
    cluster_restart_engine(&w, "here");
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* The daemon's last samples can be from before the step, so it must not attest them. */
TEST(daemon_that_did_not_know_the_last_step_leaves_no_attestation)
{
    static const char announced[] = "1700000000000000";
    const struct clock_trust *clock = &w.engine.flights.guard.nodes[0].clock;
    w.masters[0].delay_ns = NS_PER_MS;
    cluster_set(&w, 0, cluster_guard_key(&w, "step", ""), announced, 0);
    cluster_delete(&w, 0, cluster_guard_key(&w, "vouch", ""));
    for (unsigned ms = 0; strcmp(clock->known_step, announced) != 0; ms++) {
        ck_assert_uint_lt(ms, OBSERVED_MS);
        cluster_pass_ms(&w, 1);
    }
    ck_assert_ptr_null(cluster_value(&w, 0, cluster_guard_key(&w, "vouch", "")));
    cluster_pass_ms(&w, 10);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, cluster_guard_key(&w, "vouch", "")));
}

/* The daemon writes its clock entries at once, without waiting for the next heartbeat. Otherwise a
 * daemon that starts in between would have to monitor the clocks anew. */
TEST(clock_entries_are_left_with_the_first_votes)
{
    cluster_restart_engine(&w, "elsewhere");
    for (unsigned ms = 0; strcmp(cluster_vote(&w, 0), "-") != 0; ms++) {
        ck_assert_uint_lt(ms, QUARANTINE_MS + OBSERVED_MS);
        cluster_pass_ms(&w, 1);
    }
    cluster_pass_ms(&w, 10);
    cluster_restart_engine(&w, "elsewhere");
    cluster_pass_ms(&w, OBSERVED_MS);
    cluster_expect_votes(&w, 0, 4, "-");
}

/* --- daemons that take no samples during a step --- */

static struct bytes unread[CLUSTER_NODES];

/* The reply waits in the socket of the stopped daemon. */
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
    bool probe_in_flight;
} stops[] = {{2500, false}, {30000, false}, {5000, true}};

/* v is stopped while the clocks of A, B and C step 70 s forward, which ends the lock's keys there,
 * and back again. When v resumes, the clocks look as before, but v must not grant the lock. In the
 * last run, replies to v wait in its sockets during the stop. */
TEST_ROWS(daemon_that_was_stopped_during_a_step_monitors_anew, stops)
{
    join(&v, "elsewhere");
    cluster_pass_both_ms(&w, &v, 4000);
    cluster_expect_votes(&v, 0, 4, "-");
    cluster_lock_on_three(&v);
    cluster_share(&w, &v);
    if (stops[_i].probe_in_flight) {
        v.diverted = 0x1f;
        v.divert = leave_unread;
        cluster_submit(&v, "LOCK other 1s");
        cluster_share(&w, &v);
    }
    step_quorum(70);
    cluster_pass_ms(&w, stops[_i].stopped_ms - 100);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    step_quorum(-70);
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

/* Daemon v is stopped while the clocks step 12 s forward and 16 s back. The samples that its first
 * heartbeat afterwards could attest are from before the stop. The third daemon starts after the
 * steps, when the clocks are 4 s behind. So the times of those samples are later than its own first
 * sample, and because of the attestation it would trust the clocks. */
TEST(daemon_does_not_attest_samples_from_before_a_stop)
{
    join(&v, "elsewhere");
    cluster_pass_both_ms(&w, &v, 4000);
    cluster_lock_on_three(&w);
    cluster_share(&v, &w);
    cluster_pass_both_ms(&w, &v, 49000);
    step_quorum(12);
    cluster_pass_ms(&w, 1500);
    cluster_expect_votes(&w, 0, 4, "ownclock");
    step_quorum(-12 - 4);
    cluster_pass_ms(&w, 1500);
    join(&third, "third");
    cluster_pass_both_ms(&w, &third, 3000);
    cluster_share(&v, &w);
    cluster_pass_ms(&v, 500);
    cluster_share(&third, &v);
    cluster_expect_no_grant_for_s(&third, 3);
    cluster_deinit(&third);
    cluster_deinit(&v);
}

/* --- single samples and heartbeats --- */

/* Take the sample of a probe that was sent at sent_ns. The node executes it now, and its answer
 * arrives at once. */
static enum guard_result take_sample(unsigned node, int64_t sent_ns)
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

/* Deliver the answer to a heartbeat: "<attestation> <step> <entry>", after the next beats. */
static void heartbeat_answered(unsigned node, int64_t sent_ns, const char *answer)
{
    struct guard_heartbeat heartbeat;
    char text[160];
    char beats[IDENTITY_BEATS];
    guard_heartbeat(&w.engine.flights.guard, node, sent_ns, &heartbeat);
    heartbeat.names = 0;
    cluster_next_beats(&w, node, beats);
    size_t len = (size_t)snprintf(text, sizeof(text), " %s %s", beats, answer);
    guard_on_heartbeat(&w.engine.flights.guard, node, &heartbeat, sent_ns, text, len, w.now_ns);
}

/* Only a heartbeat sent after the sample announces the step. */
TEST(step_back_is_announced_before_the_node_votes)
{
    cluster_step_clock(&w, 0, 0, -60);
    ck_assert_int_eq(take_sample(0, w.now_ns), GUARD_FAIL);
    cluster_expect_votes(&w, 0, 0, "unchecked");
    heartbeat_answered(0, w.now_ns - 1, "- - -");
    cluster_expect_votes(&w, 0, 0, "unchecked");
    heartbeat_answered(0, w.now_ns, "- - -");
    cluster_expect_votes(&w, 0, 0, "-");
}

/* After a pause of 3 s the daemon may have missed the announcement of a step. Votes count only
 * after it has read the answer to a heartbeat that was sent after the pause. */
TEST(daemon_after_a_pause_reads_heartbeats_before_votes_count)
{
    struct guard_heartbeat heartbeat;
    w.now_ns += 3 * NS_PER_S;
    ck_assert_int_eq(take_sample(0, w.now_ns), GUARD_WAIT);
    guard_heartbeat(&w.engine.flights.guard, 0, w.now_ns, &heartbeat);
    ck_assert_str_eq(heartbeat.attestation, "");
    heartbeat_answered(0, w.now_ns - 1, "- - -");
    ck_assert_int_eq(take_sample(0, w.now_ns), GUARD_WAIT);
    heartbeat_answered(0, w.now_ns, "- - -");
    ck_assert_int_eq(take_sample(0, w.now_ns), GUARD_PASS);
}

/* The daemon reads an answer 30 s after the request. The answer shows nothing of the time after it
 * was written, so the next sample still counts as the first one after a pause. */
TEST(answer_read_late_is_no_recent_sample)
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
    ck_assert_int_eq(take_sample(0, w.now_ns), GUARD_WAIT);
}

/* The clock is trusted, but its monitor began with a slow answer. The first quick answer starts the
 * monitor anew, and the clock is no longer trusted. */
TEST(new_baseline_voids_votes_in_flight)
{
    struct guard *guard = &w.engine.flights.guard;
    w.now_ns += NS_PER_MS;
    guard->nodes[0].clock.monitor.loose = true;
    uint32_t epoch = guard_epoch(guard, 0);
    take_sample(0, w.now_ns);
    cluster_expect_votes(&w, 0, 0, "clockunproven");
    ck_assert_uint_ne(guard_epoch(guard, 0), epoch);
}

/* The samples just before and after the announcement are UNCLEAR and do not count. The next clear
 * sample finds that the clock was unmonitored when the step was announced. */
TEST(step_announced_between_unclear_samples_ends_trust)
{
    ck_assert_int_eq(take_sample(0, w.now_ns), GUARD_PASS);
    w.now_ns += NS_PER_S;
    ck_assert_int_eq(take_sample(0, w.now_ns - 40 * NS_PER_MS), GUARD_WAIT);
    heartbeat_answered(0, w.now_ns, "- 1700000000000000 -");
    w.now_ns += 50 * NS_PER_MS;
    ck_assert_int_eq(take_sample(0, w.now_ns - 40 * NS_PER_MS), GUARD_WAIT);
    w.now_ns += 30 * NS_PER_S;
    take_sample(0, w.now_ns);
    heartbeat_answered(0, w.now_ns, "- 1700000000000000 -");
    cluster_expect_votes(&w, 0, 0, "clockunproven");
}

/* After a pause, the first sample proves nothing (_i is 0) or shows a step back (_i is 1). The
 * daemon then sets a new baseline, and must not use an attestation of a sample that is older than
 * this baseline. */
TEST_LOOP(new_baseline_ignores_earlier_attestations, 0, 2)
{
    char answer[64];
    ck_assert_int_eq(take_sample(0, w.now_ns), GUARD_PASS);
    int64_t attestation_us = (w.now_ns + NS_PER_S / 10 + w.masters[0].clock_ns) / 1000;
    snprintf(answer, sizeof(answer), "%" PRId64 ":200 1700000000000000 -", attestation_us);
    w.now_ns += 5 * NS_PER_S;
    cluster_step_clock(&w, 0, 0, _i == 0 ? 0 : -1);
    take_sample(0, w.now_ns - (_i == 0 ? 40 * NS_PER_MS : 0));
    for (unsigned i = 0; i < 3; i++) {
        heartbeat_answered(0, w.now_ns, answer);
        w.now_ns += NS_PER_MS;
        take_sample(0, w.now_ns);
    }
    cluster_expect_votes(&w, 0, 0, "clockunproven");
}

static uint64_t count_heartbeats(void)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += w.engine.flights.masters[0].link.round_trips.counts[i];
    return count;
}

TEST(slow_answers_cause_no_extra_heartbeats)
{
    w.masters[0].delay_ns = 20 * NS_PER_MS;
    cluster_pass_ms(&w, 5000);
    uint64_t before = count_heartbeats();
    cluster_pass_ms(&w, 10000);
    ck_assert_uint_le(count_heartbeats() - before, 11);
}

/* The daemon announces a step by a heartbeat, whose script the masters have lost. They have no vote
 * until the step is announced, so the daemon does not wait for the next heartbeat. */
TEST(step_is_announced_at_once_after_scripts_are_flushed)
{
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.scripts_flushed = true;
    cluster_step_clock(&w, 0, 4, -60);
    ck_assert(!cluster_granted(cluster_ask(&w, "LOCK a 10s")));
    cluster_pass_ms(&w, 10);
    cluster_expect_votes(&w, 0, 4, "-");
}
