/* The reports of a benchmark: a table of scenarios and one of goals, as text, as Markdown, as
 * JSON. */
#ifndef TESTS_BENCH_REPORT_H
#define TESTS_BENCH_REPORT_H

#include <stdbool.h>

#include "tests/bench/sheet.h"

enum goal_sense {
    AT_MOST, /* the median of the rounds */
    AT_LEAST,
    NEVER_ABOVE, /* the worst round; to_row is NULL */
};

/* A figure, or a ratio of two, and its limit. */
struct goal {
    const char *text;
    const char *row;
    enum figure figure;
    const char *to_row; /* NULL: the figure itself */
    enum figure to_figure;
    enum goal_sense sense;
    double bound;
};

/* A row with this prefix and the name of a goal's row is the same scenario with the proxy
 * (proxy.h). The report shows it beside the goal. */
#define REPORT_PROXY "proxy "

struct report {
    const struct sheet *sheet;
    const struct goal *goals;
    unsigned goal_count;
    const char *of; /* one line: date, commit and machine */
};

/* Print to standard output. Goals on scenarios that were not measured are left out. */
void report_print(const struct report *report);

/* Write a file; the test fails on an error. JSON has the figures of each round, without the
 * scenarios that were not measured. */
void report_markdown(const struct report *report, const char *path);
void report_json(const struct report *report, const char *path);

#endif
