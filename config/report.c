#include "config/report.h"

#include <stdarg.h>
#include <stdlib.h>

static void add(struct report *report, struct mark mark, const char *kind, const char *form,
                va_list arguments)
{
    struct report_entry *entries =
        realloc(report->entries, (report->entry_count + 1) * sizeof(*entries));
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (entries == NULL || out == NULL)
        abort(); /* a configuration is read once, when there is nothing yet to lose */
    fputs(kind, out);
    vfprintf(out, form, arguments);
    fclose(out);
    entries[report->entry_count] = (struct report_entry){mark, report->entry_count, text};
    report->entries = entries;
    report->entry_count++;
}

void report_error(struct report *report, struct mark mark, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    add(report, mark, "", form, arguments);
    va_end(arguments);
    report->errors++;
}

void report_warning(struct report *report, struct mark mark, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    add(report, mark, "warning: ", form, arguments);
    va_end(arguments);
}

static int compare(const void *left, const void *right)
{
    const struct report_entry *a = left;
    const struct report_entry *b = right;
    if (a->mark.line != b->mark.line)
        return a->mark.line < b->mark.line ? -1 : 1;
    if (a->mark.column != b->mark.column)
        return a->mark.column < b->mark.column ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

void report_print(struct report *report, FILE *out)
{
    if (report->entry_count > 0)
        qsort(report->entries, report->entry_count, sizeof(report->entries[0]), compare);
    for (size_t i = 0; i < report->entry_count; i++) {
        const struct report_entry *entry = &report->entries[i];
        fprintf(out, "%s:%zu:%zu: %s\n", report->file, entry->mark.line, entry->mark.column,
                entry->text);
        free(entry->text);
    }
    free(report->entries);
    report->entries = NULL;
    report->entry_count = 0;
}
