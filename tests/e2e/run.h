/*
 * What tests of `redlock run` share: their stage, and a command that is hard to kill.
 */
#ifndef TESTS_E2E_RUN_H
#define TESTS_E2E_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/stage.h"
#include "tests/e2e/wrapper.h"

#define WORDS(...)    ((const char *const[]){__VA_ARGS__, NULL})
#define SHELL(script) "--", "sh", "-c", script

extern const struct stage_plan run_plan;

/* A process tree that ignores TERM. Four of its processes print "pid N"; two of these four are in
 * sessions of their own, the other two in the session of the command. */
#define STUBBORN                                                                                   \
    "trap '' TERM; sh -c 'echo pid $$; while :; do sleep 0.02; done' &"                            \
    "setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 0.02; done' &"                   \
    "(setsid sh -c 'trap \"\" TERM; sh -c \"echo pid \\$\\$; exec sleep 600\" & wait' &) ;"        \
    "echo pid $$; while :; do sleep 0.02; done"
enum { STUBBORN_COUNT = 4 };

/* Waits until the STUBBORN_COUNT processes have printed their PIDs. run_any_runs() is true while
 * any of these processes runs, run_any_of() while any of the first `count` processes of `pids`
 * runs. */
void run_wait_stubborn(const struct wrapper *wrapper, pid_t *pids);
bool run_any_runs(const pid_t *pids);
bool run_any_of(const pid_t *pids, unsigned count);

/* run_wall_ms() returns the present time. run_expiry_ms_on() returns the time at which the key of
 * lock "a" expires on one master, and run_first_expiry_ms() the earliest of these times on all
 * masters. run_lock_expiry_ms() returns the earliest time at which two of three keys have expired:
 * the third may lag behind an extension that two masters have granted. All times are milliseconds
 * of the wall clock, which the test shares with the masters. */
int64_t run_wall_ms(void);
int64_t run_expiry_ms_on(struct stage *stage, unsigned master);
int64_t run_first_expiry_ms(struct stage *stage);
int64_t run_lock_expiry_ms(struct stage *stage);

/* Waits until all processes are gone, and fails if they were killed too late. With a TTL of 10 s,
 * `redlock run` kills the processes one second before the deadline, and the deadline is before the
 * lock expires. So when the last second before that expiry begins, the kill is due, and when this
 * second ends, all processes must be gone. This second is measured in processor time, which runs
 * more slowly on a busy machine. */
void run_wait_gone_before(const pid_t *pids, unsigned count, int64_t expiry_ms);

#endif
