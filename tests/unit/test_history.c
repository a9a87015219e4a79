/*
 * The checker is tested, not trusted.
 */
#include <stdlib.h>

#include "tests/history.h"
#include "tests/runner.h"

static struct history history;

START_TEST(one_after_the_other_is_fine)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 20, 30), HISTORY_FINE);
    history_ended(&history, 1, "b");
    ck_assert_int_eq(history_granted(&history, 1, "c", 0, 21, 40), HISTORY_FINE);
    ck_assert_uint_eq(history.grants, 3);
}
END_TEST

START_TEST(two_at_once_are_not)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 19, 30), HISTORY_TWO_HOLDERS);
    ck_assert_str_eq(history.other.token, "a");
    /* Another resource is another matter, and so is a grant that came too late to be one. */
    ck_assert_int_eq(history_granted(&history, 2, "b", 0, 19, 30), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 19, 19), HISTORY_FINE);
}
END_TEST

START_TEST(an_extension_counts_from_when_it_is_told)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 15, 30), HISTORY_FINE);
    ck_assert_int_eq(history_until(&history, 1, "a"), 30);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 25, 40), HISTORY_TWO_HOLDERS);
    /* It never shortens. */
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 16, 18), HISTORY_FINE);
    ck_assert_int_eq(history_until(&history, 1, "a"), 30);
}
END_TEST

START_TEST(an_extension_of_what_had_ended_is_a_hold_again)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 0, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 0, 25, 30), HISTORY_FINE);
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 26, 40), HISTORY_TWO_HOLDERS);
    ck_assert_str_eq(history.other.token, "b");
    ck_assert_int_eq(history_prolonged(&history, 1, "a", 31, 40), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "c", 0, 39, 50), HISTORY_TWO_HOLDERS);
}
END_TEST

START_TEST(fences_rise_strictly)
{
    history_init(&history);
    ck_assert_int_eq(history_granted(&history, 1, "a", 7, 10, 20), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 1, "b", 7, 20, 30), HISTORY_FENCE_FELL);
    ck_assert_int_eq(history_granted(&history, 1, "b", 8, 20, 30), HISTORY_FINE);
    ck_assert_int_eq(history_granted(&history, 2, "c", 1, 20, 30), HISTORY_FINE);
    /* Also of a grant that was too late to be a hold. */
    ck_assert_int_eq(history_granted(&history, 1, "d", 8, 40, 40), HISTORY_FENCE_FELL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("history");
    TCase *tests = tcase_create("history");
    tcase_add_test(tests, one_after_the_other_is_fine);
    tcase_add_test(tests, two_at_once_are_not);
    tcase_add_test(tests, an_extension_counts_from_when_it_is_told);
    tcase_add_test(tests, an_extension_of_what_had_ended_is_a_hold_again);
    tcase_add_test(tests, fences_rise_strictly);
    suite_add_tcase(suite, tests);
    return suite;
}
