/*
 * `redlock lock`.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cli/clock.h"
#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/duration.h"
#include "client/cli/exits.h"
#include "client/cli/shell.h"
#include "client/cli/terminal.h"
#include "client/cli/wait.h"
#include "protocol/units.h"

enum { UNLOCK_SIZE = 4000 }; /* the longest name; and a url and a file that somebody may type */

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

/* For a shell. It finds the same daemon, and is the same user there. */
static void put_unlock(struct text *text, const struct options *options,
                       const struct redlock_lock *lock)
{
    text_string(text, "redlock unlock");
    if (options->given & OPTION_BIT(OPTION_URL)) {
        text_string(text, " --url");
        shell_word(text, options->url);
    }
    if (options->given & OPTION_BIT(OPTION_SECRET_FILE)) {
        text_string(text, " --secret-file");
        shell_word(text, options->secret_file);
    }
    if (lock->resource[0] == '-')
        text_string(text, " --");
    shell_word(text, lock->resource);
    shell_word(text, lock->token);
}

/* Whoever typed it wants to know what to do with that number; a script does not. */
static void explain(const struct options *options, const struct redlock_lock *lock)
{
    char left[DURATION_PRINTED], unlock[UNLOCK_SIZE] = "";
    struct text text = {.buf = unlock, .size = sizeof(unlock) - 1};
    int64_t left_ms = redlock_left_ms(lock);
    if (!terminal_is(STDOUT_FILENO) || left_ms <= 0)
        return;
    duration_print(left_ms, left);
    put_unlock(&text, options, lock);
    report_message("good for %s; to give it back:  %s", left, unlock);
}

int command_lock(const struct options *options)
{
    struct redlock_lock lock;
    int64_t hint_ms = -1;
    int code = EXIT_DONE;
    int unwritten = 0;
    struct suspension suspension;
    struct redlock *redlock = daemon_open(options);
    suspension_begin(&suspension);
    enum redlock_status status =
        wait_for_lock(redlock, options, false, &suspension, &lock, &hint_ms);
    suspension_end(&suspension);
    if (status != REDLOCK_OK) {
        code = wait_report(options, redlock, status, hint_ms);
    } else {
        /* Nobody could give it back whose token was not told to anybody; a reader who has gone must
         * not end us before we do. */
        signal(SIGPIPE, SIG_IGN);
        print_lock(options, &lock);
        if (fflush(stdout) != 0) {
            unwritten = errno;
            (void)redlock_release(redlock, &lock);
        } else if (!options->json) {
            explain(options, &lock);
        }
    }
    redlock_free(redlock);
    errno = unwritten; /* what is said of it in the end */
    return code;
}
