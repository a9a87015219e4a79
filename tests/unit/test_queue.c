/*
 * engine/locks/queue.h and engine/timer.h, alone: order, when to ask, to look, to pause.
 */
#include <string.h>

#include "engine/locks/queue.h"
#include "protocol/units.h"
#include "tests/runner.h"

#define MS NS_PER_MS

static const struct engine_rules rules = {
    .round = {.node_count = 5, .quorum = 3}, .backoff_min_ns = 5 * MS, .backoff_max_ns = 250 * MS};

enum { ALL = 0x1f };

static struct queue queue;
static struct waiter waiters[4];
static uint32_t nodes;
static uint64_t holder;

static void setup(void)
{
    memset(waiters, 0, sizeof(waiters));
    queue_init(&queue, &rules, 42);
    holder = 7;
}

static void see(unsigned node, bool held, int64_t pttl_ms, bool tracked, int64_t now_ns)
{
    const struct observation seen = {
        .held = held, .pttl_ms = pttl_ms, .holder = held ? holder : 0, .tracked = tracked};
    queue_on_observed(&queue, node, &seen, now_ns);
}

/* One waits, and was refused at `now`: all nodes are held until then, and tracked. */
static void refused(int64_t now_ns, int64_t pttl_ms, bool tracked)
{
    queue_join(&queue, &waiters[0], now_ns);
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_ACQUIRE);
    queue_on_acquiring(&queue);
    for (unsigned i = 0; i < 5; i++)
        see(i, true, pttl_ms, tracked, now_ns);
    queue_on_outcome(&queue, QUEUE_HELD, now_ns);
}

static void expect_rest(int64_t now_ns)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_REST);
}

static void expect_probe(int64_t now_ns, uint32_t at)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_PROBE);
    ck_assert_uint_eq(nodes, at);
}

static void expect_ask(int64_t now_ns)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_ACQUIRE);
}

START_TEST(it_sleeps_until_a_quorum_can_be_free)
{
    queue_join(&queue, &waiters[0], 0);
    expect_ask(0);
    queue_on_acquiring(&queue);
    expect_rest(0);
    ck_assert_int_eq(queue_wake_ns(&queue), TIMER_NEVER);
    for (unsigned i = 0; i < 5; i++)
        see(i, true, 1000 * (i + 1), true, 0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    /* The third of five, and a millisecond that Redis rounds off. */
    ck_assert_int_eq(queue_hint_ms(&queue, 0), 3000);
    expect_rest(500 * MS);
    ck_assert_int_eq(queue_wake_ns(&queue), 3001 * MS);
    expect_rest(3001 * MS - 1);
    expect_ask(3001 * MS);
}
END_TEST

START_TEST(nodes_that_are_free_already_count)
{
    refused(0, 10000, true);
    see(0, false, -1, true, 0);
    see(1, false, -1, true, 0);
    expect_rest(1000 * MS);
    see(2, false, -1, true, 0);
    expect_ask(1000 * MS);
}
END_TEST

START_TEST(a_key_without_end_is_waited_for_by_reports_alone)
{
    refused(0, -1, true);
    ck_assert_int_eq(queue_hint_ms(&queue, 0), -1);
    expect_rest(1000 * MS);
    ck_assert_int_eq(queue_wake_ns(&queue), TIMER_NEVER);
}
END_TEST

START_TEST(a_node_that_reports_is_looked_at_once)
{
    refused(0, 10000, true);
    queue_on_changed(&queue, 3);
    expect_probe(100 * MS, 8);
    expect_rest(100 * MS);
    queue_on_changed(&queue, 3);
    /* Not before the look under way has been answered. */
    expect_rest(100 * MS);
    see(3, true, 10000, true, 101 * MS);
    expect_probe(101 * MS, 8);
}
END_TEST

/* The two come on different connections. */
START_TEST(a_report_that_overtakes_the_answer_makes_it_void)
{
    refused(0, 10000, true);
    for (unsigned i = 0; i < 3; i++)
        queue_on_changed(&queue, i);
    expect_probe(100 * MS, 7);
    queue_on_changed(&queue, 2);
    for (unsigned i = 0; i < 3; i++)
        see(i, false, -1, true, 101 * MS);
    /* Two are free; of the third that is not known. */
    expect_probe(101 * MS, 4);
    see(2, true, 10000, true, 102 * MS);
    expect_rest(102 * MS);
}
END_TEST

/* Node 1 does not track. Of another that is being looked at already no more is to be known now. */
START_TEST(a_report_has_those_looked_at_that_cannot_report)
{
    refused(0, 10000, true);
    see(1, true, 10000, false, 0);
    queue_on_changed(&queue, 2);
    expect_probe(100 * MS, 6);
    queue_on_changed(&queue, 2);
    see(1, true, 10000, false, 101 * MS);
    expect_rest(101 * MS);
    see(2, true, 10000, true, 102 * MS);
    expect_probe(102 * MS, 6);
    /* Nor of one that cannot be reached. */
    see(1, true, 10000, false, 103 * MS);
    see(2, true, 10000, true, 103 * MS);
    queue_on_changed(&queue, 2);
    ck_assert_int_eq(queue_next(&queue, ALL & ~4U, 104 * MS, &nodes), QUEUE_REST);
}
END_TEST

START_TEST(a_report_during_a_round_is_looked_into_after_it)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    for (unsigned i = 0; i < 5; i++)
        see(i, true, 10000, true, 0);
    queue_on_changed(&queue, 1);
    expect_rest(0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    expect_probe(0, 2);
}
END_TEST

START_TEST(nodes_that_do_not_report_are_looked_at_from_time_to_time)
{
    int64_t last_ns = 0;
    refused(0, 100000, false);
    for (unsigned i = 0; i < 100; i++) {
        expect_rest(last_ns);
        int64_t wake_ns = queue_wake_ns(&queue);
        ck_assert_int_ge(wake_ns - last_ns, QUEUE_POLL_NS / 2);
        ck_assert_int_le(wake_ns - last_ns, QUEUE_POLL_NS);
        expect_probe(wake_ns, ALL);
        for (unsigned node = 0; node < 5; node++)
            see(node, true, 100000, false, wake_ns);
        last_ns = wake_ns;
    }
}
END_TEST

START_TEST(a_quorum_that_reports_is_enough)
{
    refused(0, 100000, true);
    queue_on_untracked(&queue, 0, 0);
    queue_on_untracked(&queue, 1, 0);
    expect_rest(QUEUE_POLL_NS);
    ck_assert_int_eq(queue_wake_ns(&queue), 100001 * MS);
    queue_on_untracked(&queue, 2, QUEUE_POLL_NS);
    expect_rest(QUEUE_POLL_NS);
    expect_probe(2 * QUEUE_POLL_NS, 7);
}
END_TEST

/* A free master has nothing to report: it tells of no release that a quorum could wait for. */
START_TEST(masters_that_are_free_do_not_count_among_those_that_report)
{
    refused(0, 100000, true);
    see(0, false, -1, true, 0);
    see(1, false, -1, true, 0);
    see(2, true, 100000, false, 0);
    expect_rest(0);
    ck_assert_int_le(queue_wake_ns(&queue), QUEUE_POLL_NS);
    expect_probe(QUEUE_POLL_NS, 4);
    see(2, false, -1, false, QUEUE_POLL_NS);
    expect_ask(QUEUE_POLL_NS);
}
END_TEST

/* Of four masters a quorum is three: two that are held and report are among any three. */
START_TEST(of_four_masters_two_that_report_are_enough)
{
    static const struct engine_rules four = {.round = {.node_count = 4, .quorum = 3},
                                             .backoff_min_ns = 5 * MS,
                                             .backoff_max_ns = 250 * MS};
    queue_init(&queue, &four, 42);
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    for (unsigned i = 0; i < 4; i++)
        see(i, true, 100000, i < 2, 0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    expect_rest(QUEUE_POLL_NS);
    ck_assert_int_eq(queue_wake_ns(&queue), 100001 * MS);
    queue_on_untracked(&queue, 1, QUEUE_POLL_NS);
    expect_rest(QUEUE_POLL_NS);
    ck_assert_int_eq(queue_next(&queue, 0xf, 2 * QUEUE_POLL_NS, &nodes), QUEUE_PROBE);
    ck_assert_uint_eq(nodes, 0xe);
}
END_TEST

START_TEST(a_look_that_brings_nothing_is_repeated)
{
    refused(0, 100000, true);
    for (unsigned i = 0; i < 5; i++)
        queue_on_changed(&queue, i);
    expect_probe(0, ALL);
    for (unsigned i = 0; i < 5; i++)
        queue_on_unobserved(&queue, i);
    expect_rest(0);
    ck_assert_int_le(queue_wake_ns(&queue), QUEUE_POLL_NS);
    expect_probe(QUEUE_POLL_NS, ALL);
}
END_TEST

START_TEST(nodes_out_of_reach_are_looked_at_later)
{
    refused(0, 100000, true);
    queue_on_changed(&queue, 4);
    ck_assert_int_eq(queue_next(&queue, 0xf, 0, &nodes), QUEUE_REST);
    ck_assert_int_le(queue_wake_ns(&queue), QUEUE_POLL_NS);
    expect_probe(1, 0x10);
}
END_TEST

/* A master's table is full: it reports what has not changed. */
START_TEST(reports_for_nothing_are_believed_so_often)
{
    int64_t now_ns = 0;
    unsigned looks = 0;
    refused(0, 10000, true);
    for (unsigned i = 0; i < 1000; i++, now_ns += MS) {
        queue_on_changed(&queue, i % 5);
        if (queue_next(&queue, ALL, now_ns, &nodes) != QUEUE_PROBE)
            continue;
        for (unsigned node = 0; node < 5; node++)
            if (nodes & 1U << node) {
                looks++;
                see(node, true, 10000 - now_ns / MS, true, now_ns);
            }
    }
    ck_assert_uint_ge(looks, QUEUE_IDLE_REPORTS);
    ck_assert_uint_le(looks, QUEUE_IDLE_REPORTS + 5 * 4);
    /* Once there is something to it, all are believed again. */
    queue_on_changed(&queue, 0);
    now_ns += QUEUE_POLL_NS;
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_PROBE);
    see(0, true, 30000, true, now_ns);
    ck_assert_uint_eq(queue.idle_reports, 0);
}
END_TEST

START_TEST(after_a_grant_here_nothing_is_looked_at_for_a_while)
{
    queue_join(&queue, &waiters[0], 0);
    queue_join(&queue, &waiters[1], 0);
    queue_on_acquiring(&queue);
    queue_leave(&queue, &waiters[0]);
    queue_on_granted(&queue, false, 10000 * MS, 0);
    queue_on_changed(&queue, 0);
    expect_rest(0);
    ck_assert_int_eq(queue_wake_ns(&queue), QUEUE_QUIET_NS);
    expect_probe(QUEUE_QUIET_NS, ALL);
    ck_assert(queue_may_hand_over(&queue, QUEUE_QUIET_NS));
}
END_TEST

/* From backoff_min to 2, 4, 8 times that, and never above backoff_max. */
START_TEST(pauses_grow_at_random_up_to_their_bound)
{
    int64_t now_ns = 0;
    int64_t longest_ns = 0;
    queue_join(&queue, &waiters[0], 0);
    for (unsigned i = 0; i < 1000; i++) {
        expect_ask(now_ns);
        queue_on_acquiring(&queue);
        queue_on_outcome(&queue, i % 2 == 0 ? QUEUE_COLLIDED : QUEUE_FAILED, now_ns);
        int64_t pause_ns = queue_wake_ns(&queue) - now_ns;
        int64_t most_ns = i < 5 ? 5 * MS << (i + 1) : 250 * MS;
        ck_assert_int_ge(pause_ns, 5 * MS);
        ck_assert_int_le(pause_ns, most_ns);
        longest_ns = pause_ns > longest_ns ? pause_ns : longest_ns;
        expect_rest(now_ns + pause_ns - 1);
        now_ns += pause_ns;
    }
    ck_assert_int_gt(longest_ns, 200 * MS);
    expect_ask(now_ns);
    queue_on_acquiring(&queue);
    queue_on_outcome(&queue, QUEUE_HELD, now_ns);
    queue_on_released(&queue, now_ns);
    expect_ask(now_ns);
    queue_on_acquiring(&queue);
    queue_on_outcome(&queue, QUEUE_COLLIDED, now_ns);
    ck_assert_int_le(queue_wake_ns(&queue) - now_ns, 10 * MS);
}
END_TEST

START_TEST(a_release_during_a_round_is_not_forgotten)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    queue_on_released(&queue, 0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    expect_ask(0);
}
END_TEST

START_TEST(nothing_is_handed_over_where_nobody_waits_or_a_round_is_under_way)
{
    ck_assert(!queue_may_hand_over(&queue, 0));
    queue_join(&queue, &waiters[0], 0);
    ck_assert(queue_may_hand_over(&queue, 0));
    queue_on_acquiring(&queue);
    ck_assert(!queue_may_hand_over(&queue, 0));
}
END_TEST

START_TEST(who_does_not_wait_asks_also_in_a_pause)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    queue_on_outcome(&queue, QUEUE_COLLIDED, 0);
    queue_leave(&queue, &waiters[0]);
    queue_join(&queue, &waiters[1], 0);
    expect_rest(0);
    queue_note_timed_out(&queue, &waiters[1]);
    expect_ask(0);
    queue_leave(&queue, &waiters[1]);
    ck_assert_uint_eq(queue.timed_out, 0);
    expect_rest(0);
    ck_assert_int_eq(queue_wake_ns(&queue), TIMER_NEVER);
}
END_TEST

START_TEST(who_comes_to_an_empty_queue_knows_nothing)
{
    refused(0, 100000, true);
    queue_leave(&queue, &waiters[0]);
    queue_join(&queue, &waiters[1], 1000 * MS);
    expect_ask(1000 * MS);
}
END_TEST

/* --- timers --- */

START_TEST(timers_come_in_order_and_once)
{
    static struct timer timer[1000];
    struct timers timers;
    uint64_t random = 1;
    int64_t last_ns = -1;
    uint64_t last_serial = 0;
    unsigned left = 0;
    timers_init(&timers);
    ck_assert_int_eq(timers.first_ns, TIMER_NEVER);
    for (unsigned i = 0; i < 20000; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        struct timer *one = &timer[(random >> 33) % 1000];
        left -= one->set;
        timers_set(&timers, one, i % 7 == 0 ? TIMER_NEVER : (int64_t)(random >> 40) % 5000);
        left += one->set;
    }
    ck_assert_uint_gt(left, 500);
    ck_assert_ptr_null(timers_take(&timers, -1));
    while (left > 0) {
        ck_assert_int_ge(timers.first_ns, last_ns);
        bool same = timers.first_ns == last_ns;
        last_ns = timers.first_ns;
        ck_assert_ptr_null(timers_take(&timers, last_ns - 1));
        const struct timer *one = timers_take(&timers, last_ns);
        ck_assert(!one->set);
        ck_assert_int_eq(one->at_ns, last_ns);
        ck_assert(!same || one->serial > last_serial);
        last_serial = one->serial;
        left--;
    }
    ck_assert_ptr_null(timers_take(&timers, 5000));
    ck_assert_int_eq(timers.first_ns, TIMER_NEVER);
}
END_TEST

START_TEST(of_two_at_one_time_the_first_set_is_first)
{
    struct timer one = {0};
    struct timer other = {0};
    struct timers timers;
    timers_init(&timers);
    timers_set(&timers, &other, 5);
    timers_set(&timers, &one, 5);
    ck_assert_ptr_eq(timers_take(&timers, 5), &other);
    ck_assert_ptr_eq(timers_take(&timers, 5), &one);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("queue");
    TCase *cases = tcase_create("queue");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, it_sleeps_until_a_quorum_can_be_free);
    tcase_add_test(cases, nodes_that_are_free_already_count);
    tcase_add_test(cases, a_key_without_end_is_waited_for_by_reports_alone);
    tcase_add_test(cases, a_node_that_reports_is_looked_at_once);
    tcase_add_test(cases, a_report_has_those_looked_at_that_cannot_report);
    tcase_add_test(cases, a_report_that_overtakes_the_answer_makes_it_void);
    tcase_add_test(cases, a_report_during_a_round_is_looked_into_after_it);
    tcase_add_test(cases, nodes_that_do_not_report_are_looked_at_from_time_to_time);
    tcase_add_test(cases, a_quorum_that_reports_is_enough);
    tcase_add_test(cases, masters_that_are_free_do_not_count_among_those_that_report);
    tcase_add_test(cases, of_four_masters_two_that_report_are_enough);
    tcase_add_test(cases, a_look_that_brings_nothing_is_repeated);
    tcase_add_test(cases, nodes_out_of_reach_are_looked_at_later);
    tcase_add_test(cases, reports_for_nothing_are_believed_so_often);
    tcase_add_test(cases, after_a_grant_here_nothing_is_looked_at_for_a_while);
    tcase_add_test(cases, pauses_grow_at_random_up_to_their_bound);
    tcase_add_test(cases, a_release_during_a_round_is_not_forgotten);
    tcase_add_test(cases, nothing_is_handed_over_where_nobody_waits_or_a_round_is_under_way);
    tcase_add_test(cases, who_does_not_wait_asks_also_in_a_pause);
    tcase_add_test(cases, who_comes_to_an_empty_queue_knows_nothing);
    suite_add_tcase(suite, cases);

    TCase *timer_cases = tcase_create("timers");
    tcase_add_test(timer_cases, timers_come_in_order_and_once);
    tcase_add_test(timer_cases, of_two_at_one_time_the_first_set_is_first);
    suite_add_tcase(suite, timer_cases);
    return suite;
}
