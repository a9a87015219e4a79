/*
 * ^Z while redlock waits in the queue: a stopped process must not be granted a lock, which it would
 * hold and not use. So the signal is taken where it can be acted upon first.
 */
#ifndef CLIENT_CLI_SUSPENSION_H
#define CLIENT_CLI_SUSPENSION_H

#include <signal.h>
#include <stdbool.h>

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

/* Has it been asked for? Then have the lock given to another, and suspension_stop(). */
bool suspension_is_due(const struct suspension *suspension);

/* Returns when we have been continued; at once, if that was since it was asked for. */
void suspension_stop(const struct suspension *suspension);

/* Around what may block, and cannot be granted a lock: SIGTSTP stops us at once. */
void suspension_allow(const struct suspension *suspension, bool allowed);

#endif
