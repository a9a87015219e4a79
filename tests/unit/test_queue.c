/*
 * engine/locks/queue.h and engine/timer.h alone: the order of waiters, and when the daemon
 * acquires, probes and pauses.
 */
#include <string.h>

#include "engine/locks/queue.h"
#include "protocol/units.h"
#include "tests/runner.h"

#define MS NS_PER_MS

static const struct engine_rules rules = {
    .round = {.node_count = 5, .quorum = 3}, .backoff_min_ns = 5 * MS, .backoff_max_ns = 250 * MS};

enum { ALL = 0x1f };

static struct queue queue;
static struct waiter waiters[4];
static uint32_t nodes;
static uint64_t holder;

static void setup(void)
{
    memset(waiters, 0, sizeof(waiters));
    queue_init(&queue, &rules, 42);
    holder = 7;
}

const struct runner_settings runner_settings = {.setup = setup};

static void observe(unsigned node, bool held, int64_t pttl_ms, bool tracked, int64_t now_ns)
{
    const struct observation observation = {
        .held = held, .pttl_ms = pttl_ms, .holder = held ? holder : 0, .tracked = tracked};
    queue_on_observed(&queue, node, &observation, now_ns);
}

/* One client waits and was refused at now_ns: all nodes have a key with this TTL. */
static void join_and_be_refused(int64_t now_ns, int64_t pttl_ms, bool tracked)
{
    queue_join(&queue, &waiters[0], now_ns);
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_ACQUIRE);
    queue_on_acquiring(&queue);
    for (unsigned i = 0; i < 5; i++)
        observe(i, true, pttl_ms, tracked, now_ns);
    queue_on_outcome(&queue, QUEUE_HELD, now_ns);
}

static void expect_rest(int64_t now_ns)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_REST);
}

static void expect_probe(int64_t now_ns, uint32_t at)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_PROBE);
    ck_assert_uint_eq(nodes, at);
}

static void expect_acquire(int64_t now_ns)
{
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_ACQUIRE);
}

TEST(queue_sleeps_until_a_quorum_can_be_free)
{
    queue_join(&queue, &waiters[0], 0);
    expect_acquire(0);
    queue_on_acquiring(&queue);
    expect_rest(0);
    ck_assert_int_eq(queue_wake_ns(&queue), TIMER_NEVER);
    for (unsigned i = 0; i < 5; i++)
        observe(i, true, 1000 * (i + 1), true, 0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    /* A quorum is free once the third of the five keys has expired, at 3000 ms. The queue wakes one
     * millisecond later, because Redis rounds expiry times. */
    ck_assert_int_eq(queue_hint_ms(&queue, 0), 3000);
    expect_rest(500 * MS);
    ck_assert_int_eq(queue_wake_ns(&queue), 3001 * MS);
    expect_rest(3001 * MS - 1);
    expect_acquire(3001 * MS);
}

TEST(free_nodes_count_towards_the_quorum)
{
    join_and_be_refused(0, 10000, true);
    observe(0, false, -1, true, 0);
    observe(1, false, -1, true, 0);
    expect_rest(1000 * MS);
    observe(2, false, -1, true, 0);
    expect_acquire(1000 * MS);
}

TEST(queue_waits_only_for_reports_of_a_key_without_ttl)
{
    join_and_be_refused(0, -1, true);
    ck_assert_int_eq(queue_hint_ms(&queue, 0), -1);
    expect_rest(1000 * MS);
    ck_assert_int_eq(queue_wake_ns(&queue), TIMER_NEVER);
}

TEST(node_that_reports_is_probed_at_once)
{
    join_and_be_refused(0, 10000, true);
    queue_on_changed(&queue, 3);
    expect_probe(100 * MS, 8);
    expect_rest(100 * MS);
    queue_on_changed(&queue, 3);
    /* The node is not probed again before its first probe is answered. */
    expect_rest(100 * MS);
    observe(3, true, 10000, true, 101 * MS);
    expect_probe(101 * MS, 8);
}

/* The report and the answer to the probe arrive on different connections, so the report can
 * overtake the answer. */
TEST(report_that_overtakes_an_answer_voids_it)
{
    join_and_be_refused(0, 10000, true);
    for (unsigned i = 0; i < 3; i++)
        queue_on_changed(&queue, i);
    expect_probe(100 * MS, 7);
    queue_on_changed(&queue, 2);
    for (unsigned i = 0; i < 3; i++)
        observe(i, false, -1, true, 101 * MS);
    /* Two nodes are free; the state of the third is unknown. */
    expect_probe(101 * MS, 4);
    observe(2, true, 10000, true, 102 * MS);
    expect_rest(102 * MS);
}

/* Found by the simulator: the lock is handed over while a node is being probed. Its report of the
 * hand-over overtakes the answer to the probe, which still shows the previous holder. */
TEST(grant_voids_the_answers_to_earlier_probes)
{
    queue_join(&queue, &waiters[1], 0);
    join_and_be_refused(0, 10000, true);
    queue_on_changed(&queue, 2);
    expect_probe(100 * MS, 4);
    queue_on_acquiring(&queue);
    queue_on_changed(&queue, 2);
    queue_leave(&queue, &waiters[1]);
    queue_on_granted(&queue, true, 1000 * MS, 100 * MS);
    observe(2, true, 9900, true, 101 * MS);
    expect_rest(101 * MS);
    /* Node 2 is not taken for one that will report, so it is probed as well. */
    expect_probe(100 * MS + QUEUE_QUIET_NS, ALL);
}

/* Node 1 does not track, so a report of another node makes the queue probe node 1 as well. A node
 * whose probe is in flight is not probed again. */
TEST(report_also_probes_nodes_that_cannot_report)
{
    join_and_be_refused(0, 10000, true);
    observe(1, true, 10000, false, 0);
    queue_on_changed(&queue, 2);
    expect_probe(100 * MS, 6);
    queue_on_changed(&queue, 2);
    observe(1, true, 10000, false, 101 * MS);
    expect_rest(101 * MS);
    observe(2, true, 10000, true, 102 * MS);
    expect_probe(102 * MS, 6);
    /* Nodes that do not track are not probed for a report of an unreachable node. */
    observe(1, true, 10000, false, 103 * MS);
    observe(2, true, 10000, true, 103 * MS);
    queue_on_changed(&queue, 2);
    ck_assert_int_eq(queue_next(&queue, ALL & ~4U, 104 * MS, &nodes), QUEUE_REST);
}

TEST(report_during_a_round_is_probed_after_it)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    for (unsigned i = 0; i < 5; i++)
        observe(i, true, 10000, true, 0);
    queue_on_changed(&queue, 1);
    expect_rest(0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    expect_probe(0, 2);
}

TEST(nodes_that_do_not_report_are_polled)
{
    int64_t last_ns = 0;
    join_and_be_refused(0, 100000, false);
    for (unsigned i = 0; i < 100; i++) {
        expect_rest(last_ns);
        int64_t wake_ns = queue_wake_ns(&queue);
        ck_assert_int_ge(wake_ns - last_ns, QUEUE_POLL_NS / 2);
        ck_assert_int_le(wake_ns - last_ns, QUEUE_POLL_NS);
        expect_probe(wake_ns, ALL);
        for (unsigned node = 0; node < 5; node++)
            observe(node, true, 100000, false, wake_ns);
        last_ns = wake_ns;
    }
}

TEST(reporting_quorum_is_not_polled)
{
    join_and_be_refused(0, 100000, true);
    queue_on_untracked(&queue, 0, 0);
    queue_on_untracked(&queue, 1, 0);
    expect_rest(QUEUE_POLL_NS);
    ck_assert_int_eq(queue_wake_ns(&queue), 100001 * MS);
    queue_on_untracked(&queue, 2, QUEUE_POLL_NS);
    expect_rest(QUEUE_POLL_NS);
    expect_probe(2 * QUEUE_POLL_NS, 7);
}

/* A free master has no key whose release it could report. */
TEST(free_masters_do_not_count_as_reporting)
{
    join_and_be_refused(0, 100000, true);
    observe(0, false, -1, true, 0);
    observe(1, false, -1, true, 0);
    observe(2, true, 100000, false, 0);
    expect_rest(0);
    ck_assert_int_le(queue_wake_ns(&queue), QUEUE_POLL_NS);
    expect_probe(QUEUE_POLL_NS, 4);
    observe(2, false, -1, false, QUEUE_POLL_NS);
    expect_acquire(QUEUE_POLL_NS);
}

/* With four masters, a quorum is three. Any three masters include one of the two that hold the key
 * and report its changes, so the other masters need not be polled. */
TEST(two_of_four_reporting_masters_suffice)
{
    static const struct engine_rules four = {.round = {.node_count = 4, .quorum = 3},
                                             .backoff_min_ns = 5 * MS,
                                             .backoff_max_ns = 250 * MS};
    queue_init(&queue, &four, 42);
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    for (unsigned i = 0; i < 4; i++)
        observe(i, true, 100000, i < 2, 0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    expect_rest(QUEUE_POLL_NS);
    ck_assert_int_eq(queue_wake_ns(&queue), 100001 * MS);
    queue_on_untracked(&queue, 1, QUEUE_POLL_NS);
    expect_rest(QUEUE_POLL_NS);
    ck_assert_int_eq(queue_next(&queue, 0xf, 2 * QUEUE_POLL_NS, &nodes), QUEUE_PROBE);
    ck_assert_uint_eq(nodes, 0xe);
}

TEST(probe_without_an_answer_is_repeated)
{
    join_and_be_refused(0, 100000, true);
    for (unsigned i = 0; i < 5; i++)
        queue_on_changed(&queue, i);
    expect_probe(0, ALL);
    for (unsigned i = 0; i < 5; i++)
        queue_on_unobserved(&queue, i);
    expect_rest(0);
    ck_assert_int_le(queue_wake_ns(&queue), QUEUE_POLL_NS);
    expect_probe(QUEUE_POLL_NS, ALL);
}

TEST(unreachable_nodes_are_probed_later)
{
    join_and_be_refused(0, 100000, true);
    queue_on_changed(&queue, 4);
    ck_assert_int_eq(queue_next(&queue, 0xf, 0, &nodes), QUEUE_REST);
    ck_assert_int_le(queue_wake_ns(&queue), QUEUE_POLL_NS);
    expect_probe(1, 0x10);
}

/* A master whose tracking table is full reports changes that did not happen. */
TEST(false_reports_are_limited)
{
    int64_t now_ns = 0;
    unsigned probes = 0;
    join_and_be_refused(0, 10000, true);
    for (unsigned i = 0; i < 1000; i++, now_ns += MS) {
        queue_on_changed(&queue, i % 5);
        if (queue_next(&queue, ALL, now_ns, &nodes) != QUEUE_PROBE)
            continue;
        for (unsigned node = 0; node < 5; node++)
            if (nodes & 1U << node) {
                probes++;
                observe(node, true, 10000 - now_ns / MS, true, now_ns);
            }
    }
    ck_assert_uint_ge(probes, QUEUE_IDLE_REPORTS);
    ck_assert_uint_le(probes, QUEUE_IDLE_REPORTS + 5 * 4);
    /* Once a report proves true, all reports are believed again. */
    queue_on_changed(&queue, 0);
    now_ns += QUEUE_POLL_NS;
    ck_assert_int_eq(queue_next(&queue, ALL, now_ns, &nodes), QUEUE_PROBE);
    observe(0, true, 30000, true, now_ns);
    ck_assert_uint_eq(queue.idle_reports, 0);
}

TEST(no_probe_follows_a_local_grant_for_a_while)
{
    queue_join(&queue, &waiters[0], 0);
    queue_join(&queue, &waiters[1], 0);
    queue_on_acquiring(&queue);
    queue_leave(&queue, &waiters[0]);
    queue_on_granted(&queue, false, 10000 * MS, 0);
    queue_on_changed(&queue, 0);
    expect_rest(0);
    ck_assert_int_eq(queue_wake_ns(&queue), QUEUE_QUIET_NS);
    expect_probe(QUEUE_QUIET_NS, ALL);
    ck_assert(queue_may_hand_over(&queue, QUEUE_QUIET_NS));
}

/* Each pause is random between backoff_min and a maximum. The maximum doubles with each round in
 * vain, up to backoff_max. */
TEST(pauses_grow_at_random_up_to_backoff_max)
{
    int64_t now_ns = 0;
    int64_t longest_ns = 0;
    queue_join(&queue, &waiters[0], 0);
    for (unsigned i = 0; i < 1000; i++) {
        expect_acquire(now_ns);
        queue_on_acquiring(&queue);
        queue_on_outcome(&queue, i % 2 == 0 ? QUEUE_COLLIDED : QUEUE_FAILED, now_ns);
        int64_t pause_ns = queue_wake_ns(&queue) - now_ns;
        int64_t most_ns = i < 5 ? 5 * MS << (i + 1) : 250 * MS;
        ck_assert_int_ge(pause_ns, 5 * MS);
        ck_assert_int_le(pause_ns, most_ns);
        longest_ns = pause_ns > longest_ns ? pause_ns : longest_ns;
        expect_rest(now_ns + pause_ns - 1);
        now_ns += pause_ns;
    }
    ck_assert_int_gt(longest_ns, 200 * MS);
    expect_acquire(now_ns);
    queue_on_acquiring(&queue);
    queue_on_outcome(&queue, QUEUE_HELD, now_ns);
    queue_on_released(&queue, now_ns);
    expect_acquire(now_ns);
    queue_on_acquiring(&queue);
    queue_on_outcome(&queue, QUEUE_COLLIDED, now_ns);
    ck_assert_int_le(queue_wake_ns(&queue) - now_ns, 10 * MS);
}

TEST(release_during_a_round_is_not_lost)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    queue_on_released(&queue, 0);
    queue_on_outcome(&queue, QUEUE_HELD, 0);
    expect_acquire(0);
}

TEST(hand_over_needs_a_waiter_and_no_round_in_flight)
{
    ck_assert(!queue_may_hand_over(&queue, 0));
    queue_join(&queue, &waiters[0], 0);
    ck_assert(queue_may_hand_over(&queue, 0));
    queue_on_acquiring(&queue);
    ck_assert(!queue_may_hand_over(&queue, 0));
}

TEST(request_without_wait_acquires_during_a_pause)
{
    queue_join(&queue, &waiters[0], 0);
    queue_on_acquiring(&queue);
    queue_on_outcome(&queue, QUEUE_COLLIDED, 0);
    queue_leave(&queue, &waiters[0]);
    queue_join(&queue, &waiters[1], 0);
    expect_rest(0);
    queue_note_timed_out(&queue, &waiters[1]);
    expect_acquire(0);
    queue_leave(&queue, &waiters[1]);
    ck_assert_uint_eq(queue.timed_out, 0);
    expect_rest(0);
    ck_assert_int_eq(queue_wake_ns(&queue), TIMER_NEVER);
}

TEST(empty_queue_keeps_no_observations)
{
    join_and_be_refused(0, 100000, true);
    queue_leave(&queue, &waiters[0]);
    queue_join(&queue, &waiters[1], 1000 * MS);
    expect_acquire(1000 * MS);
}

/* The positions of the waiters that have joined and not left. */
static void expect_positions(int64_t now_ns, unsigned first, unsigned second, unsigned third)
{
    const struct waiter *waiter = TAILQ_FIRST(&queue.waiters);
    ck_assert_uint_eq(queue_position(&queue, waiter, now_ns), first);
    ck_assert_uint_eq(queue_position(&queue, TAILQ_NEXT(waiter, entry), now_ns), second);
    waiter = TAILQ_LAST(&queue.waiters, waiter_list);
    ck_assert_uint_eq(queue_position(&queue, waiter, now_ns), third);
}

/* Waiters leave from everywhere. Those that leave from the middle are counted for half a second at
 * most, so the queue is walked at most twice a second. */
TEST(positions_are_exact_or_half_a_second_old)
{
    struct waiter many[8] = {0};
    for (unsigned i = 0; i < 8; i++)
        queue_join(&queue, &many[i], 0);
    expect_positions(1000 * MS, 1, 2, 8);
    queue_leave(&queue, &many[0]);
    queue_leave(&queue, &many[7]);
    expect_positions(1000 * MS, 1, 2, 6);
    queue_leave(&queue, &many[2]);
    expect_positions(1000 * MS, 1, 2, 5);
    ck_assert_int_eq(queue.numbered_ns, 1000 * MS);
    queue_leave(&queue, &many[4]);
    queue_join(&queue, &many[0], 1001 * MS);
    expect_positions(1499 * MS, 1, 2, 6);
    ck_assert_int_eq(queue.numbered_ns, 1000 * MS);
    expect_positions(1500 * MS, 1, 2, 5);
    ck_assert_int_eq(queue.numbered_ns, 1500 * MS);
    expect_positions(9000 * MS, 1, 2, 5);
    ck_assert_int_eq(queue.numbered_ns, 1500 * MS);
}

/* --- timers --- */

TEST(timers_fire_in_order_and_once)
{
    static struct timer timer[1000];
    struct timers timers;
    uint64_t random = 1;
    int64_t last_ns = -1;
    uint64_t last_serial = 0;
    unsigned left = 0;
    timers_init(&timers);
    ck_assert_int_eq(timers.first_ns, TIMER_NEVER);
    for (unsigned i = 0; i < 20000; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        struct timer *one = &timer[(random >> 33) % 1000];
        left -= one->set;
        timers_set(&timers, one, i % 7 == 0 ? TIMER_NEVER : (int64_t)(random >> 40) % 5000);
        left += one->set;
    }
    ck_assert_uint_gt(left, 500);
    ck_assert_ptr_null(timers_take(&timers, -1));
    while (left > 0) {
        ck_assert_int_ge(timers.first_ns, last_ns);
        bool same = timers.first_ns == last_ns;
        last_ns = timers.first_ns;
        ck_assert_ptr_null(timers_take(&timers, last_ns - 1));
        const struct timer *one = timers_take(&timers, last_ns);
        ck_assert(!one->set);
        ck_assert_int_eq(one->at_ns, last_ns);
        ck_assert(!same || one->serial > last_serial);
        last_serial = one->serial;
        left--;
    }
    ck_assert_ptr_null(timers_take(&timers, 5000));
    ck_assert_int_eq(timers.first_ns, TIMER_NEVER);
}

TEST(timers_for_one_instant_fire_in_the_order_they_were_set)
{
    struct timer one = {0};
    struct timer other = {0};
    struct timers timers;
    timers_init(&timers);
    timers_set(&timers, &other, 5);
    timers_set(&timers, &one, 5);
    ck_assert_ptr_eq(timers_take(&timers, 5), &other);
    ck_assert_ptr_eq(timers_take(&timers, 5), &one);
}
