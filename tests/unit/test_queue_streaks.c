/*
 * engine/locks/queue.h alone: when a hand-over streak ends, and how long the pause after it is.
 */
#include <string.h>

#include "engine/flight/write.h"
#include "engine/locks/queue.h"
#include "protocol/units.h"
#include "tests/runner.h"

#define MS NS_PER_MS

static const struct engine_rules rules = {
    .round = {.node_count = 5, .quorum = 3}, .backoff_min_ns = 5 * MS, .backoff_max_ns = 250 * MS};
static const struct engine_rules shared_name_rules = {.round = {.node_count = 5, .quorum = 3},
                                                      .shared_names = true,
                                                      .backoff_min_ns = 5 * MS,
                                                      .backoff_max_ns = 250 * MS};

enum { ALL = 0x1f };

static struct queue queue;
static struct waiter waiters[2];
static uint32_t nodes;

static void setup(void)
{
    memset(waiters, 0, sizeof(waiters));
    queue_init(&queue, &rules, 42);
}

const struct runner_settings runner_settings = {.setup = setup};

static void expect_rest(int64_t now_ns)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_REST);
}

static void expect_acquire(int64_t now_ns)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_ACQUIRE);
}

/* A streak has the same limits in two cases: if another daemon has left a contention hint, and with
 * shared_names, because clients of other libraries may be waiting. */
enum competitor { OTHER_DAEMON, OTHER_LIBRARY, COMPETITORS };
static enum competitor competitor;

static void compete(int with)
{
    competitor = with;
    queue.rules = competitor == OTHER_LIBRARY ? &shared_name_rules : &rules;
}

static void hand_over(int64_t now_ns)
{
    queue_on_acquiring(&queue);
    if (competitor == OTHER_DAEMON)
        queue_on_contention(&queue, 0);
    queue_on_granted(&queue, true, 1000 * MS, now_ns);
}

TEST_LOOP(streak_is_limited_in_number_and_time, 0, COMPETITORS)
{
    compete(_i);
    queue_join(&queue, &waiters[0], 0);
    queue_join(&queue, &waiters[1], 0);
    queue_on_acquiring(&queue);
    queue_on_granted(&queue, false, 1000 * MS, 0);
    /* The first hand-over is always allowed, however long the lock was held. */
    ck_assert(queue_may_hand_over(&queue, 2 * QUEUE_STREAK_NS));
    for (unsigned i = 0; i < QUEUE_STREAK_HANDOVERS; i++) {
        ck_assert(queue_may_hand_over(&queue, 0));
        hand_over(0);
        ck_assert(!queue_may_hand_over(&queue, QUEUE_STREAK_NS));
    }
    ck_assert(!queue_may_hand_over(&queue, 0));
    queue_on_released(&queue, 0);
    expect_rest(0);
    ck_assert_int_ge(queue_wake_ns(&queue), 5 * MS);
    ck_assert_int_le(queue_wake_ns(&queue), 10 * MS);
    /* A new streak begins. */
    expect_acquire(10 * MS);
    queue_on_acquiring(&queue);
    queue_on_granted(&queue, false, 1000 * MS, 10 * MS);
    ck_assert(queue_may_hand_over(&queue, 10 * MS));
}

/* Hand over until the streak ends. Then the lock is released and the pause passes. */
static unsigned run_streak(void)
{
    unsigned handovers = 0;
    for (; queue_may_hand_over(&queue, 0); handovers++)
        hand_over(0);
    queue_on_released(&queue, 0);
    expect_rest(0);
    expect_acquire(10 * MS);
    queue_on_acquiring(&queue);
    return handovers;
}

static void grant(void)
{
    queue_on_granted(&queue, false, 1000 * MS, 0);
}

TEST(streak_without_contention_is_limited_only_in_time)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    grant();
    for (unsigned i = 0; i < 100 * QUEUE_STREAK_HANDOVERS; i++) {
        ck_assert(queue_may_hand_over(&queue, 0));
        queue_on_acquiring(&queue);
        queue_on_granted(&queue, true, 1000 * MS, 0);
    }
    ck_assert(queue_may_hand_over(&queue, QUEUE_STREAK_NS - 1));
    ck_assert(!queue_may_hand_over(&queue, QUEUE_STREAK_NS));
    /* A contention hint of another daemon ends the streak at once. */
    queue_on_contention(&queue, 0);
    ck_assert(!queue_may_hand_over(&queue, 0));
}

static void hand_over_contended(int64_t need_ns)
{
    queue_on_acquiring(&queue);
    queue_on_contention(&queue, need_ns);
    queue_on_granted(&queue, true, 1000 * MS, 0);
}

/* Run a streak during which waiters of other daemons report that they need pauses of need_ns and
 * other_ns. Returns the pause after it; *handovers is the length of the streak. */
static int64_t pause_after(int64_t need_ns, int64_t other_ns, unsigned *handovers)
{
    queue_on_acquiring(&queue);
    grant();
    for (*handovers = 0; queue_may_hand_over(&queue, 0); ++*handovers)
        hand_over_contended(*handovers % 2 == 0 ? need_ns : other_ns);
    queue_on_released(&queue, 0);
    int64_t pause_ns = queue_wake_ns(&queue);
    expect_acquire(pause_ns);
    return pause_ns;
}

TEST(far_waiter_needs_two_round_trips)
{
    ck_assert_int_eq(need_ns(rules.backoff_min_ns, MS / 10), 0);
    ck_assert_int_eq(need_ns(rules.backoff_min_ns, 1300 * MS / 1000), 0);
    ck_assert_int_ge(need_ns(rules.backoff_min_ns, 2 * MS), 4 * MS);
    ck_assert_int_ge(need_ns(rules.backoff_min_ns, 14 * MS), 28 * MS);
    ck_assert_int_le(need_ns(rules.backoff_min_ns, 14 * MS), 56 * MS);
}

TEST(pause_suits_the_waiter_with_the_greatest_need)
{
    unsigned handovers;
    queue_join(&queue, &waiters[0], 0);
    for (unsigned i = 0; i < 100; i++) {
        int64_t pause_ns = pause_after(33 * MS, 12 * MS, &handovers);
        ck_assert_uint_eq(handovers, QUEUE_FAR_HANDOVERS);
        ck_assert_int_ge(pause_ns, 33 * MS);
        ck_assert_int_le(pause_ns, 38 * MS);
    }
    /* A hint counts for one streak. */
    ck_assert_int_le(pause_after(0, 0, &handovers), 10 * MS);
    ck_assert_uint_eq(handovers, QUEUE_STREAK_HANDOVERS);
    /* If about half of the usual pauses are long enough for a need, the streak does not get
     * shorter. */
    ck_assert_int_ge(pause_after(8 * MS, 0, &handovers), 8 * MS);
    ck_assert_uint_eq(handovers, QUEUE_STREAK_HANDOVERS);
}

TEST(pause_never_exceeds_backoff_max)
{
    static const int64_t absurd_ns[] = {240 * MS, 250 * MS, 9999 * MS, INT64_MAX};
    unsigned handovers;
    queue_join(&queue, &waiters[0], 0);
    for (unsigned i = 0; i < sizeof(absurd_ns) / sizeof(absurd_ns[0]); i++) {
        int64_t pause_ns = pause_after(absurd_ns[i], 0, &handovers);
        ck_assert_int_ge(pause_ns, 240 * MS);
        ck_assert_int_le(pause_ns, 250 * MS);
    }
}

/* By the next streak, the waiter that left the hint can have got the lock, or can have given up. */
TEST(contention_hint_counts_for_one_streak)
{
    compete(OTHER_DAEMON);
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    grant();
    ck_assert_uint_eq(run_streak(), QUEUE_STREAK_HANDOVERS);
    grant();
    compete(COMPETITORS);
    for (unsigned i = 0; i < 100 * QUEUE_STREAK_HANDOVERS; i++)
        hand_over(0);
    ck_assert(queue_may_hand_over(&queue, 0));
}

/* The time limit of a streak counts from its first hand-over, and not from the grant. So a lock
 * that was held for a minute before can be handed over several times, too. */
TEST(streak_begins_with_its_first_hand_over)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    queue_on_granted(&queue, false, 1000 * MS, 0);
    queue_on_acquiring(&queue);
    queue_on_granted(&queue, true, 1000 * MS, 60 * NS_PER_S);
    ck_assert(queue_may_hand_over(&queue, 60 * NS_PER_S + QUEUE_STREAK_NS - 1));
    ck_assert(!queue_may_hand_over(&queue, 60 * NS_PER_S + QUEUE_STREAK_NS));
}
