/*
 * Where the mistakes of a configuration go: one line each, with the place.
 */
#ifndef CONFIG_REPORT_H
#define CONFIG_REPORT_H

#include <stddef.h>
#include <stdio.h>

struct report {
    FILE *out;
    const char *file; /* as the user named it */
    unsigned errors;
};

/* A place in the file; both count from 1. */
struct mark {
    size_t line;
    size_t column;
};

/* "redlockd.yaml:12:14: locks.max_ttl: ..." */
__attribute__((format(printf, 3, 4))) void report_error(struct report *report, struct mark mark,
                                                        const char *form, ...);

/* The same with "warning: "; counts as no error. */
__attribute__((format(printf, 3, 4))) void report_warning(struct report *report, struct mark mark,
                                                          const char *form, ...);

#endif
