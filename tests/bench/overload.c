#include "tests/bench/overload.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "protocol/units.h"
#include "tests/bench/bench.h"
#include "tests/bench/clock.h"
#include "tests/bench/usage.h"
#include "tests/e2e/port.h"
#include "tests/runner.h"

enum { FILES = 65536, FILES_OF_OTHERS = 500, NODE_TIMEOUT_MS = 50 };

/* A late master must answer in less than half of it. */
enum { MARGIN_MS = 100 };

/* With fewer turns for each client, the fairness index would only show rounding. A measurement
 * lasts until the clients have had that many on average, but at most LONGER times its usual
 * duration. */
enum { TURNS = 10, LONGER = 10 };

/* --- the environment --- */

void overload_init(struct overload *overload)
{
    struct rlimit files = {FILES, FILES};
    memset(overload, 0, sizeof(*overload));
    overload->for_ns = runner_setting("OVERLOAD_MS", 2000) * NS_PER_MS;
    overload->open_loop_ns = runner_setting("OVERLOAD_SECONDS", 60) * NS_PER_S;
    overload->holds = runner_setting("OVERLOAD_HOLDS", 5000);
    if (setrlimit(RLIMIT_NOFILE, &files) == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

static void make_plan(struct overload *overload)
{
    overload->admin_port = port_free();
    snprintf(overload->yaml, sizeof(overload->yaml),
             "admin: http://127.0.0.1:%d\n"
             "limits: {clients: 100000, waiters: 1000000, waiters_per_resource: 1000000}\n"
             "log: {level: warning}\n",
             overload->admin_port);
    overload->plan = (struct daemon_plan){.tcp_host = "127.0.0.1",
                                          .node_timeout_ms = NODE_TIMEOUT_MS,
                                          .margin_ms = MARGIN_MS,
                                          .locks = ", max_ttl: 1h",
                                          .yaml = overload->yaml};
}

void overload_open(struct overload *overload, const char *test, unsigned late, unsigned late_ms)
{
    struct stage *stage = &overload->stage;
    struct master seen[STAGE_MASTERS];
    stage_open_masters(stage, test, &(struct stage_plan){.masters = OVERLOAD_MASTERS});
    memcpy(seen, stage->masters, sizeof(seen));
    if (late > 0)
        distance_start(&overload->distance, stage->masters, late_ms * NS_PER_MS / 2);
    for (unsigned i = 0; i < late; i++)
        seen[i].port = overload->distance.ports[i];
    make_plan(overload);
    daemon_prepare(&stage->daemon, &stage->sandbox, seen, OVERLOAD_MASTERS, &overload->plan);
    daemon_bootstrap(&stage->daemon);
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, OVERLOAD_MASTERS);
    daemon_connect(&stage->daemon, &stage->client);
    overload->measured = &stage->daemon;
}

void overload_close(struct overload *overload)
{
    client_close(&overload->stage.client);
    daemon_stop(&overload->stage.daemon);
    if (overload->distance.pid != 0)
        distance_stop(&overload->distance);
    stage_close_masters(&overload->stage);
}

/* --- measurements --- */

/* At least so many: the daemon limits how often it logs. */
static unsigned suspects(const struct overload *overload)
{
    return daemon_count_log(&overload->stage.daemon, "node_suspect");
}

void overload_watch(struct overload *overload, unsigned holds, unsigned hold_ttl_ms)
{
    overload->suspects = suspects(overload);
    overload->prober = prober_start(&(struct prober_plan){.port = overload->stage.daemon.port,
                                                          .admin_port = overload->admin_port,
                                                          .daemon = overload->stage.daemon.pid,
                                                          .holds = holds,
                                                          .hold_ttl_ms = hold_ttl_ms});
}

static double p99_ms(const struct prober *prober, enum prober_probe probe)
{
    return (double)spread_at(&prober->took[probe], 0.99) / 1e6;
}

void overload_watch_end(struct overload *overload, double values[FIGURE_COUNT])
{
    struct prober *prober = overload->prober;
    prober_stop(prober);
    values[SUSPECT] = suspects(overload) - overload->suspects;
    values[LOST] = prober->lost;
    values[PING_MS] = p99_ms(prober, PROBER_PING);
    values[PING_MAX_MS] = (double)prober->took[PROBER_PING].longest_ns / 1e6;
    values[CONNECT_MS] = p99_ms(prober, PROBER_CONNECT);
    values[NODES_MS] = p99_ms(prober, PROBER_NODES);
    values[ADMIN_MS] = fmax(fmax(p99_ms(prober, PROBER_HEALTHZ), p99_ms(prober, PROBER_READYZ)),
                            p99_ms(prober, PROBER_METRICS));
    values[LOCK_MS] = p99_ms(prober, PROBER_LOCK);
    values[LOCK_FAILED] = prober->failed[PROBER_LOCK];
    prober_free(prober);
    overload->prober = NULL;
    stage_wait_stats(&overload->stage.client, " holding=0 ");
}

void overload_phase(void *of, bool starts)
{
    struct overload *overload = of;
    int64_t sign = starts ? -1 : 1, masters_ns = 0;
    for (unsigned i = 0; i < OVERLOAD_MASTERS; i++)
        if (overload->stage.masters[i].pid != 0)
            masters_ns += usage_cpu_ns(overload->stage.masters[i].pid);
    if (starts) {
        overload->started_ns = clock_ns();
        overload->daemon_ns = overload->masters_ns = overload->client_ns = 0;
        overload->machine_ns = 0;
    }
    overload->seconds = (double)(clock_ns() - overload->started_ns) / 1e9;
    overload->daemon_ns += sign * usage_cpu_ns(overload->measured->pid);
    overload->masters_ns += sign * masters_ns;
    overload->client_ns += sign * usage_cpu_ns(getpid());
    if (overload->prober != NULL)
        overload->client_ns += sign * usage_cpu_ns(overload->prober->pid);
    overload->machine_ns += sign * usage_machine_ns();
}

/* Parts of one processor, also of the processes that do not belong to the measurement. */
static void set_shares(const struct overload *overload, double values[FIGURE_COUNT])
{
    double ns = overload->seconds * 1e9;
    int64_t ours_ns = overload->daemon_ns + overload->masters_ns + overload->client_ns;
    values[DAEMON_SHARE] = (double)overload->daemon_ns / ns;
    values[CLIENT_SHARE] = (double)overload->client_ns / ns;
    values[OTHERS_SHARE] = (double)(overload->machine_ns - ours_ns) / ns;
}

void overload_set_cost(const struct overload *overload, uint64_t requests,
                       double values[FIGURE_COUNT])
{
    values[REQUESTS] = (double)requests;
    values[COST_US] = (double)overload->daemon_ns / 1e3 / (double)requests;
    set_shares(overload, values);
}

static void set_load_values(const struct overload *overload, const struct load_result *result,
                            double values[FIGURE_COUNT])
{
    double mean_ns = (double)spread_mean(&result->acquire);
    double pairs = (double)result->pairs;
    values[PAIRS_PER_S] = pairs / result->seconds;
    values[P50_US] = (double)spread_at(&result->acquire, 0.5) / 1e3;
    values[MEAN_MS] = mean_ns / 1e6;
    values[LONGEST_MS] = (double)result->longest_ns / 1e6;
    values[MEAN_RATIO] = (double)result->longest_ns / mean_ns;
    values[JAIN] = result->jain;
    values[FAILED] = (double)result->failed;
    values[CLIENT_US] = (double)result->client_ns / 1e3 / pairs;
    values[DAEMON_US] = (double)overload->daemon_ns / 1e3 / pairs;
    values[MASTERS_US] = (double)overload->masters_ns / 1e3 / pairs;
    set_shares(overload, values);
}

void overload_load(struct overload *overload, const struct load_plan *plan,
                   struct load_result *result, double values[FIGURE_COUNT])
{
    struct load_plan load = *plan;
    load.host = "127.0.0.1";
    load.ports[0] = overload->measured->port;
    if (load.for_ns == 0) {
        load.for_ns = overload->for_ns;
        load.min_pairs = (uint64_t)load.connections * load.depth * TURNS;
        load.at_most_ns = LONGER * load.for_ns;
    }
    load.on_phase = overload_phase;
    load.arg = overload;
    load_run(&load, result);
    set_load_values(overload, result, values);
    if (result->failed > 0)
        fprintf(stderr, "\n%" PRIu64 " failed, the first by: %s\n", result->failed,
                result->failure);
}

/* --- the report --- */

static bool is_wanted(const struct overload_row *row)
{
    const char *only = bench_setting("OVERLOAD_ONLY");
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (row->before && bench_setting("OVERLOAD_BEFORE") == NULL)
        return false;
    if (only != NULL && strstr(row->name, only) == NULL)
        return false;
    if (row->connections + FILES_OF_OTHERS <= files.rlim_cur)
        return true;
    fprintf(stderr, "\rleft out, since only %" PRIu64 " files may be open: %s\n",
            (uint64_t)files.rlim_cur, row->name);
    return false;
}

static bool is_better_when_larger(enum figure figure)
{
    return figure == PAIRS_PER_S || figure == OF_BEST || figure == PINGS_PER_S ||
           figure == OF_PINGS || figure == OF_LITTLE || figure == OF_CAPACITY || figure == JAIN;
}

static double best_of(const struct sheet *sheet, enum figure figure, unsigned round)
{
    double best = 0;
    for (unsigned i = 0; i < sheet->row_count; i++)
        if (sheet->rounds[i] > round)
            best = fmax(best, sheet->values[i][figure][round]);
    return best;
}

/* Set OF_BEST and OF_PINGS of each row. */
static void compare_rows(struct sheet *sheet, unsigned round)
{
    double best = best_of(sheet, PAIRS_PER_S, round);
    double best_pings = best_of(sheet, PINGS_PER_S, round);
    for (unsigned i = 0; i < sheet->row_count; i++) {
        if (sheet->rounds[i] <= round)
            continue;
        double of_best = sheet->values[i][PAIRS_PER_S][round] / best;
        sheet->values[i][OF_BEST][round] = of_best;
        sheet->values[i][OF_PINGS][round] =
            of_best / (sheet->values[i][PINGS_PER_S][round] / best_pings);
    }
}

/* Add the row with the worst values. */
static void add_worst(struct sheet *sheet, const struct overload_case *what, unsigned round)
{
    unsigned worst = sheet->row_count - 1;
    for (unsigned figure = 0; figure < FIGURE_COUNT; figure++) {
        double *value = &sheet->values[worst][figure][round];
        *value = NAN;
        for (unsigned i = 0; i < worst; i++) {
            if (sheet->rounds[i] <= round ||
                ((figure == OF_BEST || figure == OF_PINGS) && what->rows[i].low))
                continue;
            double other = sheet->values[i][figure][round];
            *value = is_better_when_larger(figure) ? fmin(*value, other) : fmax(*value, other);
        }
    }
    sheet->rounds[worst] = round + 1;
}

/* Measure all wanted rows. False: there is none. */
static bool run_round(struct overload *overload, const struct overload_case *what,
                      struct sheet *sheet, unsigned round)
{
    bool any = false;
    for (unsigned i = 0; i < what->row_count; i++) {
        const struct overload_row *row = &what->rows[i];
        double values[FIGURE_COUNT];
        if (!is_wanted(row))
            continue;
        fprintf(stderr, "\r%-60s", row->name);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            values[figure] = NAN;
        row->measure(overload, row, values);
        for (unsigned figure = 0; figure < FIGURE_COUNT; figure++)
            sheet->values[i][figure][round] = values[figure];
        sheet->rounds[i] = round + 1;
        any = true;
    }
    if (!any)
        return false;
    compare_rows(sheet, round);
    add_worst(sheet, what, round);
    return true;
}

void overload_run(struct overload *overload, const struct overload_case *what)
{
    static struct sheet sheet;
    char of[BENCH_OF];
    double load = 0;
    ck_assert_uint_lt(what->row_count, SHEET_ROWS);
    ck_assert_uint_le(what->rounds, SHEET_ROUNDS);
    memset(&sheet, 0, sizeof(sheet));
    for (unsigned i = 0; i < what->row_count; i++)
        sheet.names[sheet.row_count++] = what->rows[i].name;
    sheet.names[sheet.row_count++] = OVERLOAD_WORST;
    getloadavg(&load, 1);
    for (unsigned round = 0; round < what->rounds; round++)
        if (!run_round(overload, what, &sheet, round))
            return;
    fprintf(stderr, "\r%60s\r", "");
    bench_describe(what->rounds, (unsigned)(overload->for_ns / NS_PER_MS), load, of);
    report_print(&(struct report){&sheet, what->goals, what->goal_count, of});
}
