/*
 * Run the daemon's program to its end, and look at what it printed.
 */
#ifndef TESTS_E2E_COMMAND_H
#define TESTS_E2E_COMMAND_H

#include "tests/e2e/sandbox.h"

struct command {
    int status; /* it exited with */
    char *output;
    char *errors;
};

/* argv[0] is the program; ends with NULL. The test fails if it does not end, or by a signal. */
void command_run(struct command *command, const struct sandbox *sandbox, const char *const *argv);
void command_free(struct command *command);

#endif
