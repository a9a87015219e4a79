/*
 * `redlock unlock` and `redlock extend`: what is done with a token.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/clock.h"
#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/duration.h"
#include "client/cli/exits.h"
#include "client/cli/ttl.h"
#include "protocol/units.h"

static bool is_token(const char *text, size_t len)
{
    return len == REDLOCK_TOKEN_LEN && strspn(text, "0123456789abcdef") >= len;
}

/* The lock that NAME and TOKEN are. False: *what says what is wrong with them; a token is a secret,
 * and never quoted. */
static bool find_lock(const struct options *options, struct redlock_lock *lock, const char **what)
{
    char line[256] = "";
    const char *token = options->token != NULL ? options->token : getenv("REDLOCK_TOKEN");
    if (token == NULL) {
        *what = "a TOKEN is missing, and REDLOCK_TOKEN is not set";
        return false;
    }
    if (strcmp(token, "-") == 0) {
        if (fgets(line, sizeof(line), stdin) == NULL) {
            *what = "there is no TOKEN on standard input";
            return false;
        }
        token = line;
    }
    /* Of "TOKEN FENCE", as lock prints it, too. */
    size_t len = strcspn(token, " \n");
    if (!is_token(token, len)) {
        *what = options->token != NULL
                    ? "TOKEN has 40 hex digits in lower case, as lock printed it; this has not"
                    : "REDLOCK_TOKEN has 40 hex digits in lower case; this has not";
        return false;
    }
    *lock = (struct redlock_lock){0};
    memcpy(lock->resource, options->name, strlen(options->name));
    memcpy(lock->token, token, len);
    return true;
}

int command_unlock(const struct options *options)
{
    struct redlock_lock lock;
    const char *what;
    if (!find_lock(options, &lock, &what))
        return report_wrong(options, what);
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_release(redlock, &lock);
    int code = EXIT_DONE;
    if (status != REDLOCK_OK) {
        code = report_failure(options, redlock, status, -1);
    } else if (options->json) {
        struct json json = report_begin(redlock_status_word(status));
        json_text(&json, "resource", lock.resource);
        report_end(&json);
    }
    redlock_free(redlock);
    return code;
}

static void print_extended(const struct options *options, const struct redlock_lock *lock)
{
    int64_t left_ms = redlock_left_ms(lock);
    left_ms = left_ms > 0 ? left_ms : 0;
    if (options->json) {
        struct json json = report_begin(redlock_status_word(REDLOCK_OK));
        json_text(&json, "resource", lock->resource);
        json_number(&json, "left_ms", left_ms);
        json_number(&json, "deadline_ms", lock->deadline_ns / NS_PER_MS);
        report_end(&json);
    } else {
        char left[DURATION_PRINTED];
        duration_print(left_ms, left);
        /* Nothing is shortened: it may have been good for longer, which the token does not tell. */
        printf("at least %s\n", left);
    }
}

/* For the time that was asked for; without one, for the usual, or for as long as the daemon allows
 * where that is less. */
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
    const char *what;
    if (!find_lock(options, &lock, &what))
        return report_wrong(options, what);
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = extend(options, redlock, &lock);
    int code = EXIT_DONE;
    if (status == REDLOCK_OK)
        print_extended(options, &lock);
    else
        code = report_failure(options, redlock, status, -1);
    redlock_free(redlock);
    return code;
}
