/*
 * A test program defines test_suite(), and tests/runner.c runs it.
 */
#ifndef TESTS_RUNNER_H
#define TESTS_RUNNER_H

#include <check.h>

Suite *test_suite(void);

/*
 * Adds a test as Check's own function does, unless the environment leaves the test out. SHARD=2/3
 * runs only the second, fifth, ... test of a program, where each iteration of a loop test counts as
 * one; tests/run.sh sets SHARD to split a program over several processes. ONLY=name runs only the
 * test of that name; if the program has no such test, it fails.
 */
void runner_add_test(TCase *tests, const TTest *test, int signal, int status, int start, int end);
#define _tcase_add_test runner_add_test

#endif
