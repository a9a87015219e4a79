/* server/overload.h: when the log says that the daemon is overloaded. */
#include "server/overload.h"
#include "tests/runner.h"

static struct overload overload;
static int64_t now_ns;

static enum overload_news pass_ms(int64_t ms, size_t held_back)
{
    now_ns += ms * NS_PER_MS;
    return overload_step(&overload, held_back, now_ns);
}

static void setup(void)
{
    overload = (struct overload){0};
    now_ns = NS_PER_S;
}

START_TEST(burst_is_no_overload)
{
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(pass_ms(1, 1000), OVERLOAD_SAME);
        ck_assert_int_eq(pass_ms(900, 1000), OVERLOAD_SAME);
        ck_assert_int_eq(pass_ms(1, 0), OVERLOAD_SAME);
    }
}
END_TEST

START_TEST(overload_begins_and_ends_once)
{
    ck_assert(!overload_is_due(&overload, 0));
    ck_assert_int_eq(pass_ms(1, 10), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 70), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 20), OVERLOAD_BEGINS);
    ck_assert_int_eq(pass_ms(500, 20), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 0), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 5), OVERLOAD_SAME);
    ck_assert_int_eq(pass_ms(500, 0), OVERLOAD_SAME);
    ck_assert(overload_is_due(&overload, 0));
    ck_assert_int_eq(pass_ms(1000, 0), OVERLOAD_ENDS);
    ck_assert_uint_eq(overload.most, 70);
    ck_assert_int_eq(overload.began_ns, NS_PER_S + NS_PER_MS);
    ck_assert(!overload_is_due(&overload, 0));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("overload_log");
    TCase *tests = tcase_create("overload_log");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, burst_is_no_overload);
    tcase_add_test(tests, overload_begins_and_ends_once);
    suite_add_tcase(suite, tests);
    return suite;
}
