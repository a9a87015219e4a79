/* The reports of a benchmark: a table of scenarios and a table of goals, as text, Markdown or
 * JSON. */
#ifndef TESTS_BENCH_REPORT_H
#define TESTS_BENCH_REPORT_H

#include <stdbool.h>

#include "tests/bench/sheet.h"

enum goal_sense {
    AT_MOST,     /* the median of the rounds is at most the limit */
    AT_LEAST,    /* the median of the rounds is at least the limit */
    NEVER_ABOVE, /* no round is above the limit; to_row is NULL */
};

/* A figure, or a ratio of two figures, and its limit. */
struct goal {
    const char *text;
    const char *row;
    enum figure figure;
    const char *to_row; /* NULL: the figure itself */
    enum figure to_figure;
    enum goal_sense sense;
    double limit;
};

/* Prefix of scenario names. "proxy X" is the scenario X measured with the proxy (proxy.h) in place
 * of redlockd. The report shows the proxy's figure beside the goal for X. */
#define REPORT_PROXY "proxy "

struct report {
    const struct sheet *sheet;
    const struct goal *goals;
    unsigned goal_count;
    const char *of; /* one line: date, commit and machine */
};

/* Print to standard output. Goals on scenarios that were not measured are left out. */
void report_print(const struct report *report);

/* Write a file. The test fails on an error. JSON has the figures of each round. Scenarios that were
 * not measured are left out, and Markdown also leaves out their goals. In JSON, such a goal is
 * measured as null. */
void report_markdown(const struct report *report, const char *path);
void report_json(const struct report *report, const char *path);

#endif
