/*
 * `redlock lock`.
 */
#include <inttypes.h>
#include <stdio.h>

#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/exits.h"
#include "client/cli/report.h"

/* The longest wait that the daemon takes. */
enum { DAY_MS = 24 * 3600 * 1000, NS_PER_MS = 1000000 };

static enum redlock_status acquire(struct redlock *redlock, const struct options *options,
                                   struct redlock_lock *lock, int64_t *hint_ms)
{
    int64_t left_ms = options->wait_ms;
    enum redlock_status status;
    bool again;
    do {
        bool long_wait = left_ms == WAIT_FOREVER || left_ms > DAY_MS;
        struct redlock_wish wish = {.wait_ms = long_wait ? DAY_MS : left_ms,
                                    .fence = options->fence};
        status = redlock_acquire(redlock, options->name, options->ttl_ms, &wish, lock, hint_ms);
        left_ms -= long_wait && left_ms != WAIT_FOREVER ? DAY_MS : 0;
        again = status == REDLOCK_HELD && long_wait;
    } while (again);
    return status;
}

static void print_lock(const struct options *options, const struct redlock_lock *lock)
{
    if (options->json) {
        struct json json = report_begin(redlock_status_word(REDLOCK_OK));
        json_text(&json, "resource", lock->resource);
        json_text(&json, "token", lock->token);
        json_number(&json, "left_ms", redlock_left_ms(lock));
        json_number(&json, "deadline_ms", lock->deadline_ns / NS_PER_MS);
        if (options->fence)
            json_number(&json, "fence", lock->fence);
        report_end(&json);
    } else if (options->fence) {
        printf("%s %" PRId64 "\n", lock->token, lock->fence);
    } else {
        puts(lock->token);
    }
}

int command_lock(const struct options *options)
{
    struct redlock_lock lock;
    int64_t hint_ms = -1;
    int code = EXIT_DONE;
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = acquire(redlock, options, &lock, &hint_ms);
    if (status != REDLOCK_OK) {
        code = report_failure(options, redlock, status, hint_ms);
        if (status == REDLOCK_HELD && options->wait_ms != 0)
            code = EXIT_WAITED;
    } else {
        print_lock(options, &lock);
        /* Nobody could give it back whose token was not told to anybody. */
        if (fflush(stdout) != 0)
            (void)redlock_release(redlock, &lock);
    }
    redlock_free(redlock);
    return code;
}
