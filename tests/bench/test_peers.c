/* `make bench-peers` measures, in one run, redlockd, three Node clients and a Python client of
 * redlockd, node-redlock, Redlock by redis-py, and etcd. bench.h lists the settings. In each
 * scenario, all clients in Node or Python are one process. Afterwards tests/bench/peers/go compares
 * the Go client with redigo. */
#include <stddef.h>

#include "tests/bench/bench.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.time_limit_s = BENCH_TIME_LIMIT_S};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The scenarios of a peer in Node: one client, 16 clients and 64 clients with independent locks, 16
 * clients that want one lock, and two clients that hand one lock over to each other. */
#define NODE(title, ...)                                                                           \
    {title " 1", PEER, 1, __VA_ARGS__}, {title " 16", PEER, 16, __VA_ARGS__},                      \
        {title " 64", PEER, 64, __VA_ARGS__}, {title " line of 16", PEER_LINE, 16, __VA_ARGS__},   \
    {                                                                                              \
        title " 2 in turns", PEER_TURNS, 2, .hold_ms = 5, __VA_ARGS__                              \
    }

/* The scenarios of a peer in Python: one client, and 64 clients with independent locks. */
#define PYTHON(title, ...)                                                                         \
    {title " 1", PEER, 1, __VA_ARGS__},                                                            \
    {                                                                                              \
        title " 64", PEER, 64, __VA_ARGS__                                                         \
    }

static const struct scenario scenarios[] = {
    {"redlockd 1x1", OWN_RESOURCES, 1, 1, .daemons = 1},
    {"redlockd 16x1", OWN_RESOURCES, 16, 1, .daemons = 1},
    {"redlockd 64x1", OWN_RESOURCES, 64, 1, .daemons = 1},
    {"redlockd 16x16", OWN_RESOURCES, 16, 16, .daemons = 1},
    {"redlockd line of 16", ONE_RESOURCE, 16, 1, .daemons = 1},
    {"redlockd 2 in turns", ONE_RESOURCE, 2, 1, .hold_ms = 5, .daemons = 1},
    NODE("thin client", .daemons = 1, .peer = "thin"),
    NODE("client/node", .daemons = 1, .peer = "client"),
    NODE("node-redlock", .peer = "redlock"),
    PYTHON("client/python", .daemons = 1, .peer = "client_py.py"),
    PYTHON("redis-py", .peer = "redis_py.py"),
    NODE("etcd", .peer = "etcd", .on_etcd = true),
};

/* Goal 4 of docs/design/performance.md. */
static const struct goal goals[] = {
    {"4 pairs/s, redlockd 64x1 / node-redlock 64", "redlockd 64x1", PAIRS_PER_S, "node-redlock 64",
     PAIRS_PER_S, AT_LEAST, 4},
    {"4 pairs/s, redlockd 16x16 / node-redlock 64", "redlockd 16x16", PAIRS_PER_S,
     "node-redlock 64", PAIRS_PER_S, AT_LEAST, 8},
    {"4 pairs/s, thin client 16 / node-redlock 16", "thin client 16", PAIRS_PER_S,
     "node-redlock 16", PAIRS_PER_S, AT_LEAST, 2},
    {"4 pairs/s, thin client 64 / node-redlock 64", "thin client 64", PAIRS_PER_S,
     "node-redlock 64", PAIRS_PER_S, AT_LEAST, 2},
    {"4 pairs/s, client/node 64 / node-redlock 64", "client/node 64", PAIRS_PER_S,
     "node-redlock 64", PAIRS_PER_S, AT_LEAST, 5},
    {"4 pairs/s, client/python 64 / redis-py 64", "client/python 64", PAIRS_PER_S, "redis-py 64",
     PAIRS_PER_S, AT_LEAST, 4},
    {"4 acquire p50, client/node 1 / node-redlock 1", "client/node 1", P50_US, "node-redlock 1",
     P50_US, AT_MOST, 1.4},
    {"4 hand-over p50, client/node 2 in turns / node-redlock 2 in turns", "client/node 2 in turns",
     HANDOVER_US, "node-redlock 2 in turns", HANDOVER_US, AT_MOST, 0.02},
};

TEST(peers)
{
    static struct arena arena;
    scenario_open(&arena, __func__, 1);
    etcd_start(&arena.etcd, &arena.stage.sandbox);
    bench_run(&(struct bench){scenarios, COUNT(scenarios), goals, COUNT(goals), NULL}, &arena);
    etcd_stop(&arena.etcd);
    scenario_close(&arena);
}
