/*
 * One `redlock run` under test: the program that $REDLOCK names (build/redlock without it), with
 * files of its own for what is printed, and a look at its processes.
 */
#ifndef TESTS_E2E_WRAPPER_H
#define TESTS_E2E_WRAPPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/e2e/sandbox.h"

struct wrapper {
    const struct sandbox *sandbox;
    char output[SANDBOX_FILE]; /* of the command and of redlock */
    char errors[SANDBOX_FILE];
    pid_t pid; /* the parent: what was started */
};

/* The program under test. */
const char *wrapper_program(void);

/* Start `redlock run --url unix:SOCKET words...`; the words end with NULL. */
void wrapper_start(struct wrapper *wrapper, const struct sandbox *sandbox, const char *name,
                   const char *socket, const char *const *words);

/* Wait for its end; returns its exit code, and fails if it was ended by a signal. */
int wrapper_wait(struct wrapper *wrapper);

/* Start and wait. */
int wrapper_run(struct wrapper *wrapper, const struct sandbox *sandbox, const char *socket,
                const char *const *words);

/* Its two other processes, once they are there. */
pid_t wrapper_supervisor(const struct wrapper *wrapper);
pid_t wrapper_command(const struct wrapper *wrapper);

/* Wait until it has printed this, on standard output or standard error. */
void wrapper_wait_output(const struct wrapper *wrapper, const char *text);
void wrapper_wait_errors(const struct wrapper *wrapper, const char *text);

/* The processes whose numbers the command has printed, one in each line "pid N". */
unsigned wrapper_printed_pids(const struct wrapper *wrapper, pid_t *pids, unsigned max);

/* How often has it printed this, on standard output? */
unsigned wrapper_count_output(const struct wrapper *wrapper, const char *text);
/* Is it on standard error? */
bool wrapper_complained(const struct wrapper *wrapper, const char *text);

#endif
