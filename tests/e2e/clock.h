/*
 * A wall clock of its own for a process: what tests/shim/clock.c, preloaded into it, adds to every
 * reading.
 */
#ifndef TESTS_E2E_CLOCK_H
#define TESTS_E2E_CLOCK_H

#include <stdint.h>

#include "tests/e2e/sandbox.h"

struct clock_file {
    char path[SANDBOX_FILE];
    /* For struct process_plan; lives as long as this. */
    const char *environment[7];
};

/* The clock of this name, in the sandbox; it agrees with ours until it is set. */
void clock_open(struct clock_file *clock, const struct sandbox *sandbox, const char *name);

/* How much it is ahead from now on. */
void clock_set(const struct clock_file *clock, int64_t ahead_s);
void clock_set_ms(const struct clock_file *clock, int64_t ahead_ms);

#endif
