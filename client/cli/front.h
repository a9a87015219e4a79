/*
 * The process of `redlock run` that was started: it lends its terminal to the command, passes on
 * signals, watches the keeper (keeper.h), and has the exit code.
 */
#ifndef CLIENT_CLI_FRONT_H
#define CLIENT_CLI_FRONT_H

#include <signal.h>

#include "client/cli/options.h"

struct redlock;
struct redlock_lock;

/* Run the command of the options under the lock, which the connection of the handle holds, to the
 * end of both. mask: the signals that are blocked for the command. Returns the exit code. */
int front_run(const struct options *options, struct redlock *redlock,
              const struct redlock_lock *lock, const sigset_t *mask);

#endif
