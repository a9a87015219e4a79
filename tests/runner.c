/*
 * The main() of every test program. The environment can select tests: SHARD=2/3 runs only the
 * second, fifth, ... test of the program, where each iteration of a loop counts as one;
 * tests/run.sh sets SHARD to split a program over several processes. ONLY=name runs only the test
 * of that name; if the program has no such test, it fails.
 */
#include "tests/runner.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct runner_test *first;
static struct runner_test **last = &first;

void runner_add(struct runner_test *added)
{
    *last = added;
    last = &added->next;
}

const char *runner_test_name;

void runner_run(const char *name, void (*test)(int i), int i)
{
    bool set = &runner_settings != NULL;
    runner_test_name = name;
    if (set && runner_settings.setup != NULL)
        runner_settings.setup();
    test(i);
    if (set && runner_settings.teardown != NULL)
        runner_settings.teardown();
}

unsigned runner_setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void read_shard(unsigned *shard, unsigned *shards)
{
    const char *setting = getenv("SHARD");
    if (setting == NULL ||
        (sscanf(setting, "%u/%u", shard, shards) == 2 && *shard >= 1 && *shard <= *shards))
        return;
    fprintf(stderr, "SHARD must be like 1/3, not %s\n", setting);
    exit(2);
}

/* Adds the tests that the environment selects. */
static void add_tests(TCase *tests)
{
    unsigned shard = 1;
    unsigned shards = 1;
    read_shard(&shard, &shards);
    const char *only = getenv("ONLY");
    unsigned count = 0;
    for (const struct runner_test *each = first; each != NULL; each = each->next) {
        if (only != NULL && strcmp(only, each->test.name) != 0)
            continue;
        for (int i = each->from; i < each->end; i++)
            if (count++ % shards == shard - 1)
                tcase_add_loop_test(tests, &each->test, i, i + 1);
    }
    /* Check would report success for a program without tests. */
    if (count == 0) {
        fprintf(stderr, "no test of this program is called %s\n", only != NULL ? only : "anything");
        exit(2);
    }
}

static SRunner *make_runner(void)
{
    Suite *suite = suite_create(program_invocation_short_name);
    TCase *tests = tcase_create(program_invocation_short_name);
    if (&runner_settings != NULL && runner_settings.time_limit_s > 0)
        tcase_set_timeout(tests, runner_settings.time_limit_s);
    if (&runner_frame != NULL)
        tcase_add_unchecked_fixture(tests, runner_frame.open, runner_frame.close);
    add_tests(tests);
    suite_add_tcase(suite, tests);
    return srunner_create(suite);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    /* Check's own limit of four seconds is too short on a busy machine. */
    setenv("CK_DEFAULT_TIMEOUT", "300", 0);
    SRunner *runner = make_runner();
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
