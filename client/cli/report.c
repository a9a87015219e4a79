#include "client/cli/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "client/cli/command.h"
#include "client/cli/exits.h"

void report_message(const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    flockfile(stderr);
    fputs("redlock: ", stderr);
    vfprintf(stderr, form, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(arguments);
}

struct json report_begin(const char *status)
{
    struct json json = {.out = stdout};
    json_begin(&json, NULL, '{');
    json_text(&json, "status", status);
    return json;
}

void report_end(struct json *json)
{
    json_end(json, '}');
    fputc('\n', json->out);
}

int report_failure(const struct options *options, const struct redlock *redlock,
                   enum redlock_status status, int64_t hint_ms)
{
    report_message("%s", redlock_error(redlock));
    if (options->json) {
        struct json json = report_begin(redlock_status_word(status));
        if (status == REDLOCK_HELD)
            json_number(&json, "hint_ms", hint_ms);
        json_text(&json, "message", redlock_error(redlock));
        report_end(&json);
    }
    return exit_of(status);
}

int report_wrong(const struct options *options, const char *what)
{
    report_message("%s", what);
    if (options->command != NULL)
        report_message("`redlock help %s` tells how it is used", options->command->name);
    else
        report_message("`redlock help` lists the commands");
    if (options->json) {
        struct json json = report_begin(redlock_status_word(REDLOCK_INVALID));
        json_text(&json, "message", what);
        report_end(&json);
    }
    return EXIT_FAILED;
}
