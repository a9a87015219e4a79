/*
 * How long `redlock` waits for a lock (client/cli/retry_policy.h).
 */
#include "client/cli/clock.h"
#include "client/cli/retry_policy.h"
#include "protocol/units.h"
#include "tests/runner.h"

static const int64_t MS = NS_PER_MS;

/* A wait that ends at a second. */
enum { ENDS_MS = 1000 };

static const struct access_check connected = {.let_in = true};

static enum retry_decision after(enum redlock_status status, int64_t now_ms)
{
    return retry_decide(status, &connected, now_ms * MS, ENDS_MS * MS);
}

START_TEST(a_daemon_that_waits_for_less_is_asked_again)
{
    ck_assert_int_eq(after(REDLOCK_HELD, 100), RETRY_AT_ONCE);
    ck_assert_int_eq(after(REDLOCK_NOQUORUM, 100), RETRY_AT_ONCE);
    ck_assert_int_eq(after(REDLOCK_LATE, 100), RETRY_AT_ONCE);
}
END_TEST

START_TEST(a_daemon_that_is_away_is_looked_for)
{
    ck_assert_int_eq(after(REDLOCK_UNREACHABLE, 100), RETRY_LATER);
    ck_assert_int_eq(after(REDLOCK_BROKEN, 100), RETRY_LATER);
    ck_assert_int_eq(after(REDLOCK_TIMEOUT, 100), RETRY_LATER);
    ck_assert_int_eq(after(REDLOCK_SHUTDOWN, 100), RETRY_LATER);
}
END_TEST

START_TEST(what_waiting_does_not_mend_is_final)
{
    static const enum redlock_status final[] = {REDLOCK_OK,      REDLOCK_LIMIT,   REDLOCK_DENIED,
                                                REDLOCK_REFUSED, REDLOCK_GARBLED, REDLOCK_INVALID,
                                                REDLOCK_MEMORY};
    for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++)
        ck_assert_int_eq(retry_decide(final[i], &connected, 0, INT64_MAX), RETRY_NEVER);
}
END_TEST

START_TEST(a_closing_error_is_no_answer)
{
    static const struct {
        enum redlock_status status;
        struct access_check access;
        enum retry_decision timeout;
    } rows[] = {
        {REDLOCK_LIMIT, {.let_in = true, .ended = false}, RETRY_NEVER},
        {REDLOCK_LIMIT, {.let_in = true, .ended = true}, RETRY_LATER},
        {REDLOCK_LIMIT, {.let_in = false, .ended = true}, RETRY_LATER},
        {REDLOCK_DENIED, {.let_in = true, .ended = false}, RETRY_NEVER},
        {REDLOCK_DENIED, {.let_in = true, .ended = true}, RETRY_LATER},
        {REDLOCK_DENIED, {.let_in = false, .ended = true}, RETRY_NEVER},
        {REDLOCK_GARBLED, {.let_in = true, .ended = true}, RETRY_NEVER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq(retry_decide(rows[i].status, &rows[i].access, 0, INT64_MAX),
                         rows[i].timeout);
}
END_TEST

/* It is told milliseconds, rounded down. */
START_TEST(an_answer_just_before_the_end_is_the_last)
{
    ck_assert_int_eq(after(REDLOCK_HELD, ENDS_MS - 11), RETRY_AT_ONCE);
    ck_assert_int_eq(after(REDLOCK_HELD, ENDS_MS - 10), RETRY_NEVER);
    ck_assert_int_eq(after(REDLOCK_HELD, ENDS_MS - 1), RETRY_NEVER);
    ck_assert_int_eq(after(REDLOCK_BROKEN, ENDS_MS), RETRY_NEVER);
    ck_assert_int_eq(after(REDLOCK_BROKEN, ENDS_MS + 1), RETRY_NEVER);
}
END_TEST

START_TEST(it_is_never_asked_beyond_the_end)
{
    ck_assert_int_eq(retry_at_ns(100 * MS, ENDS_MS * MS), 350 * MS);
    ck_assert_int_eq(retry_at_ns(700 * MS, ENDS_MS * MS), 950 * MS);
    ck_assert_int_eq(retry_at_ns(800 * MS, ENDS_MS * MS), 990 * MS);
    ck_assert_int_eq(retry_at_ns(989 * MS, ENDS_MS * MS), 990 * MS);
}
END_TEST

START_TEST(a_wait_without_end_goes_on_for_ever)
{
    int64_t late_ns = INT64_MAX / 2;
    ck_assert_int_eq(retry_decide(REDLOCK_BROKEN, &connected, late_ns, INT64_MAX), RETRY_LATER);
    ck_assert_int_eq(retry_at_ns(late_ns, INT64_MAX), late_ns + 250 * MS);
}
END_TEST

/* `--wait 0`, which ends as it begins. */
START_TEST(who_does_not_wait_asks_once)
{
    ck_assert_int_eq(retry_decide(REDLOCK_HELD, &connected, 100 * MS, 100 * MS), RETRY_NEVER);
    ck_assert_int_eq(retry_decide(REDLOCK_BROKEN, &connected, 100 * MS, 100 * MS), RETRY_NEVER);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("timeout");
    TCase *timeout = tcase_create("timeout");
    tcase_add_test(timeout, a_daemon_that_waits_for_less_is_asked_again);
    tcase_add_test(timeout, a_daemon_that_is_away_is_looked_for);
    tcase_add_test(timeout, what_waiting_does_not_mend_is_final);
    tcase_add_test(timeout, a_closing_error_is_no_answer);
    tcase_add_test(timeout, an_answer_just_before_the_end_is_the_last);
    tcase_add_test(timeout, it_is_never_asked_beyond_the_end);
    tcase_add_test(timeout, a_wait_without_end_goes_on_for_ever);
    tcase_add_test(timeout, who_does_not_wait_asks_once);
    suite_add_tcase(suite, timeout);
    return suite;
}
