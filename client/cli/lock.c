/*
 * The commands lock, unlock, extend, status, break and ping. Each of them does one thing and ends.
 * lock and extend may need several requests for that, for example a second one with a shorter TTL.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/duration.h"
#include "client/cli/report.h"
#include "client/cli/retry_policy.h"
#include "client/cli/shell.h"
#include "client/cli/wait.h"
#include "protocol/token.h"
#include "protocol/units.h"

/* Room for the longest resource name with each byte escaped (9 bytes each), and for about 1600
 * bytes of URL and file name. A longer command is cut off. */
enum { UNLOCK_SIZE = 4000 };

/* Ends a command and returns its exit code. answered: the request succeeded, and its output, if
 * any, has been printed. Otherwise reports the failure. */
static int finish_command(const struct options *options, struct redlock *redlock, bool answered,
                          enum redlock_status status, int64_t hint_ms)
{
    int code = answered ? EXIT_DONE : report_failure(options, redlock, status, hint_ms);
    redlock_free(redlock);
    return code;
}

/* --- lock --- */

static void print_lock(const struct options *options, const struct redlock_lock *lock)
{
    if (options->json) {
        struct json json = report_begin(options, REDLOCK_OK);
        json_text(&json, "token", lock->token);
        json_number(&json, "left_ms", redlock_left_ms(lock));
        json_number(&json, "deadline_ms", lock->deadline_ns / NS_PER_MS);
        if (options->fence)
            json_number(&json, "fence", lock->fence);
        if (options->slots > 0)
            json_text(&json, "slot", lock->resource);
        report_end(&json);
        return;
    }
    fputs(lock->token, stdout);
    if (options->fence)
        printf(" %" PRId64, lock->fence);
    if (options->slots > 0)
        printf(" %s", lock->resource);
    putchar('\n');
}

/* Formats the `redlock unlock` command for a shell, with the same daemon and the same user. */
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

/* On a terminal, also prints how to release the lock. */
static void explain(const struct options *options, const struct redlock_lock *lock)
{
    char left[DURATION_PRINTED], unlock[UNLOCK_SIZE] = "";
    struct text text = {.buf = unlock, .size = sizeof(unlock) - 1};
    int64_t left_ms = redlock_left_ms(lock);
    if (!isatty(STDOUT_FILENO) || left_ms <= 0)
        return;
    duration_print(left_ms, left);
    put_unlock(&text, options, lock);
    report_message("valid for %s; to release it:  %s", left, unlock);
}

int command_lock(const struct options *options)
{
    struct redlock_lock lock;
    int64_t hint_ms = -1;
    int code = EXIT_DONE;
    int error = 0;
    bool written = false;
    struct suspension suspension;
    struct redlock *redlock = daemon_open(options);
    suspension_begin(&suspension);
    enum redlock_status status =
        wait_for_lock(redlock, options, false, &suspension, &lock, &hint_ms);
    if (status == REDLOCK_OK) {
        /* Without its token the lock cannot be released. So neither a signal nor SIGPIPE may end
         * the process before the token is written, and if it cannot be written, release the lock
         * here. */
        signal(SIGPIPE, SIG_IGN);
        written = wait_for_output(&suspension, redlock, &lock);
        if (written)
            print_lock(options, &lock);
        else
            report_message("standard output: took nothing until the lock expired");
        if (fflush(stdout) != 0) {
            error = errno;
            written = false;
        }
        if (!written) {
            (void)redlock_release(redlock, &lock);
            code = EXIT_FAILED;
        }
    }
    suspension_end(&suspension);
    if (status != REDLOCK_OK)
        code = wait_report(options, redlock, status, hint_ms);
    else if (written && !options->json)
        explain(options, &lock);
    redlock_free(redlock);
    errno = error; /* main() prints the error */
    return code;
}

/* --- commands that take a token --- */

/* Sets the resource to NAME. But if the rest of the output of `lock --slots` names a slot of NAME,
 * that slot is meant. */
static void take_name(struct redlock_lock *lock, const char *name, const char *rest)
{
    size_t len = strlen(name);
    const char *slot = strrchr(rest, ' ');
    size_t slot_len = slot != NULL ? strcspn(++slot, "\n") : 0;
    bool named = slot_len > len && slot_len <= REDLOCK_RESOURCE_MAX &&
                 memcmp(slot, name, len) == 0 && slot[len] == '#';
    memcpy(lock->resource, named ? slot : name, named ? slot_len : len);
}

/* Fills the lock from NAME and TOKEN. Returns what is wrong, or NULL. The error never quotes the
 * token: it is a secret. */
static const char *find_lock(const struct options *options, struct redlock_lock *lock)
{
    char line[512] = "";
    const char *token = options->token != NULL ? options->token : getenv("REDLOCK_TOKEN");
    if (token == NULL)
        return "TOKEN is missing and REDLOCK_TOKEN is not set";
    if (strcmp(token, "-") == 0)
        token = fgets(line, sizeof(line), stdin);
    if (token == NULL)
        return "no TOKEN on standard input";
    /* The output of `lock --fence --slots` is "TOKEN FENCE NAME#K": take the first word. */
    size_t len = strcspn(token, " \n");
    if (!token_is(token, len))
        return options->token != NULL ? "TOKEN must be 40 lower-case hex digits, as printed by lock"
                                      : "REDLOCK_TOKEN must be 40 lower-case hex digits";
    *lock = (struct redlock_lock){0};
    memcpy(lock->token, token, len);
    take_name(lock, options->name, token + len);
    return NULL;
}

int command_unlock(const struct options *options)
{
    struct redlock_lock lock;
    const char *wrong = find_lock(options, &lock);
    if (wrong != NULL)
        return report_wrong(options, wrong);
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_release(redlock, &lock);
    if (status == REDLOCK_OK && options->json) {
        struct json json = report_begin(options, status);
        report_end(&json);
    }
    return finish_command(options, redlock, status == REDLOCK_OK, status, -1);
}

static void print_extended(const struct options *options, const struct redlock_lock *lock)
{
    int64_t left_ms = redlock_left_ms(lock);
    if (options->json) {
        struct json json = report_begin(options, REDLOCK_OK);
        json_number(&json, "left_ms", left_ms);
        json_number(&json, "deadline_ms", lock->deadline_ns / NS_PER_MS);
        report_end(&json);
    } else {
        char left[DURATION_PRINTED];
        duration_print(left_ms, left);
        /* "at least": an extension never shortens a lock, and the deadline that the lock had before
         * is unknown. */
        printf("at least %s\n", left);
    }
}

/* Extends the lock to live at least --ttl from now. Without --ttl, uses the default TTL or the
 * daemon's max_ttl, whichever is shorter. */
static enum redlock_status extend(const struct options *options, struct redlock *redlock,
                                  struct redlock_lock *lock)
{
    int64_t ttl_ms = options->ttl_ms;
    enum redlock_status status = redlock_extend(redlock, lock, ttl_ms);
    if (status == REDLOCK_REFUSED && (options->given & OPTION_BIT(OPTION_TTL)) == 0 &&
        ttl_shorten(redlock_error(redlock), &ttl_ms))
        status = redlock_extend(redlock, lock, ttl_ms);
    return status;
}

int command_extend(const struct options *options)
{
    struct redlock_lock lock;
    const char *wrong = find_lock(options, &lock);
    if (wrong != NULL)
        return report_wrong(options, wrong);
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = extend(options, redlock, &lock);
    if (status == REDLOCK_OK)
        print_extended(options, &lock);
    return finish_command(options, redlock, status == REDLOCK_OK, status, -1);
}

/* --- commands without a token --- */

/* held: how many slots are held, with --slots. */
static void print_status(const struct options *options, enum redlock_status status, int64_t hint_ms,
                         unsigned held)
{
    char hint[DURATION_PRINTED];
    if (options->json) {
        struct json json = report_begin(options, status);
        if (status == REDLOCK_HELD)
            json_number(&json, "hint_ms", hint_ms);
        if (options->slots > 0) {
            json_number(&json, "slots", options->slots);
            json_number(&json, "slots_held", held);
        }
        report_end(&json);
        return;
    }
    fputs(redlock_status_word(status), stdout);
    if (options->slots > 0)
        printf(" %u/%d", held, options->slots);
    if (status == REDLOCK_HELD && hint_ms >= 0) {
        duration_print(hint_ms, hint);
        printf(" %s", hint);
    }
    putchar('\n');
}

int command_status(const struct options *options)
{
    int64_t hint_ms = -1;
    unsigned held = 0;
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status =
        options->slots > 0
            ? redlock_query_slots(redlock, options->name, (unsigned)options->slots, &held, &hint_ms)
            : redlock_query(redlock, options->name, &hint_ms);
    /* HELD is a normal result of status, not a failure. */
    bool answered = status == REDLOCK_HELD || status == REDLOCK_FREE;
    if (answered)
        print_status(options, status, hint_ms, held);
    return finish_command(options, redlock, answered, status, hint_ms);
}

int command_break(const struct options *options)
{
    int64_t hint_ms = -1;
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_break(redlock, options->name, &hint_ms);
    bool answered = status == REDLOCK_OK || status == REDLOCK_FREE;
    if (answered && (options->json || status == REDLOCK_FREE))
        print_status(options, status, hint_ms, 0);
    return finish_command(options, redlock, answered, status, hint_ms);
}

int command_ping(const struct options *options)
{
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_ping(redlock);
    if (status == REDLOCK_OK && options->json) {
        struct json json = report_begin(options, status);
        json_text(&json, "url", options->url);
        report_end(&json);
    } else if (status == REDLOCK_OK) {
        puts("pong");
    }
    return finish_command(options, redlock, status == REDLOCK_OK, status, -1);
}
