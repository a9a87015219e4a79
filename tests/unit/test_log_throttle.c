/*
 * The limit on log lines of one kind (server/log_throttle.h).
 */
#include "protocol/units.h"
#include "server/log_throttle.h"
#include "tests/runner.h"

static unsigned written(struct log_throttle *throttle, unsigned lines, int64_t now_ns)
{
    unsigned count = 0;
    for (unsigned i = 0; i < lines; i++)
        count += log_throttle_may(throttle, now_ns);
    return count;
}

TEST(lines_over_the_limit_are_counted)
{
    struct log_throttle throttle = {0};
    ck_assert_uint_eq(written(&throttle, 10000, 5 * NS_PER_S), LOG_THROTTLE_LINES);
    ck_assert_uint_eq(log_throttle_take(&throttle, 6 * NS_PER_S - 1), 0);
    ck_assert_uint_eq(log_throttle_take(&throttle, 6 * NS_PER_S), 10000 - LOG_THROTTLE_LINES);
    ck_assert_uint_eq(log_throttle_take(&throttle, 6 * NS_PER_S), 0);
}

TEST(next_second_has_a_new_limit)
{
    struct log_throttle throttle = {0};
    ck_assert_uint_eq(written(&throttle, LOG_THROTTLE_LINES, 5 * NS_PER_S), LOG_THROTTLE_LINES);
    ck_assert_uint_eq(written(&throttle, LOG_THROTTLE_LINES, 6 * NS_PER_S), LOG_THROTTLE_LINES);
    ck_assert_uint_eq(log_throttle_take(&throttle, 7 * NS_PER_S), 0);
}

TEST(second_begins_with_its_first_line)
{
    struct log_throttle throttle = {0};
    ck_assert(log_throttle_may(&throttle, 5 * NS_PER_S));
    ck_assert_uint_eq(written(&throttle, 100, 6 * NS_PER_S - 1), LOG_THROTTLE_LINES - 1);
    ck_assert_uint_eq(log_throttle_take(&throttle, 6 * NS_PER_S), 100 - LOG_THROTTLE_LINES + 1);
}

TEST(evenly_spaced_lines_are_never_dropped)
{
    struct log_throttle throttle = {0};
    for (int64_t i = 0; i < 1000; i++)
        ck_assert(log_throttle_may(&throttle, i * NS_PER_S / LOG_THROTTLE_LINES));
}
