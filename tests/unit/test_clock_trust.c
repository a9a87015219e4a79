/*
 * engine/guard/clock_trust.h: when a daemon relies on a master's clock. Times are in milliseconds.
 */
#include "engine/guard/clock_trust.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
static int64_t ahead_us; /* how far the clock has stepped */

static void fresh(void)
{
    trust = (struct clock_trust){0};
    ahead_us = 0;
}

static void nothing(void)
{
}

static struct clock_result look(int64_t sent_ms, int64_t received_ms)
{
    const struct monitor_sample sample = {sent_ms * NS_PER_MS, received_ms * NS_PER_MS,
                                          epoch_us + received_ms * 1000 + ahead_us};
    return clock_on_sample(&trust, &periods, &sample);
}

static void probe_each_second(int64_t from_ms, int64_t until_ms)
{
    for (int64_t ms = from_ms; ms < until_ms; ms += 1000)
        look(ms, ms);
}

/* A heartbeat that leaves this entry and finds this step. */
static bool hear(const char *left, const char *step, int64_t sent_ms, int64_t now_ms)
{
    return clock_on_heartbeat(&trust, &periods, left, step, sent_ms * NS_PER_MS,
                              now_ms * NS_PER_MS);
}

static struct clock_result inherit(const char *attestation, const char *entry, int64_t now_ms)
{
    return clock_inherit(&trust, &periods, attestation, entry, now_ms * NS_PER_MS);
}

START_TEST(clock_is_trusted_once_it_was_watched_for_a_quarantine)
{
    probe_each_second(1000, 61000);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
    look(61000, 61000);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(step_is_confirmed_by_a_second_sample)
{
    probe_each_second(1000, 62000);
    ahead_us = 60000000;
    struct clock_result result = look(62000, 62000);
    ck_assert_int_eq(result.result, MONITOR_STEPPED);
    ck_assert(result.heartbeat);
    ck_assert(!result.confirmed);
    ck_assert_int_eq(trust.state, CLOCK_STEPPED);
    ck_assert_int_eq(trust.stepped_until_ns, 122000 * NS_PER_MS);
    /* One that was sent before the step was found proves nothing. */
    ck_assert(!look(61999, 62001).confirmed);
    ck_assert(look(63000, 63000).confirmed);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
    ck_assert(!look(64000, 64000).confirmed);
}
END_TEST

START_TEST(step_that_a_record_tells_of_is_not_confirmed)
{
    look(1000, 1000);
    ahead_us = 60000000;
    look(2000, 2000);
    clock_drop_step(&trust);
    ck_assert(!look(3000, 3000).confirmed);
}
END_TEST

START_TEST(step_back_is_announced_and_costs_no_trust)
{
    probe_each_second(1000, 62000);
    ahead_us = -60000000;
    ck_assert_int_eq(look(62000, 62000).result, MONITOR_STEPPED_BACK);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
    ck_assert_int_ne(trust.step_unannounced_ns, 0);
    hear(CLOCK_STEP_ANNOUNCED, "7", 61999, 62001);
    ck_assert_int_ne(trust.step_unannounced_ns, 0);
    hear(CLOCK_STEP_ANNOUNCED, "7", 62000, 62001);
    ck_assert_int_eq(trust.step_unannounced_ns, 0);
}
END_TEST

START_TEST(step_back_is_told_once_in_ten_seconds)
{
    look(1000, 1000);
    ahead_us = -60000000;
    look(2000, 2000);
    ck_assert_int_ge(clock_take_step_back(&trust, 2000 * NS_PER_MS), 60 * NS_PER_S);
    ahead_us -= 1000000;
    look(3000, 3000);
    ck_assert_int_eq(clock_take_step_back(&trust, 3000 * NS_PER_MS), 0);
    ck_assert_int_ge(clock_take_step_back(&trust, 12000 * NS_PER_MS), NS_PER_S);
}
END_TEST

/* Its sample has to be later than our first one. */
static const struct {
    int64_t attested_ms;
    enum clock_state state;
} attestations[] = {{999, CLOCK_UNTRUSTED}, {1000, CLOCK_UNTRUSTED}, {1001, CLOCK_TRUSTED}};

START_TEST(attestation_of_a_later_sample_is_trusted)
{
    char text[GUARD_ATTESTATION_MAX];
    look(1000, 1000);
    snprintf(text, sizeof(text), "%" PRId64 ":100", epoch_us + attestations[_i].attested_ms * 1000);
    inherit(text, "-", 1100);
    ck_assert_int_eq(trust.state, attestations[_i].state);
}
END_TEST

START_TEST(attestation_without_room_is_not_trusted)
{
    char text[GUARD_ATTESTATION_MAX];
    look(1000, 1000);
    snprintf(text, sizeof(text), "%" PRId64 ":9000", epoch_us + 2000000);
    inherit(text, "-", 1100);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}
END_TEST

/* What the last daemon of this host left, who had watched for a quarantine. */
static void leave_entry(char entry[GUARD_ENTRY_MAX])
{
    char attestation[GUARD_ATTESTATION_MAX];
    probe_each_second(1000, 62000);
    hear("", "7", 61500, 61500);
    look(62000, 62000);
    ck_assert(clock_has_bounds(&trust, 62000 * NS_PER_MS));
    clock_describe(&trust, true, entry, attestation);
    ck_assert_str_ne(entry, "");
    ck_assert_str_ne(attestation, "");
    fresh();
}

START_TEST(clock_that_fits_the_entry_of_the_host_is_trusted)
{
    char entry[GUARD_ENTRY_MAX];
    leave_entry(entry);
    look(70000, 70000);
    hear("", "7", 70000, 70000);
    inherit("-", entry, 70000);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
}
END_TEST

START_TEST(entry_from_before_the_last_step_is_void)
{
    char entry[GUARD_ENTRY_MAX];
    leave_entry(entry);
    look(70000, 70000);
    hear("", "8", 70000, 70000);
    inherit("-", entry, 70000);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}
END_TEST

static const struct {
    int64_t ahead_us;
    enum monitor_result result;
    enum clock_state state;
} entry_steps[] = {
    {60000000, MONITOR_STEPPED, CLOCK_STEPPED},
    {-60000000, MONITOR_STEPPED_BACK, CLOCK_TRUSTED},
};

START_TEST(entry_of_the_host_shows_a_step_in_between)
{
    char entry[GUARD_ENTRY_MAX];
    leave_entry(entry);
    ahead_us = entry_steps[_i].ahead_us;
    look(70000, 70000);
    hear("", "7", 70000, 70000);
    struct clock_result result = inherit("-", entry, 70000);
    ck_assert_int_eq(result.result, entry_steps[_i].result);
    ck_assert(result.heartbeat);
    ck_assert_int_eq(trust.state, entry_steps[_i].state);
    ck_assert_int_ne(trust.step_unannounced_ns, 0);
}
END_TEST

/* It was not there to see the step, whether it samples or hears of it first. */
START_TEST(step_announced_while_nothing_was_sampled_begins_anew)
{
    probe_each_second(1000, 62000);
    hear("", "7", 61500, 61500);
    look(62000, 62000);
    if (_i == 0) {
        look(70000, 70000);
        ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
        ck_assert_int_ne(trust.unmonitored_since_ns, 0);
        ck_assert(hear("", "8", 70000, 70001));
    } else {
        ck_assert(hear("", "8", 70000, 70000));
        ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
        look(70001, 70001);
    }
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}
END_TEST

START_TEST(daemon_that_samples_sees_a_step_itself)
{
    probe_each_second(1000, 62000);
    ck_assert(hear("", "8", 61500, 61500));
    look(62000, 62000);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
    ck_assert(!hear("", "8", 62500, 62500));
}
END_TEST

START_TEST(clocks_begin_anew_when_ours_is_suspect)
{
    char text[GUARD_ATTESTATION_MAX];
    probe_each_second(1000, 62000);
    clock_on_suspect(&trust, &periods, 62000 * NS_PER_MS);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
    look(63000, 63000);
    snprintf(text, sizeof(text), "%" PRId64 ":100", epoch_us + 64000000);
    inherit(text, "-", 64000);
    ck_assert_int_eq(trust.state, CLOCK_UNTRUSTED);
}
END_TEST

START_TEST(override_replaces_watching_but_not_a_confirmation)
{
    look(1000, 1000);
    clock_override(&trust);
    ck_assert_int_eq(trust.state, CLOCK_TRUSTED);
    ahead_us = 60000000;
    look(2000, 2000);
    clock_override(&trust);
    ck_assert_int_eq(trust.state, CLOCK_STEPPED);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("clock_trust");
    TCase *tests = tcase_create("clocks");
    tcase_add_checked_fixture(tests, fresh, nothing);
    tcase_add_test(tests, clock_is_trusted_once_it_was_watched_for_a_quarantine);
    tcase_add_test(tests, step_is_confirmed_by_a_second_sample);
    tcase_add_test(tests, step_that_a_record_tells_of_is_not_confirmed);
    tcase_add_test(tests, step_back_is_announced_and_costs_no_trust);
    tcase_add_test(tests, step_back_is_told_once_in_ten_seconds);
    tcase_add_loop_test(tests, attestation_of_a_later_sample_is_trusted, 0, 3);
    tcase_add_test(tests, attestation_without_room_is_not_trusted);
    tcase_add_test(tests, clock_that_fits_the_entry_of_the_host_is_trusted);
    tcase_add_test(tests, entry_from_before_the_last_step_is_void);
    tcase_add_loop_test(tests, entry_of_the_host_shows_a_step_in_between, 0, 2);
    tcase_add_loop_test(tests, step_announced_while_nothing_was_sampled_begins_anew, 0, 2);
    tcase_add_test(tests, daemon_that_samples_sees_a_step_itself);
    tcase_add_test(tests, clocks_begin_anew_when_ours_is_suspect);
    tcase_add_test(tests, override_replaces_watching_but_not_a_confirmation);
    suite_add_tcase(suite, tests);
    return suite;
}
