/*
 * Where connections come from, and how many wrong secrets each place may try.
 */
#include <stdlib.h>
#include <string.h>

#include "server/clients/guesses.h"
#include "tests/runner.h"

#define S INT64_C(1000000000)

static struct guesses guesses;

static struct origin host(unsigned char last)
{
    const unsigned char address[4] = {10, 0, 0, last};
    return origin_of_ipv4(address);
}

static void begin(void)
{
    guesses_init(&guesses, 42);
}

/* --- origins --- */

static bool same(struct origin a, struct origin b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

START_TEST(addresses_of_one_party_are_one_origin)
{
    unsigned char one[16] = {0xfd, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
    unsigned char neighbour[16] = {0xfd, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9};
    unsigned char other[16] = {0xfd, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1};
    unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7};
    ck_assert(same(origin_of_ipv6(one), origin_of_ipv6(neighbour)));
    ck_assert(!same(origin_of_ipv6(one), origin_of_ipv6(other)));
    ck_assert(same(origin_of_ipv6(mapped), host(7)));
    ck_assert(!same(host(7), host(8)));
    ck_assert(same(origin_of_user(1000), origin_of_user(1000)));
    ck_assert(!same(origin_of_user(1000), origin_of_user(1001)));
}
END_TEST

/* --- guesses --- */

START_TEST(burst_is_allowed_and_then_one_a_second)
{
    struct origin origin = host(1);
    int64_t now_ns = 1000 * S;
    for (uint64_t i = 1; i <= GUESSES_BURST; i++) {
        ck_assert_int_eq(guesses_wait_ns(&guesses, &origin, now_ns), 0);
        enum guesses_news news = guesses_note(&guesses, &origin, i, now_ns);
        ck_assert_int_eq(news, i == 1               ? GUESSES_FIRST
                               : i == GUESSES_BURST ? GUESSES_SPENT
                                                    : GUESSES_NOTHING);
    }
    ck_assert_int_eq(guesses_wait_ns(&guesses, &origin, now_ns), S);
    ck_assert_int_eq(guesses_wait_ns(&guesses, &origin, now_ns + S - 1), 1);
    ck_assert_int_eq(guesses_wait_ns(&guesses, &origin, now_ns + S), 0);
    guesses_note(&guesses, &origin, 100, now_ns + S);
    ck_assert_int_eq(guesses_wait_ns(&guesses, &origin, now_ns + S), S);
    /* After a quiet time all are back. */
    now_ns += 100 * S;
    ck_assert_int_eq(guesses_note(&guesses, &origin, 101, now_ns), GUESSES_FIRST);
    for (uint64_t i = 1; i < GUESSES_BURST; i++) {
        ck_assert_int_eq(guesses_wait_ns(&guesses, &origin, now_ns), 0);
        guesses_note(&guesses, &origin, 200 + i, now_ns);
    }
    ck_assert_int_gt(guesses_wait_ns(&guesses, &origin, now_ns), 0);
}
END_TEST

START_TEST(one_origin_does_not_pay_for_another)
{
    struct origin guilty = host(1);
    struct origin innocent = host(2);
    for (uint64_t i = 1; i <= 3 * GUESSES_BURST; i++)
        guesses_note(&guesses, &guilty, i, S);
    ck_assert_int_gt(guesses_wait_ns(&guesses, &guilty, S), 0);
    ck_assert_int_eq(guesses_wait_ns(&guesses, &innocent, S), 0);
}
END_TEST

START_TEST(same_wrong_secret_again_costs_nothing)
{
    struct origin origin = host(1);
    for (unsigned i = 0; i < 10 * GUESSES_BURST; i++) {
        guesses_note(&guesses, &origin, 1 + i % GUESSES_SEEN, S);
        ck_assert_int_eq(guesses_wait_ns(&guesses, &origin, S), 0);
    }
    for (uint64_t i = 10; i < 10 + GUESSES_BURST - GUESSES_SEEN; i++)
        guesses_note(&guesses, &origin, i, S);
    ck_assert_int_gt(guesses_wait_ns(&guesses, &origin, S), 0);
}
END_TEST

/* Many origins, each with a guess or two, do not wash away one that has no guess left. */
START_TEST(worst_are_remembered_longest)
{
    struct origin worst = host(1);
    for (uint64_t i = 1; i <= GUESSES_BURST; i++)
        guesses_note(&guesses, &worst, i, S);
    for (uint32_t uid = 0; uid < 20 * LIMIT_GUESSERS; uid++) {
        struct origin other = origin_of_user(uid);
        guesses_note(&guesses, &other, 1, S + 1);
    }
    ck_assert_int_gt(guesses_wait_ns(&guesses, &worst, S + 1), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("guesses");
    TCase *tests = tcase_create("guesses");
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, addresses_of_one_party_are_one_origin);
    tcase_add_test(tests, burst_is_allowed_and_then_one_a_second);
    tcase_add_test(tests, one_origin_does_not_pay_for_another);
    tcase_add_test(tests, same_wrong_secret_again_costs_nothing);
    tcase_add_test(tests, worst_are_remembered_longest);
    suite_add_tcase(suite, tests);
    return suite;
}
