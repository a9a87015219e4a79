/*
 * `make bench`: what redlockd does, costs and adds, in one run and as ratios to what the masters
 * and the kernel allow (limit.h). The scenarios take turns, so that what else the machine does
 * befalls all of them; each figure is the median of the rounds.
 *
 * BENCH_ROUNDS: 5 unless set. BENCH_MS: how long each scenario lasts in a round, 1000 unless set.
 * BENCH_JSON: a file for the figures.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/limit.h"
#include "tests/bench/load.h"
#include "tests/bench/usage.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

enum { ROUNDS_MAX = 25, TIME_LIMIT_S = 3600 };

enum kind { THE_LIMIT, APART, TOGETHER };
enum trouble { NO_TROUBLE, ONE_HUNG, TWO_HUNG, ONE_KILLED };

struct scenario {
    const char *name;
    enum kind kind;
    unsigned connections; /* of the limit: in flight */
    unsigned depth;
    unsigned hold_ms;
    unsigned daemons;
    enum trouble trouble;
};

static const struct scenario scenarios[] = {
    {"limit 1", THE_LIMIT, 1, 1, 0, 0, NO_TROUBLE},
    {"limit 16", THE_LIMIT, 16, 1, 0, 0, NO_TROUBLE},
    {"limit 64", THE_LIMIT, 64, 1, 0, 0, NO_TROUBLE},
    {"limit 256", THE_LIMIT, 256, 1, 0, 0, NO_TROUBLE},
    {"1x1", APART, 1, 1, 0, 1, NO_TROUBLE},
    {"16x1", APART, 16, 1, 0, 1, NO_TROUBLE},
    {"64x1", APART, 64, 1, 0, 1, NO_TROUBLE},
    {"16x16", APART, 16, 16, 0, 1, NO_TROUBLE},
    {"16x1, two daemons", APART, 16, 1, 0, 2, NO_TROUBLE},
    {"line of 16", TOGETHER, 16, 1, 0, 1, NO_TROUBLE},
    {"line of 16, held 5 ms", TOGETHER, 16, 1, 5, 1, NO_TROUBLE},
    {"line of 64", TOGETHER, 64, 1, 0, 1, NO_TROUBLE},
    {"line of 64, held 5 ms", TOGETHER, 64, 1, 5, 1, NO_TROUBLE},
    {"line of 16, two daemons", TOGETHER, 16, 1, 0, 2, NO_TROUBLE},
    {"16x1, one master hung", APART, 16, 1, 0, 1, ONE_HUNG},
    {"16x1, two masters hung", APART, 16, 1, 0, 1, TWO_HUNG},
    {"16x1, one master killed", APART, 16, 1, 0, 1, ONE_KILLED},
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

/* What is measured: a column each. */
#define FIGURES(X)                                                                                 \
    X(PAIRS_PER_S, "pairs/s", "pairs_per_s", 0)                                                    \
    X(P50_US, "p50 us", "acquire_p50_us", 0)                                                       \
    X(P99_US, "p99 us", "acquire_p99_us", 0)                                                       \
    X(P999_US, "p99.9 us", "acquire_p999_us", 0)                                                   \
    X(DAEMON_US, "daemon us", "daemon_cpu_us_per_pair", 2)                                         \
    X(MASTERS_US, "masters us", "masters_cpu_us_per_pair", 2)                                      \
    X(COMMANDS, "commands", "redis_commands_per_pair", 1)                                          \
    X(HANDOVER_US, "hand-over us", "handover_p50_us", 0)                                           \
    X(LONGEST_MS, "longest ms", "longest_wait_ms", 1)                                              \
    X(JAIN, "Jain", "jain", 4)                                                                     \
    X(FAILED, "failed", "failed", 0)                                                               \
    X(RSS_MB, "RSS MB", "daemon_rss_mb", 1)

enum figure {
#define X(name, title, key, digits) name,
    FIGURES(X)
#undef X
        FIGURE_COUNT
};

static const struct {
    const char *title;
    const char *key;
    int digits;
} figures[FIGURE_COUNT] = {
#define X(name, title, key, digits) [name] = {title, key, digits},
    FIGURES(X)
#undef X
};

struct bench {
    struct stage stage;
    struct daemon second;
    unsigned rounds;
    int64_t for_ns;
    double values[SCENARIOS][FIGURE_COUNT][ROUNDS_MAX];
};

static unsigned from_environment(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* --- one scenario --- */

struct totals {
    int64_t daemon_ns;
    int64_t masters_ns;
    int64_t commands;
};

static int64_t commands_of(struct master *master)
{
    const char *info = master_text(master, "INFO stats");
    const char *line = strstr(info, "total_commands_processed:");
    ck_assert_ptr_nonnull(line);
    return strtoll(strchr(line, ':') + 1, NULL, 10);
}

static struct totals take_totals(struct bench *bench, const struct scenario *scenario)
{
    struct totals totals = {0};
    if (scenario->daemons > 0)
        totals.daemon_ns += usage_cpu_ns(bench->stage.daemon.pid);
    if (scenario->daemons > 1)
        totals.daemon_ns += usage_cpu_ns(bench->second.pid);
    for (unsigned i = 0; i < LIMIT_MASTERS; i++) {
        struct master *master = &bench->stage.masters[i];
        if (master->pid == 0)
            continue;
        totals.masters_ns += usage_cpu_ns(master->pid);
        /* A hung one answers nobody. */
        if (scenario->trouble == NO_TROUBLE)
            totals.commands += commands_of(master);
    }
    return totals;
}

static void set_trouble(struct bench *bench, enum trouble trouble)
{
    struct stage *stage = &bench->stage;
    switch (trouble) {
    case ONE_HUNG:
        stage_stop_masters(stage, 0, 0);
        stage_wait_nodes(stage, "state=suspect", 1);
        break;
    case TWO_HUNG:
        stage_stop_masters(stage, 0, 1);
        stage_wait_nodes(stage, "state=suspect", 2);
        break;
    case ONE_KILLED:
        master_kill(&stage->masters[0]);
        stage_wait_nodes(stage, "state=down", 1);
        break;
    case NO_TROUBLE:
        break;
    }
}

static void end_trouble(struct bench *bench, enum trouble trouble)
{
    struct stage *stage = &bench->stage;
    if (trouble == ONE_HUNG || trouble == TWO_HUNG)
        stage_continue_masters(stage, 0, trouble == ONE_HUNG ? 0 : 1);
    if (trouble == ONE_KILLED)
        master_restart(&stage->masters[0]);
    if (trouble != NO_TROUBLE)
        stage_wait_nodes(stage, "vote=yes", LIMIT_MASTERS);
}

static void note(struct bench *bench, unsigned index, unsigned round,
                 const struct load_result *result, const struct totals *before,
                 const struct totals *after)
{
    double pairs = result->pairs > 0 ? (double)result->pairs : 1;
    double values[FIGURE_COUNT] = {
        [PAIRS_PER_S] = (double)result->pairs / result->seconds,
        [P50_US] = (double)spread_at(&result->acquire, 0.5) / 1e3,
        [P99_US] = (double)spread_at(&result->acquire, 0.99) / 1e3,
        [P999_US] = (double)spread_at(&result->acquire, 0.999) / 1e3,
        [DAEMON_US] = (double)(after->daemon_ns - before->daemon_ns) / 1e3 / pairs,
        [MASTERS_US] = (double)(after->masters_ns - before->masters_ns) / 1e3 / pairs,
        [COMMANDS] = (double)(after->commands - before->commands) / pairs,
        [HANDOVER_US] = (double)spread_at(&result->handover, 0.5) / 1e3,
        [LONGEST_MS] = (double)result->longest_ns / 1e6,
        [JAIN] = result->jain,
        [FAILED] = (double)result->failed,
        [RSS_MB] = scenarios[index].daemons > 0
                       ? (double)process_memory_kib(bench->stage.daemon.pid) / 1024
                       : 0,
    };
    for (unsigned i = 0; i < FIGURE_COUNT; i++)
        bench->values[index][i][round] = values[i];
}

static void run_scenario(struct bench *bench, unsigned index, unsigned round)
{
    const struct scenario *scenario = &scenarios[index];
    static struct load_result result;
    set_trouble(bench, scenario->trouble);
    struct totals before = take_totals(bench, scenario);
    if (scenario->kind == THE_LIMIT)
        limit_run(&(struct limit_plan){.masters = bench->stage.masters,
                                       .in_flight = scenario->connections,
                                       .for_ns = bench->for_ns},
                  &result);
    else
        load_run(&(struct load_plan){.host = "127.0.0.1",
                                     .ports = {bench->stage.daemon.port,
                                               scenario->daemons > 1 ? bench->second.port : 0},
                                     .connections = scenario->connections,
                                     .depth = scenario->depth,
                                     .together = scenario->kind == TOGETHER,
                                     .hold_ns = (int64_t)scenario->hold_ms * 1000000,
                                     .for_ns = bench->for_ns},
                 &result);
    struct totals after = take_totals(bench, scenario);
    note(bench, index, round, &result, &before, &after);
    end_trouble(bench, scenario->trouble);
}

/* --- what it says --- */

static int compare(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(const struct bench *bench, unsigned index, enum figure figure)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, bench->values[index][figure], sizeof(sorted));
    qsort(sorted, bench->rounds, sizeof(double), compare);
    return bench->rounds % 2 == 1 ? sorted[bench->rounds / 2]
                                  : (sorted[bench->rounds / 2 - 1] + sorted[bench->rounds / 2]) / 2;
}

/* Ratios are taken within a round, and their median is told. */
static double ratio(const struct bench *bench, const char *above, enum figure above_figure,
                    const char *below, enum figure below_figure)
{
    double ratios[ROUNDS_MAX];
    unsigned first = 0, second = 0;
    while (strcmp(scenarios[first].name, above) != 0)
        first++;
    while (strcmp(scenarios[second].name, below) != 0)
        second++;
    for (unsigned round = 0; round < bench->rounds; round++)
        ratios[round] =
            bench->values[first][above_figure][round] / bench->values[second][below_figure][round];
    qsort(ratios, bench->rounds, sizeof(double), compare);
    return ratios[bench->rounds / 2];
}

static void print_table(const struct bench *bench)
{
    printf("\n%-24s", "");
    for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
        printf(" %12s", figures[figure].title);
    printf("\n");
    for (unsigned i = 0; i < SCENARIOS; i++) {
        printf("%-24s", scenarios[i].name);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            printf(" %12.*f", figures[figure].digits, median(bench, i, figure));
        printf("\n");
    }
}

static const struct goal {
    const char *text;
    const char *above;
    enum figure above_figure;
    const char *below;
    enum figure below_figure;
    bool at_most;
    double bound;
} goals[] = {
    {"daemon CPU / masters CPU, 16x16", "16x16", DAEMON_US, "16x16", MASTERS_US, true, 0.20},
    {"daemon CPU / masters CPU, 64x1", "64x1", DAEMON_US, "64x1", MASTERS_US, true, 0.60},
    {"daemon CPU / masters CPU, 1x1", "1x1", DAEMON_US, "1x1", MASTERS_US, true, 0.80},
    {"throughput 16x16 / limit 256", "16x16", PAIRS_PER_S, "limit 256", PAIRS_PER_S, false, 0.80},
    {"throughput 64x1 / limit 64", "64x1", PAIRS_PER_S, "limit 64", PAIRS_PER_S, false, 0.55},
    {"acquire p50, 1x1 / limit 1", "1x1", P50_US, "limit 1", P50_US, true, 1.5},
    {"acquire p99, 1x1 / limit 1", "1x1", P99_US, "limit 1", P99_US, true, 2.0},
    {"p99, one master hung / healthy", "16x1, one master hung", P99_US, "16x1", P99_US, true, 1.3},
    {"p99, two masters hung / healthy", "16x1, two masters hung", P99_US, "16x1", P99_US, true,
     1.3},
    {"p99, one master killed / healthy", "16x1, one master killed", P99_US, "16x1", P99_US, true,
     1.3},
    {"hand-over p50 / limit 1 acquire p50", "line of 16", HANDOVER_US, "limit 1", P50_US, true,
     4.0},
    {"the same between two daemons", "line of 16, two daemons", HANDOVER_US, "limit 1", P50_US,
     true, 10.0},
};

static void print_goals(const struct bench *bench)
{
    printf("\n%-40s %8s %10s\n", "ratios (median of the rounds)", "measured", "goal");
    for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
        const struct goal *goal = &goals[i];
        double value =
            ratio(bench, goal->above, goal->above_figure, goal->below, goal->below_figure);
        bool met = goal->at_most ? value <= goal->bound : value >= goal->bound;
        printf("%-40s %8.2f %8s%.2f %s\n", goal->text, value,
               goal->at_most ? "<= " : ">= ", goal->bound, met ? "" : "not met");
    }
}

static void write_json(const struct bench *bench)
{
    const char *path = getenv("BENCH_JSON");
    FILE *out = path != NULL && path[0] != '\0' ? fopen(path, "w") : NULL;
    if (out == NULL)
        return;
    fprintf(out, "{\"rounds\": %u, \"ms\": %" PRId64 ", \"scenarios\": {", bench->rounds,
            bench->for_ns / 1000000);
    for (unsigned i = 0; i < SCENARIOS; i++) {
        fprintf(out, "%s\n  \"%s\": {", i > 0 ? "," : "", scenarios[i].name);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            fprintf(out, "%s\"%s\": %.*f", figure > 0 ? ", " : "", figures[figure].key,
                    figures[figure].digits, median(bench, i, figure));
        fprintf(out, "}");
    }
    fprintf(out, "\n}}\n");
    fclose(out);
}

/* --- all of it --- */

START_TEST(bench_all)
{
    static struct bench bench;
    const struct daemon_plan plan = {
        .tcp_host = "127.0.0.1",
        .node_timeout_ms = 50,
        .locks = ", max_ttl: 2s",
        .yaml = "log: {level: warning}\n",
    };
    struct daemon_plan second = plan;
    second.name = "second";
    bench.rounds = from_environment("BENCH_ROUNDS", 5);
    bench.for_ns = (int64_t)from_environment("BENCH_MS", 1000) * 1000000;
    ck_assert_uint_le(bench.rounds, ROUNDS_MAX);
    stage_open(&bench.stage, __func__,
               &(struct stage_plan){.masters = LIMIT_MASTERS, .durable = false, .daemon = plan});
    stage_start_daemon(&bench.stage, &bench.second, &second);
    for (unsigned round = 0; round < bench.rounds; round++)
        for (unsigned i = 0; i < SCENARIOS; i++) {
            fprintf(stderr, "\rround %u of %u: %-28s", round + 1, bench.rounds, scenarios[i].name);
            run_scenario(&bench, i, round);
        }
    fprintf(stderr, "\r%60s\r", "");
    print_table(&bench);
    print_goals(&bench);
    write_json(&bench);
    daemon_stop(&bench.second);
    stage_close(&bench.stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("bench");
    TCase *bench = sandbox_case("bench");
    tcase_set_timeout(bench, TIME_LIMIT_S);
    tcase_add_test(bench, bench_all);
    suite_add_tcase(suite, bench);
    return suite;
}
