/*
 * Runs schedules of the simulator, and tests the simulator itself: the same seed repeats its trace,
 * and the schedules reach all faults and outcomes. In a build with tight limits (bounds.h) they
 * also reach all limits. SIM_FIRST (default 1) and SIM_RUNS (default 1000) set the seeds. With
 * fewer than 1000 schedules, some faults and limits may be missing.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/sim/sim.h"

enum { FIRST = 1, RUNS = 1000 };

static struct sim sim;
static struct sim_tally tally;

static void expect_no_violation(uint64_t seed)
{
    const struct sim_options options = {.faults = fault_all()};
    const char *violation = sim_run(&sim, seed, &options, &tally);
    ck_assert_msg(violation == NULL,
                  "seed %" PRIu64 ": %s; trace: make %s SEED=%" PRIu64 " TRACE=1", seed, violation,
                  bounds_are_in_force() ? "sim-tight" : "sim", seed);
}

static uint64_t setting(const char *name, uint64_t initial)
{
    const char *value = getenv(name);
    return value != NULL ? strtoull(value, NULL, 10) : initial;
}

static void expect_reached(enum verb verb, enum outcome outcome)
{
    ck_assert_msg(tally.outcomes[verb][outcome] > 0, "no %s was answered with outcome %d",
                  verb_word(verb), outcome);
}

TEST(schedules_break_no_promise)
{
    uint64_t runs = setting("SIM_RUNS", RUNS);
    for (uint64_t i = 0; i < runs; i++)
        expect_no_violation(setting("SIM_FIRST", FIRST) + i);
    /* Without these events the run proves nothing. */
    for (unsigned fault = 0; fault_name(fault) != NULL; fault++)
        ck_assert_msg(tally.faults[fault] > 0 || runs < RUNS, "%s never happened",
                      fault_name(fault));
    for (unsigned bound = 0; bound < BOUNDS && bounds_are_in_force(); bound++)
        ck_assert_msg(tally.met[bound] > 0 || runs < RUNS, "no schedule reaches the limit of %s",
                      bound_word((enum bound)bound));
    for (unsigned i = 0; i < LIMITED && bounds_are_in_force(); i++)
        ck_assert_msg(tally.limited[i] > 0 || runs < RUNS, "no request was refused for %s",
                      limited_word((enum limited)i));
    ck_assert_uint_gt(tally.counts[COUNT_GRANTS], 3 * runs);
    ck_assert_uint_gt(tally.counts[COUNT_SLOTS], runs / 2);
    ck_assert_uint_gt(tally.counts[COUNT_HANDOVERS], runs / 10);
    ck_assert_uint_gt(tally.counts[COUNT_BATCH], runs / 10);
    ck_assert_uint_gt(tally.counts[COUNT_NATIVE], runs);
    ck_assert_uint_gt(tally.counts[COUNT_LOST], runs / 100);
    ck_assert_uint_gt(tally.counts[COUNT_RESETS], runs / 10);
    ck_assert_uint_gt(tally.counts[COUNT_SLOW_ENDS], runs / 10);
    static const enum outcome of_lock[] = {OUTCOME_OK,   OUTCOME_HELD,  OUTCOME_NOQUORUM,
                                           OUTCOME_LATE, OUTCOME_LIMIT, OUTCOME_SHUTDOWN};
    static const enum outcome of_others[] = {OUTCOME_OK, OUTCOME_GONE, OUTCOME_NOQUORUM};
    ck_assert_uint_gt(tally.counts[COUNT_BROKEN], runs / 100);
    static const enum outcome of_status[] = {OUTCOME_HELD, OUTCOME_FREE, OUTCOME_NOQUORUM};
    for (unsigned i = 0; i < sizeof(of_lock) / sizeof(of_lock[0]); i++)
        expect_reached(VERB_LOCK, of_lock[i]);
    expect_reached(VERB_BREAK, OUTCOME_OK);
    expect_reached(VERB_BREAK, OUTCOME_FREE);
    expect_reached(VERB_BREAK, OUTCOME_NOQUORUM);
    for (unsigned i = 0; i < 3; i++) {
        expect_reached(VERB_UNLOCK, of_others[i]);
        expect_reached(VERB_EXTEND, of_others[i]);
        expect_reached(VERB_STATUS, of_status[i]);
    }
}

static char *trace_of(uint64_t seed, size_t *len)
{
    char *text;
    FILE *trace = open_memstream(&text, len);
    const struct sim_options options = {.faults = fault_all(), .trace = trace};
    sim_run(&sim, seed, &options, &tally);
    fclose(trace);
    return text;
}

/* Seeds of schedules that failed once. */
static const uint64_t failed_seeds[] = {20062,    810438,    1201684,  10101010,
                                        27151907, 810127588, 910022343};

TEST_ROWS(schedules_that_failed_once_pass, failed_seeds)
{
    expect_no_violation(failed_seeds[_i]);
}

TEST(same_seed_gives_the_same_trace)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        size_t lens[2];
        char *first = trace_of(seed, &lens[0]);
        char *again = trace_of(seed, &lens[1]);
        ck_assert_uint_gt(lens[0], 1000);
        ck_assert_msg(strcmp(first, again) == 0, "seed %" PRIu64, seed);
        free(first);
        free(again);
    }
}

/* Some clients of a daemon near the masters compete with one client of a far daemon. With a single
 * near client, the near daemon has no waiter to which it could hand the lock over. */
static const struct {
    unsigned near_clients;
    int64_t far_us;  /* round trip from the far daemon to the masters */
    int64_t hold_us; /* how long a client keeps the lock */
    unsigned tenths; /* the least that the far client must get, in tenths of an equal share */
} distances[] = {
    {3, 14000, 2000, 3},  {3, 14000, 0, 3}, {3, 7500, 2000, 3}, {3, 30000, 2000, 2},
    {1, 14000, 2000, 3},  {1, 14000, 0, 3}, {1, 7500, 2000, 3}, {1, 30000, 2000, 3},
    {1, 14000, 50000, 3}, {1, 3000, 0, 3},
};

enum { NEAR = 0, FAR = 1, FAR_CLIENTS = 1, EACH = 5 };

/* A far daemon learns late that a lock is free, and its SETs arrive late. It must get its share
 * nevertheless. The latency of the simulator's network is 0.5 to 1.5 times its setting. */
TEST_ROWS(far_daemon_gets_its_share, distances)
{
    unsigned grants[2] = {0, 0};
    unsigned clients = distances[_i].near_clients + FAR_CLIENTS;
    /* Refused requests would distort the shares. */
    if (bounds_are_in_force())
        return;
    for (uint64_t seed = 1; seed <= EACH; seed++) {
        struct sim_turns turns = {.daemons = 2,
                                  .clients = {distances[_i].near_clients, FAR_CLIENTS},
                                  .round_trips_ns = {100000, distances[_i].far_us * 1000},
                                  .hold_ns = distances[_i].hold_us * 1000,
                                  .for_ns = 4 * NS_PER_S};
        const char *violation = sim_run_turns(&sim, seed, &turns, &tally);
        ck_assert_msg(violation == NULL, "seed %" PRIu64 ": %s", seed, violation);
        grants[NEAR] += turns.grants[NEAR];
        grants[FAR] += turns.grants[FAR];
    }
    unsigned equal = (grants[NEAR] + grants[FAR]) * FAR_CLIENTS / clients;
    printf("%u:%u, round trip %.1f ms, held %.1f ms: near %u, far %u, %.2f of an equal share\n",
           distances[_i].near_clients, FAR_CLIENTS, (double)distances[_i].far_us / 1e3,
           (double)distances[_i].hold_us / 1e3, grants[NEAR], grants[FAR],
           (double)grants[FAR] / equal);
    ck_assert_uint_ge(grants[FAR] * 10, equal * distances[_i].tenths);
}

static void begin(void)
{
    /* The engine's tables are large and mostly untouched. If they come from mmap, their pages are
     * zero without being written. */
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
    memset(&tally, 0, sizeof(tally));
}

static void end(void)
{
    sim_free(&sim);
}

const struct runner_settings runner_settings = {
    .setup = begin, .teardown = end, .time_limit_s = 36000};
