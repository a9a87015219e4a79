/*
 * Acquires a lock for `redlock lock` and `redlock run`: waits in the queue, shows the wait on a
 * terminal, and connects and waits again if the daemon went away.
 */
#ifndef CLIENT_CLI_WAIT_H
#define CLIENT_CLI_WAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/c/redlock.h"
#include "client/cli/options.h"

/* Handles signals that stop or end the process during the wait. A stopped process must not be
 * granted a lock that it cannot use, and the lock of a process that has ended would stay held for
 * its TTL. So these signals are blocked, and redlock leaves the queue before one of them acts. */
struct suspension {
    sigset_t mask;    /* signal mask before suspension_begin() */
    sigset_t handled; /* SIGTSTP and signals that end the process */
    int fd;           /* signalfd, readable when one of these is pending; -1: none is handled */
};

/* Blocks the signals to handle, unless they are ignored or blocked already. Also blocks SIGTTOU, so
 * that a message from the background does not stop the process. */
void suspension_begin(struct suspension *suspension);
void suspension_end(struct suspension *suspension);
/* Ends the handling, but leaves the signals blocked for the caller to handle. Returns the signal
 * mask before suspension_begin(), valid as long as *suspension. */
const sigset_t *suspension_hand_over(struct suspension *suspension);

/*
 * Acquires the lock that the options name, like redlock_acquire(). With `hold`, the lock is a HOLD
 * with LINGER. If the daemon is unreachable at first, returns REDLOCK_UNREACHABLE at once. If the
 * daemon goes away later, retries until the wait is over. On ^Z, leaves the queue, and joins it
 * again after SIGCONT. On a signal that ends the process, leaves the queue, or releases the lock,
 * and does not return.
 */
enum redlock_status wait_for_lock(struct redlock *redlock, const struct options *options, bool hold,
                                  const struct suspension *suspension, struct redlock_lock *lock,
                                  int64_t *hint_ms);

/* After wait_for_lock(): waits until standard output can take a line. False if the lock expires
 * first. On a signal that ends the process, releases the lock and does not return. */
bool wait_for_output(const struct suspension *suspension, struct redlock *redlock,
                     struct redlock_lock *lock);

/* Reports that the lock was not acquired. Returns the exit code. */
int wait_report(const struct options *options, const struct redlock *redlock,
                enum redlock_status status, int64_t hint_ms);

#endif
