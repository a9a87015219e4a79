/*
 * `redlock status` and `redlock ping`, questions that change nothing; and `redlock break`.
 */
#include <stdio.h>

#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/duration.h"
#include "client/cli/exits.h"

static void print_status(const struct options *options, enum redlock_status status, int64_t hint_ms)
{
    const char *word = redlock_status_word(status);
    char hint[DURATION_PRINTED];
    if (options->json) {
        struct json json = report_begin(word);
        json_text(&json, "resource", options->name);
        if (status == REDLOCK_HELD)
            json_number(&json, "hint_ms", hint_ms);
        report_end(&json);
    } else if (status == REDLOCK_HELD && hint_ms >= 0) {
        duration_print(hint_ms, hint);
        printf("%s %s\n", word, hint);
    } else {
        puts(word);
    }
}

int command_status(const struct options *options)
{
    int64_t hint_ms = -1;
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_query(redlock, options->name, &hint_ms);
    int code = EXIT_DONE;
    /* Held is an answer here, as good as free. */
    if (status == REDLOCK_HELD || status == REDLOCK_FREE)
        print_status(options, status, hint_ms);
    else
        code = report_failure(options, redlock, status, -1);
    redlock_free(redlock);
    return code;
}

int command_break(const struct options *options)
{
    int64_t hint_ms = -1;
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_break(redlock, options->name, &hint_ms);
    int code = EXIT_DONE;
    if (status != REDLOCK_OK && status != REDLOCK_FREE) {
        code = report_failure(options, redlock, status, hint_ms);
    } else if (options->json) {
        struct json json = report_begin(redlock_status_word(status));
        json_text(&json, "resource", options->name);
        report_end(&json);
    } else if (status == REDLOCK_FREE) {
        puts(redlock_status_word(status));
    }
    redlock_free(redlock);
    return code;
}

int command_ping(const struct options *options)
{
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_ping(redlock);
    int code = EXIT_DONE;
    if (status != REDLOCK_OK) {
        code = report_failure(options, redlock, status, -1);
    } else if (options->json) {
        struct json json = report_begin(redlock_status_word(status));
        json_text(&json, "url", options->url);
        report_end(&json);
    } else {
        puts("pong");
    }
    redlock_free(redlock);
    return code;
}
