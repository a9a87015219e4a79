/* Replaces two functions of Check, for the assertions in tests/unit/cluster_*.c. A failed assertion
 * aborts the fuzz target, since there is no test to fail. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void _mark_point(const char *file, int line)
{
    (void)file;
    (void)line;
}

void _ck_assert_failed(const char *file, int line, const char *expression, const char *message, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: %s: ", file, line, expression);
    va_start(arguments, message);
    if (message != NULL)
        vfprintf(stderr, message, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}
