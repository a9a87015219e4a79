/*
 * engine/guard/clock_monitor.h: what a sample of a clock proves. Times here are in milliseconds.
 */
#include "engine/guard/clock_monitor.h"

#include "protocol/units.h"
#include "tests/runner.h"

/* As by default: three quarters of the margin are 7.5 ms, half of it 5 ms. */
static const struct drift drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS};

static const int64_t epoch_us = 1763640000000000;

static struct clock_monitor monitor;

static void fresh(void)
{
    monitor = (struct clock_monitor){0};
}

static void nothing(void)
{
}

/* Sent and answered then, and what the master's clock is ahead of the epoch, in microseconds. */
static enum monitor_result take(int64_t sent_ms, int64_t received_ms, int64_t clock_us)
{
    const struct monitor_sample sample = {sent_ms * NS_PER_MS, received_ms * NS_PER_MS,
                                          epoch_us + clock_us};
    return clock_monitor_take(&monitor, &drift, &sample);
}

START_TEST(steady_clock_is_steady)
{
    for (int64_t s = 0; s < 1000; s++)
        ck_assert_int_eq(take(1000 * s, 1000 * s + 1, 1000 * 1000 * s + 500), MONITOR_STEADY);
}
END_TEST

START_TEST(slow_answer_begins_no_watch)
{
    ck_assert_int_eq(take(0, 6, 3000), MONITOR_UNCLEAR);
    ck_assert(!monitor.begun);
    ck_assert_int_eq(take(10, 15, 12000), MONITOR_STEADY);
    ck_assert(monitor.begun);
}
END_TEST

/* How far a step is, and what is found of it, at once and with a quick answer. */
static const struct {
    int64_t step_us;
    enum monitor_result verdict;
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

START_TEST(step_is_found_or_paid_for)
{
    take(0, 0, 0);
    ck_assert_int_eq(take(1000, 1000, 1000000 + steps[_i].step_us), steps[_i].verdict);
}
END_TEST

/* Ten steps of 2 ms are a step of 20 ms: each is within the margin, all of them are not. */
START_TEST(small_steps_add_up)
{
    enum monitor_result verdict = take(0, 0, 0);
    int64_t steps_taken = 0;
    while (verdict == MONITOR_STEADY) {
        steps_taken++;
        verdict = take(10 * steps_taken, 10 * steps_taken, 12000 * steps_taken);
        ck_assert_int_lt(steps_taken, 6);
    }
    ck_assert_int_ge(steps_taken, 3);
}
END_TEST

START_TEST(drift_of_a_steered_clock_is_no_step)
{
    /* 500 ppm fast, looked at every second for an hour. */
    for (int64_t s = 0; s < 3600; s++)
        ck_assert_int_eq(take(1000 * s, 1000 * s, 1000500 * s), MONITOR_STEADY);
}
END_TEST

START_TEST(drift_beyond_that_is_found)
{
    enum monitor_result verdict = MONITOR_STEADY;
    for (int64_t s = 0; s < 60 && verdict == MONITOR_STEADY; s++)
        verdict = take(1000 * s, 1000 * s, 1005000 * s);
    ck_assert_int_ne(verdict, MONITOR_STEADY);
}
END_TEST

START_TEST(slow_answer_neither_proves_nor_disproves)
{
    take(0, 0, 0);
    /* 30 ms on the way: the clock may have been read at any time of it. */
    ck_assert_int_eq(take(1000, 1030, 1015000), MONITOR_UNCLEAR);
    ck_assert_int_eq(take(1031, 1031, 1031000), MONITOR_STEADY);
}
END_TEST

START_TEST(slow_beginning_does_not_hide_another_step)
{
    take(0, 1, 0);
    ck_assert_int_eq(take(1000, 1300, 101000000), MONITOR_STEPPED);
    ck_assert_int_eq(take(2000, 2001, 202000000), MONITOR_STEPPED);
    ck_assert_int_eq(take(3000, 3001, 203000000), MONITOR_STEADY);
}
END_TEST

/* What a slow answer left open nobody knows: the quick one that follows is a beginning. */
START_TEST(quick_answer_after_a_slow_beginning_begins_anew)
{
    take(0, 1, 0);
    ck_assert_int_eq(take(1000, 1300, 101000000), MONITOR_STEPPED);
    ck_assert(monitor.loose);
    ck_assert_int_eq(take(2000, 2001, 101900000), MONITOR_STEADY);
    ck_assert(!monitor.loose);
    ck_assert_int_eq(take(3000, 3001, 102910000), MONITOR_STEPPED);
}
END_TEST

START_TEST(slow_answer_hides_no_large_step)
{
    take(0, 0, 0);
    ck_assert_int_eq(take(1000, 1030, 1015000 + 100000), MONITOR_STEPPED);
}
END_TEST

START_TEST(after_a_step_the_new_time_is_the_baseline)
{
    take(0, 0, 0);
    ck_assert_int_eq(take(1000, 1000, 61000000), MONITOR_STEPPED);
    ck_assert_int_eq(take(1001, 1001, 61001000), MONITOR_STEADY);
    /* And back: which alone would be safe. Then forward again. */
    ck_assert_int_eq(take(1002, 1002, 1002000), MONITOR_STEPPED_BACK);
    ck_assert_int_eq(take(1003, 1003, 61003000), MONITOR_STEPPED);
}
END_TEST

START_TEST(clock_that_drifted_while_nobody_looked_is_watched_anew)
{
    take(0, 0, 0);
    /* After an hour 36 ms, of 10 ppm: more than may be granted, less than would prove a step. */
    for (int64_t i = 0; i < 4; i++)
        ck_assert_int_eq(take(3600000 + i, 3600000 + i, 3600036000 + 1000 * i), MONITOR_UNCLEAR);
    ck_assert_int_eq(take(3600010, 3600010, 3600046000), MONITOR_LOST);
    ck_assert_int_eq(take(3600011, 3600011, 3600047000), MONITOR_STEADY);
}
END_TEST

/* What one daemon of a host left, and the next one finds. */
static enum monitor_result resume(int64_t later_ms, int64_t step_us)
{
    fresh();
    take(0, 0, 0);
    const struct clock_monitor earlier = monitor;
    fresh();
    take(later_ms, later_ms, 1000 * later_ms + step_us);
    return clock_monitor_resume(&monitor, &drift, &earlier);
}

START_TEST(watch_goes_on_where_another_left_off)
{
    ck_assert_int_eq(resume(2000, 0), MONITOR_STEADY);
    ck_assert_int_eq(resume(2000, -60000000), MONITOR_STEPPED_BACK);
    ck_assert_int_eq(resume(2000, 60000000), MONITOR_STEPPED);
    ck_assert_int_eq(resume(3600000, 36000), MONITOR_UNCLEAR);
    /* It keeps what the other knew: a second small step is one too many. */
    ck_assert_int_eq(resume(2000, 6000), MONITOR_STEADY);
    ck_assert_int_ne(take(2001, 2001, 2001000 + 12000), MONITOR_STEADY);
}
END_TEST

/* Forward, a little back, and forward again: a key of before has lost 11 ms of 10. */
START_TEST(step_back_does_not_renew_the_margin)
{
    take(0, 0, 0);
    ck_assert_int_eq(take(10, 10, 10000 + 6000), MONITOR_STEADY);
    ck_assert_int_eq(take(20, 20, 20000 + 5000), MONITOR_STEPPED_BACK);
    ck_assert_int_ne(take(30, 30, 30000 + 11000), MONITOR_STEADY);
}
END_TEST

START_TEST(step_back_before_another_goes_on_does_not_either)
{
    take(0, 0, 0);
    ck_assert_int_eq(take(10, 10, 10000 + 6000), MONITOR_STEADY);
    const struct clock_monitor earlier = monitor;
    fresh();
    take(20, 20, 20000 + 5000);
    ck_assert_int_eq(clock_monitor_resume(&monitor, &drift, &earlier), MONITOR_STEPPED_BACK);
    ck_assert_int_ne(take(30, 30, 30000 + 11000), MONITOR_STEADY);
}
END_TEST

/* Whose own clock is another, so that the offset cannot be compared. */
static void newcomer_after(int64_t step_us, int64_t *hidden_ns)
{
    fresh();
    take(0, 0, 0);
    ck_assert_int_eq(take(10, 10, 10000 + step_us), MONITOR_STEADY);
    *hidden_ns = clock_monitor_hidden_ns(&monitor, 10 * NS_PER_MS, epoch_us + 10000 + step_us);
    fresh();
    take(500000, 500000, 10000 + step_us);
}

START_TEST(newcomer_inherits_what_its_attestor_may_have_missed)
{
    int64_t hidden_ns;
    newcomer_after(6000, &hidden_ns);
    /* Drift may explain a hundredth of it. */
    ck_assert_int_ge(hidden_ns, 6 * NS_PER_MS - 10 * 1000);
    ck_assert_int_lt(hidden_ns, 7 * NS_PER_MS);
    ck_assert(clock_monitor_inherit(&monitor, &drift, hidden_ns));
    /* It attests no less to the next one. */
    ck_assert_int_ge(clock_monitor_hidden_ns(&monitor, 500000 * NS_PER_MS, epoch_us + 10000 + 6000),
                     hidden_ns);
    ck_assert_int_ne(take(500010, 500010, 20000 + 12000), MONITOR_STEADY);
}
END_TEST

START_TEST(newcomer_of_a_steady_clock_has_its_margin)
{
    int64_t hidden_ns;
    newcomer_after(0, &hidden_ns);
    ck_assert(clock_monitor_inherit(&monitor, &drift, hidden_ns));
    ck_assert_int_eq(take(500010, 500010, 20000 + 6000), MONITOR_STEADY);
}
END_TEST

/* Drift gives back what was used up, as it does for every monitor. */
START_TEST(what_is_inherited_is_forgotten_with_time)
{
    int64_t hidden_ns;
    newcomer_after(6000, &hidden_ns);
    ck_assert(clock_monitor_inherit(&monitor, &drift, hidden_ns));
    for (int64_t s = 1; s < 10; s++)
        ck_assert_int_eq(take(500000 + 1000 * s, 500000 + 1000 * s, 16000 + 1000000 * s),
                         MONITOR_STEADY);
    ck_assert_int_eq(take(510000, 510000, 16000 + 10000000 + 6000), MONITOR_STEADY);
}
END_TEST

START_TEST(attestation_without_room_settles_nobody)
{
    take(0, 4, 2000);
    const struct clock_monitor before = monitor;
    ck_assert(!clock_monitor_inherit(&monitor, &drift, 6 * NS_PER_MS));
    ck_assert(!clock_monitor_inherit(&monitor, &drift, -1));
    ck_assert(!clock_monitor_inherit(&monitor, &drift, INT64_MAX));
    ck_assert_int_eq(monitor.floor_ns, before.floor_ns);
}
END_TEST

START_TEST(nothing_is_learnt_from_the_future)
{
    take(5000, 5000, 5000000);
    const struct clock_monitor later = monitor;
    fresh();
    take(1000, 1000, 1000000);
    ck_assert_int_eq(clock_monitor_resume(&monitor, &drift, &later), MONITOR_UNCLEAR);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("monitor");
    TCase *tests = tcase_create("clocks");
    tcase_add_checked_fixture(tests, fresh, nothing);
    tcase_add_test(tests, steady_clock_is_steady);
    tcase_add_test(tests, slow_answer_begins_no_watch);
    tcase_add_loop_test(tests, step_is_found_or_paid_for, 0, sizeof(steps) / sizeof(steps[0]));
    tcase_add_test(tests, small_steps_add_up);
    tcase_add_test(tests, drift_of_a_steered_clock_is_no_step);
    tcase_add_test(tests, drift_beyond_that_is_found);
    tcase_add_test(tests, slow_answer_neither_proves_nor_disproves);
    tcase_add_test(tests, slow_beginning_does_not_hide_another_step);
    tcase_add_test(tests, quick_answer_after_a_slow_beginning_begins_anew);
    tcase_add_test(tests, slow_answer_hides_no_large_step);
    tcase_add_test(tests, after_a_step_the_new_time_is_the_baseline);
    tcase_add_test(tests, clock_that_drifted_while_nobody_looked_is_watched_anew);
    tcase_add_test(tests, watch_goes_on_where_another_left_off);
    tcase_add_test(tests, step_back_does_not_renew_the_margin);
    tcase_add_test(tests, step_back_before_another_goes_on_does_not_either);
    tcase_add_test(tests, newcomer_inherits_what_its_attestor_may_have_missed);
    tcase_add_test(tests, newcomer_of_a_steady_clock_has_its_margin);
    tcase_add_test(tests, what_is_inherited_is_forgotten_with_time);
    tcase_add_test(tests, attestation_without_room_settles_nobody);
    tcase_add_test(tests, nothing_is_learnt_from_the_future);
    suite_add_tcase(suite, tests);
    return suite;
}
