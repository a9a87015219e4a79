/*
 * `redlock run`.
 */
#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/front.h"
#include "client/cli/wait.h"

int command_run(const struct options *options)
{
    struct redlock_lock lock;
    int64_t hint_ms = -1;
    int code;
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = wait_for_lock(redlock, options, true, &lock, &hint_ms);
    if (status == REDLOCK_OK)
        code = front_run(options, redlock, &lock);
    else
        code = wait_report(options, redlock, status, hint_ms);
    redlock_free(redlock);
    return code;
}
