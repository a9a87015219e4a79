/*
 * Runs a program to its end and collects its output.
 */
#ifndef TESTS_E2E_COMMAND_H
#define TESTS_E2E_COMMAND_H

#include "tests/e2e/sandbox.h"

struct command {
    int status; /* exit status */
    char *output;
    char *errors;
};

/* Runs argv (ends with NULL). The test fails if the program hangs or is killed by a signal. */
void command_run(struct command *command, const struct sandbox *sandbox, const char *const *argv);
void command_free(struct command *command);

#endif
