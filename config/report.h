/*
 * What is wrong with a file: one line each, with its place, in the order of the file.
 *
 * Mistakes are found in another order than they stand (a range while reading, two keys that
 * contradict each other only at the end), so they are kept until report_print().
 */
#ifndef CONFIG_REPORT_H
#define CONFIG_REPORT_H

#include <stddef.h>
#include <stdio.h>

/* Nobody reads more of them; the rest is counted. */
enum { REPORT_LINES_MAX = 100 };

/* A place in the file; both count from 1, columns in characters. */
struct mark {
    size_t line;
    size_t column;
};

struct finding {
    struct mark mark;
    char *text; /* printable ASCII */
};

/* To begin with, all zero but for the file. */
struct report {
    const char *file; /* as the user named it */
    unsigned errors;
    unsigned count;
    unsigned left_out;
    struct finding findings[REPORT_LINES_MAX]; /* in the order of the file */
};

/* "redlockd.yaml:12:14: locks.max_ttl: ..." Bytes that could upset a terminal become \x1b. */
__attribute__((format(printf, 3, 4))) void report_error(struct report *report, struct mark mark,
                                                        const char *form, ...);

/* The same with "warning: "; counts as no error. */
__attribute__((format(printf, 3, 4))) void report_warning(struct report *report, struct mark mark,
                                                          const char *form, ...);

/* Print all of it, and release it: the report is empty afterwards. */
void report_print(struct report *report, FILE *out);

#endif
