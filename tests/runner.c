/*
 * The main() of every test program: runs the suite that the program's test file defines.
 */
#include <check.h>
#include <signal.h>
#include <stdlib.h>

#include "tests/runner.h"

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    SRunner *runner = srunner_create(test_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
