/* `make bench` measures the throughput and the cost of redlockd. Within the same run it measures
 * the throughput that the masters and the kernel allow (limit.h) and the least that a daemon can
 * cost (proxy.h), and reports ratios to these. bench.h lists the settings. */
#include <stdio.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.time_limit_s = BENCH_TIME_LIMIT_S};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Scenarios that are compared with each other run close together, since the other load of the
 * machine changes slowly. Names: "16x16" means 16 connections with 16 requests in flight on each.
 * In a "line" all requests are for one resource. "1x1 at 14 ms": the last connection goes to
 * another daemon, the far one, whose round trip to the masters takes 14 ms. */
#define SLOTS_OF_TWO "200 clients, 10 slots held 5 ms"

static const struct scenario scenarios[] = {
    {"limit 1", THE_LIMIT, .connections = 1},
    {"limit 1, guarded", THE_LIMIT, .connections = 1, .guarded = true},
    {"proxy 1x1, not guarded", OWN_RESOURCES, 1, 1, .by_proxy = true},
    {REPORT_PROXY "1x1", OWN_RESOURCES, 1, 1, .by_proxy = true, .guarded = true},
    {"1x1", OWN_RESOURCES, 1, 1, .daemons = 1},
    {"1x1, unix", OWN_RESOURCES, 1, 1, .daemons = 1, .over_unix = true},
    {"1x1, batch", OWN_RESOURCES, 1, 1, .daemons = 1, .batch = true},
    {"1x1, busy", OWN_RESOURCES, 1, 1, .daemons = 1, .busy = true},
    {"1x1, busy, batch", OWN_RESOURCES, 1, 1, .daemons = 1, .busy = true, .batch = true},
    {"limit 16", THE_LIMIT, .connections = 16},
    {"16x1", OWN_RESOURCES, 16, 1, .daemons = 1},
    {"16x1, two daemons", OWN_RESOURCES, 16, 1, .daemons = 2},
    {"limit 64", THE_LIMIT, .connections = 64},
    {"limit 64, guarded", THE_LIMIT, .connections = 64, .guarded = true},
    {REPORT_PROXY "64x1", OWN_RESOURCES, 64, 1, .by_proxy = true, .guarded = true},
    {"64x1", OWN_RESOURCES, 64, 1, .daemons = 1},
    {"64x1, unix", OWN_RESOURCES, 64, 1, .daemons = 1, .over_unix = true},
    {"64x1, batch", OWN_RESOURCES, 64, 1, .daemons = 1, .batch = true},
    {"1x64", OWN_RESOURCES, 1, 64, .daemons = 1},
    {"limit 256", THE_LIMIT, .connections = 256},
    {REPORT_PROXY "16x16", OWN_RESOURCES, 16, 16, .by_proxy = true, .guarded = true},
    {"16x16", OWN_RESOURCES, 16, 16, .daemons = 1},
    {"16x16, unix", OWN_RESOURCES, 16, 16, .daemons = 1, .over_unix = true},
    {"16x16, batch", OWN_RESOURCES, 16, 16, .daemons = 1, .batch = true},
    {REPORT_PROXY "line of 16", ONE_RESOURCE, 16, 1, .by_proxy = true, .guarded = true},
    {"line of 16", ONE_RESOURCE, 16, 1, .daemons = 1},
    {"line of 16, batch", ONE_RESOURCE, 16, 1, .daemons = 1, .batch = true},
    {REPORT_PROXY "line of 16, held 5 ms", ONE_RESOURCE, 16, 1, .hold_ms = 5, .by_proxy = true,
     .guarded = true},
    {"line of 16, held 5 ms", ONE_RESOURCE, 16, 1, .hold_ms = 5, .daemons = 1},
    {REPORT_PROXY "line of 64", ONE_RESOURCE, 64, 1, .by_proxy = true, .guarded = true},
    {"line of 64", ONE_RESOURCE, 64, 1, .daemons = 1},
    {REPORT_PROXY "line of 64, held 5 ms", ONE_RESOURCE, 64, 1, .hold_ms = 5, .by_proxy = true,
     .guarded = true},
    {"line of 64, held 5 ms", ONE_RESOURCE, 64, 1, .hold_ms = 5, .daemons = 1},
    {"line of 16, two daemons", ONE_RESOURCE, 16, 1, .daemons = 2},
    {SLOTS_OF_TWO, ONE_RESOURCE, 200, 1, .hold_ms = 5, .daemons = 2, .semaphore = 10},
    {"3x1, and 1x1 at 14 ms", ONE_RESOURCE, 4, 1, .daemons = 1, .far_ms = 14},
    {"3x1, and 1x1 at 14 ms, held 2 ms", ONE_RESOURCE, 4, 1, .hold_ms = 2, .daemons = 1,
     .far_ms = 14},
    {"1x1, and 1x1 at 14 ms", ONE_RESOURCE, 2, 1, .daemons = 1, .far_ms = 14},
    {"1x1, and 1x1 at 14 ms, held 2 ms", ONE_RESOURCE, 2, 1, .hold_ms = 2, .daemons = 1,
     .far_ms = 14},
    {"16x1, a master hangs", OWN_RESOURCES, 16, 1, .daemons = 1, .fault = ONE_HANGS},
    {"16x1, one master hung", OWN_RESOURCES, 16, 1, .daemons = 1, .fault = ONE_HUNG},
    {"16x1, two masters hung", OWN_RESOURCES, 16, 1, .daemons = 1, .fault = TWO_HUNG},
    {"16x1, one master killed", OWN_RESOURCES, 16, 1, .daemons = 1, .fault = ONE_KILLED},
    {"soak, two masters hung", OWN_RESOURCES, 16, 1, .daemons = 1, .fault = TWO_HUNG, .soak = true},
};

/* The goals of docs/design/performance.md. Each text begins with the number of its goal. */
static const struct goal goals[] = {
    {"1 daemon CPU / masters CPU, 16x16", "16x16", DAEMON_US, "16x16", MASTERS_US, AT_MOST, 0.20},
    {"1 daemon CPU / masters CPU, 64x1", "64x1", DAEMON_US, "64x1", MASTERS_US, AT_MOST, 0.60},
    {"1 daemon CPU / masters CPU, 1x1", "1x1", DAEMON_US, "1x1", MASTERS_US, AT_MOST, 0.80},
    {"2 instructions per pair, 64x1", "64x1", INSTRUCTIONS, NULL, 0, AT_MOST, 8000},
    {"3 throughput, 16x16 / limit 256", "16x16", PAIRS_PER_S, "limit 256", PAIRS_PER_S, AT_LEAST,
     0.80},
    {"3 throughput, 64x1 / limit 64", "64x1", PAIRS_PER_S, "limit 64", PAIRS_PER_S, AT_LEAST, 0.55},
    {"5 acquire p50, 1x1 / limit 1", "1x1", P50_US, "limit 1", P50_US, AT_MOST, 1.5},
    {"5 acquire p99, 1x1 / limit 1", "1x1", P99_US, "limit 1", P99_US, AT_MOST, 2.0},
    {"6 p99, one master hung / healthy", "16x1, one master hung", P99_US, "16x1", P99_US, AT_MOST,
     1.3},
    {"6 p99, two masters hung / healthy", "16x1, two masters hung", P99_US, "16x1", P99_US, AT_MOST,
     1.3},
    {"6 p99, one master killed / healthy", "16x1, one master killed", P99_US, "16x1", P99_US,
     AT_MOST, 1.3},
    /* A client that waited for the hung or dead master would wait for node_timeout. */
    {"6 longest acquire in ms, a master hangs meanwhile", "16x1, a master hangs", LONGEST_MS, NULL,
     0, NEVER_ABOVE, SCENARIO_NODE_TIMEOUT_MS - 1},
    {"6 longest acquire in ms, one master hung", "16x1, one master hung", LONGEST_MS, NULL, 0,
     NEVER_ABOVE, SCENARIO_NODE_TIMEOUT_MS - 1},
    {"6 longest acquire in ms, two masters hung", "16x1, two masters hung", LONGEST_MS, NULL, 0,
     NEVER_ABOVE, SCENARIO_NODE_TIMEOUT_MS - 1},
    {"6 longest acquire in ms, one master killed", "16x1, one master killed", LONGEST_MS, NULL, 0,
     NEVER_ABOVE, SCENARIO_NODE_TIMEOUT_MS - 1},
    {"6 growth of RSS in MB, soak, two masters hung", "soak, two masters hung", GROWTH_MB, NULL, 0,
     NEVER_ABOVE, 8},
    {"7 Jain, line of 16", "line of 16", JAIN, NULL, 0, AT_LEAST, 0.99},
    {"7 Jain, line of 16, held 5 ms", "line of 16, held 5 ms", JAIN, NULL, 0, AT_LEAST, 0.99},
    {"7 Jain, line of 64", "line of 64", JAIN, NULL, 0, AT_LEAST, 0.99},
    {"7 Jain, line of 64, held 5 ms", "line of 64, held 5 ms", JAIN, NULL, 0, AT_LEAST, 0.99},
    /* In one turn of all clients, each of them has the lock once. If no client overtakes another,
     * no client waits much longer than that. */
    {"7 longest wait / one turn of all clients, line of 16", "line of 16", TURN_RATIO, NULL, 0,
     AT_MOST, 1.5},
    {"7 longest wait / one turn of all clients, 16 held 5 ms", "line of 16, held 5 ms", TURN_RATIO,
     NULL, 0, AT_MOST, 1.5},
    {"7 longest wait / one turn of all clients, line of 64", "line of 64", TURN_RATIO, NULL, 0,
     AT_MOST, 1.5},
    {"7 longest wait / one turn of all clients, 64 held 5 ms", "line of 64, held 5 ms", TURN_RATIO,
     NULL, 0, AT_MOST, 1.5},
    {"7 part of the time it is held, 16 held 5 ms", "line of 16, held 5 ms", HELD, NULL, 0,
     AT_LEAST, 0.95},
    {"7 part of the time it is held, 64 held 5 ms", "line of 64, held 5 ms", HELD, NULL, 0,
     AT_LEAST, 0.95},
    {"7 part of the time that slots are held, two daemons", SLOTS_OF_TWO, HELD, NULL, 0, AT_LEAST,
     0.9},
    {"7 Jain of the clients of one daemon, slots", SLOTS_OF_TWO, JAIN_WITHIN, NULL, 0, AT_LEAST,
     0.99},
    {"7 Jain of the clients of both daemons, slots", SLOTS_OF_TWO, JAIN, NULL, 0, AT_LEAST, 0.9},
    {"7 commands for each grant of a slot, five masters", SLOTS_OF_TWO, COMMANDS, NULL, 0, AT_MOST,
     60},
    {"7 least share / equal share, one at 14 ms", "3x1, and 1x1 at 14 ms", LEAST, NULL, 0, AT_LEAST,
     0.3},
    {"7 least share / equal share, one at 14 ms, held 2 ms", "3x1, and 1x1 at 14 ms, held 2 ms",
     LEAST, NULL, 0, AT_LEAST, 0.3},
    {"7 least share / equal share, 1:1, one at 14 ms", "1x1, and 1x1 at 14 ms", LEAST, NULL, 0,
     AT_LEAST, 0.3},
    {"7 least share / equal share, 1:1, one at 14 ms, held 2 ms",
     "1x1, and 1x1 at 14 ms, held 2 ms", LEAST, NULL, 0, AT_LEAST, 0.3},
    {"8 hand-over p50 / limit 1 acquire p50", "line of 16", HANDOVER_US, "limit 1", P50_US, AT_MOST,
     4.0},
    {"8 hand-over p50 / limit 1 acquire p50, two daemons", "line of 16, two daemons", HANDOVER_US,
     "limit 1", P50_US, AT_MOST, 10.0},
    /* The limit client makes one script call for each release. The daemon batches releases. */
    {"9 masters CPU, 64x1 / limit 64", "64x1", MASTERS_US, "limit 64", MASTERS_US, AT_MOST, 0.80},
    {"9 masters CPU, 16x16 / limit 256", "16x16", MASTERS_US, "limit 256", MASTERS_US, AT_MOST,
     0.80},
};

/* Add the figure that `make instructions` checks. It was counted with the load of 64x1. */
static void add_instructions(struct sheet *sheet)
{
    double instructions;
    FILE *kept = fopen("tests/bench/instructions.txt", "r");
    ck_assert_ptr_nonnull(kept);
    ck_assert_int_eq(fscanf(kept, "%lf", &instructions), 1);
    fclose(kept);
    for (unsigned row = 0; row < sheet->row_count; row++)
        for (unsigned round = 0; round < sheet->rounds[row]; round++)
            if (strcmp(sheet->names[row], "64x1") == 0)
                sheet->values[row][INSTRUCTIONS][round] = instructions;
}

TEST(bench_all)
{
    static struct arena arena;
    scenario_open(&arena, __func__, 2);
    bench_run(&(struct bench){scenarios, COUNT(scenarios), goals, COUNT(goals), add_instructions},
              &arena);
    scenario_close(&arena);
}
