/*
 * When `redlock run` extends its lock, gives it up, and kills (client/cli/lease.h).
 */
#include <string.h>

#include "client/cli/lease.h"
#include "tests/runner.h"

static const int64_t SECOND_NS = 1000000000;

/* A lock of 30 s with a deadline at 100 s, and 5 s for the command to end. */
static struct lease of_thirty_seconds(void)
{
    struct lease lease;
    lease_init(&lease, 30 * SECOND_NS, 5 * SECOND_NS, 100 * SECOND_NS);
    return lease;
}

START_TEST(it_is_extended_after_a_third_and_given_up_after_two)
{
    struct lease lease = of_thirty_seconds();
    ck_assert_int_eq(lease_extend_ns(&lease), 80 * SECOND_NS);
    ck_assert_int_eq(lease_next_ns(&lease), 80 * SECOND_NS);
    lease_on_extending(&lease, 80 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 90 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 99 * SECOND_NS);
}
END_TEST

/* The daemon may have extended it all the time. Once asked, it has as long as ever to answer. */
START_TEST(who_was_stopped_asks_before_it_gives_up)
{
    struct lease lease = of_thirty_seconds();
    ck_assert_int_eq(lease_give_up_ns(&lease), lease_kill_ns(&lease));
    lease_on_extending(&lease, 93 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 96 * SECOND_NS);
    lease_on_failed(&lease, "no quorum", 94 * SECOND_NS);
    /* Asking again gives it no more time. */
    lease_on_extending(&lease, 95 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 96 * SECOND_NS);
    lease_on_extended(&lease, 125 * SECOND_NS);
    lease_on_extending(&lease, 105 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 115 * SECOND_NS);
}
END_TEST

START_TEST(an_extension_moves_all_of_it_on)
{
    struct lease lease = of_thirty_seconds();
    lease_on_extending(&lease, 80 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), INT64_MAX);
    ck_assert_int_eq(lease_next_ns(&lease), 90 * SECOND_NS);
    lease_on_extended(&lease, 110 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 90 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 109 * SECOND_NS);
    lease_on_extending(&lease, 90 * SECOND_NS);
    ck_assert_int_eq(lease_give_up_ns(&lease), 100 * SECOND_NS);
}
END_TEST

START_TEST(a_deadline_never_moves_back)
{
    struct lease lease = of_thirty_seconds();
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_extended(&lease, 99 * SECOND_NS);
    ck_assert_int_eq(lease.deadline_ns, 100 * SECOND_NS);
}
END_TEST

START_TEST(what_is_undecided_is_tried_again_and_moves_nothing)
{
    struct lease lease = of_thirty_seconds();
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_failed(&lease, "no quorum", 81 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 81 * SECOND_NS + SECOND_NS / 2);
    ck_assert_int_eq(lease_give_up_ns(&lease), 90 * SECOND_NS);
    ck_assert_str_eq(lease.why, "no quorum");
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_extended(&lease, 111 * SECOND_NS);
    ck_assert_str_eq(lease.why, "");
}
END_TEST

START_TEST(a_lost_connection_is_a_reason_to_ask_at_once)
{
    struct lease lease = of_thirty_seconds();
    lease_on_closed(&lease, 72 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 72 * SECOND_NS);
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_failed(&lease, "unreachable", 72 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 72 * SECOND_NS + SECOND_NS / 2);
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_extended(&lease, 103 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 83 * SECOND_NS);
}
END_TEST

/* As a proxy does that has no daemon behind it. */
START_TEST(who_closes_each_connection_is_asked_as_seldom_as_who_does_not_answer)
{
    struct lease lease = of_thirty_seconds();
    lease_on_closed(&lease, 72 * SECOND_NS);
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_on_failed(&lease, "closed", 72 * SECOND_NS);
    lease_on_closed(&lease, 72 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), 72 * SECOND_NS + SECOND_NS / 2);
}
END_TEST

START_TEST(the_last_failure_is_the_reason_of_the_loss)
{
    struct lease lease = of_thirty_seconds();
    lease_on_failed(&lease, "no quorum", 89 * SECOND_NS);
    lease_lose(&lease, lease.why, 90 * SECOND_NS);
    ck_assert_str_eq(lease.why, "no quorum");
}
END_TEST

START_TEST(a_lost_lock_is_killed_after_the_grace_and_before_the_deadline)
{
    struct lease early = of_thirty_seconds();
    lease_lose(&early, "gone", 75 * SECOND_NS);
    ck_assert(lease_is_lost(&early));
    ck_assert_int_eq(lease_kill_ns(&early), 80 * SECOND_NS);
    ck_assert_int_eq(lease_next_ns(&early), 80 * SECOND_NS);

    struct lease late = of_thirty_seconds();
    lease_lose(&late, "gone", 97 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&late), 99 * SECOND_NS);
}
END_TEST

/* Another client may hold it already; a grace is for a deadline that lies ahead. */
START_TEST(a_lock_that_is_gone_is_killed_at_once)
{
    struct lease lease = of_thirty_seconds();
    lease_on_gone(&lease, "gone", 75 * SECOND_NS);
    ck_assert(lease_is_lost(&lease));
    ck_assert_str_eq(lease.why, "gone");
    ck_assert_int_eq(lease_kill_ns(&lease), 75 * SECOND_NS);
    ck_assert_int_eq(lease_next_ns(&lease), 75 * SECOND_NS);
}
END_TEST

START_TEST(news_that_it_is_gone_ends_the_grace_of_an_earlier_loss)
{
    struct lease lease = of_thirty_seconds();
    lease_lose(&lease, "no quorum", 90 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 95 * SECOND_NS);
    lease_on_gone(&lease, "gone", 91 * SECOND_NS);
    ck_assert_str_eq(lease.why, "no quorum");
    ck_assert_int_eq(lease_kill_ns(&lease), 91 * SECOND_NS);
    lease_on_gone(&lease, "gone", 92 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 91 * SECOND_NS);
}
END_TEST

START_TEST(lost_is_lost)
{
    struct lease lease = of_thirty_seconds();
    lease_on_extending(&lease, 80 * SECOND_NS);
    lease_lose(&lease, "gone", 82 * SECOND_NS);
    lease_lose(&lease, "limit", 83 * SECOND_NS);
    lease_on_extended(&lease, 110 * SECOND_NS);
    lease_on_closed(&lease, 84 * SECOND_NS);
    lease_on_failed(&lease, "no quorum", 84 * SECOND_NS);
    ck_assert_str_eq(lease.why, "gone");
    ck_assert_int_eq(lease.deadline_ns, 100 * SECOND_NS);
    ck_assert_int_eq(lease_kill_ns(&lease), 87 * SECOND_NS);
    ck_assert_int_eq(lease_extend_ns(&lease), INT64_MAX);
    ck_assert_int_eq(lease_give_up_ns(&lease), INT64_MAX);
}
END_TEST

START_TEST(a_short_lock_leaves_a_tenth_for_the_killing)
{
    struct lease lease;
    lease_init(&lease, SECOND_NS, 5 * SECOND_NS, 100 * SECOND_NS);
    ck_assert_int_eq(lease_margin_ns(&lease), SECOND_NS / 10);
    lease_lose(&lease, "gone", 99 * SECOND_NS + SECOND_NS / 2);
    ck_assert_int_eq(lease_kill_ns(&lease), 100 * SECOND_NS - SECOND_NS / 10);
}
END_TEST

START_TEST(a_short_lock_leaves_a_far_daemon_some_time)
{
    static const int64_t cases_ms[][2] = {{30000, 3000}, {900, 100}, {600, 100}, {300, 50}};
    for (unsigned i = 0; i < 4; i++) {
        struct lease lease;
        lease_init(&lease, cases_ms[i][0] * SECOND_NS / 1000, 0, 100 * SECOND_NS);
        ck_assert_int_eq(lease_answer_timeout_ns(&lease), cases_ms[i][1] * SECOND_NS / 1000);
    }
}
END_TEST

/* Whoever looks late, because it was stopped, finds the killing due before anything else. */
START_TEST(after_a_long_stop_the_killing_is_due)
{
    struct lease lease = of_thirty_seconds();
    int64_t now_ns = 105 * SECOND_NS;
    ck_assert_int_ge(now_ns, lease_kill_ns(&lease));
    lease_lose(&lease, "stopped", now_ns);
    ck_assert_int_ge(now_ns, lease_kill_ns(&lease));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("lease");
    TCase *lease = tcase_create("lease");
    tcase_add_test(lease, it_is_extended_after_a_third_and_given_up_after_two);
    tcase_add_test(lease, who_was_stopped_asks_before_it_gives_up);
    tcase_add_test(lease, an_extension_moves_all_of_it_on);
    tcase_add_test(lease, a_deadline_never_moves_back);
    tcase_add_test(lease, what_is_undecided_is_tried_again_and_moves_nothing);
    tcase_add_test(lease, a_lost_connection_is_a_reason_to_ask_at_once);
    tcase_add_test(lease, who_closes_each_connection_is_asked_as_seldom_as_who_does_not_answer);
    tcase_add_test(lease, the_last_failure_is_the_reason_of_the_loss);
    tcase_add_test(lease, a_lost_lock_is_killed_after_the_grace_and_before_the_deadline);
    tcase_add_test(lease, a_lock_that_is_gone_is_killed_at_once);
    tcase_add_test(lease, news_that_it_is_gone_ends_the_grace_of_an_earlier_loss);
    tcase_add_test(lease, lost_is_lost);
    tcase_add_test(lease, a_short_lock_leaves_a_tenth_for_the_killing);
    tcase_add_test(lease, a_short_lock_leaves_a_far_daemon_some_time);
    tcase_add_test(lease, after_a_long_stop_the_killing_is_due);
    suite_add_tcase(suite, lease);
    return suite;
}
