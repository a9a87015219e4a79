/*
 * One `redlock run` under test: the program $REDLOCK (build/redlock by default), its output files
 * and its processes.
 */
#ifndef TESTS_E2E_WRAPPER_H
#define TESTS_E2E_WRAPPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/e2e/sandbox.h"

struct wrapper {
    const struct sandbox *sandbox;
    char output[SANDBOX_FILE]; /* standard output of the command and of redlock */
    char errors[SANDBOX_FILE];
    pid_t pid; /* the parent process */
};

/* The path of the program under test. */
const char *wrapper_program(void);

/* Starts `redlock run --url unix:SOCKET words...`; the words end with NULL. Its output goes to
 * NAME.out and NAME.err. */
void wrapper_start(struct wrapper *wrapper, const struct sandbox *sandbox, const char *name,
                   const char *socket, const char *const *words);

/* Waits for the end and returns the exit code. Fails if a signal ended the process. */
int wrapper_wait(struct wrapper *wrapper);

/* Starts `redlock run` and waits for its exit code. */
int wrapper_run(struct wrapper *wrapper, const struct sandbox *sandbox, const char *socket,
                const char *const *words);

/* Waits for the supervisor or the command and returns its PID. */
pid_t wrapper_supervisor(const struct wrapper *wrapper);
pid_t wrapper_command(const struct wrapper *wrapper);

/* Waits until the text is on standard output or standard error. */
void wrapper_wait_output(const struct wrapper *wrapper, const char *text);
void wrapper_wait_errors(const struct wrapper *wrapper, const char *text);

/* Collects the PIDs that the command has printed as "pid N", one per line. Returns their number. */
unsigned wrapper_printed_pids(const struct wrapper *wrapper, pid_t *pids, unsigned max);

/* Returns the number of occurrences of the text on standard output. */
unsigned wrapper_count_output(const struct wrapper *wrapper, const char *text);
/* True if the text is on standard error. */
bool wrapper_complained(const struct wrapper *wrapper, const char *text);

#endif
