/*
 * Getting a lock for a person or a script: wait in line, say so on a terminal, and begin again
 * where a daemon went away.
 */
#ifndef CLIENT_CLI_WAIT_H
#define CLIENT_CLI_WAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/c/redlock.h"
#include "client/cli/options.h"

/* ^Z in the queue: a stopped process must not be granted a lock, which it would hold and not use.
 * So the signal is taken where it can be acted upon first. */
struct suspension {
    sigset_t mask; /* as it was */
    int fd;        /* readable when redlock is to stop; -1: the signal is ignored, or as ever */
};

/* From now on SIGTSTP stops nothing, unless it was ignored or blocked before. Nor does a message
 * that is written from the background stop us. */
void suspension_begin(struct suspension *suspension);
void suspension_end(struct suspension *suspension);
/* The same, but SIGTSTP stays blocked, for the caller to take it from now on. Returns the signals
 * that were blocked before; they live as long as *suspension. */
const sigset_t *suspension_hand_over(struct suspension *suspension);

/*
 * Acquire what the options name, as redlock_acquire() does; with `hold` for as long as the
 * connection lives. A daemon that is not there at first is REDLOCK_UNREACHABLE at once; one
 * that goes away later is looked for until the wait is over. A suspension leaves the queue, and
 * joins it again when it is over.
 */
enum redlock_status wait_for_lock(struct redlock *redlock, const struct options *options, bool hold,
                                  const struct suspension *suspension, struct redlock_lock *lock,
                                  int64_t *hint_ms);

/* It was not acquired: say so. Returns what to exit with. */
int wait_report(const struct options *options, const struct redlock *redlock,
                enum redlock_status status, int64_t hint_ms);

#endif
