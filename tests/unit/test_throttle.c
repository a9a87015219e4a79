/*
 * How many lines of one kind the log gets: see server/throttle.h.
 */
#include "protocol/units.h"
#include "server/throttle.h"
#include "tests/runner.h"

static unsigned written(struct throttle *throttle, unsigned lines, int64_t now_ns)
{
    unsigned count = 0;
    for (unsigned i = 0; i < lines; i++)
        count += throttle_may(throttle, now_ns);
    return count;
}

START_TEST(so_many_lines_are_written_and_the_rest_is_counted)
{
    struct throttle throttle = {0};
    ck_assert_uint_eq(written(&throttle, 10000, 5 * NS_PER_S), THROTTLE_LINES);
    ck_assert_uint_eq(throttle_take(&throttle, 6 * NS_PER_S - 1), 0);
    ck_assert_uint_eq(throttle_take(&throttle, 6 * NS_PER_S), 10000 - THROTTLE_LINES);
    ck_assert_uint_eq(throttle_take(&throttle, 6 * NS_PER_S), 0);
}
END_TEST

START_TEST(the_next_second_has_lines_of_its_own)
{
    struct throttle throttle = {0};
    ck_assert_uint_eq(written(&throttle, THROTTLE_LINES, 5 * NS_PER_S), THROTTLE_LINES);
    ck_assert_uint_eq(written(&throttle, THROTTLE_LINES, 6 * NS_PER_S), THROTTLE_LINES);
    ck_assert_uint_eq(throttle_take(&throttle, 7 * NS_PER_S), 0);
}
END_TEST

START_TEST(a_second_begins_with_its_first_line)
{
    struct throttle throttle = {0};
    ck_assert(throttle_may(&throttle, 5 * NS_PER_S));
    ck_assert_uint_eq(written(&throttle, 100, 6 * NS_PER_S - 1), THROTTLE_LINES - 1);
    ck_assert_uint_eq(throttle_take(&throttle, 6 * NS_PER_S), 100 - THROTTLE_LINES + 1);
}
END_TEST

START_TEST(a_line_now_and_then_is_never_left_out)
{
    struct throttle throttle = {0};
    for (int64_t i = 0; i < 1000; i++)
        ck_assert(throttle_may(&throttle, i * NS_PER_S / THROTTLE_LINES));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("throttle");
    TCase *tests = tcase_create("lines of the log");
    tcase_add_test(tests, so_many_lines_are_written_and_the_rest_is_counted);
    tcase_add_test(tests, the_next_second_has_lines_of_its_own);
    tcase_add_test(tests, a_second_begins_with_its_first_line);
    tcase_add_test(tests, a_line_now_and_then_is_never_left_out);
    suite_add_tcase(suite, tests);
    return suite;
}
