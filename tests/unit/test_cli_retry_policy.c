/*
 * How long `redlock` waits for a lock, and when it asks again (client/cli/retry_policy.h).
 */
#include "client/cli/retry_policy.h"
#include "protocol/units.h"
#include "tests/runner.h"

static const int64_t MS = NS_PER_MS;

/* The wait ends at one second. */
enum { ENDS_MS = 1000 };

static const struct access_check connected = {.let_in = true};

static enum retry_decision after(enum redlock_status status, int64_t now_ms)
{
    return retry_decide(status, &connected, now_ms * MS, ENDS_MS * MS);
}

TEST(acquire_without_a_grant_is_retried_silently)
{
    ck_assert_int_eq(after(REDLOCK_HELD, 100), RETRY_SILENTLY);
    ck_assert_int_eq(after(REDLOCK_NOQUORUM, 100), RETRY_SILENTLY);
    ck_assert_int_eq(after(REDLOCK_LATE, 100), RETRY_SILENTLY);
}

TEST(unreachable_daemon_is_retried_with_a_message)
{
    ck_assert_int_eq(after(REDLOCK_UNREACHABLE, 100), RETRY_WITH_MESSAGE);
    ck_assert_int_eq(after(REDLOCK_BROKEN, 100), RETRY_WITH_MESSAGE);
    ck_assert_int_eq(after(REDLOCK_TIMEOUT, 100), RETRY_WITH_MESSAGE);
    ck_assert_int_eq(after(REDLOCK_SHUTDOWN, 100), RETRY_WITH_MESSAGE);
}

TEST(a_split_vote_is_no_missing_quorum)
{
    ck_assert(quorum_is_missing("too few masters could vote: 1/3 need=2 b:timeout c:timeout"));
    ck_assert(!quorum_is_missing("too few masters could vote: 2/3 need=2 c:refused"));
    ck_assert(!quorum_is_missing("too few masters could vote"));
}

TEST(errors_that_waiting_cannot_cure_are_final)
{
    static const enum redlock_status final[] = {REDLOCK_OK,      REDLOCK_LIMIT,   REDLOCK_DENIED,
                                                REDLOCK_REFUSED, REDLOCK_GARBLED, REDLOCK_INVALID,
                                                REDLOCK_MEMORY};
    for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++)
        ck_assert_int_eq(retry_decide(final[i], &connected, 0, INT64_MAX), RETRY_NEVER);
}

/* A closing error is LIMIT or DENIED from a daemon that then closes the connection. It concerns the
 * connection and not the request. */
TEST(closing_error_is_retried_unless_the_secret_was_wrong)
{
    static const struct {
        enum redlock_status status;
        struct access_check access;
        enum retry_decision decision;
    } rows[] = {
        {REDLOCK_LIMIT, {.let_in = true, .ended = false}, RETRY_NEVER},
        {REDLOCK_LIMIT, {.let_in = true, .ended = true}, RETRY_WITH_MESSAGE},
        {REDLOCK_LIMIT, {.let_in = false, .ended = true}, RETRY_WITH_MESSAGE},
        {REDLOCK_DENIED, {.let_in = true, .ended = false}, RETRY_NEVER},
        {REDLOCK_DENIED, {.let_in = true, .ended = true}, RETRY_WITH_MESSAGE},
        {REDLOCK_DENIED, {.let_in = false, .ended = true}, RETRY_NEVER},
        {REDLOCK_GARBLED, {.let_in = true, .ended = true}, RETRY_NEVER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq(retry_decide(rows[i].status, &rows[i].access, 0, INT64_MAX),
                         rows[i].decision);
}

/* The daemon gets the wait in whole milliseconds, rounded down, so it can answer up to 1 ms before
 * the wait is over. A rest of at most 10 ms is not worth another LOCK. */
TEST(answer_within_10_ms_of_the_end_is_final)
{
    ck_assert_int_eq(after(REDLOCK_HELD, ENDS_MS - 11), RETRY_SILENTLY);
    ck_assert_int_eq(after(REDLOCK_HELD, ENDS_MS - 10), RETRY_NEVER);
    ck_assert_int_eq(after(REDLOCK_HELD, ENDS_MS - 1), RETRY_NEVER);
    ck_assert_int_eq(after(REDLOCK_BROKEN, ENDS_MS), RETRY_NEVER);
    ck_assert_int_eq(after(REDLOCK_BROKEN, ENDS_MS + 1), RETRY_NEVER);
}

TEST(no_retry_comes_after_the_end_of_the_wait)
{
    ck_assert_int_eq(retry_at_ns(100 * MS, ENDS_MS * MS), 350 * MS);
    ck_assert_int_eq(retry_at_ns(700 * MS, ENDS_MS * MS), 950 * MS);
    ck_assert_int_eq(retry_at_ns(800 * MS, ENDS_MS * MS), 990 * MS);
    ck_assert_int_eq(retry_at_ns(989 * MS, ENDS_MS * MS), 990 * MS);
}

TEST(wait_without_end_retries_for_ever)
{
    int64_t late_ns = INT64_MAX / 2;
    ck_assert_int_eq(retry_decide(REDLOCK_BROKEN, &connected, late_ns, INT64_MAX),
                     RETRY_WITH_MESSAGE);
    ck_assert_int_eq(retry_at_ns(late_ns, INT64_MAX), late_ns + 250 * MS);
}

/* With `--wait 0`, the wait ends when it begins. */
TEST(wait_of_zero_asks_once)
{
    ck_assert_int_eq(retry_decide(REDLOCK_HELD, &connected, 100 * MS, 100 * MS), RETRY_NEVER);
    ck_assert_int_eq(retry_decide(REDLOCK_BROKEN, &connected, 100 * MS, 100 * MS), RETRY_NEVER);
}
