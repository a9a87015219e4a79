#include "config/report.h"

#include <stdarg.h>

static void print(struct report *report, struct mark mark, const char *kind, const char *form,
                  va_list arguments)
{
    fprintf(report->out, "%s:%zu:%zu: %s", report->file, mark.line, mark.column, kind);
    vfprintf(report->out, form, arguments);
    fputc('\n', report->out);
}

void report_error(struct report *report, struct mark mark, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    print(report, mark, "", form, arguments);
    va_end(arguments);
    report->errors++;
}

void report_warning(struct report *report, struct mark mark, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    print(report, mark, "warning: ", form, arguments);
    va_end(arguments);
}
