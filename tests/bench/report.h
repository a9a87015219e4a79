/*
 * What a benchmark says: a table of scenarios, one of goals; for people, as Markdown, as JSON.
 */
#ifndef TESTS_BENCH_REPORT_H
#define TESTS_BENCH_REPORT_H

#include <stdbool.h>

#include "tests/bench/sheet.h"

enum goal_sense {
    AT_MOST, /* the median of the rounds */
    AT_LEAST,
    NEVER_ABOVE, /* in any round; to_row is NULL */
};

/* A figure, or a ratio of two, and its bound. */
struct goal {
    const char *text;
    const char *row;
    enum figure figure;
    const char *to_row; /* NULL: the figure itself */
    enum figure to_figure;
    enum goal_sense sense;
    double bound;
};

/* Where there is a row of this name before the name of a goal's, it is what the least of all
 * daemons comes to (proxy.h), and is told beside. */
#define REPORT_PROXY "proxy "

struct report {
    const struct sheet *sheet;
    const struct goal *goals;
    unsigned goal_count;
    const char *of; /* a line: when, what and where it was measured */
};

/* To standard output. Goals on what was not measured are left out. */
void report_print(const struct report *report);

/* Fail the test where the file cannot be written. JSON also has the figures of each round, and
 * leaves out those that were not measured. */
void report_markdown(const struct report *report, const char *path);
void report_json(const struct report *report, const char *path);

#endif
