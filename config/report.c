#include "config/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/memory.h"
#include "protocol/text.h"

/* Escape the text for display. Text from the file or the environment can contain any byte. */
static char *escape(const char *text)
{
    size_t len = strlen(text);
    struct text escaped = {.size = len * strlen("\\x1b")};
    escaped.buf = memory_zeroed(escaped.size + 1, 1);
    text_escape(&escaped, text, len, TEXT_ASCII);
    return escaped.buf;
}

static bool is_after(struct position a, struct position b)
{
    return a.line != b.line ? a.line > b.line : a.column > b.column;
}

/* Insert a finding after all findings whose position is earlier or the same. Takes ownership of the
 * text. */
static void insert(struct report *report, struct position position, char *text)
{
    unsigned at = report->count;
    while (at > 0 && is_after(report->findings[at - 1].position, position))
        at--;
    if (report->count == REPORT_LINES_MAX) {
        report->left_out++;
        if (at == REPORT_LINES_MAX) {
            free(text);
            return;
        }
        free(report->findings[--report->count].text);
    }
    memmove(&report->findings[at + 1], &report->findings[at],
            (report->count - at) * sizeof(report->findings[0]));
    report->findings[at] = (struct finding){position, text};
    report->count++;
}

static void add(struct report *report, struct position position, const char *kind, const char *form,
                va_list arguments)
{
    char *text;
    size_t len;
    FILE *line = open_memstream(&text, &len);
    if (line == NULL)
        return;
    fputs(kind, line);
    vfprintf(line, form, arguments);
    fclose(line);
    insert(report, position, escape(text));
    free(text);
}

bool report_error(struct report *report, struct position position, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    add(report, position, "", form, arguments);
    va_end(arguments);
    report->errors++;
    return false;
}

void report_warning(struct report *report, struct position position, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    add(report, position, "warning: ", form, arguments);
    va_end(arguments);
}

void report_print(struct report *report, FILE *out)
{
    for (unsigned i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];
        fprintf(out, "%s:%zu:%zu: %s\n", report->file, finding->position.line,
                finding->position.column, finding->text);
        free(finding->text);
    }
    if (report->left_out > 0)
        fprintf(out, "%s: %u more lines are left out\n", report->file, report->left_out);
    *report = (struct report){.file = report->file};
}
