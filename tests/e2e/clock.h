/*
 * A separate wall clock for a child process: tests/shim/clock.c, preloaded into the process, adds
 * an offset to each reading.
 */
#ifndef TESTS_E2E_CLOCK_H
#define TESTS_E2E_CLOCK_H

#include <stdint.h>

#include "tests/e2e/sandbox.h"

struct clock_file {
    char path[SANDBOX_FILE];
    /* For struct process_plan; valid as long as this struct. */
    const char *environment[7];
};

/* Opens the clock of this name in the sandbox. A new clock shows the time of the host until it is
 * set. */
void clock_open(struct clock_file *clock, const struct sandbox *sandbox, const char *name);

/* Sets how far the clock is ahead of the host. */
void clock_set(const struct clock_file *clock, int64_t ahead_s);
void clock_set_ms(const struct clock_file *clock, int64_t ahead_ms);

#endif
