/*
 * Where the mistakes of a configuration go: one line each, with the place, in the order of the
 * file.
 */
#ifndef CONFIG_REPORT_H
#define CONFIG_REPORT_H

#include <stddef.h>
#include <stdio.h>

/* A place in the file; both count from 1. */
struct mark {
    size_t line;
    size_t column;
};

struct report_entry {
    struct mark mark;
    size_t index; /* entries of one place stay in the order they came */
    char *text;
};

struct report {
    const char *file; /* as the user named it */
    unsigned errors;
    struct report_entry *entries;
    size_t entry_count;
};

/* "locks.max_ttl: ..." */
__attribute__((format(printf, 3, 4))) void report_error(struct report *report, struct mark mark,
                                                        const char *form, ...);

/* The same with "warning: "; counts as no error. */
__attribute__((format(printf, 3, 4))) void report_warning(struct report *report, struct mark mark,
                                                          const char *form, ...);

/* Print all, "redlockd.yaml:12:14: locks.max_ttl: ...", and free them. */
void report_print(struct report *report, FILE *out);

#endif
