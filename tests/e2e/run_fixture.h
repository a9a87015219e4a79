/*
 * The fixture of most tests of `redlock run`: a stage of three masters, and one command at a time
 * on it.
 */
#ifndef TESTS_E2E_RUN_FIXTURE_H
#define TESTS_E2E_RUN_FIXTURE_H

#include "tests/e2e/run.h"

extern struct stage stage;
extern struct wrapper wrapper;

/* For tcase_add_checked_fixture(). */
void run_set_up(void);
void run_tear_down(void);

/* Start `redlock run` with these words; what is printed goes to run.out and run.err of the sandbox.
 * run() also waits for its end and returns its exit code. */
void start(const char *const *words);
int run(const char *const *words);

#endif
