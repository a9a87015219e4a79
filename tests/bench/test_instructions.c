/*
 * `make instructions`: callgrind counts the user instructions that the whole daemon, with the
 * guard, executes for a pair of LOCK and UNLOCK. Unlike times, the count repeats to within a few
 * percent: only the number of requests in one pass of the loop varies.
 *
 * Environment variables, which tests/instructions.sh sets except for the last:
 *     REDLOCKD        a script that runs the daemon under callgrind
 *     CALLGRIND_OUT   the output file of callgrind
 *     CLIENTS         for example 16x16: connections, and requests in flight on each; default 64x1
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/load.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum { MASTERS = 5, WARM_UP = 500, TIME_LIMIT_S = 600 };

const struct runner_settings runner_settings = {.time_limit_s = TIME_LIMIT_S};
/* Enough pairs to make the cost of the connections negligible. */
static const uint64_t pairs = 20000;

/* Control callgrind: "-z" resets the counters, "-d" writes them. */
static void control(const struct daemon *daemon, const char *what)
{
    char command[128];
    snprintf(command, sizeof(command), "callgrind_control %s %d >/dev/null 2>&1", what,
             (int)daemon->pid);
    ck_assert_msg(system(command) == 0, "%s", command);
}

/* The value of "summary: 123456" or "totals: 123456" in the output that control("-d") requested. */
static uint64_t counted(void)
{
    char path[256], line[512];
    uint64_t sum = 0;
    snprintf(path, sizeof(path), "%s.1", getenv("CALLGRIND_OUT"));
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is not there", path);
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "summary: ", 9) == 0 || strncmp(line, "totals: ", 8) == 0)
            sum = strtoull(strchr(line, ' '), NULL, 10);
    fclose(file);
    return sum;
}

TEST(instructions_of_a_pair)
{
    struct stage stage;
    unsigned connections = 64, depth = 1;
    const char *clients = getenv("CLIENTS");
    if (clients != NULL)
        ck_assert_msg(sscanf(clients, "%ux%u", &connections, &depth) == 2, "CLIENTS=%s", clients);
    static struct load_result result;
    const struct daemon_plan plan = {
        .tcp_host = "127.0.0.1",
        .node_timeout_ms = 5000,
        .locks = ", max_ttl: 60s",
        .yaml = "log: {level: warning}\n",
    };
    ck_assert_ptr_nonnull(getenv("CALLGRIND_OUT"));
    stage_open(&stage, __func__, &(struct stage_plan){.masters = MASTERS, .daemon = plan});
    struct load_plan load = {
        .host = "127.0.0.1",
        .ports = {stage.daemon.port},
        .connections = connections,
        .depth = depth,
        .for_ns = INT64_C(300000000000),
        .max_pairs = WARM_UP,
        .in_sync_with = stage.daemon.pid,
    };
    load_run(&load, &result);
    control(&stage.daemon, "-z");
    load.max_pairs = pairs;
    load_run(&load, &result);
    control(&stage.daemon, "-d");
    ck_assert_uint_eq(result.failed, 0);
    printf("instructions per pair: %" PRIu64 "\n", counted() / result.pairs);
    printf("pairs: %" PRIu64 "\n", result.pairs);
    stage_close(&stage);
}
