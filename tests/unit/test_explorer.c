/*
 * A randomized explorer: two daemons on the same five masters, on virtual time, while masters
 * restart without their data, are flushed, fail over to older data, hang, lose connections and have
 * their clocks stepped, and daemons pause and restart. Whatever happens, no two clients may believe
 * at once that they hold a lock, fences rise, and once it is over everything is granted again.
 *
 * A seed replays a run to the byte; EXPLORER_SEEDS says how many runs, EXPLORER_FIRST the first.
 * What the README names as not to be seen is left out: clocks that step forward and back again
 * between two looks (each clock steps in one direction here), and repointed names.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/dice.h"
#include "tests/runner.h"
#include "tests/unit/world.h"

enum {
    DAEMONS = 2,
    ASKERS = 3, /* clients of each */
    NODES = 5,
    RESOURCES = 2,
    BELIEFS = 512,
    STEPS = 300,
    SLICE_MS = 10,
    MAX_TTL_MS = 60000,
    SEEDS = 20,
};

/* What a client was promised. */
struct belief {
    unsigned resource;
    unsigned daemon;
    unsigned asker;
    char token[LIMIT_TOKEN + 1];
    int64_t until_ns; /* it relies on it until then */
    int64_t ttl_ns;
    bool held; /* with HOLD, over a connection that lives */
    bool over; /* released, or given up */
};

/* A client of a daemon; it asks one thing at a time. */
struct asker {
    enum { IDLE, LOCKING, EXTENDING } doing;
    unsigned resource;
    bool hold;
    int64_t ttl_ns;
    struct belief *belief; /* EXTENDING */
    int64_t sent_ns;
};

struct daemon_state {
    struct world world;
    bool paused;
    unsigned host; /* the number of its boot */
    char clock_id[16];
    struct asker askers[ASKERS];
};

static struct daemon_state daemons[DAEMONS];
static unsigned active; /* whose masters are the true ones */
static struct belief beliefs[BELIEFS];
static unsigned belief_count;
static int64_t last_fence[RESOURCES];
static bool steps_forward[NODES];
static struct world_key snapshots[NODES][WORLD_KEYS];
static uint64_t seed;
static struct dice dice;
static unsigned granted;
static char trace[1 << 20];
static size_t trace_len;

static unsigned below(unsigned count)
{
    return dice_below(&dice, count);
}

static struct world *world_of(unsigned daemon)
{
    return &daemons[daemon].world;
}

static int64_t now_ns(void)
{
    return world_of(active)->now_ns;
}

__attribute__((format(printf, 1, 2))) static void note(const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    size_t room = sizeof(trace) - trace_len;
    int len =
        snprintf(trace + trace_len, room, "%9.3f ", (double)(now_ns() - 1000 * NS_PER_S) / 1e9);
    trace_len += len > 0 && (size_t)len < room ? (size_t)len : 0;
    room = sizeof(trace) - trace_len;
    len = vsnprintf(trace + trace_len, room, form, arguments);
    trace_len += len > 0 && (size_t)len < room ? (size_t)len : 0;
    va_end(arguments);
}

static void violated(const char *what)
{
    const size_t shown = getenv("EXPLORER_TRACE") != NULL ? sizeof(trace) : 6000;
    const char *from = trace_len > shown ? trace + trace_len - shown : trace;
    fprintf(stderr, "%s", from);
    ck_abort_msg("seed %" PRIu64 ": %s", seed, what);
}

static void with(unsigned daemon)
{
    if (daemon != active)
        world_share(world_of(daemon), world_of(active));
    active = daemon;
}

/* --- what the clients are told --- */

static void check_exclusion(const struct belief *belief)
{
    for (unsigned i = 0; i < belief_count; i++) {
        const struct belief *other = &beliefs[i];
        if (other != belief && !other->over && other->resource == belief->resource &&
            other->until_ns > now_ns() && belief->until_ns > now_ns()) {
            note("%.6s is valid until %.3f\n", other->token,
                 (double)(other->until_ns - 1000 * NS_PER_S) / 1e9);
            violated("two holders at once");
        }
    }
}

static void on_granted(unsigned number, const char *reply)
{
    const struct asker *asker = &daemons[active].askers[number];
    struct belief *belief = &beliefs[belief_count++];
    int64_t validity_ms;
    int64_t elapsed_ms;
    int64_t fence = 0;
    ck_assert_uint_lt(belief_count, BELIEFS);
    *belief = (struct belief){.resource = asker->resource,
                              .daemon = active,
                              .asker = number,
                              .ttl_ns = asker->ttl_ns,
                              .held = asker->hold};
    int got = sscanf(reply, "OK %40s %" SCNd64 " %" SCNd64 " %" SCNd64, belief->token, &validity_ms,
                     &elapsed_ms, &fence);
    ck_assert_int_eq(got, 4);
    belief->until_ns = asker->sent_ns + (validity_ms + elapsed_ms) * NS_PER_MS;
    granted++;
    check_exclusion(belief);
    if (fence <= last_fence[belief->resource])
        violated("a fence that does not rise");
    last_fence[belief->resource] = fence;
}

static void on_extended(const struct asker *asker, const char *reply)
{
    struct belief *belief = asker->belief;
    int64_t validity_ms;
    int64_t elapsed_ms;
    char token[LIMIT_TOKEN + 1];
    if (strcmp(reply, "GONE") == 0)
        belief->over = true;
    if (sscanf(reply, "OK %40s %" SCNd64 " %" SCNd64, token, &validity_ms, &elapsed_ms) != 3)
        return;
    int64_t until_ns = asker->sent_ns + (validity_ms + elapsed_ms) * NS_PER_MS;
    if (until_ns > belief->until_ns)
        belief->until_ns = until_ns;
    check_exclusion(belief);
}

/* Its client stops at once. */
static void on_lost(const char *reply)
{
    for (unsigned i = 0; i < belief_count; i++)
        if (strstr(reply, beliefs[i].token) != NULL)
            beliefs[i].over = true;
}

static void read_replies(void)
{
    struct world *world = world_of(active);
    for (unsigned i = 0; i < world->reply_count; i++) {
        const char *reply = world->replies[i];
        note("  %u: %s\n", active, reply);
        if (strncmp(reply, "! LOST ", 7) == 0)
            on_lost(reply);
        if (strncmp(reply, "#ask", 4) != 0)
            continue;
        unsigned number = (unsigned)(reply[4] - '0');
        struct asker *asker = &daemons[active].askers[number];
        if (asker->doing == LOCKING && strncmp(reply + 6, "OK ", 3) == 0)
            on_granted(number, reply + 6);
        else if (asker->doing == EXTENDING)
            on_extended(asker, reply + 6);
        asker->doing = IDLE;
    }
    world->reply_count = 0;
}

/* --- time --- */

static void pass(int64_t ms)
{
    for (int64_t left_ms = ms; left_ms > 0; left_ms -= SLICE_MS) {
        int64_t until_ns = now_ns() + (left_ms < SLICE_MS ? left_ms : SLICE_MS) * NS_PER_MS;
        int64_t from_ns = now_ns();
        for (unsigned i = 0; i < DAEMONS; i++) {
            with(i);
            world_of(i)->now_ns = from_ns;
            if (!daemons[i].paused)
                world_pass_ms(world_of(i), (until_ns - from_ns) / NS_PER_MS);
            world_of(i)->now_ns = until_ns;
            read_replies();
        }
    }
}

static void settle(void)
{
    world_settle(world_of(active));
    read_replies();
}

/* --- what clients do --- */

static struct engine_client *client_of(unsigned daemon, unsigned asker)
{
    return &world_of(daemon)->others[asker];
}

__attribute__((format(printf, 2, 3))) static void send(unsigned asker, const char *form, ...)
{
    char line[LIMIT_LINE];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(line, sizeof(line), form, arguments);
    va_end(arguments);
    note("%u %s\n", active, line);
    world_send_as(world_of(active), client_of(active, asker), line);
    settle();
}

/* One that asks for nothing just now; ASKERS if there is none. */
static unsigned idle_asker(void)
{
    unsigned first = below(ASKERS);
    for (unsigned i = 0; i < ASKERS; i++)
        if (daemons[active].askers[(first + i) % ASKERS].doing == IDLE)
            return (first + i) % ASKERS;
    return ASKERS;
}

static void lock(unsigned resource)
{
    static const unsigned ttls_ms[] = {500, 5000, 30000, MAX_TTL_MS};
    static const char *const waits[] = {"", " WAIT 300ms", " WAIT 10s", " WAIT 100s"};
    unsigned number = idle_asker();
    if (number == ASKERS)
        return;
    struct asker *asker = &daemons[active].askers[number];
    unsigned ttl_ms = ttls_ms[below(4)];
    asker->doing = LOCKING;
    asker->resource = resource;
    asker->hold = below(3) == 0;
    asker->ttl_ns = ttl_ms * NS_PER_MS;
    asker->sent_ns = now_ns();
    send(number, "#ask%u LOCK r%u %ums FENCE%s%s", number, resource, ttl_ms, waits[below(4)],
         asker->hold ? " HOLD" : "");
}

/* A lock somebody still relies on, or did; through any daemon. */
static struct belief *some_belief(void)
{
    if (belief_count == 0)
        return NULL;
    unsigned last = belief_count < 6 ? belief_count : 6;
    struct belief *belief = &beliefs[belief_count - 1 - below(last)];
    return belief->over ? NULL : belief;
}

static void unlock_something(void)
{
    struct belief *belief = some_belief();
    if (belief == NULL)
        return;
    belief->over = true;
    send(below(ASKERS), "#let%u UNLOCK r%u %s", below(1000000), belief->resource, belief->token);
}

static void extend_something(void)
{
    struct belief *belief = some_belief();
    unsigned number = idle_asker();
    if (belief == NULL || number == ASKERS)
        return;
    daemons[active].askers[number] =
        (struct asker){.doing = EXTENDING, .belief = belief, .sent_ns = now_ns()};
    send(number, "#ask%u EXTEND r%u %s %ums", number, belief->resource, belief->token,
         1000 + below(MAX_TTL_MS - 1000));
}

/* All who hold over a connection to this daemon ask whether it is there: the answer proves it for a
 * third of the time to live. */
static void ping(void)
{
    engine_catch_up(&world_of(active)->engine, now_ns());
    read_replies();
    for (unsigned i = 0; i < belief_count; i++) {
        struct belief *belief = &beliefs[i];
        int64_t until_ns = now_ns() + belief->ttl_ns / 3;
        if (!belief->held || belief->over || belief->daemon != active)
            continue;
        if (until_ns > belief->until_ns)
            belief->until_ns = until_ns;
        check_exclusion(belief);
    }
}

/* A client ends its connection, or is lost: then it may go on with what it was promised. */
static void leave(void)
{
    unsigned number = below(ASKERS);
    bool in_order = below(2) == 0;
    note("client %u of %u %s\n", number, active, in_order ? "ends" : "is lost");
    for (unsigned i = 0; i < belief_count; i++) {
        struct belief *belief = &beliefs[i];
        if (!belief->held || belief->daemon != active || belief->asker != number)
            continue;
        belief->held = false;
        belief->over = belief->over || in_order;
    }
    daemons[active].askers[number].doing = IDLE;
    if (in_order)
        world_end_client(world_of(active), client_of(active, number));
    else
        world_lose_client(world_of(active), client_of(active, number));
    settle();
}

/* --- what befalls masters and daemons --- */

static bool all_awake(void)
{
    for (unsigned i = 0; i < DAEMONS; i++)
        if (daemons[i].paused)
            return false;
    return true;
}

static void restart(unsigned node, const struct world_key *keys)
{
    for (unsigned i = 0; i < DAEMONS; i++) {
        with(i);
        world_kill(world_of(i), node);
        read_replies();
    }
    world_restart(world_of(active), node);
    if (keys != NULL)
        memcpy(world_of(active)->masters[node].keys, keys, sizeof(snapshots[node]));
}

static void befall_master(unsigned node, unsigned fault, int64_t distance_ms)
{
    struct world_master *master = &world_of(active)->masters[node];
    switch (fault) {
    case 0:
        note("master %u restarts, empty\n", node);
        restart(node, NULL);
        break;
    case 1:
        note("master %u restarts, with an old snapshot\n", node);
        restart(node, snapshots[node]);
        break;
    case 2:
        note("master %u is flushed\n", node);
        world_flush(world_of(active), node);
        break;
    case 3:
        note("master %u fails over to older data and back\n", node);
        memcpy(master->keys, snapshots[node], sizeof(snapshots[node]));
        master->replid[39]++;
        break;
    case 4:
        note("master %u: its data is saved\n", node);
        memcpy(snapshots[node], master->keys, sizeof(snapshots[node]));
        break;
    case 5:
        note("master %u %s\n", node, master->hung ? "goes on" : "hangs");
        master->hung = !master->hung;
        break;
    case 6:
        note("master %u: its connection to daemon %u is cut\n", node, active);
        if (master->current.open)
            world_cut(world_of(active), node);
        break;
    case 7:
        note("master %u: its clock steps by %" PRId64 " ms\n", node,
             steps_forward[node] ? distance_ms : -distance_ms);
        master->clock_ns += (steps_forward[node] ? distance_ms : -distance_ms) * NS_PER_MS;
        break;
    default:
        note("master %u: its scripts are flushed\n", node);
        master->scripts_flushed = true;
        break;
    }
}

/* The same befalls up to three masters at once, before any daemon looks; and then, as often as not,
 * somebody wants at once what somebody else holds. */
static void befall_masters(void)
{
    static const int64_t distances_ms[] = {5, 15, 50, 200, 1000, 10000, 61000, 100000};
    int64_t distance_ms = distances_ms[below(8)];
    unsigned first = below(NODES);
    unsigned count = 1 + below(3);
    unsigned fault = below(9);
    for (unsigned i = 0; i < count; i++)
        befall_master((first + i) % NODES, fault, distance_ms);
    if (below(2) == 0 && belief_count > 0)
        for (unsigned i = 0; i < DAEMONS; i++) {
            with(i);
            if (!daemons[i].paused)
                lock(beliefs[belief_count - 1].resource);
        }
    settle();
}

static void restart_daemon(void)
{
    struct daemon_state *daemon = &daemons[active];
    /* Elsewhere, or here again. */
    if (below(2) == 0)
        daemon->host += DAEMONS;
    snprintf(daemon->clock_id, sizeof(daemon->clock_id), "host%u", daemon->host);
    note("daemon %u restarts on %s\n", active, daemon->clock_id);
    for (unsigned i = 0; i < ASKERS; i++)
        daemon->askers[i].doing = IDLE;
    for (unsigned i = 0; i < belief_count; i++)
        if (beliefs[i].daemon == active)
            beliefs[i].held = false;
    world_restart_engine(&daemon->world, daemon->clock_id);
    read_replies();
}

static void befall_daemon(void)
{
    struct daemon_state *daemon = &daemons[active];
    if (below(3) == 0) {
        restart_daemon();
        return;
    }
    int64_t ms = 100 + below(6000);
    note("daemon %u pauses for %" PRId64 " ms\n", active, ms);
    settle();
    daemon->paused = true;
    pass(ms);
    daemon->paused = false;
    note("it goes on\n");
}

/* --- a run --- */

static void open_run(uint64_t number)
{
    seed = number;
    dice.state = number;
    active = 0;
    belief_count = granted = 0;
    trace_len = 0;
    memset(last_fence, 0, sizeof(last_fence));
    world_init(world_of(0), NODES);
    world_join(world_of(1), world_of(0), "host1");
    for (unsigned i = 0; i < DAEMONS; i++) {
        daemons[i].paused = false;
        daemons[i].host = i;
        memset(daemons[i].askers, 0, sizeof(daemons[i].askers));
        world_of(i)->random += number;
    }
    /* Wall clocks that agree to within max_ttl. */
    world_of(1)->wall_ns += (int64_t)below(50) * NS_PER_S - 25 * NS_PER_S;
    active = 1;
    for (unsigned i = 0; i < NODES; i++) {
        steps_forward[i] = below(3) > 0;
        memcpy(snapshots[i], world_of(1)->masters[i].keys, sizeof(snapshots[i]));
    }
    pass(3000);
}

static void close_run(void)
{
    for (unsigned i = 0; i < DAEMONS; i++)
        world_deinit(world_of(i));
}

/* Once it is over: everything is granted again, through each daemon, and nothing is left behind. */
static void expect_recovery(void)
{
    for (unsigned i = 0; i < NODES; i++)
        world_of(active)->masters[i].hung = false;
    note("all is well again\n");
    pass(2 * MAX_TTL_MS + 15000);
    for (unsigned i = 0; i < DAEMONS; i++) {
        with(i);
        for (unsigned node = 0; node < NODES; node++)
            if (strcmp(world_vote(world_of(i), node), "-") != 0) {
                note("node %u: %s\n", node, world_vote(world_of(i), node));
                violated("a node does not get its vote back");
            }
        for (unsigned client = 0; client < ASKERS; client++)
            world_end_client(world_of(i), client_of(i, client));
        settle();
        world_of(i)->reply_count = 0;
        memset(daemons[i].askers, 0, sizeof(daemons[i].askers));
        if (world_of(i)->engine.calls.in_use != 0 || world_of(i)->engine.waiting != 0 ||
            world_of(i)->engine.holding != 0)
            violated("somebody is left waiting");
    }
    pass(MAX_TTL_MS);
    for (unsigned i = 0; i < DAEMONS; i++) {
        with(i);
        unsigned before = granted;
        daemons[i].askers[0] = (struct asker){
            .doing = LOCKING, .resource = i, .ttl_ns = NS_PER_S, .sent_ns = now_ns()};
        send(0, "#ask0 LOCK r%u 1s FENCE", i);
        if (granted != before + 1)
            violated("no grant after all is over");
        if (world_of(i)->engine.operations.pool.in_use > 8 ||
            world_of(i)->engine.resources.pool.in_use > 2)
            violated("operations are left");
    }
}

static void run(uint64_t number, unsigned faults)
{
    open_run(number);
    for (unsigned i = 0; i < STEPS && belief_count < BELIEFS - 8; i++) {
        with(below(DAEMONS));
        unsigned what = below(100);
        if (what < faults)
            befall_masters();
        else if (what < faults + 2 && all_awake())
            befall_daemon();
        else if (what < 40)
            lock(below(RESOURCES));
        else if (what < 47)
            extend_something();
        else if (what < 57)
            unlock_something();
        else if (what < 64 && !daemons[active].paused)
            ping();
        else if (what < 66)
            leave();
        else
            pass(1 + (int64_t)(dice_draw(&dice) % (below(4) == 0 ? 5000 : 300)));
    }
    expect_recovery();
    close_run();
}

static unsigned setting(const char *name, unsigned initial)
{
    const char *value = getenv(name);
    return value != NULL ? (unsigned)strtoul(value, NULL, 10) : initial;
}

START_TEST(no_schedule_makes_two_holders)
{
    unsigned first = setting("EXPLORER_FIRST", 1);
    unsigned grants = 0;
    for (unsigned i = 0; i < setting("EXPLORER_SEEDS", SEEDS); i++) {
        run(first + i, 2 + (first + i) % 20);
        grants += granted;
    }
    /* Else nothing was shown. */
    ck_assert_uint_gt(grants, setting("EXPLORER_SEEDS", SEEDS) * 3);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("explorer");
    TCase *tests = tcase_create("schedules");
    tcase_set_timeout(tests, 3600);
    tcase_add_test(tests, no_schedule_makes_two_holders);
    suite_add_tcase(suite, tests);
    return suite;
}
