/*
 * Run a program on a terminal of its own, and look at what it shows there.
 */
#ifndef TESTS_E2E_TERMINAL_H
#define TESTS_E2E_TERMINAL_H

/* argv[0] is the program; ends with NULL. Returns all that was written to the terminal, as it was
 * written but for the CR of each CR LF, to be freed; *status is what waitpid(2) says. The test
 * fails if it does not end. */
char *terminal_run(const char *const *argv, int *status);

#endif
