/*
 * The main() of every test program: runs the suite that the program's test file defines.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runner.h"

#undef _tcase_add_test

static unsigned shard = 1;
static unsigned shards = 1;
static unsigned added;
static unsigned named;

void runner_add_test(TCase *tests, const TTest *test, int signal, int status, int start, int end)
{
    const char *only = getenv("ONLY");
    if (only != NULL && strcmp(only, test->name) != 0)
        return;
    named++;
    for (int i = start; i < end; i++)
        if (added++ % shards == shard - 1)
            _tcase_add_test(tests, test, signal, status, i, i + 1);
}

static void read_shard(void)
{
    const char *setting = getenv("SHARD");
    if (setting == NULL ||
        (sscanf(setting, "%u/%u", &shard, &shards) == 2 && shard >= 1 && shard <= shards))
        return;
    fprintf(stderr, "SHARD must be like 1/3, not %s\n", setting);
    exit(2);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    read_shard();
    SRunner *runner = srunner_create(test_suite());
    /* Check would report success for a program without tests. */
    const char *only = getenv("ONLY");
    if (only != NULL && named == 0) {
        fprintf(stderr, "no test of this program is called %s\n", only);
        exit(2);
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
