/*
 * What tests of `redlock run` share: the stage they play on, and a command that is hard to kill.
 */
#ifndef TESTS_E2E_RUN_H
#define TESTS_E2E_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/stage.h"
#include "tests/e2e/wrapper.h"

#define WORDS(...)    ((const char *const[]){__VA_ARGS__, NULL})
#define SHELL(script) "--", "sh", "-c", script

/* Three masters. */
extern const struct stage_plan run_plan;

/* A tree of processes that ignore TERM, in two groups and two sessions; each prints its number. */
#define STUBBORN                                                                                   \
    "trap '' TERM; sh -c 'echo pid $$; while :; do sleep 0.02; done' &"                            \
    "setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 0.02; done' &"                   \
    "(setsid sh -c 'trap \"\" TERM; sh -c \"echo pid \\$\\$; exec sleep 600\" & wait' &) ;"        \
    "echo pid $$; while :; do sleep 0.02; done"
enum { STUBBORN_COUNT = 4 };

/* The numbers of its processes, once all are there; does any of them still run? */
void run_wait_stubborn(const struct wrapper *wrapper, pid_t *pids);
bool run_any_runs(const pid_t *pids);
bool run_any_of(const pid_t *pids, unsigned count);

/* When the key of the lock "a" expires on one master, and on the first of all, by their clocks,
 * which are ours. */
int64_t run_wall_ms(void);
int64_t run_expiry_ms_on(struct stage *stage, unsigned master);
int64_t run_first_expiry_ms(struct stage *stage);

#endif
