/*
 * Hand-over streaks: a daemon hands a lock over among its own clients for a limited number of
 * times, and then releases it, if another daemon has left a contention hint. For a far waiter it
 * also releases a lock for which no client of its own waits. The tests run the shipped engine on
 * fake masters and virtual time.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

static struct cluster v; /* another daemon on the same masters */
static char holder[LIMIT_TOKEN + 1];

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

/* Assert the grant to the next holder, and add another waiter. */
static void expect_next_holder(void)
{
    memcpy(holder, cluster_expect_grant(&w, "h"), sizeof(holder));
    cluster_submit(&w, "#h LOCK a 10s WAIT 100s");
}

static void hold_and_wait(void)
{
    cluster_submit(&w, "#h LOCK a 10s");
    expect_next_holder();
    cluster_expect(&w, "(nothing)");
}

static void start_second_daemon(void)
{
    cluster_join(&v, &w, "elsewhere");
    w.now_ns = v.now_ns;
    cluster_pass_both_ms(&w, &v, 3000);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(cluster_vote(&v, i), "-");
}

/* Release the lock. Returns whether the first waiter got it at once. If so, another waiter has
 * joined the queue. */
static bool release_to_next(void)
{
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
    if (w.replies_read == w.reply_count)
        return false;
    expect_next_holder();
    return true;
}

static void expect_streak(unsigned handovers)
{
    for (unsigned i = 0; i < handovers; i++)
        ck_assert(release_to_next());
    ck_assert(!release_to_next());
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    cluster_pass_ms(&w, 10);
    expect_next_holder();
}

TEST(daemon_releases_a_contended_lock_after_a_streak)
{
    start_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_submit(&v, "#v LOCK a 50s WAIT 100s");
    cluster_share(&w, &v);
    for (unsigned i = 0; i < QUEUE_STREAK_HANDOVERS; i++) {
        ck_assert(release_to_next());
        cluster_pass_both_ms(&w, &v, 1);
    }
    ck_assert(!release_to_next());
    cluster_pass_both_ms(&w, &v, 1);
    cluster_expect(&w, "(nothing)");
    cluster_expect_grant(&v, "v");
    cluster_deinit(&v);
}

/* With shared_names, clients of other libraries can wait without a hint. So the daemon makes a
 * pause after each streak of the usual length, although no hint was left. */
TEST(shared_names_cost_a_lone_daemon_only_pauses)
{
    w.engine.rules.shared_names = true;
    hold_and_wait();
    expect_streak(QUEUE_STREAK_HANDOVERS);
    expect_streak(QUEUE_STREAK_HANDOVERS);
}

TEST(streak_without_contention_is_limited_only_in_time)
{
    hold_and_wait();
    for (unsigned i = 0; i < 40 * QUEUE_STREAK_HANDOVERS; i++)
        ck_assert(release_to_next());
    cluster_pass_ms(&w, QUEUE_STREAK_NS / NS_PER_MS);
    expect_streak(0);
    ck_assert(release_to_next());
}

/* A client of daemon v waits during a streak, so v leaves a contention hint. Then the client is
 * gone. The hint costs pauses until it expires, a second after the lock for which the client waited
 * would have ended. After that, only the time limit (5 s) ends a streak. */
TEST(hint_of_a_waiter_that_left_is_forgotten)
{
    start_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_submit(&v, "#v LOCK a 1s WAIT 60s");
    cluster_share(&w, &v);
    ck_assert(release_to_next());
    cluster_pass_both_ms(&w, &v, 5);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, "redlockd:waits:a"));
    cluster_lose_client(&v, &v.client);
    cluster_pass_both_ms(&w, &v, 1);
    expect_streak(QUEUE_STREAK_HANDOVERS - 1);
    expect_streak(QUEUE_STREAK_HANDOVERS);
    cluster_pass_both_ms(&w, &v, 9000);
    ck_assert(release_to_next());
    cluster_pass_both_ms(&w, &v, 5000);
    expect_streak(0);
    ck_assert_ptr_null(cluster_value(&w, 0, "redlockd:waits:a"));
    for (unsigned i = 0; i < 40 * QUEUE_STREAK_HANDOVERS; i++)
        ck_assert(release_to_next());
    cluster_deinit(&v);
}

/* The lock is held so long that the daemon probes its own key. The other daemon's hint stays. */
TEST(hint_survives_key_probes_of_the_holding_daemon)
{
    start_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_submit(&v, "#v LOCK a 1s WAIT 60s");
    cluster_share(&w, &v);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(release_to_next());
        cluster_pass_both_ms(&w, &v, 500);
        ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), v.engine.flights.daemon,
                         REDIS_DAEMON);
    }
    cluster_deinit(&v);
}

/* w has granted a lock, which its client then released through v, and another client has acquired
 * it through v. w does not know this and still takes the lock for its own, but must leave a hint
 * for v. */
TEST(hint_is_left_after_a_release_by_another_daemon)
{
    char token[LIMIT_TOKEN + 1];
    start_second_daemon();
    cluster_submit(&w, "#x LOCK a 60s");
    memcpy(token, cluster_expect_grant(&w, "x"), sizeof(token));
    cluster_share(&v, &w);
    cluster_submit(&v, "#u UNLOCK a %.40s", token);
    cluster_submit(&v, "#v LOCK a 20s");
    cluster_share(&w, &v);
    cluster_submit(&w, "#w LOCK a 10s WAIT 60s");
    cluster_pass_both_ms(&w, &v, 1000);
    ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), w.engine.flights.daemon,
                     REDIS_DAEMON);
    cluster_deinit(&v);
}

/* v's hint says how long v needs the lock to be free. That depends on v's round trip to the nearest
 * quorum, which is 12 ms here. */
TEST(far_daemon_gets_the_pause_it_needs)
{
    start_second_daemon();
    hold_and_wait();
    for (unsigned i = 0; i < 5; i++)
        v.engine.flights.masters[i].link.distance_ns = (14 - i) * NS_PER_MS;
    cluster_share(&v, &w);
    cluster_submit(&v, "#v LOCK a 1s WAIT 60s");
    cluster_share(&w, &v);
    for (unsigned i = 0; i < 5; i++) {
        const char *hint = cluster_value(&w, i, "redlockd:far:a");
        ck_assert_mem_eq(hint, v.engine.flights.daemon, REDIS_DAEMON);
        ck_assert_str_eq(hint + REDIS_DAEMON, "37");
    }
    for (unsigned i = 0; i < QUEUE_FAR_HANDOVERS; i++)
        ck_assert(release_to_next());
    ck_assert(!release_to_next());
    cluster_pass_ms(&w, 36);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 7);
    expect_next_holder();
    cluster_deinit(&v);
}

/* A far daemon has left its hints. v, which is nearer, asks for the lock after that. v's own hint
 * must not replace that of the far daemon. */
TEST(hint_of_a_near_daemon_keeps_that_of_a_far_one)
{
    start_second_daemon();
    hold_and_wait();
    for (unsigned i = 0; i < 5; i++) {
        cluster_set(&w, i, "redlockd:far:a", "someone-far-away33", 60000);
        cluster_set(&w, i, "redlockd:waits:a", "someone-far-away33", 60000);
    }
    cluster_share(&v, &w);
    cluster_submit(&v, "#v LOCK a 1s WAIT 60s");
    for (unsigned i = 0; i < 5; i++)
        v.engine.flights.masters[i].link.distance_ns = 10 * NS_PER_MS;
    cluster_submit(&v, "#v2 LOCK a 1s");
    cluster_share(&w, &v);
    ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), v.engine.flights.daemon,
                     REDIS_DAEMON);
    ck_assert_str_eq(cluster_value(&w, 0, "redlockd:far:a"), "someone-far-away33");
    cluster_deinit(&v);
}

/* --- a far waiter, and no waiter of this daemon --- */

static void leave_far_hints(unsigned masters, const char *hint)
{
    for (unsigned i = 0; i < masters; i++)
        cluster_set(&w, i, "redlockd:far:a", hint, 60000);
}

/* One client acquires the lock and releases it, and no other client waits for it here. */
static void take_and_release(void)
{
    cluster_submit(&w, "#h LOCK a 10s WAIT 1s");
    memcpy(holder, cluster_expect_grant(&w, "h"), sizeof(holder));
    cluster_pass_ms(&w, 20);
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
}

static struct resource *resource_a(void)
{
    return resource_find(&w.engine.manager.resources, "a", 1);
}

/* The first release finds the hint. The two grants after it count as a streak, so a pause
 * follows. */
TEST(far_waiter_gets_a_pause_without_local_waiters)
{
    leave_far_hints(5, "someone-far-away33");
    for (unsigned i = 0; i < 3; i++)
        take_and_release();
    cluster_submit(&w, "#n LOCK a 10s");
    const char *reply = cluster_take_reply(&w);
    ck_assert_msg(strncmp(reply, "#n HELD ", 8) == 0, "%s", reply);
    ck_assert_int_ge(atoi(reply + 8), 33);
    cluster_submit(&w, "#h LOCK a 10s WAIT 1s");
    cluster_pass_ms(&w, 32);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 10);
    cluster_expect_grant(&w, "h");
}

/* Only E has the hint. The daemon must find it although it asks other masters first. */
TEST(far_waiter_is_found_on_any_master)
{
    cluster_set(&w, 4, "redlockd:far:a", "someone-far-away33", 60000);
    for (unsigned i = 0; i < 7; i++)
        take_and_release();
    cluster_submit(&w, "#n LOCK a 10s");
    ck_assert_msg(strncmp(cluster_take_reply(&w), "#n HELD ", 8) == 0, "no pause");
}

TEST(hints_that_name_no_far_waiter_are_ignored)
{
    char own[REDIS_DAEMON + 3] = {0};
    memcpy(own, w.engine.flights.daemon, REDIS_DAEMON);
    memcpy(own + REDIS_DAEMON, "33", 2);
    const char *const hints[] = {own, "someone-far-away", "short", "someone-far-away99999",
                                 "someone-far-away-1"};
    for (unsigned i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        leave_far_hints(5, hints[i]);
        for (unsigned j = 0; j < 8; j++)
            take_and_release();
        ck_assert_ptr_null(resource_a());
    }
}

/* Until the hint expires, each pair of grants costs a pause. After that the daemon finds no hint on
 * any master. */
TEST(hint_of_a_far_waiter_that_left_is_forgotten)
{
    leave_far_hints(5, "someone-far-away33");
    take_and_release();
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_ptr_nonnull(resource_a());
        cluster_submit(&w, "#h LOCK a 10s WAIT 1s");
        cluster_pass_ms(&w, 45);
        memcpy(holder, cluster_expect_grant(&w, "h"), sizeof(holder));
        cluster_submit(&w, "#u UNLOCK a %s", holder);
        cluster_expect(&w, "#u OK");
        if (i == 4)
            leave_far_hints(5, "");
    }
    ck_assert_ptr_null(resource_a());
}

/* The daemon keeps the state of the resource for the pause. It frees it after QUEUE_SOUGHT_NS if no
 * client here asks for the resource again, and it keeps at most LIMIT_FAR_RESOURCES in this way. */
TEST(resource_kept_for_a_far_waiter_is_freed)
{
    leave_far_hints(5, "someone-far-away33");
    take_and_release();
    ck_assert_ptr_nonnull(resource_a());
    ck_assert_uint_eq(w.engine.manager.kept_count, 1);
    cluster_pass_ms(&w, QUEUE_SOUGHT_NS / NS_PER_MS + 1);
    ck_assert_ptr_null(resource_a());
    ck_assert_uint_eq(w.engine.manager.kept_count, 0);
    w.engine.manager.kept_count = LIMIT_FAR_RESOURCES;
    take_and_release();
    ck_assert_ptr_null(resource_a());
}

/* A client of v polls without WAIT. v leaves a hint for this client, too, so w releases the lock
 * after a streak. */
TEST(request_without_wait_leaves_a_hint)
{
    start_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_submit(&v, "#v LOCK a 1s");
    cluster_share(&w, &v);
    ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), v.engine.flights.daemon,
                     REDIS_DAEMON);
    expect_streak(QUEUE_STREAK_HANDOVERS);
    cluster_deinit(&v);
}

TEST(daemon_ignores_its_own_hint)
{
    cluster_occupy(&w, "a", 2000);
    cluster_submit(&w, "#h LOCK a 10s WAIT 60s");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(cluster_value(&w, i, "redlockd:waits:a"));
    cluster_vacate(&w, "a");
    expect_next_holder();
    for (unsigned i = 0; i < 2 * QUEUE_STREAK_HANDOVERS; i++)
        ck_assert(release_to_next());
}

/* Submit a request that takes 2 ms to the masters `first` and `first` + 1, and 1 ms to the others.
 * All later requests take 1 ms. */
static void send_delayed(struct cluster *cluster, unsigned first, const char *line)
{
    for (unsigned i = 0; i < 5; i++)
        cluster->masters[i].delay_ns = (i == first || i == first + 1 ? 2 : 1) * NS_PER_MS;
    cluster_submit(cluster, "%s", line);
    for (unsigned i = 0; i < 5; i++)
        cluster->masters[i].delay_ns = NS_PER_MS;
}

TEST(two_daemons_that_collide_both_get_the_lock)
{
    start_second_daemon();
    /* w is first on A and B, v is first on C and D, and E has a foreign key. So neither daemon gets
     * a quorum. */
    cluster_set(&w, 4, "a", "foreign", 10);
    send_delayed(&w, 0, "#w LOCK a 1s WAIT 20s");
    cluster_share(&v, &w);
    send_delayed(&v, 2, "#v LOCK a 1s WAIT 20s");
    cluster_share(&w, &v);
    cluster_pass_both_ms(&w, &v, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_str_eq(cluster_value(&w, i, "a"), cluster_value(&w, 0, "a"));
        ck_assert_str_eq(cluster_value(&w, 2 + i, "a"), cluster_value(&w, 2, "a"));
        ck_assert_str_ne(cluster_value(&w, i, "a"), cluster_value(&w, 2 + i, "a"));
    }
    cluster_expect(&w, "(nothing)");
    cluster_expect(&v, "(nothing)");
    for (unsigned i = 0; i < 100 && (w.reply_count == 0 || v.reply_count == 0); i++)
        cluster_pass_both_ms(&w, &v, 100);
    cluster_expect_grant(&w, "w");
    cluster_expect_grant(&v, "v");
    ck_assert_uint_ge(w.engine.stats.acquire_rounds, 2);
    ck_assert_uint_ge(v.engine.stats.acquire_rounds, 2);
    cluster_deinit(&v);
}
