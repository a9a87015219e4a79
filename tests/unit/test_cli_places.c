/*
 * In which order the addresses of a daemon are tried (client/cli/lookup.h).
 */
#include "client/cli/lookup.h"
#include "tests/runner.h"

#define SET(places, ...)                                                                           \
    do {                                                                                           \
        const char urls[][PLACES_URL] = {__VA_ARGS__};                                             \
        places_set(places, urls, sizeof(urls) / sizeof(urls[0]));                                  \
    } while (0)

START_TEST(without_an_address_there_is_none_to_try)
{
    struct places places = {0};
    ck_assert_ptr_null(places_next(&places));
    places_good(&places);
    ck_assert_ptr_null(places_next(&places));
}
END_TEST

START_TEST(each_has_its_turn)
{
    struct places places = {0};
    SET(&places, "a", "b", "c");
    ck_assert_str_eq(places_next(&places), "a");
    ck_assert_str_eq(places_next(&places), "b");
    ck_assert_str_eq(places_next(&places), "c");
    ck_assert_str_eq(places_next(&places), "a");
}
END_TEST

START_TEST(the_one_that_was_good_is_tried_first)
{
    struct places places = {0};
    SET(&places, "a", "b", "c");
    places_next(&places);
    places_next(&places);
    places_good(&places);
    places_good(&places);
    ck_assert_str_eq(places_next(&places), "b");
    ck_assert_str_eq(places_next(&places), "c");
}
END_TEST

START_TEST(what_a_look_up_finds_takes_the_place_of_what_was_known)
{
    struct places places = {0};
    SET(&places, "a", "b");
    places_next(&places);
    SET(&places, "c", "d");
    ck_assert_str_eq(places_next(&places), "c");
    ck_assert_str_eq(places_next(&places), "d");
}
END_TEST

START_TEST(the_one_that_was_tried_just_before_a_look_up_has_its_turn_last)
{
    struct places places = {0};
    SET(&places, "a");
    places_next(&places);
    SET(&places, "a", "b", "c");
    ck_assert_str_eq(places_next(&places), "b");
    ck_assert_str_eq(places_next(&places), "c");
    ck_assert_str_eq(places_next(&places), "a");
}
END_TEST

START_TEST(one_that_works_stays_the_first_through_a_look_up)
{
    struct places places = {0};
    SET(&places, "a");
    places_next(&places);
    SET(&places, "b", "a");
    places_good(&places);
    ck_assert_str_eq(places_next(&places), "a");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("places");
    TCase *places = tcase_create("places");
    tcase_add_test(places, without_an_address_there_is_none_to_try);
    tcase_add_test(places, each_has_its_turn);
    tcase_add_test(places, the_one_that_was_good_is_tried_first);
    tcase_add_test(places, what_a_look_up_finds_takes_the_place_of_what_was_known);
    tcase_add_test(places, the_one_that_was_tried_just_before_a_look_up_has_its_turn_last);
    tcase_add_test(places, one_that_works_stays_the_first_through_a_look_up);
    suite_add_tcase(suite, places);
    return suite;
}
