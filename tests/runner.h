/*
 * What a test program defines, and tests/runner.c runs.
 */
#ifndef TESTS_RUNNER_H
#define TESTS_RUNNER_H

#include <check.h>

Suite *test_suite(void);

#endif
