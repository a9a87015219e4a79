/* The measured values: for each row (a scenario) and figure (a column) a value of each round.
 * Reports use medians, and medians of ratios within a round. */
#ifndef TESTS_BENCH_SHEET_H
#define TESTS_BENCH_SHEET_H

#include <stdbool.h>

enum { SHEET_ROWS = 48, SHEET_ROUNDS = 25 };

/* Name, title in tables, key in JSON, digits after the point. The order is that of the columns. */
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
    X(JAIN_WITHIN, "Jain 1 d.", "jain_within_a_daemon", 4)                                         \
    X(LEAST, "least", "least_share_of_an_equal_one", 2)                                            \
    X(FAILED, "failed", "failed", 0)                                                               \
    X(RSS_MB, "RSS MB", "daemon_rss_mb", 1)                                                        \
    X(GROWTH_MB, "growth MB", "daemon_rss_growth_mb", 1)                                           \
    X(INSTRUCTIONS, "instr.", "instructions_per_pair", 0)                                          \
    X(OF_BEST, "of best", "pairs_of_the_best_row", 2)                                              \
    X(PINGS_PER_S, "PINGs/s", "pairs_of_pings_per_s", 0)                                           \
    X(OF_PINGS, "of PINGs", "of_best_per_that_of_pings", 2)                                        \
    X(OF_LITTLE, "of Little", "pairs_of_what_littles_law_allows", 2)                               \
    X(OF_CAPACITY, "of capac.", "pairs_of_the_capacity", 2)                                        \
    X(MEAN_MS, "mean ms", "mean_wait_ms", 1)                                                       \
    X(MEAN_RATIO, "long/mean", "longest_wait_per_mean", 2)                                         \
    X(UNSENT, "unsent", "requests_not_sent", 0)                                                    \
    X(LATE, "late", "granted_after_the_wait", 0)                                                   \
    X(RECOVERY_MS, "recov. ms", "recovery_ms", 0)                                                  \
    X(REQUESTS, "requests", "requests", 0)                                                         \
    X(COST_US, "us/request", "daemon_cpu_us_per_request", 2)                                       \
    X(DAEMON_SHARE, "daemon", "daemon_cpu_share_of_a_core", 2)                                     \
    X(CLIENT_SHARE, "client", "client_cpu_share_of_a_core", 2)                                     \
    X(OTHERS_SHARE, "others", "cores_used_by_other_processes", 2)                                  \
    X(SUSPECT, "suspect", "masters_suspect", 0)                                                    \
    X(LOST, "LOST", "holds_lost", 0)                                                               \
    X(PING_MS, "PING p99", "ping_p99_ms", 1)                                                       \
    X(PING_MAX_MS, "PING max", "ping_max_ms", 1)                                                   \
    X(CONNECT_MS, "conn. p99", "connect_and_ping_p99_ms", 1)                                       \
    X(NODES_MS, "NODES p99", "nodes_p99_ms", 1)                                                    \
    X(ADMIN_MS, "HTTP p99", "healthz_readyz_metrics_p99_ms", 1)                                    \
    X(LOCK_MS, "LOCK p99", "lock_of_others_p99_ms", 1)                                             \
    X(LOCK_FAILED, "LOCK fail", "locks_of_others_not_ok", 0)

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

/* The median of the ratios of two figures in each round. If to_name is NULL, the median of the
 * first figure. NAN if a figure was not measured. */
double sheet_ratio(const struct sheet *sheet, const char *name, enum figure figure,
                   const char *to_name, enum figure to_figure);

/* Does the column have any value? */
bool sheet_has(const struct sheet *sheet, enum figure figure);

#endif
