/*
 * The locks that enclosing `redlock run` commands hold (client/cli/retry_policy.h).
 */
#include "client/cli/retry_policy.h"
#include "tests/runner.h"

START_TEST(only_whole_names_are_found)
{
    static const struct {
        const char *list;
        const char *name;
        bool has;
    } rows[] = {
        {NULL, "a", false},
        {"", "a", false},
        {"a", "a", true},
        {"a b c", "b", true},
        {"a b c", "c", true},
        {"ab", "a", false},
        {"a", "ab", false},
        {"b a", "b a", false},
        {" a  b ", "b", true},
        {"deploy:1 x", "x", true},
        {"xdeploy", "deploy", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(nesting_has(rows[i].list, rows[i].name, false) == rows[i].has, "row %zu", i);
}
END_TEST

START_TEST(any_slot_of_a_semaphore_is_found)
{
    ck_assert(nesting_has("a#1", "a", true));
    ck_assert(nesting_has("b a#12 c", "a", true));
    ck_assert(!nesting_has("a", "a", true));
    ck_assert(!nesting_has("ab#1", "a", true));
    ck_assert(!nesting_has("a b#1", "a", true));
    ck_assert(!nesting_has("a#1", "a", false));
    ck_assert(nesting_has("a#1", "a#1", false));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("nesting");
    TCase *cases = tcase_create("nesting");
    tcase_add_test(cases, only_whole_names_are_found);
    tcase_add_test(cases, any_slot_of_a_semaphore_is_found);
    suite_add_tcase(suite, cases);
    return suite;
}
