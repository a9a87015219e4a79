/*
 * The order in which the addresses of a daemon are tried (client/cli/lookup.h).
 */
#include "client/cli/lookup.h"
#include "tests/runner.h"

#define SET(places, ...)                                                                           \
    do {                                                                                           \
        const char urls[][PLACES_URL] = {__VA_ARGS__};                                             \
        places_set(places, urls, sizeof(urls) / sizeof(urls[0]));                                  \
    } while (0)

TEST(empty_list_has_no_next_address)
{
    struct places places = {0};
    ck_assert_ptr_null(places_next(&places));
    places_worked(&places);
    ck_assert_ptr_null(places_next(&places));
}

TEST(addresses_are_tried_in_turn)
{
    struct places places = {0};
    SET(&places, "a", "b", "c");
    ck_assert_str_eq(places_next(&places), "a");
    ck_assert_str_eq(places_next(&places), "b");
    ck_assert_str_eq(places_next(&places), "c");
    ck_assert_str_eq(places_next(&places), "a");
}

TEST(address_that_worked_is_tried_first)
{
    struct places places = {0};
    SET(&places, "a", "b", "c");
    places_next(&places);
    places_next(&places);
    places_worked(&places);
    places_worked(&places);
    ck_assert_str_eq(places_next(&places), "b");
    ck_assert_str_eq(places_next(&places), "c");
}

TEST(lookup_replaces_the_known_addresses)
{
    struct places places = {0};
    SET(&places, "a", "b");
    places_next(&places);
    SET(&places, "c", "d");
    ck_assert_str_eq(places_next(&places), "c");
    ck_assert_str_eq(places_next(&places), "d");
}

TEST(address_tried_just_before_a_lookup_comes_last)
{
    struct places places = {0};
    SET(&places, "a");
    places_next(&places);
    SET(&places, "a", "b", "c");
    ck_assert_str_eq(places_next(&places), "b");
    ck_assert_str_eq(places_next(&places), "c");
    ck_assert_str_eq(places_next(&places), "a");
}

TEST(address_that_works_stays_first_after_a_lookup)
{
    struct places places = {0};
    SET(&places, "a");
    places_next(&places);
    SET(&places, "b", "a");
    places_worked(&places);
    ck_assert_str_eq(places_next(&places), "a");
}
