/*
 * `redlock run`.
 */
#include "client/cli/brood.h"
#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/exits.h"
#include "client/cli/front.h"
#include "client/cli/wait.h"

/* Whoever waited and was stopped meanwhile may have little left of what it was granted. Undecided,
 * it stands as it is: the keeper asks again. */
static bool is_fresh(struct redlock *redlock, struct redlock_lock *lock)
{
    return redlock_left_ms(lock) >= lock->ttl_ms / 3 * 2 ||
           redlock_extend(redlock, lock, lock->ttl_ms) != REDLOCK_GONE;
}

int command_run(const struct options *options)
{
    struct redlock_lock lock;
    int64_t hint_ms = -1;
    int code;
    struct suspension suspension;
    const char *hidden = brood_is_hidden();
    if (hidden != NULL) {
        report_message("/proc does not show all that the command may start: %s", hidden);
        return EXIT_FAILED;
    }
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status;
    suspension_begin(&suspension);
    do
        status = wait_for_lock(redlock, options, true, &suspension, &lock, &hint_ms);
    while (status == REDLOCK_OK && !is_fresh(redlock, &lock));
    if (status == REDLOCK_OK) {
        code = front_run(options, redlock, &lock, suspension_hand_over(&suspension));
    } else {
        suspension_end(&suspension);
        code = wait_report(options, redlock, status, hint_ms);
    }
    redlock_free(redlock);
    return code;
}
