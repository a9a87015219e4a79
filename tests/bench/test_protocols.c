/*
 * `make bench-protocols`: STATUS by the line protocol and by RESP, with the same load generator in
 * turns, and then with redis-benchmark. Prints the medians of the rounds.
 *
 * Environment variables:
 *     BENCH_ROUNDS   default 5
 *     BENCH_MS       duration of a measurement; default 2000
 *     BENCH_REQUESTS requests of redis-benchmark; default 500000
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/bench/client_pool.h"
#include "tests/bench/clock.h"
#include "tests/bench/usage.h"
#include "tests/e2e/stage.h"
#include "tests/prng.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.time_limit_s = 600};

enum { MASTERS = 5, CONNECTIONS = 64, KEYS = 1000000, ROUNDS_MAX = 25 };

struct asking {
    struct client_pool *pool;
    struct prng prng;
    bool resp;
    unsigned asked; /* the tag of the next request */
    uint64_t replies;
    uint64_t wrong;
};

static void ask(struct asking *asking, unsigned connection)
{
    char name[32];
    int len = snprintf(name, sizeof(name), "key:%012u", (unsigned)prng_below(&asking->prng, KEYS));
    if (asking->resp)
        client_pool_put(asking->pool, connection, "*2\r\n$6\r\nSTATUS\r\n$%d\r\n%s\r\n", len, name);
    else
        client_pool_put(asking->pool, connection, "#%u STATUS %s\n", asking->asked++, name);
}

static void on_line(void *arg, unsigned connection, char *line)
{
    struct asking *asking = arg;
    asking->replies++;
    asking->wrong += strstr(line, "FREE") == NULL;
    ask(asking, connection);
}

struct figures {
    double per_s;
    double daemon_us; /* processor time for a request */
};

static struct figures measure(const struct stage *stage, bool resp, unsigned depth, unsigned ms)
{
    struct asking asking = {.prng = {1}, .resp = resp};
    asking.pool = client_pool_open(&(struct client_pool_plan){.host = "127.0.0.1",
                                                              .ports = {stage->daemon.port},
                                                              .connections = CONNECTIONS,
                                                              .depth = depth,
                                                              .on_line = on_line,
                                                              .arg = &asking});
    for (unsigned i = 0; i < CONNECTIONS * depth; i++)
        ask(&asking, i % CONNECTIONS);
    const int64_t begin_ns = clock_ns(), cpu_ns = usage_cpu_ns(stage->daemon.pid);
    client_pool_read_until(asking.pool, &asking.replies, UINT64_MAX, begin_ns + ms * NS_PER_MS);
    const double seconds = (double)(clock_ns() - begin_ns) / (double)NS_PER_S;
    const double replies = (double)asking.replies;
    ck_assert_uint_eq(asking.wrong, 0);
    struct figures figures = {.per_s = replies / seconds,
                              .daemon_us = (double)(usage_cpu_ns(stage->daemon.pid) - cpu_ns) /
                                           1000 / replies};
    client_pool_close(asking.pool);
    return figures;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static void compare_protocols(const struct stage *stage, unsigned depth, unsigned rounds)
{
    static double per_s[2][ROUNDS_MAX], cpu_us[2][ROUNDS_MAX], ratio[ROUNDS_MAX];
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned resp = 0; resp <= 1; resp++) {
            struct figures got = measure(stage, resp != 0, depth, runner_setting("BENCH_MS", 2000));
            per_s[resp][round] = got.per_s;
            cpu_us[resp][round] = got.daemon_us;
        }
        ratio[round] = per_s[1][round] / per_s[0][round];
    }
    for (unsigned resp = 0; resp <= 1; resp++)
        printf("STATUS %ux%-2u %-4s %9.0f a second, daemon %5.2f us each\n", CONNECTIONS, depth,
               resp ? "RESP" : "line", median(per_s[resp], rounds), median(cpu_us[resp], rounds));
    printf("STATUS %ux%-2u RESP / line %.3f\n", CONNECTIONS, depth, median(ratio, rounds));
}

static void run_redis_benchmark(const struct stage *stage, unsigned depth)
{
    char command[256];
    snprintf(command, sizeof(command),
             "redis-benchmark -p %d -c %d -P %u -n %u -r %d -q STATUS key:__rand_int__ 2>&1 |"
             " tr '\\r' '\\n' | grep 'requests per second'",
             stage->daemon.port, CONNECTIONS, depth, runner_setting("BENCH_REQUESTS", 500000),
             KEYS);
    fflush(stdout);
    ck_assert_msg(system(command) == 0, "%s", command);
}

TEST(protocols)
{
    static const unsigned depths[] = {1, 16};
    struct stage stage;
    unsigned rounds = runner_setting("BENCH_ROUNDS", 5);
    ck_assert_uint_le(rounds, ROUNDS_MAX);
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = MASTERS,
                   .daemon = {.tcp_host = "127.0.0.1", .yaml = "log: {level: warning}\n"}});
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        compare_protocols(&stage, depths[i], rounds);
        run_redis_benchmark(&stage, depths[i]);
    }
    stage_close(&stage);
}
