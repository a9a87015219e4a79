/*
 * The commands nodes, locks, stats and clients. They print a table on a terminal, JSON with --json,
 * and otherwise the lines as the daemon sends them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/daemon.h"
#include "client/cli/report.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "protocol/limits.h"

/* The last line is "more=" if the daemon has truncated the listing. */
enum { LINES_MAX = LIMIT_LISTING_LINES + 1, LISTING_SIZE = 512 };

struct lines {
    char *line[LINES_MAX];
    size_t count;
    bool too_many;
    bool no_memory;
};

static void keep(void *context, const char *text)
{
    struct lines *lines = context;
    if (lines->count == LINES_MAX) {
        lines->too_many = true;
        return;
    }
    char *copy = strdup(text);
    if (copy == NULL)
        lines->no_memory = true;
    else
        lines->line[lines->count++] = copy;
}

static void write_json(const struct lines *lines)
{
    struct json json = {.out = stdout};
    json_begin(&json, '[');
    for (size_t i = 0; i < lines->count; i++) {
        const char *at = lines->line[i];
        struct field field;
        json_begin(&json, '{');
        while (field_next(&at, &field)) {
            enum field_kind kind = field_kind(&field);
            const char *truth = field_has_value(&field, "yes") ? "true" : "false";
            const char *word = kind == FIELD_NONE ? "null" : truth;
            struct json_view key = {field.key, field.key_len};
            struct json_view value = {field.value, field.value_len};
            if (kind == FIELD_TEXT)
                json_text_view(&json, key, value);
            else if (kind == FIELD_NUMBER)
                json_raw_view(&json, key, value);
            else
                json_raw_view(&json, key, (struct json_view){word, strlen(word)});
        }
        json_end(&json, '}');
    }
    json_end(&json, ']');
    putchar('\n');
}

/* If the daemon has truncated the listing, its last line is "more=5". */
static void write_table(const struct lines *lines, const char *what)
{
    size_t count = lines->count;
    const char *more = count > 0 ? lines->line[count - 1] : "";
    bool cut = strncmp(more, "more=", 5) == 0;
    count -= cut ? 1 : 0;
    table_print(stdout, (const char *const *)lines->line, count,
                terminal_has_colours(STDOUT_FILENO));
    fflush(stdout);
    if (cut)
        report_message("%s more %s are not listed", more + 5, what);
    else if (count == 0)
        report_message("no %s", what);
}

static void write_lines(const struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        puts(lines->line[i]);
}

static int report_too_many(const struct options *options)
{
    char what[64];
    snprintf(what, sizeof(what), "redlockd sent a listing of more than %d lines", LINES_MAX);
    return report_status(options, REDLOCK_GARBLED, -1, what);
}

int command_listing(const struct options *options)
{
    char listing[LISTING_SIZE];
    struct lines lines = {.count = 0};
    /* "locks deploy" */
    snprintf(listing, sizeof(listing), "%s%s%s", options->command->name,
             options->name != NULL ? " " : "", options->name != NULL ? options->name : "");
    struct redlock *redlock = daemon_open(options);
    enum redlock_status status = redlock_list(redlock, listing, keep, &lines);
    int code = EXIT_DONE;
    if (status != REDLOCK_OK)
        code = report_failure(options, redlock, status, -1);
    else if (lines.too_many)
        code = report_too_many(options);
    else if (lines.no_memory)
        code = report_status(options, REDLOCK_MEMORY, -1, "out of memory for the listing");
    else if (options->json)
        write_json(&lines);
    else if (isatty(STDOUT_FILENO))
        write_table(&lines, options->command->name);
    else
        write_lines(&lines);
    for (size_t i = 0; i < lines.count; i++)
        free(lines.line[i]);
    redlock_free(redlock);
    return code;
}
