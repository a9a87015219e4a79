/*
 * engine/guard/clock_trust.h: when a daemon relies on a master's clock. Times are in milliseconds.
 */
#include "engine/guard/clock_trust.h"

#include <inttypes.h>
#include <stdio.h>

#include "protocol/units.h"
#include "tests/runner.h"

static const struct guard_periods periods = {
    .drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS},
    .quarantine_ns = 60 * NS_PER_S,
    .heartbeat_ns = NS_PER_S,
    .fresh_ns = 5 * NS_PER_S,
};

static const int64_t epoch_us = 1763640000000000;

static struct clock_trust trust;
static int64_t stepped_us; /* the sum of the clock's steps */

static void reset_trust(void)
{
    trust = (struct clock_trust){0};
    stepped_us = 0;
}

const struct runner_settings runner_settings = {.setup = reset_trust};

static struct clock_result take_sample(int64_t sent_ms, int64_t received_ms)
{
    const struct monitor_sample sample = {sent_ms * NS_PER_MS, received_ms * NS_PER_MS,
                                          epoch_us + received_ms * 1000 + stepped_us};
    return clock_on_sample(&trust, &periods, &sample);
}

static void probe_each_second(int64_t from_ms, int64_t until_ms)
{
    for (int64_t ms = from_ms; ms < until_ms; ms += 1000)
        take_sample(ms, ms);
}

/* A heartbeat is answered. `left` is the clock entry that it wrote, `step` the last step announced
 * on the master. */
static bool heartbeat_answered(const char *left, const char *step, int64_t sent_ms, int64_t now_ms)
{
    return clock_on_heartbeat(&trust, &periods, left, step, sent_ms * NS_PER_MS,
                              now_ms * NS_PER_MS);
}

static struct clock_result inherit(const char *attestation, const char *entry, int64_t now_ms)
{
    return clock_inherit(&trust, &periods, attestation, entry, now_ms * NS_PER_MS);
}

TEST(clock_is_trusted_after_a_quarantine_of_samples)
{
    probe_each_second(1000, 61000);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
    take_sample(61000, 61000);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
}

TEST(step_is_confirmed_by_a_second_sample)
{
    probe_each_second(1000, 62000);
    stepped_us = 60000000;
    struct clock_result result = take_sample(62000, 62000);
    ck_assert_int_eq(result.result, MONITOR_STEPPED);
    ck_assert(result.heartbeat);
    ck_assert(!result.confirmed);
    ck_assert_int_eq(trust.state, CLOCK_STEPPED);
    ck_assert_int_eq(trust.stepped_until_ns, 122000 * NS_PER_MS);
    /* A sample that was sent before the step was found proves nothing. */
    ck_assert(!take_sample(61999, 62001).confirmed);
    ck_assert(take_sample(63000, 63000).confirmed);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
    ck_assert(!take_sample(64000, 64000).confirmed);
}

TEST(step_on_record_is_not_confirmed_again)
{
    take_sample(1000, 1000);
    stepped_us = 60000000;
    take_sample(2000, 2000);
    clock_drop_step(&trust);
    ck_assert(!take_sample(3000, 3000).confirmed);
}

TEST(step_back_is_announced_and_costs_no_trust)
{
    probe_each_second(1000, 62000);
    stepped_us = -60000000;
    ck_assert_int_eq(take_sample(62000, 62000).result, MONITOR_STEPPED_BACK);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
    ck_assert_int_ne(trust.step_unannounced_ns, 0);
    heartbeat_answered(CLOCK_STEP_ANNOUNCED, "7", 61999, 62001);
    ck_assert_int_ne(trust.step_unannounced_ns, 0);
    heartbeat_answered(CLOCK_STEP_ANNOUNCED, "7", 62000, 62001);
    ck_assert_int_eq(trust.step_unannounced_ns, 0);
}

TEST(step_back_is_reported_once_in_ten_seconds)
{
    take_sample(1000, 1000);
    stepped_us = -60000000;
    take_sample(2000, 2000);
    ck_assert_int_ge(clock_take_step_back(&trust, 2000 * NS_PER_MS), 60 * NS_PER_S);
    stepped_us -= 1000000;
    take_sample(3000, 3000);
    ck_assert_int_eq(clock_take_step_back(&trust, 3000 * NS_PER_MS), 0);
    ck_assert_int_ge(clock_take_step_back(&trust, 12000 * NS_PER_MS), NS_PER_S);
}

/* The attested sample must be later than the daemon's own first sample, which is at 1000 ms. */
static const struct {
    int64_t attested_ms;
    enum clock_state state;
} attestations[] = {{999, CLOCK_UNTRUSTED}, {1000, CLOCK_UNTRUSTED}, {1001, CLOCK_TRUSTED}};

TEST_LOOP(attestation_of_a_later_sample_is_trusted, 0, 3)
{
    char text[GUARD_ATTESTATION_MAX];
    take_sample(1000, 1000);
    snprintf(text, sizeof(text), "%" PRId64 ":100", epoch_us + attestations[_i].attested_ms * 1000);
    inherit(text, "-", 1100);
    ck_assert_int_eq(trust.state, attestations[_i].state);
}

TEST(attestation_over_the_margin_is_not_trusted)
{
    char text[GUARD_ATTESTATION_MAX];
    take_sample(1000, 1000);
    snprintf(text, sizeof(text), "%" PRId64 ":9000", epoch_us + 2000000);
    inherit(text, "-", 1100);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}

/* An earlier daemon on this host has monitored the clock for the length of a quarantine and has
 * left its entry on the master. */
static void leave_entry(char entry[GUARD_ENTRY_MAX])
{
    char attestation[GUARD_ATTESTATION_MAX];
    probe_each_second(1000, 62000);
    heartbeat_answered("", "7", 61500, 61500);
    take_sample(62000, 62000);
    ck_assert(clock_has_bounds(&trust, 62000 * NS_PER_MS));
    clock_describe(&trust, true, entry, attestation);
    ck_assert_str_ne(entry, "");
    ck_assert_str_ne(attestation, "");
    reset_trust();
}

TEST(clock_that_matches_the_host_entry_is_trusted)
{
    char entry[GUARD_ENTRY_MAX];
    leave_entry(entry);
    take_sample(70000, 70000);
    heartbeat_answered("", "7", 70000, 70000);
    inherit("-", entry, 70000);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
}

TEST(host_entry_from_before_the_last_step_is_void)
{
    char entry[GUARD_ENTRY_MAX];
    leave_entry(entry);
    take_sample(70000, 70000);
    heartbeat_answered("", "8", 70000, 70000);
    inherit("-", entry, 70000);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}

static const struct {
    int64_t stepped_us;
    enum monitor_result result;
    enum clock_state state;
} entry_steps[] = {
    {60000000, MONITOR_STEPPED, CLOCK_STEPPED},
    {-60000000, MONITOR_STEPPED_BACK, CLOCK_TRUSTED},
};

TEST_LOOP(host_entry_shows_a_step_since_it_was_left, 0, 2)
{
    char entry[GUARD_ENTRY_MAX];
    leave_entry(entry);
    stepped_us = entry_steps[_i].stepped_us;
    take_sample(70000, 70000);
    heartbeat_answered("", "7", 70000, 70000);
    struct clock_result result = inherit("-", entry, 70000);
    ck_assert_int_eq(result.result, entry_steps[_i].result);
    ck_assert(result.heartbeat);
    ck_assert_int_eq(trust.state, entry_steps[_i].state);
    ck_assert_int_ne(trust.step_unannounced_ns, 0);
}

/* Another daemon announced a step while this daemon took no samples for 8 s. This daemon must start
 * monitoring anew, whether it takes a sample first (_i is 0) or reads the announcement first. */
TEST_LOOP(step_announced_between_samples_starts_monitoring_anew, 0, 2)
{
    probe_each_second(1000, 62000);
    heartbeat_answered("", "7", 61500, 61500);
    take_sample(62000, 62000);
    if (_i == 0) {
        take_sample(70000, 70000);
        ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
        ck_assert_int_ne(trust.unmonitored_since_ns, 0);
        ck_assert(heartbeat_answered("", "8", 70000, 70001));
    } else {
        ck_assert(heartbeat_answered("", "8", 70000, 70000));
        ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
        take_sample(70001, 70001);
    }
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}

/* A daemon that takes samples without a gap would have seen the announced step itself, so it keeps
 * its trust once the next sample is steady. */
TEST(daemon_that_samples_detects_a_step_itself)
{
    probe_each_second(1000, 62000);
    ck_assert(heartbeat_answered("", "8", 61500, 61500));
    take_sample(62000, 62000);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
    ck_assert(!heartbeat_answered("", "8", 62500, 62500));
}

/* After the daemon's own clock was suspect, not even the attestation of a later sample makes the
 * master's clock trusted. */
TEST(suspect_own_clock_starts_monitoring_anew)
{
    char text[GUARD_ATTESTATION_MAX];
    probe_each_second(1000, 62000);
    clock_on_suspect(&trust, &periods, 62000 * NS_PER_MS);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
    take_sample(63000, 63000);
    snprintf(text, sizeof(text), "%" PRId64 ":100", epoch_us + 64000000);
    inherit(text, "-", 64000);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}

TEST(override_replaces_monitoring_but_not_a_confirmation)
{
    take_sample(1000, 1000);
    clock_override(&trust);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
    stepped_us = 60000000;
    take_sample(2000, 2000);
    clock_override(&trust);
    ck_assert_int_eq(trust.state, CLOCK_STEPPED);
}

/* The first sample of another clock is not tight, so nothing is known yet. */
TEST(another_clock_begins_with_a_tight_sample)
{
    static const char entry[] = "1000000000:0:0:0:1000000000:7";
    struct monitor_sample sample = {2000 * NS_PER_MS, 2040 * NS_PER_MS, epoch_us};
    take_sample(1000, 1000);
    heartbeat_answered("", "7", 1000, 1000);
    ck_assert_int_eq(clock_begin_anew(&trust, &periods, &sample).result, MONITOR_UNCLEAR);
    ck_assert_int_eq(inherit("1763640000999999:1", entry, 2050).result, MONITOR_UNCLEAR);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
    sample.received_ns = sample.sent_ns += NS_PER_S;
    ck_assert_int_eq(clock_begin_anew(&trust, &periods, &sample).result, MONITOR_STEADY);
    ck_assert_int_eq(trust.trusted_from_ns, 63000 * NS_PER_MS);
}
