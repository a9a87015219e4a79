#include "client/cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/command.h"
#include "protocol/text.h"

enum { MESSAGE_SIZE = 4096, NAME_SHOWN = 40 };

/* Writes the message with one call. COMMAND of `redlock run` writes to the same standard error, and
 * its output could otherwise end up in the middle of the message. */
void report_message(const char *form, ...)
{
    char text[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(text, sizeof(text), form, arguments);
    va_end(arguments);
    fprintf(stderr, "redlock: %s\n", text);
}

const char *report_name(const char *name, char buf[REPORT_NAME])
{
    struct text text = {.buf = buf, .size = REPORT_NAME - 1};
    size_t len = strlen(name), plain = 0;
    while (name[plain] > ' ' && name[plain] <= '~')
        plain++;
    if (plain == len && len <= NAME_SHOWN)
        text_bytes(&text, name, len);
    else
        text_quoted(&text, name, len, NAME_SHOWN);
    buf[text.len] = '\0';
    return buf;
}

struct json report_begin(const struct options *options, enum redlock_status status)
{
    struct json json = {.out = stdout};
    json_begin(&json, '{');
    json_text(&json, "status", redlock_status_word(status));
    if (options->name != NULL)
        json_text(&json, "resource", options->name);
    return json;
}

void report_end(struct json *json)
{
    json_end(json, '}');
    fputc('\n', json->out);
}

/* Results that concern the lock have their own exit codes; all other failures share EXIT_FAILED.
 * If `redlock lock` or `redlock run` does not get the lock, wait_report() replaces EXIT_HELD with
 * EXIT_WAITED or the exit status of --conflict-exit. */
static int exit_of(enum redlock_status status)
{
    if (status == REDLOCK_HELD || status == REDLOCK_GONE)
        return EXIT_HELD;
    return status == REDLOCK_NOQUORUM || status == REDLOCK_LATE ? EXIT_NOQUORUM : EXIT_FAILED;
}

int report_status(const struct options *options, enum redlock_status status, int64_t hint_ms,
                  const char *message)
{
    char name[REPORT_NAME];
    int code = exit_of(status);
    bool silent = options->quiet && status == REDLOCK_HELD;
    if (!silent && code != EXIT_FAILED && options->name != NULL)
        report_message("%s: %s", report_name(options->name, name), message);
    else if (!silent)
        report_message("%s", message);
    if (options->json) {
        struct json json = report_begin(options, status);
        if (status == REDLOCK_HELD)
            json_number(&json, "hint_ms", hint_ms);
        json_text(&json, "message", message);
        report_end(&json);
    }
    return code;
}

int report_failure(const struct options *options, const struct redlock *redlock,
                   enum redlock_status status, int64_t hint_ms)
{
    const char *message = redlock_error(redlock);
    int code = report_status(options, status, hint_ms, message);
    /* The daemon's message explains AUTH of the protocol; add the option of the command line. */
    if (status == REDLOCK_DENIED && options->secret_file == NULL &&
        strstr(message, "authenticate first") != NULL)
        report_message("set --secret-file or REDLOCK_SECRET_FILE to the file with the secret");
    if (status == REDLOCK_UNREACHABLE && strcmp(options->url, OPTIONS_DEFAULT_URL) == 0)
        report_message("is redlockd running? --url or REDLOCK_URL names another address");
    if (status == REDLOCK_NOQUORUM)
        report_message("`redlock nodes` shows why these masters cannot vote, and for how long");
    return code;
}

int report_wrong(const struct options *options, const char *what)
{
    report_message("%s", what);
    if (options->command != NULL)
        report_message("`redlock help %s` describes the command", options->command->name);
    else
        report_message("`redlock help` lists the commands");
    if (options->json) {
        struct json json = report_begin(options, REDLOCK_INVALID);
        json_text(&json, "message", what);
        report_end(&json);
    }
    return EXIT_FAILED;
}
