/*
 * The fixture of most tests of `redlock run`: three masters, a daemon, and one `redlock run` at a
 * time.
 */
#ifndef TESTS_E2E_RUN_FIXTURE_H
#define TESTS_E2E_RUN_FIXTURE_H

#include "tests/e2e/run.h"

extern struct stage stage;
extern struct wrapper wrapper;

/* For struct runner_settings. */
void run_set_up(void);
void run_tear_down(void);

/* Starts `redlock run` with these arguments. Its output goes to run.out and run.err in the sandbox.
 * run() also waits for the end and returns the exit code. */
void start(const char *const *words);
int run(const char *const *words);

#endif
