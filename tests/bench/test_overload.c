/*
 * `make bench-overload`: redlockd under more load than masters and daemon can serve, with up to
 * thousands of clients. The last case, low_load, compares it with another redlockd at low load. All
 * goals are ratios within one run, or times that do not depend on the machine much; nothing fails
 * because a goal is missed. overload.h lists the settings.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protocol/units.h"
#include "tests/bench/bench.h"
#include "tests/bench/overload.h"
#include "tests/bench/storm.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.time_limit_s = BENCH_TIME_LIMIT_S};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { HOLD_TTL_MS = 3000 };

/* The goals that hold in the cases 1 to 3. */
#define GOALS_OF_OTHERS                                                                            \
    {"masters suspect", OVERLOAD_WORST, SUSPECT, NULL, 0, AT_MOST, 0},                             \
        {"4 HOLDs lost", OVERLOAD_WORST, LOST, NULL, 0, AT_MOST, 0},                               \
        {"PING p99 in ms", OVERLOAD_WORST, PING_MS, NULL, 0, AT_MOST, 100},                        \
        {"connect and PING p99 in ms", OVERLOAD_WORST, CONNECT_MS, NULL, 0, AT_MOST, 100},         \
        {"NODES p99 in ms", OVERLOAD_WORST, NODES_MS, NULL, 0, AT_MOST, 100},                      \
    {                                                                                              \
        "/healthz, /readyz, /metrics p99 in ms", OVERLOAD_WORST, ADMIN_MS, NULL, 0, AT_MOST, 100   \
    }

/* --- 1 and 2: a fixed number of requests in flight --- */

static void measure_closed_loop(struct overload *overload, const struct overload_row *row,
                                double values[FIGURE_COUNT])
{
    static struct load_result result;
    overload_watch(overload, overload->holds, HOLD_TTL_MS);
    overload_load(overload,
                  &(struct load_plan){.connections = row->connections,
                                      .depth = row->depth,
                                      .ttl_ms = OVERLOAD_TTL_MS,
                                      .wait_ms = OVERLOAD_WAIT_MS},
                  &result, values);
    overload_watch_end(overload, values);
}

/* The same clients with PINGs as well: what so many connections cost kernel, daemon and load
 * generator without a lock. */
static void measure_clients(struct overload *overload, const struct overload_row *row,
                            double values[FIGURE_COUNT])
{
    static struct load_result result;
    double pings[FIGURE_COUNT];
    overload_load(
        overload,
        &(struct load_plan){.connections = row->connections, .depth = row->depth, .pings = true},
        &result, pings);
    measure_closed_loop(overload, row, values);
    values[PINGS_PER_S] = pings[PAIRS_PER_S];
}

static const struct overload_row client_rows[] = {
    {"64x1", measure_clients, .connections = 64, .depth = 1, .low = true},
    {"256x1", measure_clients, .connections = 256, .depth = 1},
    {"1024x1", measure_clients, .connections = 1024, .depth = 1},
    {"4096x1", measure_clients, .connections = 4096, .depth = 1},
    {"9000x1", measure_clients, .connections = 9000, .depth = 1},
};

static const struct goal client_goals[] = {
    {"1 throughput of the best, 64x1", "64x1", OF_BEST, NULL, 0, AT_LEAST, 0.8},
    {"1 throughput of the best, the others", OVERLOAD_WORST, OF_BEST, NULL, 0, AT_LEAST, 0.9},
    {"1 of the best / that of PINGs, the others", OVERLOAD_WORST, OF_PINGS, NULL, 0, AT_LEAST, 0.9},
    {"1 failed requests", OVERLOAD_WORST, FAILED, NULL, 0, AT_MOST, 0},
    {"1 longest wait / mean", OVERLOAD_WORST, MEAN_RATIO, NULL, 0, AT_MOST, 2.5},
    {"1 Jain", OVERLOAD_WORST, JAIN, NULL, 0, AT_LEAST, 0.98},
    GOALS_OF_OTHERS,
};

static const struct overload_case client_case = {client_rows, COUNT(client_rows), client_goals,
                                                 COUNT(client_goals), 1};

TEST(clients)
{
    static struct overload overload;
    overload_init(&overload);
    overload_open(&overload, __func__, 0, 0);
    overload_run(&overload, &client_case);
    overload_close(&overload);
}

static const struct overload_row request_rows[] = {
    {"16x1", measure_closed_loop, .connections = 16, .depth = 1, .low = true},
    {"16x16", measure_closed_loop, .connections = 16, .depth = 16},
    {"16x64", measure_closed_loop, .connections = 16, .depth = 64},
    {"16x256", measure_closed_loop, .connections = 16, .depth = 256},
    {"16x1000", measure_closed_loop, .connections = 16, .depth = 1000},
};

static const struct goal request_goals[] = {
    {"2 throughput of the best, but for 16x1", OVERLOAD_WORST, OF_BEST, NULL, 0, AT_LEAST, 0.9},
    {"2 failed requests", OVERLOAD_WORST, FAILED, NULL, 0, AT_MOST, 0},
    {"2 longest wait / mean", OVERLOAD_WORST, MEAN_RATIO, NULL, 0, AT_MOST, 2.5},
    {"2 Jain", OVERLOAD_WORST, JAIN, NULL, 0, AT_LEAST, 0.98},
    GOALS_OF_OTHERS,
};

static const struct overload_case request_case = {request_rows, COUNT(request_rows), request_goals,
                                                  COUNT(request_goals), 1};

TEST(requests)
{
    static struct overload overload;
    overload_init(&overload);
    overload_open(&overload, __func__, 0, 0);
    overload_run(&overload, &request_case);
    overload_close(&overload);
}

/* --- 3: an open loop --- */

enum { LOW_S = 1, AFTER_S = 5, SETTLED_S = 10, FAST_IN_A_ROW = 10, OPEN_LOOP_WAIT_MS = 1000 };

static void pause_s(unsigned seconds)
{
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
}

/* The time from the end of the load until the prober's LOCKs are as fast as before the load: until
 * the first of FAST_IN_A_ROW LOCKs that each take at most twice the 99th percentile from before, or
 * 1 ms if that is more. */
static double recovery_ms(const struct prober *prober, int64_t started_ns, int64_t ended_ns)
{
    static struct spread low;
    int64_t limit_ns = NS_PER_MS, since_ns = 0;
    unsigned fast = 0;
    memset(&low, 0, sizeof(low));
    for (unsigned i = 0; i < prober->lock_count; i++) {
        const struct prober_lock *lock = &prober->locks[i];
        if (lock->replied_ns <= started_ns && lock->took_ns != INT64_MAX)
            spread_add(&low, lock->took_ns);
        if (lock->replied_ns < ended_ns)
            continue;
        if (2 * spread_at(&low, 0.99) > limit_ns)
            limit_ns = 2 * spread_at(&low, 0.99);
        if (lock->took_ns > limit_ns)
            fast = 0;
        else if (fast++ == 0)
            since_ns = lock->replied_ns;
        if (fast == FAST_IN_A_ROW)
            return (double)(since_ns - ended_ns) / 1e6;
    }
    return INFINITY;
}

/* Set the memory at the end of the load, and its growth since ten seconds after the start. If the
 * run is shorter than a minute, the growth is since a sixth of the run. */
static void set_memory(const struct overload *overload, int64_t ended_ns,
                       double values[FIGURE_COUNT])
{
    const struct prober *prober = overload->prober;
    int64_t settled_ns = ended_ns - overload->started_ns;
    settled_ns = settled_ns > 6 * SETTLED_S * NS_PER_S ? SETTLED_S * NS_PER_S : settled_ns / 6;
    int64_t from_ns = overload->started_ns + settled_ns - prober->started_ns;
    unsigned from = (unsigned)(from_ns / (PROBER_SAMPLE_MS * NS_PER_MS)) + 1;
    unsigned to = (unsigned)((ended_ns - prober->started_ns) / (PROBER_SAMPLE_MS * NS_PER_MS));
    if (from > to || to >= prober->sample_count)
        return;
    values[RSS_MB] = (double)prober->memory_kib[to] / 1024;
    values[GROWTH_MB] = (double)(prober->memory_kib[to] - prober->memory_kib[from]) / 1024;
}

/* The connections of the open loop, and how many requests each may have in flight. */
enum { OPEN_CONNECTIONS = 128, OPEN_DEPTH = 1000 };

/* The capacity is the greatest rate of LOCKs that is served almost completely. It is searched for
 * by bisection, below the throughput of the same connections in a closed loop. That is more,
 * because the requests of a closed loop share packets. */
enum { CLOSED_DEPTH = 16, SEARCH_STEPS = 6 };
#define SERVED 0.98

static void offer(struct overload *overload, double per_s, int64_t for_ns,
                  struct load_result *result, double values[FIGURE_COUNT])
{
    overload_load(overload,
                  &(struct load_plan){.connections = OPEN_CONNECTIONS,
                                      .depth = OPEN_DEPTH,
                                      .per_s = (unsigned)per_s,
                                      .ttl_ms = OVERLOAD_TTL_MS,
                                      .wait_ms = OPEN_LOOP_WAIT_MS,
                                      .for_ns = for_ns},
                  result, values);
    values[PAIRS_PER_S] = (double)(result->pairs - result->late) / result->seconds;
    values[LATE] = (double)result->late;
    values[UNSENT] = (double)result->unsent;
    values[JAIN] = NAN;
}

static void measure_capacity(struct overload *overload, const struct overload_row *row,
                             double values[FIGURE_COUNT])
{
    static struct load_result result;
    double tried[FIGURE_COUNT];
    double most;
    (void)row;
    measure_closed_loop(
        overload, &(struct overload_row){.connections = OPEN_CONNECTIONS, .depth = CLOSED_DEPTH},
        tried);
    most = tried[PAIRS_PER_S];
    overload_watch(overload, overload->holds, HOLD_TTL_MS);
    for (unsigned i = 0; i < SEARCH_STEPS; i++) {
        double per_s = (overload->capacity + most) / 2;
        memcpy(tried, values, sizeof(tried));
        offer(overload, per_s, overload->for_ns, &result, tried);
        if (tried[PAIRS_PER_S] < SERVED * per_s) {
            most = per_s;
            continue;
        }
        overload->capacity = per_s;
        memcpy(values, tried, sizeof(tried));
    }
    overload_watch_end(overload, values);
}

static void measure_open_loop(struct overload *overload, const struct overload_row *row,
                              double values[FIGURE_COUNT])
{
    static struct load_result result;
    double ignored[FIGURE_COUNT];
    if (overload->capacity == 0)
        measure_capacity(overload, NULL, ignored);
    overload_watch(overload, overload->holds, HOLD_TTL_MS);
    pause_s(LOW_S);
    offer(overload, row->count * overload->capacity / 100, overload->open_loop_ns, &result, values);
    pause_s(AFTER_S);
    values[RECOVERY_MS] = recovery_ms(overload->prober, overload->started_ns, result.ended_ns);
    set_memory(overload, result.ended_ns, values);
    overload_watch_end(overload, values);
    values[OF_CAPACITY] = values[PAIRS_PER_S] / overload->capacity;
}

static const struct overload_row open_loop_rows[] = {
    {"capacity", measure_capacity, .connections = OPEN_CONNECTIONS},
    {"half the capacity offered", measure_open_loop, .connections = OPEN_CONNECTIONS, .count = 50},
    {"twice the capacity offered", measure_open_loop, .connections = OPEN_CONNECTIONS,
     .count = 200},
};

static const struct goal open_loop_goals[] = {
    {"3 goodput / capacity", "twice the capacity offered", OF_CAPACITY, NULL, 0, AT_LEAST, 0.9},
    {"3 growth of memory after 10 s in MB", "twice the capacity offered", GROWTH_MB, NULL, 0,
     AT_MOST, 8},
    {"3 recovery in ms", "twice the capacity offered", RECOVERY_MS, NULL, 0, AT_MOST, 1000},
    GOALS_OF_OTHERS,
};

static const struct overload_case open_loop_case = {open_loop_rows, COUNT(open_loop_rows),
                                                    open_loop_goals, COUNT(open_loop_goals), 1};

TEST(open_loop)
{
    static struct overload overload;
    overload_init(&overload);
    overload_open(&overload, __func__, 0, 0);
    overload_run(&overload, &open_loop_case);
    overload_close(&overload);
}

/* --- 5: late masters --- */

/* If all masters are late: each connection has one round in flight, and a pair has two rounds. So
 * by Little's law, at most connections / (2 * round_ms) pairs are possible in a millisecond.
 * round_ms is the median time of a round with one connection: the relay that makes the masters late
 * adds up to a millisecond of its own. */
static void measure_late_masters(struct overload *overload, const struct overload_row *row,
                                 double values[FIGURE_COUNT])
{
    overload_open(overload, "late_masters", row->count, row->late_ms);
    measure_closed_loop(overload, row, values);
    overload_close(overload);
    if (row->count < OVERLOAD_MASTERS)
        return;
    if (row->connections == 1)
        overload->round_us = values[P50_US];
    if (overload->round_us > 0)
        values[OF_LITTLE] = values[PAIRS_PER_S] * 2 * overload->round_us / 1e6 / row->connections;
}

static const struct overload_row late_master_rows[] = {
    {"one 0 ms late, 256x1", measure_late_masters, .connections = 256, .depth = 1, .count = 1},
    {"one 20 ms late, 256x1", measure_late_masters, .connections = 256, .depth = 1, .count = 1,
     .late_ms = 20},
    {"one 0 ms late, 1024x1", measure_late_masters, .connections = 1024, .depth = 1, .count = 1},
    {"one 20 ms late, 1024x1", measure_late_masters, .connections = 1024, .depth = 1, .count = 1,
     .late_ms = 20},
    {"all 20 ms late, 1x1", measure_late_masters, .connections = 1, .depth = 1, .count = 5,
     .late_ms = 20},
    {"all 20 ms late, 64x1", measure_late_masters, .connections = 64, .depth = 1, .count = 5,
     .late_ms = 20},
    {"all 20 ms late, 256x1", measure_late_masters, .connections = 256, .depth = 1, .count = 5,
     .late_ms = 20},
    {"all 20 ms late, 512x1", measure_late_masters, .connections = 512, .depth = 1, .count = 5,
     .late_ms = 20},
};

static const struct goal late_master_goals[] = {
    {"5 one 20 ms late / 0 ms, 256x1", "one 20 ms late, 256x1", PAIRS_PER_S, "one 0 ms late, 256x1",
     PAIRS_PER_S, AT_LEAST, 0.8},
    {"5 one 20 ms late / 0 ms, 1024x1", "one 20 ms late, 1024x1", PAIRS_PER_S,
     "one 0 ms late, 1024x1", PAIRS_PER_S, AT_LEAST, 0.8},
    {"5 all 20 ms late / Little's law", OVERLOAD_WORST, OF_LITTLE, NULL, 0, AT_LEAST, 0.9},
    {"5 failed requests", OVERLOAD_WORST, FAILED, NULL, 0, AT_MOST, 0},
    {"5 masters suspect", OVERLOAD_WORST, SUSPECT, NULL, 0, AT_MOST, 0},
    {"5 HOLDs lost", OVERLOAD_WORST, LOST, NULL, 0, AT_MOST, 0},
};

static const struct overload_case late_master_case = {
    late_master_rows, COUNT(late_master_rows), late_master_goals, COUNT(late_master_goals), 1};

TEST(late_masters)
{
    static struct overload overload;
    overload_init(&overload);
    overload_run(&overload, &late_master_case);
}

/* --- 6: no pass of the loop is long --- */

/* By how much the cost of a request may rise from one size to the next: it must not grow, or only
 * logarithmically. */
#define FLAT 1.25

static const struct overload_row long_pass_rows[] = {
    {"20 list 65,000 locks", storm_list, .connections = 20},
    {"40 list 65,000 locks", storm_list, .connections = 40},
    {"400 list 65,000 locks", storm_list, .connections = 400},
    {"9,000 ask their place", storm_place, .connections = 9000},
    {"18,000 ask their place", storm_place, .connections = 18000},
    {"9,000 ask at once", storm_place, .connections = 9000, .at_once = true},
    {"18,000 ask at once", storm_place, .connections = 18000, .at_once = true},
    {"36,000 ask at once", storm_place, .connections = 36000, .at_once = true},
    {"9,000x1 waits end", storm_end, .connections = 9000, .depth = 1},
    {"18,000x1 waits end", storm_end, .connections = 18000, .depth = 1},
    {"18x1,000 waits end", storm_end, .connections = 18, .depth = 1000},
    {"36x1,000 waits end", storm_end, .connections = 36, .depth = 1000},
    {"18x1,000 own waits end", storm_end, .connections = 18, .depth = 1000, .own = true},
    {"36x1,000 own waits end", storm_end, .connections = 36, .depth = 1000, .own = true},
    {"9,000 connections close", storm_close, .connections = 9000},
    {"18,000 connections close", storm_close, .connections = 18000},
    {"36,000 connections close", storm_close, .connections = 36000},
    {"10,000 in a line", storm_line, .count = 10000},
    {"10,000 in a line, 4 poll", storm_line, .count = 10000, .depth = 4},
    {"20,000 in a line", storm_line, .count = 20000},
    {"20,000 in a line, 4 poll", storm_line, .count = 20000, .depth = 4},
    {"60 unlock one key", storm_unlock, .connections = 60, .depth = 1000},
    {"120 unlock one key", storm_unlock, .connections = 120, .depth = 1000},
    {"500 lock one key", storm_lock, .connections = 500, .depth = 1000},
    {"1,000 lock one key", storm_lock, .connections = 1000, .depth = 1000},
    {"10,000 keys, no masters", storm_without_masters, .count = 10000},
    {"20,000 keys, no masters", storm_without_masters, .count = 20000},
};

static const struct goal long_pass_goals[] = {
    {"6 PING p99 in ms", OVERLOAD_WORST, PING_MS, NULL, 0, AT_MOST, 20},
    {"6 masters suspect", OVERLOAD_WORST, SUSPECT, NULL, 0, AT_MOST, 0},
    {"6 HOLDs lost", OVERLOAD_WORST, LOST, NULL, 0, AT_MOST, 0},
    {"6 LOCKs of others that fail", OVERLOAD_WORST, LOCK_FAILED, NULL, 0, AT_MOST, 0},
    {"6 failed UNLOCKs, 60 x 1,000", "60 unlock one key", FAILED, NULL, 0, AT_MOST, 0},
    {"6 failed UNLOCKs, 120 x 1,000", "120 unlock one key", FAILED, NULL, 0, AT_MOST, 0},
    {"6 cost of LOCKS, 40 / 20", "40 list 65,000 locks", COST_US, "20 list 65,000 locks", COST_US,
     AT_MOST, FLAT},
    {"6 cost of LOCKS, 400 / 40", "400 list 65,000 locks", COST_US, "40 list 65,000 locks", COST_US,
     AT_MOST, FLAT},
    {"6 cost of a place, 18,000 / 9,000", "18,000 ask their place", COST_US,
     "9,000 ask their place", COST_US, AT_MOST, FLAT},
    {"6 cost of a place at once, 18,000 / 9,000", "18,000 ask at once", COST_US,
     "9,000 ask at once", COST_US, AT_MOST, FLAT},
    {"6 cost of a place at once, 36,000 / 18,000", "36,000 ask at once", COST_US,
     "18,000 ask at once", COST_US, AT_MOST, FLAT},
    {"6 cost of the end of a wait, 18,000 / 9,000", "18,000x1 waits end", COST_US,
     "9,000x1 waits end", COST_US, AT_MOST, FLAT},
    {"6 cost of the end of a wait, 36 / 18 x 1,000", "36x1,000 waits end", COST_US,
     "18x1,000 waits end", COST_US, AT_MOST, FLAT},
    {"6 cost of the end of an own wait, 36 / 18 x 1,000", "36x1,000 own waits end", COST_US,
     "18x1,000 own waits end", COST_US, AT_MOST, FLAT},
    {"6 cost of a close, 18,000 / 9,000", "18,000 connections close", COST_US,
     "9,000 connections close", COST_US, AT_MOST, FLAT},
    {"6 cost of a close, 36,000 / 18,000", "36,000 connections close", COST_US,
     "18,000 connections close", COST_US, AT_MOST, FLAT},
    {"6 cost of a grant, polled / not", "10,000 in a line, 4 poll", COST_US, "10,000 in a line",
     COST_US, AT_MOST, FLAT},
    {"6 cost of a grant, polled, 20,000 / 10,000", "20,000 in a line, 4 poll", COST_US,
     "10,000 in a line, 4 poll", COST_US, AT_MOST, FLAT},
    {"6 cost of UNLOCK, 120 / 60", "120 unlock one key", COST_US, "60 unlock one key", COST_US,
     AT_MOST, FLAT},
    {"6 cost of LOCK of one key, 1,000 / 500", "1,000 lock one key", COST_US, "500 lock one key",
     COST_US, AT_MOST, FLAT},
    {"6 share of a core, 10,000 keys, no masters", "10,000 keys, no masters", DAEMON_SHARE, NULL, 0,
     AT_MOST, 0.05},
    {"6 share of a core, 20,000 keys, no masters", "20,000 keys, no masters", DAEMON_SHARE, NULL, 0,
     AT_MOST, 0.05},
};

static const struct overload_case long_pass_case = {long_pass_rows, COUNT(long_pass_rows),
                                                    long_pass_goals, COUNT(long_pass_goals), 1};

TEST(long_passes)
{
    static struct overload overload;
    overload_init(&overload);
    overload_run(&overload, &long_pass_case);
}

/* --- 7: low load --- */

/* The daemon $OVERLOAD_BEFORE over the same masters. pid 0: none. */
static struct daemon before;

static void measure_low_load(struct overload *overload, const struct overload_row *row,
                             double values[FIGURE_COUNT])
{
    static struct load_result result;
    overload->measured = row->before ? &before : &overload->stage.daemon;
    overload_load(overload,
                  &(struct load_plan){.connections = row->connections,
                                      .depth = row->depth,
                                      .ttl_ms = OVERLOAD_TTL_MS},
                  &result, values);
}

static void start_before(struct overload *overload, const char *program)
{
    struct daemon_plan plan = overload->plan;
    char own[256];
    snprintf(own, sizeof(own), "%s", daemon_program());
    plan.name = "before";
    plan.yaml = "log: {level: warning}\n";
    setenv("REDLOCKD", program, 1);
    stage_start_daemon(&overload->stage, &before, &plan);
    setenv("REDLOCKD", own, 1);
}

static const struct overload_row low_load_rows[] = {
    {"1x1", measure_low_load, .connections = 1, .depth = 1},
    {"1x1, before", measure_low_load, .connections = 1, .depth = 1, .before = true},
    {"16x1", measure_low_load, .connections = 16, .depth = 1},
    {"16x1, before", measure_low_load, .connections = 16, .depth = 1, .before = true},
    {"64x1", measure_low_load, .connections = 64, .depth = 1},
    {"64x1, before", measure_low_load, .connections = 64, .depth = 1, .before = true},
};

static const struct goal low_load_goals[] = {
    {"7 throughput / before, 1x1", "1x1", PAIRS_PER_S, "1x1, before", PAIRS_PER_S, AT_LEAST, 0.97},
    {"7 throughput / before, 16x1", "16x1", PAIRS_PER_S, "16x1, before", PAIRS_PER_S, AT_LEAST,
     0.97},
    {"7 throughput / before, 64x1", "64x1", PAIRS_PER_S, "64x1, before", PAIRS_PER_S, AT_LEAST,
     0.97},
    {"7 p50 / before, 1x1", "1x1", P50_US, "1x1, before", P50_US, AT_MOST, 1.03},
    {"7 p50 / before, 16x1", "16x1", P50_US, "16x1, before", P50_US, AT_MOST, 1.03},
    {"7 p50 / before, 64x1", "64x1", P50_US, "64x1, before", P50_US, AT_MOST, 1.03},
};

TEST(low_load)
{
    static struct overload overload;
    const char *program = bench_setting("OVERLOAD_BEFORE");
    overload_init(&overload);
    overload_open(&overload, __func__, 0, 0);
    if (program != NULL)
        start_before(&overload, program);
    overload_run(&overload, &(struct overload_case){low_load_rows, COUNT(low_load_rows),
                                                    low_load_goals, COUNT(low_load_goals),
                                                    runner_setting("OVERLOAD_ROUNDS", 5)});
    if (program != NULL)
        daemon_stop(&before);
    overload_close(&overload);
}
