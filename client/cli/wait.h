/*
 * Getting a lock for a person or a script: wait in line, say so on a terminal, and begin again
 * where a daemon went away.
 */
#ifndef CLIENT_CLI_WAIT_H
#define CLIENT_CLI_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/c/redlock.h"
#include "client/cli/options.h"
#include "client/cli/suspension.h"

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
