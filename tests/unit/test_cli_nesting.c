/*
 * Nested `redlock run` commands: the locks that the enclosing ones hold
 * (client/cli/retry_policy.h), and the command line of the nested one (client/cli/nested.h).
 */
#include <stdio.h>
#include <string.h>

#include "client/cli/nested.h"
#include "client/cli/retry_policy.h"
#include "tests/runner.h"

TEST(only_whole_names_are_found)
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

TEST(any_slot_of_a_semaphore_is_found)
{
    ck_assert(nesting_has("a#1", "a", true));
    ck_assert(nesting_has("b a#12 c", "a", true));
    ck_assert(!nesting_has("a", "a", true));
    ck_assert(!nesting_has("ab#1", "a", true));
    ck_assert(!nesting_has("a b#1", "a", true));
    ck_assert(!nesting_has("a#1", "a", false));
    ck_assert(nesting_has("a#1", "a#1", false));
}

enum { WORDS_MAX = 64, LINE_SIZE = 512 };

/* Splits text at spaces and parses it, like the options of `redlock`. Returns the nested command
 * line, joined with spaces. */
static const char *nest(const char *text)
{
    static char line[LINE_SIZE], nested[LINE_SIZE];
    char *argv[WORDS_MAX + 1] = {NULL}, *rest = NULL;
    int argc = 0;
    struct options options;
    struct error error;
    snprintf(line, sizeof(line), "redlock %s", text);
    for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        ck_assert_int_lt(argc, WORDS_MAX);
        argv[argc++] = word;
    }
    ck_assert_msg(options_parse(argc, argv, &options, &error), "%s: %s", text, error.text);
    char **words = nested_argv(&options);
    ck_assert_ptr_nonnull(words);
    nested[0] = '\0';
    for (char **word = words; *word != NULL; word++)
        snprintf(nested + strlen(nested), sizeof(nested) - strlen(nested), "%s%s",
                 nested[0] != '\0' ? " " : "", *word);
    nested_free(words);
    return nested;
}

TEST(the_nested_run_has_the_options_and_the_other_names)
{
    ck_assert_str_eq(nest("run --also b a make"),
                     "/proc/self/exe run --timeout=5000ms --on-lost=15 --grace=10000ms "
                     "-- b -- make");
    ck_assert_str_eq(nest("--json --url unix:/x run --timeout 1s --ttl 1m -w 2m --fence --also d "
                          "--on-lost INT --also c --grace 0 -q -E 99 --also -b a -- -- ls -l"),
                     "/proc/self/exe run --json --fence --quiet --ttl=60000ms --wait=120000ms "
                     "--timeout=1000ms --on-lost=2 --grace=0ms --conflict-exit=99 "
                     "--also c --also d -- a -- -- ls -l");
    ck_assert_ptr_nonnull(strstr(nest("run -n --also b a make"), " --wait=0ms "));
}

/* Nested again and again, with the largest numbers, until one name is left. */
TEST(the_nested_run_can_be_nested_again)
{
    char line[LINE_SIZE] = "run --ttl 87600h --wait 87600h --timeout 87600h --grace 87600h "
                           "--on-lost 31 -E 255 --json --fence --quiet";
    for (char name = 'b'; name <= 'p'; name++)
        snprintf(line + strlen(line), sizeof(line) - strlen(line), " --also %c", name);
    snprintf(line + strlen(line), sizeof(line) - strlen(line), " a -- make");
    for (char name = 'b'; name <= 'p'; name++) {
        char end[32];
        snprintf(end, sizeof(end), " -- %c -- make", name);
        snprintf(line, sizeof(line), "%s", nest(line) + strlen("/proc/self/exe "));
        ck_assert_msg(strstr(line, end) != NULL, "%s", line);
    }
    ck_assert_str_eq(line, "run --json --fence --quiet --ttl=315360000000ms --wait=315360000000ms "
                           "--timeout=315360000000ms --on-lost=31 --grace=315360000000ms "
                           "--conflict-exit=255 -- p -- make");
}
