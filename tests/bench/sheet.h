/* The measured values: for each row (a scenario) and figure (a column) a value of each round.
 * Reports use medians, and medians of ratios within a round. */
#ifndef TESTS_BENCH_SHEET_H
#define TESTS_BENCH_SHEET_H

#include <stdbool.h>

enum { SHEET_ROWS = 48, SHEET_ROUNDS = 25 };

/* Name, title in tables, key in JSON, digits. The order is that of the columns. */
#define FIGURES(X)                                                                                 \
    X(PAIRS_PER_S, "pairs/s", "pairs_per_s", 0)                                                    \
    X(P50_US, "p50 us", "acquire_p50_us", 0)                                                       \
    X(P99_US, "p99 us", "acquire_p99_us", 0)                                                       \
    X(P999_US, "p99.9 us", "acquire_p999_us", 0)                                                   \
    X(LONGEST_MS, "longest ms", "longest_wait_ms", 1)                                              \
    X(CLIENT_US, "client us", "client_cpu_us_per_pair", 2)                                         \
    X(DAEMON_US, "daemon us", "daemon_cpu_us_per_pair", 2)                                         \
    X(MASTERS_US, "masters us", "masters_cpu_us_per_pair", 2)                                      \
    X(COMMANDS, "commands", "redis_commands_per_pair", 1)                                          \
    X(HANDOVER_US, "hand-over", "handover_p50_us", 0)                                              \
    X(TURN_RATIO, "wait/turn", "longest_wait_per_turn_of_all", 2)                                  \
    X(HELD, "held", "held_part_of_time", 3)                                                        \
    X(JAIN, "Jain", "jain", 4)                                                                     \
    X(LEAST, "least", "least_share_of_an_equal_one", 2)                                            \
    X(FAILED, "failed", "failed", 0)                                                               \
    X(RSS_MB, "RSS MB", "daemon_rss_mb", 1)                                                        \
    X(GROWTH_MB, "growth MB", "daemon_rss_growth_mb", 1)                                           \
    X(INSTRUCTIONS, "instr.", "instructions_per_pair", 0)

enum figure {
#define X(name, title, key, digits) name,
    FIGURES(X)
#undef X
        FIGURE_COUNT
};

struct figure_info {
    const char *title;
    const char *key;
    int digits;
};
extern const struct figure_info figure_infos[FIGURE_COUNT];

/* A value of NAN was not measured. */
struct sheet {
    unsigned row_count;
    const char *names[SHEET_ROWS];
    unsigned rounds[SHEET_ROWS]; /* the row was measured in this many rounds, from the first on */
    double values[SHEET_ROWS][FIGURE_COUNT][SHEET_ROUNDS];
};

/* Does a row have this name? */
bool sheet_knows(const struct sheet *sheet, const char *name);

/* The median of a row that was measured. */
double sheet_median(const struct sheet *sheet, unsigned row, enum figure figure);

/* The largest value of all rounds; NAN if it was not measured. */
double sheet_largest(const struct sheet *sheet, const char *name, enum figure figure);

/* The median ratio of two figures, or of the first alone if the second name is NULL. NAN if one was
 * not measured. */
double sheet_ratio(const struct sheet *sheet, const char *name, enum figure figure,
                   const char *to_name, enum figure to_figure);

/* Does the column have any value? */
bool sheet_has(const struct sheet *sheet, enum figure figure);

#endif
