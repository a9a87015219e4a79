/*
 * engine/guard/clock_monitor.h: what a sample of a master's clock proves. Times are in
 * milliseconds.
 */
#include "engine/guard/clock_monitor.h"

#include "protocol/units.h"
#include "tests/runner.h"

/* The default drift limits. Three quarters of the margin are 7.5 ms, half of the margin is 5 ms. */
static const struct drift drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS};

static const int64_t epoch_us = 1763640000000000;

static struct clock_monitor monitor;

static void reset_monitor(void)
{
    monitor = (struct clock_monitor){0};
}

const struct runner_settings runner_settings = {.setup = reset_monitor};

/* Take a sample that was sent and received at these times. clock_us is the master's clock relative
 * to the epoch. */
static enum monitor_result take_sample(int64_t sent_ms, int64_t received_ms, int64_t clock_us)
{
    const struct monitor_sample sample = {sent_ms * NS_PER_MS, received_ms * NS_PER_MS,
                                          epoch_us + clock_us};
    return clock_monitor_take(&monitor, &drift, &sample);
}

TEST(steady_clock_is_reported_as_steady)
{
    for (int64_t s = 0; s < 1000; s++)
        ck_assert_int_eq(take_sample(1000 * s, 1000 * s + 1, 1000 * 1000 * s + 500),
                         MONITOR_STEADY);
}

TEST(slow_answer_sets_no_baseline)
{
    ck_assert_int_eq(take_sample(0, 6, 3000), MONITOR_UNCLEAR);
    ck_assert(!monitor.begun);
    ck_assert_int_eq(take_sample(10, 15, 12000), MONITOR_STEADY);
    ck_assert(monitor.begun);
}

/* The size of a step, and the result for a sample with a quick answer right after it. */
static const struct {
    int64_t step_us;
    enum monitor_result result;
} steps[] = {
    {60000000, MONITOR_STEPPED},
    {100000, MONITOR_STEPPED},
    {12000, MONITOR_STEPPED},
    {9000, MONITOR_STEPPED},
    {6000, MONITOR_STEADY},
    {0, MONITOR_STEADY},
    {-4000, MONITOR_STEPPED_BACK},
    {-60000, MONITOR_STEPPED_BACK},
    {-60000000, MONITOR_STEPPED_BACK},
};

TEST_ROWS(step_is_found_or_stays_within_the_margin, steps)
{
    take_sample(0, 0, 0);
    ck_assert_int_eq(take_sample(1000, 1000, 1000000 + steps[_i].step_us), steps[_i].result);
}

/* The clock steps by 2 ms before each sample. Each step alone is within the margin. The monitor
 * must notice what they add up to at the third, fourth or fifth step. */
TEST(small_steps_add_up)
{
    enum monitor_result result = take_sample(0, 0, 0);
    int64_t steps_taken = 0;
    while (result == MONITOR_STEADY) {
        steps_taken++;
        result = take_sample(10 * steps_taken, 10 * steps_taken, 12000 * steps_taken);
        ck_assert_int_lt(steps_taken, 6);
    }
    ck_assert_int_ge(steps_taken, 3);
}

TEST(drift_of_a_disciplined_clock_is_no_step)
{
    /* A clock 500 ppm fast, sampled every second for an hour. */
    for (int64_t s = 0; s < 3600; s++)
        ck_assert_int_eq(take_sample(1000 * s, 1000 * s, 1000500 * s), MONITOR_STEADY);
}

TEST(drift_over_the_limit_is_found)
{
    enum monitor_result result = MONITOR_STEADY;
    for (int64_t s = 0; s < 60 && result == MONITOR_STEADY; s++)
        result = take_sample(1000 * s, 1000 * s, 1005000 * s);
    ck_assert_int_ne(result, MONITOR_STEADY);
}

TEST(slow_answer_neither_proves_nor_disproves_a_step)
{
    take_sample(0, 0, 0);
    /* The answer took 30 ms. The master may have read its clock at any time during these 30 ms. */
    ck_assert_int_eq(take_sample(1000, 1030, 1015000), MONITOR_UNCLEAR);
    ck_assert_int_eq(take_sample(1031, 1031, 1031000), MONITOR_STEADY);
}

TEST(imprecise_baseline_does_not_hide_another_step)
{
    take_sample(0, 1, 0);
    ck_assert_int_eq(take_sample(1000, 1300, 101000000), MONITOR_STEPPED);
    ck_assert_int_eq(take_sample(2000, 2001, 202000000), MONITOR_STEPPED);
    ck_assert_int_eq(take_sample(3000, 3001, 203000000), MONITOR_STEADY);
}

/* A slow answer leaves the baseline imprecise, so the quick answer after it sets a new one. */
TEST(quick_answer_replaces_an_imprecise_baseline)
{
    take_sample(0, 1, 0);
    ck_assert_int_eq(take_sample(1000, 1300, 101000000), MONITOR_STEPPED);
    ck_assert(monitor.loose);
    ck_assert_int_eq(take_sample(2000, 2001, 101900000), MONITOR_STEADY);
    ck_assert(!monitor.loose);
    ck_assert_int_eq(take_sample(3000, 3001, 102910000), MONITOR_STEPPED);
}

TEST(slow_answer_does_not_hide_a_large_step)
{
    take_sample(0, 0, 0);
    ck_assert_int_eq(take_sample(1000, 1030, 1015000 + 100000), MONITOR_STEPPED);
}

TEST(clock_after_a_step_is_the_new_baseline)
{
    take_sample(0, 0, 0);
    ck_assert_int_eq(take_sample(1000, 1000, 61000000), MONITOR_STEPPED);
    ck_assert_int_eq(take_sample(1001, 1001, 61001000), MONITOR_STEADY);
    /* A step back is safe on its own, but the step forward after it is not. */
    ck_assert_int_eq(take_sample(1002, 1002, 1002000), MONITOR_STEPPED_BACK);
    ck_assert_int_eq(take_sample(1003, 1003, 61003000), MONITOR_STEPPED);
}

TEST(clock_that_drifted_between_samples_is_monitored_anew)
{
    take_sample(0, 0, 0);
    /* A drift of 10 ppm adds up to 36 ms in an hour: more than the margin, too little to prove a
     * step. */
    for (int64_t i = 0; i < 4; i++)
        ck_assert_int_eq(take_sample(3600000 + i, 3600000 + i, 3600036000 + 1000 * i),
                         MONITOR_UNCLEAR);
    ck_assert_int_eq(take_sample(3600010, 3600010, 3600046000), MONITOR_LOST);
    ck_assert_int_eq(take_sample(3600011, 3600011, 3600047000), MONITOR_STEADY);
}

/* One daemon on a host leaves the state of its monitor. later_ms after it, the next daemon takes
 * its first sample and resumes from that state. The clock has stepped by step_us in between. */
static enum monitor_result resume(int64_t later_ms, int64_t step_us)
{
    reset_monitor();
    take_sample(0, 0, 0);
    const struct clock_monitor earlier = monitor;
    reset_monitor();
    take_sample(later_ms, later_ms, 1000 * later_ms + step_us);
    return clock_monitor_resume(&monitor, &drift, &earlier);
}

TEST(monitor_resumes_the_one_that_an_earlier_daemon_left)
{
    ck_assert_int_eq(resume(2000, 0), MONITOR_STEADY);
    ck_assert_int_eq(resume(2000, -60000000), MONITOR_STEPPED_BACK);
    ck_assert_int_eq(resume(2000, 60000000), MONITOR_STEPPED);
    ck_assert_int_eq(resume(3600000, 36000), MONITOR_UNCLEAR);
    /* The resumed monitor keeps the earlier one's bounds: a second small step exceeds the
     * margin. */
    ck_assert_int_eq(resume(2000, 6000), MONITOR_STEADY);
    ck_assert_int_ne(take_sample(2001, 2001, 2001000 + 12000), MONITOR_STEADY);
}

/* The clock steps 6 ms forward, 1 ms back and 6 ms forward. A key from before has lost 11 ms, more
 * than the margin of 10 ms. */
TEST(step_back_does_not_restore_the_margin)
{
    take_sample(0, 0, 0);
    ck_assert_int_eq(take_sample(10, 10, 10000 + 6000), MONITOR_STEADY);
    ck_assert_int_eq(take_sample(20, 20, 20000 + 5000), MONITOR_STEPPED_BACK);
    ck_assert_int_ne(take_sample(30, 30, 30000 + 11000), MONITOR_STEADY);
}

TEST(step_back_before_a_resume_does_not_restore_the_margin)
{
    take_sample(0, 0, 0);
    ck_assert_int_eq(take_sample(10, 10, 10000 + 6000), MONITOR_STEADY);
    const struct clock_monitor earlier = monitor;
    reset_monitor();
    take_sample(20, 20, 20000 + 5000);
    ck_assert_int_eq(clock_monitor_resume(&monitor, &drift, &earlier), MONITOR_STEPPED_BACK);
    ck_assert_int_ne(take_sample(30, 30, 30000 + 11000), MONITOR_STEADY);
}

/* A daemon monitors a clock that steps by step_us, and attests it: *hidden_ns is the growth of the
 * offset that its samples may have hidden. Then a daemon on another host, the newcomer, takes its
 * first sample. The clocks of the two hosts differ, so the newcomer cannot compare offsets. */
static void newcomer_after(int64_t step_us, int64_t *hidden_ns)
{
    reset_monitor();
    take_sample(0, 0, 0);
    ck_assert_int_eq(take_sample(10, 10, 10000 + step_us), MONITOR_STEADY);
    *hidden_ns = clock_monitor_hidden_ns(&monitor, 10 * NS_PER_MS, epoch_us + 10000 + step_us);
    reset_monitor();
    take_sample(500000, 500000, 10000 + step_us);
}

TEST(newcomer_inherits_what_its_attestor_may_have_missed)
{
    int64_t hidden_ns;
    newcomer_after(6000, &hidden_ns);
    /* Drift explains at most 10 us of the step. */
    ck_assert_int_ge(hidden_ns, 6 * NS_PER_MS - 10 * 1000);
    ck_assert_int_lt(hidden_ns, 7 * NS_PER_MS);
    ck_assert(clock_monitor_inherit(&monitor, &drift, hidden_ns));
    /* When the newcomer attests the clock itself, it reports at least as much. */
    ck_assert_int_ge(clock_monitor_hidden_ns(&monitor, 500000 * NS_PER_MS, epoch_us + 10000 + 6000),
                     hidden_ns);
    ck_assert_int_ne(take_sample(500010, 500010, 20000 + 12000), MONITOR_STEADY);
}

TEST(newcomer_inherits_the_whole_margin_of_a_steady_clock)
{
    int64_t hidden_ns;
    newcomer_after(0, &hidden_ns);
    ck_assert(clock_monitor_inherit(&monitor, &drift, hidden_ns));
    ck_assert_int_eq(take_sample(500010, 500010, 20000 + 6000), MONITOR_STEADY);
}

/* With time, drift can explain more of what was hidden. The newcomer gets that part of the margin
 * back, as every monitor does. */
TEST(inherited_uncertainty_fades_with_time)
{
    int64_t hidden_ns;
    newcomer_after(6000, &hidden_ns);
    ck_assert(clock_monitor_inherit(&monitor, &drift, hidden_ns));
    for (int64_t s = 1; s < 10; s++)
        ck_assert_int_eq(take_sample(500000 + 1000 * s, 500000 + 1000 * s, 16000 + 1000000 * s),
                         MONITOR_STEADY);
    ck_assert_int_eq(take_sample(510000, 510000, 16000 + 10000000 + 6000), MONITOR_STEADY);
}

TEST(attestation_over_the_margin_is_refused)
{
    take_sample(0, 4, 2000);
    const struct clock_monitor before = monitor;
    ck_assert(!clock_monitor_inherit(&monitor, &drift, 6 * NS_PER_MS));
    ck_assert(!clock_monitor_inherit(&monitor, &drift, -1));
    ck_assert(!clock_monitor_inherit(&monitor, &drift, INT64_MAX));
    ck_assert_int_eq(monitor.floor_ns, before.floor_ns);
}

TEST(monitor_state_from_the_future_proves_nothing)
{
    take_sample(5000, 5000, 5000000);
    const struct clock_monitor later = monitor;
    reset_monitor();
    take_sample(1000, 1000, 1000000);
    ck_assert_int_eq(clock_monitor_resume(&monitor, &drift, &later), MONITOR_UNCLEAR);
}
