#include "tests/bench/scenario.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/units.h"
#include "tests/bench/limit.h"
#include "tests/bench/load.h"
#include "tests/bench/peer.h"
#include "tests/bench/usage.h"
#include "tests/e2e/process.h"

/* Turns for each client, on average. With fewer, the fairness index would only show rounding. */
enum { LINE_TURNS = 30 };

static const struct daemon_plan daemon_plan = {
    .tcp_host = "127.0.0.1",
    .node_timeout_ms = SCENARIO_NODE_TIMEOUT_MS,
    .locks = ", max_ttl: 2s",
    .yaml = "log: {level: warning}\n",
};

void scenario_open(struct arena *arena, const char *test, unsigned daemons)
{
    stage_open(&arena->stage, test,
               &(struct stage_plan){.masters = SCENARIO_MASTERS, .daemon = daemon_plan});
    if (daemons < 2)
        return;
    struct daemon_plan second = daemon_plan;
    second.name = "second";
    stage_start_daemon(&arena->stage, &arena->second, &second);
}

void scenario_close(struct arena *arena)
{
    if (arena->second.pid != 0)
        daemon_stop(&arena->second);
    stage_close(&arena->stage);
}

/* --- resource usage --- */

struct totals {
    int64_t daemon_ns;
    int64_t masters_ns;
    int64_t commands;
    double rss_mb;
};

static int64_t commands_of(struct master *master)
{
    const char *info = master_text(master, "INFO stats");
    const char *line = strstr(info, "total_commands_processed:");
    ck_assert_ptr_nonnull(line);
    return strtoll(strchr(line, ':') + 1, NULL, 10);
}

static struct totals take_totals(struct arena *arena, const struct scenario *scenario)
{
    struct totals totals = {0};
    if (scenario->daemons > 0)
        totals.daemon_ns += usage_cpu_ns(arena->stage.daemon.pid);
    if (scenario->daemons > 1)
        totals.daemon_ns += usage_cpu_ns(arena->second.pid);
    if (scenario->by_proxy)
        totals.daemon_ns += usage_cpu_ns(arena->proxy.pid);
    if (scenario->on_etcd)
        totals.daemon_ns += usage_cpu_ns(arena->etcd.pid);
    totals.rss_mb = (double)process_memory_kib(arena->stage.daemon.pid) / 1024;
    for (unsigned i = 0; i < SCENARIO_MASTERS; i++) {
        struct master *master = &arena->stage.masters[i];
        if (master->pid == 0)
            continue;
        totals.masters_ns += usage_cpu_ns(master->pid);
        /* A hung master cannot be asked for its counters. */
        if (scenario->fault == NO_FAULT)
            totals.commands += commands_of(master);
    }
    return totals;
}

/* --- fault --- */

static void begin_fault(struct stage *stage, enum scenario_fault fault)
{
    switch (fault) {
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
    case NO_FAULT:
    case ONE_HANGS:
        break;
    }
}

static void end_fault(struct stage *stage, enum scenario_fault fault)
{
    switch (fault) {
    case ONE_HUNG:
    case ONE_HANGS:
        stage_continue_masters(stage, 0, 0);
        break;
    case TWO_HUNG:
        stage_continue_masters(stage, 0, 1);
        break;
    case ONE_KILLED:
        master_restart(&stage->masters[0]);
        break;
    case NO_FAULT:
        return;
    }
    stage_wait_nodes(stage, "vote=yes", SCENARIO_MASTERS);
}

/* --- busy loops --- */

enum { MAX_OTHERS = 64 };

struct others {
    pid_t pids[MAX_OTHERS];
    unsigned count;
};

static void start_busy_loops(struct others *others, const struct arena *arena,
                             const struct scenario *scenario)
{
    static const char *const restless[] = {"sh", "-c", "while :; do :; done", NULL};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    others->count = 0;
    if (scenario->batch)
        ck_assert_int_eq(
            sched_setscheduler(arena->stage.daemon.pid, SCHED_BATCH, &(struct sched_param){0}), 0);
    while (scenario->busy && others->count < MAX_OTHERS && others->count < processors)
        others->pids[others->count++] =
            process_start(&(struct process_plan){.argv = restless, .errors = "/dev/null"});
}

static void stop_busy_loops(struct others *others, const struct arena *arena,
                            const struct scenario *scenario)
{
    while (others->count > 0)
        process_kill(others->pids[--others->count]);
    if (scenario->batch)
        ck_assert_int_eq(
            sched_setscheduler(arena->stage.daemon.pid, SCHED_OTHER, &(struct sched_param){0}), 0);
}

/* --- the far daemon --- */

static void begin_distance(struct arena *arena, const struct scenario *scenario)
{
    struct master seen[STAGE_MASTERS];
    struct daemon_plan plan = daemon_plan;
    plan.name = "far";
    distance_start(&arena->distance, arena->stage.masters, scenario->far_ms * NS_PER_MS / 2);
    memcpy(seen, arena->stage.masters, sizeof(seen));
    for (unsigned i = 0; i < SCENARIO_MASTERS; i++)
        seen[i].port = arena->distance.ports[i];
    daemon_prepare(&arena->far, &arena->stage.sandbox, seen, SCENARIO_MASTERS, &plan);
    daemon_start(&arena->far, 0);
    daemon_wait_up(&arena->far, SCENARIO_MASTERS);
}

static void end_distance(struct arena *arena)
{
    daemon_stop(&arena->far);
    distance_stop(&arena->distance);
}

/* --- one run --- */

static void run_load(struct arena *arena, const struct scenario *scenario,
                     struct load_result *result)
{
    struct load_plan plan = {
        .host = "127.0.0.1",
        .ports = {arena->stage.daemon.port, scenario->daemons > 1 ? arena->second.port : 0},
        .path = scenario->over_unix ? arena->stage.daemon.socket : NULL,
        .connections = scenario->connections,
        .depth = scenario->depth,
        .one_resource = scenario->kind == ONE_RESOURCE,
        .semaphore = scenario->semaphore,
        .hold_ns = scenario->hold_ms * NS_PER_MS,
        .for_ns = scenario->soak ? arena->soak_ns : arena->for_ns,
    };
    if (scenario->by_proxy)
        plan.ports[0] = arena->proxy.port;
    for (unsigned i = 0; scenario->far_ms != 0 && i < scenario->connections; i++)
        plan.ports[i] = i < scenario->connections - 1 ? arena->stage.daemon.port : arena->far.port;
    if (plan.one_resource)
        plan.min_pairs = scenario->connections * scenario->depth * LINE_TURNS;
    if (scenario->fault == ONE_HANGS)
        plan.hangs = arena->stage.masters[0].pid;
    load_run(&plan, result);
}

static void run_peer(struct arena *arena, const struct scenario *scenario, const char *how,
                     struct load_result *result)
{
    peer_run(&(struct peer_plan){.name = scenario->peer,
                                 .sandbox = &arena->stage.sandbox,
                                 .masters = arena->stage.masters,
                                 .master_count = SCENARIO_MASTERS,
                                 .daemon_port = arena->stage.daemon.port,
                                 .etcd_port = arena->etcd.port,
                                 .in_flight = scenario->connections,
                                 .how = how,
                                 .hold_ms = scenario->hold_ms,
                                 .for_ns = arena->for_ns},
             result);
}

static void run_kind(struct arena *arena, const struct scenario *scenario,
                     struct load_result *result)
{
    switch (scenario->kind) {
    case THE_LIMIT:
        limit_run(&(struct limit_plan){.masters = arena->stage.masters,
                                       .in_flight = scenario->connections,
                                       .guarded = scenario->guarded,
                                       .for_ns = arena->for_ns},
                  result);
        break;
    case OWN_RESOURCES:
    case ONE_RESOURCE:
        run_load(arena, scenario, result);
        break;
    case PEER:
        run_peer(arena, scenario, "apart", result);
        break;
    case PEER_LINE:
        run_peer(arena, scenario, "together", result);
        break;
    case PEER_TURNS:
        run_peer(arena, scenario, "in-turns", result);
        break;
    }
}

static void set_line_values(const struct scenario *scenario, const struct load_result *result,
                            double values[FIGURE_COUNT])
{
    double hold_ns = (double)(scenario->hold_ms * NS_PER_MS);
    double handover_ns = (double)spread_at(&result->handover, 0.5);
    double all_turns_ns = scenario->connections * (hold_ns + handover_ns);
    unsigned slots = scenario->semaphore > 0 ? scenario->semaphore : 1;
    if (scenario->semaphore == 0) {
        values[HANDOVER_US] = handover_ns / 1e3;
        values[TURN_RATIO] = (double)result->longest_ns / all_turns_ns;
    }
    values[JAIN] = result->jain;
    values[JAIN_WITHIN] = result->jain_within;
    values[LEAST] = result->least;
    if (scenario->hold_ms > 0)
        values[HELD] = (double)result->pairs * hold_ns / 1e9 / result->seconds / slots;
}

static void set_values(const struct scenario *scenario, const struct load_result *result,
                       const struct totals *before, const struct totals *after,
                       double values[FIGURE_COUNT])
{
    double pairs = result->all_pairs > 0 ? (double)result->all_pairs : NAN;
    values[PAIRS_PER_S] = (double)result->pairs / result->seconds;
    values[P50_US] = (double)spread_at(&result->acquire, 0.5) / 1e3;
    values[P99_US] = (double)spread_at(&result->acquire, 0.99) / 1e3;
    values[P999_US] = (double)spread_at(&result->acquire, 0.999) / 1e3;
    values[LONGEST_MS] = (double)result->longest_ns / 1e6;
    values[CLIENT_US] = (double)result->client_ns / 1e3 / (double)result->pairs;
    values[FAILED] = (double)result->failed;
    if (!scenario->on_etcd)
        values[MASTERS_US] = (double)(after->masters_ns - before->masters_ns) / 1e3 / pairs;
    if (!scenario->on_etcd && scenario->fault == NO_FAULT)
        values[COMMANDS] = (double)(after->commands - before->commands) / pairs;
    if (after->daemon_ns > before->daemon_ns)
        values[DAEMON_US] = (double)(after->daemon_ns - before->daemon_ns) / 1e3 / pairs;
    if (scenario->daemons > 0) {
        values[RSS_MB] = after->rss_mb;
        values[GROWTH_MB] = after->rss_mb - before->rss_mb;
    }
    if (scenario->kind != THE_LIMIT && scenario->kind != OWN_RESOURCES && scenario->kind != PEER)
        set_line_values(scenario, result, values);
}

void scenario_run(struct arena *arena, const struct scenario *scenario, double values[FIGURE_COUNT])
{
    static struct load_result result;
    struct others others;
    for (unsigned i = 0; i < FIGURE_COUNT; i++)
        values[i] = NAN;
    begin_fault(&arena->stage, scenario->fault);
    start_busy_loops(&others, arena, scenario);
    if (scenario->by_proxy)
        proxy_start(&arena->proxy, &(struct proxy_plan){.masters = arena->stage.masters,
                                                        .guarded = scenario->guarded,
                                                        .line = scenario->kind == ONE_RESOURCE});
    if (scenario->far_ms != 0)
        begin_distance(arena, scenario);
    struct totals before = take_totals(arena, scenario);
    run_kind(arena, scenario, &result);
    if (result.failed > 0)
        fprintf(stderr, "\n%s: %" PRIu64 " failed, the first by: %s\n", scenario->name,
                result.failed, result.failure);
    struct totals after = take_totals(arena, scenario);
    set_values(scenario, &result, &before, &after, values);
    /* For take_totals() each master has replied, so it has executed all releases of the proxy. */
    if (scenario->by_proxy)
        proxy_stop(&arena->proxy);
    if (scenario->far_ms != 0)
        end_distance(arena);
    stop_busy_loops(&others, arena, scenario);
    end_fault(&arena->stage, scenario->fault);
}
