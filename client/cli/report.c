#include "client/cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/command.h"
#include "protocol/text.h"

enum { MESSAGE_SIZE = 4096, NAME_SHOWN = 40 };

/* In one piece, since the command may be writing there as well. */
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
    json_begin(&json, NULL, '{');
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

/* What is about the lock, and not about what is in the way to the daemon, has a code of its own.
 * EXIT_WAITED is for those to tell who have waited. */
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
    if (code != EXIT_FAILED && options->name != NULL)
        report_message("%s: %s", report_name(options->name, name), message);
    else
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
    /* What the daemon says is about requests; this, about whoever has typed none. */
    if (status == REDLOCK_DENIED && options->secret_file == NULL &&
        strstr(message, "authenticate first") != NULL)
        report_message("--secret-file, or REDLOCK_SECRET_FILE, names the file with the secret");
    return code;
}

int report_wrong(const struct options *options, const char *what)
{
    report_message("%s", what);
    if (options->command != NULL)
        report_message("`redlock help %s` tells how it is used", options->command->name);
    else
        report_message("`redlock help` lists the commands");
    if (options->json) {
        struct json json = report_begin(options, REDLOCK_INVALID);
        json_text(&json, "message", what);
        report_end(&json);
    }
    return EXIT_FAILED;
}
