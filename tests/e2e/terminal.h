/*
 * Runs a program on a pseudo-terminal and collects what it shows.
 */
#ifndef TESTS_E2E_TERMINAL_H
#define TESTS_E2E_TERMINAL_H

/* Runs argv (ends with NULL) and returns the terminal's output without CRs, to be freed.
 * *status is that of waitpid(2). The test fails if the program hangs. */
char *terminal_run(const char *const *argv, int *status);

#endif
