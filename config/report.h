/*
 * Collects the mistakes in a file and prints one line for each, with its position, in file order.
 *
 * The checks find mistakes in another order: a value out of range while they read the file, but a
 * contradiction between two keys only at the end. So the report sorts the mistakes by position, and
 * prints nothing before report_print().
 */
#ifndef CONFIG_REPORT_H
#define CONFIG_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A report keeps at most this many lines, the first ones in file order. It counts the others. */
enum { REPORT_LINES_MAX = 100 };

/* A position in the file. Both numbers begin at 1; columns are in characters. */
struct position {
    size_t line;
    size_t column;
};

struct finding {
    struct position position;
    char *text; /* printable ASCII */
};

/* The caller initializes all fields to zero, except `file`. */
struct report {
    const char *file; /* as the user named it */
    unsigned errors;
    unsigned count;
    unsigned left_out;                         /* lines beyond REPORT_LINES_MAX */
    struct finding findings[REPORT_LINES_MAX]; /* in the order of the file */
};

/* Add an error, printed as "redlockd.yaml:12:14: locks.max_ttl: ...". Bytes that are not
 * printable ASCII are escaped, for example as \x1b. Returns false, for the caller to return. */
__attribute__((format(printf, 3, 4))) bool
report_error(struct report *report, struct position position, const char *form, ...);

/* Add a warning, printed with "warning: ". It does not count as an error. */
__attribute__((format(printf, 3, 4))) void
report_warning(struct report *report, struct position position, const char *form, ...);

/* Print the report and free its contents; it is empty afterwards. */
void report_print(struct report *report, FILE *out);

#endif
