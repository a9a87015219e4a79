/*
 * What a test program defines, and tests/runner.c runs.
 */
#ifndef TESTS_RUNNER_H
#define TESTS_RUNNER_H

#include <check.h>

Suite *test_suite(void);

/*
 * Adds a test as Check's own function does, unless it belongs to another process: SHARD=2/3 runs
 * the second, fifth, ... of the tests of a program, where each turn of a loop test counts as one.
 * So tests/run.sh divides a program among several processes. ONLY=name runs that test alone.
 */
void runner_add_test(TCase *tests, const TTest *test, int signal, int status, int start, int end);
#define _tcase_add_test runner_add_test

#endif
