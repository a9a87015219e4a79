/*
 * Daemons take turns: one that hands a lock on among its own clients lets others have it, once they
 * have left word that they wait. The shipped engine among fake masters, on virtual time.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster.h"

static struct cluster w;
static struct cluster v; /* another daemon on the same masters */
static char holder[LIMIT_TOKEN + 1];

static void setup(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, 10);
}

static void teardown(void)
{
    cluster_deinit(&w);
}

/* One more has it, and one more waits for it. */
static void take_it(void)
{
    memcpy(holder, cluster_expect_grant(&w, "h"), sizeof(holder));
    cluster_say(&w, "#h LOCK a 10s WAIT 100s");
}

static void hold_and_wait(void)
{
    cluster_say(&w, "#h LOCK a 10s");
    take_it();
    cluster_expect(&w, "(nothing)");
}

/* Both in turns, for so long. */
static void pass_both(int64_t ms)
{
    for (int64_t i = 0; i < ms; i++) {
        cluster_pass_ms(&w, 1);
        cluster_share(&v, &w);
        v.now_ns -= NS_PER_MS;
        cluster_pass_ms(&v, 1);
        cluster_share(&w, &v);
    }
}

static void with_second_daemon(void)
{
    cluster_join(&v, &w, "elsewhere");
    w.now_ns = v.now_ns;
    pass_both(3000);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(cluster_vote(&v, i), "-");
}

/* The lock goes from one to the next, and there is always one more; whether at once. */
static bool hand_on(void)
{
    cluster_say(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
    if (w.replies_read == w.reply_count)
        return false;
    take_it();
    return true;
}

static void expect_turn(unsigned handovers)
{
    for (unsigned i = 0; i < handovers; i++)
        ck_assert(hand_on());
    ck_assert(!hand_on());
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    cluster_pass_ms(&w, 10);
    take_it();
}

START_TEST(a_daemon_gives_others_their_turn)
{
    with_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_say(&v, "#v LOCK a 50s WAIT 100s");
    cluster_share(&w, &v);
    for (unsigned i = 0; i < QUEUE_STREAK_HANDOVERS; i++) {
        ck_assert(hand_on());
        pass_both(1);
    }
    ck_assert(!hand_on());
    pass_both(1);
    cluster_expect(&w, "(nothing)");
    cluster_expect_grant(&v, "v");
    cluster_deinit(&v);
}
END_TEST

START_TEST(where_names_are_shared_who_is_alone_loses_pauses_only)
{
    w.engine.rules.shared_names = true;
    hold_and_wait();
    expect_turn(QUEUE_STREAK_HANDOVERS);
    expect_turn(QUEUE_STREAK_HANDOVERS);
}
END_TEST

START_TEST(where_nobody_leaves_word_turns_are_over_by_time_alone)
{
    hold_and_wait();
    for (unsigned i = 0; i < 40 * QUEUE_STREAK_HANDOVERS; i++)
        ck_assert(hand_on());
    cluster_pass_ms(&w, QUEUE_STREAK_NS / NS_PER_MS);
    expect_turn(0);
    ck_assert(hand_on());
}
END_TEST

/* Who comes too late for it, and is gone again, costs pauses until the lock that he saw would have
 * ended. */
START_TEST(word_of_one_who_has_gone_is_forgotten)
{
    with_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_say(&v, "#v LOCK a 1s WAIT 60s");
    cluster_share(&w, &v);
    ck_assert(hand_on());
    pass_both(5);
    ck_assert_ptr_nonnull(cluster_value(&w, 0, "redlockd:waits:a"));
    cluster_lose_client(&v, &v.client);
    pass_both(1);
    expect_turn(QUEUE_STREAK_HANDOVERS - 1);
    expect_turn(QUEUE_STREAK_HANDOVERS);
    pass_both(9000);
    ck_assert(hand_on());
    pass_both(5000);
    expect_turn(0);
    ck_assert_ptr_null(cluster_value(&w, 0, "redlockd:waits:a"));
    for (unsigned i = 0; i < 40 * QUEUE_STREAK_HANDOVERS; i++)
        ck_assert(hand_on());
    cluster_deinit(&v);
}
END_TEST

/* Held for so long that the daemon looks at its own lock, in vain: the other's word stays. */
START_TEST(word_is_not_lost_to_looks_of_who_has_the_lock)
{
    with_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_say(&v, "#v LOCK a 1s WAIT 60s");
    cluster_share(&w, &v);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(hand_on());
        pass_both(500);
        ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), v.engine.flights.daemon,
                         REDIS_DAEMON);
    }
    cluster_deinit(&v);
}
END_TEST

/* It was released through the other daemon, so that this one still takes it for its own. */
START_TEST(word_is_left_though_a_lock_was_released_elsewhere)
{
    char token[LIMIT_TOKEN + 1];
    with_second_daemon();
    cluster_say(&w, "#x LOCK a 60s");
    memcpy(token, cluster_expect_grant(&w, "x"), sizeof(token));
    cluster_share(&v, &w);
    cluster_say(&v, "#u UNLOCK a %.40s", token);
    cluster_say(&v, "#v LOCK a 20s");
    cluster_share(&w, &v);
    cluster_say(&w, "#w LOCK a 10s WAIT 60s");
    pass_both(1000);
    ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), w.engine.flights.daemon,
                     REDIS_DAEMON);
    cluster_deinit(&v);
}
END_TEST

/* By its round trip to the nearest quorum: 12 ms. */
START_TEST(a_daemon_that_is_far_is_given_the_time_it_needs)
{
    with_second_daemon();
    hold_and_wait();
    for (unsigned i = 0; i < 5; i++)
        v.engine.flights.masters[i].link.distance_ns = (14 - i) * NS_PER_MS;
    cluster_share(&v, &w);
    cluster_say(&v, "#v LOCK a 1s WAIT 60s");
    cluster_share(&w, &v);
    for (unsigned i = 0; i < 5; i++) {
        const char *word = cluster_value(&w, i, "redlockd:far:a");
        ck_assert_mem_eq(word, v.engine.flights.daemon, REDIS_DAEMON);
        ck_assert_str_eq(word + REDIS_DAEMON, "37");
    }
    for (unsigned i = 0; i < QUEUE_FAR_HANDOVERS; i++)
        ck_assert(hand_on());
    ck_assert(!hand_on());
    cluster_pass_ms(&w, 36);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 7);
    take_it();
    cluster_deinit(&v);
}
END_TEST

/* v is far. Another daemon, which is not, asks later: its word stands beside that of v. */
START_TEST(word_of_one_who_is_near_hides_none_of_one_who_is_far)
{
    with_second_daemon();
    hold_and_wait();
    for (unsigned i = 0; i < 5; i++) {
        cluster_set(&w, i, "redlockd:far:a", "someone-far-away33", 60000);
        cluster_set(&w, i, "redlockd:waits:a", "someone-far-away33", 60000);
    }
    cluster_share(&v, &w);
    cluster_say(&v, "#v LOCK a 1s WAIT 60s");
    for (unsigned i = 0; i < 5; i++)
        v.engine.flights.masters[i].link.distance_ns = 10 * NS_PER_MS;
    cluster_say(&v, "#v2 LOCK a 1s");
    cluster_share(&w, &v);
    ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), v.engine.flights.daemon,
                     REDIS_DAEMON);
    ck_assert_str_eq(cluster_value(&w, 0, "redlockd:far:a"), "someone-far-away33");
    cluster_deinit(&v);
}
END_TEST

/* --- a far waiter, where no client of this daemon waits --- */

static void leave_far_hints(unsigned masters, const char *hint)
{
    for (unsigned i = 0; i < masters; i++)
        cluster_set(&w, i, "redlockd:far:a", hint, 60000);
}

/* One client takes the lock and releases it, and no other client waits for it here. */
static void take_and_release(void)
{
    cluster_say(&w, "#h LOCK a 10s WAIT 1s");
    memcpy(holder, cluster_expect_grant(&w, "h"), sizeof(holder));
    cluster_pass_ms(&w, 20);
    cluster_say(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
}

static struct resource *resource_a(void)
{
    return resource_find(&w.engine.manager.resources, "a", 1);
}

/* The first release finds the hint; the two grants after that are a turn. */
START_TEST(where_nobody_waits_a_far_waiter_is_given_time_too)
{
    leave_far_hints(5, "someone-far-away33");
    for (unsigned i = 0; i < 3; i++)
        take_and_release();
    cluster_say(&w, "#n LOCK a 10s");
    const char *reply = cluster_heard(&w);
    ck_assert_msg(strncmp(reply, "#n HELD ", 8) == 0, "%s", reply);
    ck_assert_int_ge(atoi(reply + 8), 33);
    cluster_say(&w, "#h LOCK a 10s WAIT 1s");
    cluster_pass_ms(&w, 32);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 10);
    cluster_expect_grant(&w, "h");
}
END_TEST

/* The masters that are asked first know of none. */
START_TEST(a_far_waiter_is_found_on_any_master)
{
    cluster_set(&w, 4, "redlockd:far:a", "someone-far-away33", 60000);
    for (unsigned i = 0; i < 7; i++)
        take_and_release();
    cluster_say(&w, "#n LOCK a 10s");
    ck_assert_msg(strncmp(cluster_heard(&w), "#n HELD ", 8) == 0, "no pause");
}
END_TEST

START_TEST(hints_that_name_no_far_waiter_are_ignored)
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
END_TEST

/* Until its hint ends, each pair of grants costs a pause. Then every master in turn knows of none.
 */
START_TEST(a_far_waiter_that_has_gone_is_forgotten)
{
    leave_far_hints(5, "someone-far-away33");
    take_and_release();
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_ptr_nonnull(resource_a());
        cluster_say(&w, "#h LOCK a 10s WAIT 1s");
        cluster_pass_ms(&w, 45);
        memcpy(holder, cluster_expect_grant(&w, "h"), sizeof(holder));
        cluster_say(&w, "#u UNLOCK a %s", holder);
        cluster_expect(&w, "#u OK");
        if (i == 4)
            leave_far_hints(5, "");
    }
    ck_assert_ptr_null(resource_a());
}
END_TEST

/* The resource is kept for the pause, and not for long if no client here asks for it again. */
START_TEST(what_is_kept_for_a_far_waiter_is_let_go)
{
    leave_far_hints(5, "someone-far-away33");
    take_and_release();
    ck_assert_ptr_nonnull(resource_a());
    ck_assert_uint_eq(w.engine.manager.kept_count, 1);
    cluster_pass_ms(&w, QUEUE_SOUGHT_NS / NS_PER_MS + 1);
    ck_assert_ptr_null(resource_a());
    ck_assert_uint_eq(w.engine.manager.kept_count, 0);
    w.engine.manager.kept_count = LIMIT_SOUGHT;
    take_and_release();
    ck_assert_ptr_null(resource_a());
}
END_TEST

/* Who does not wait has a chance like any other that is refused. */
START_TEST(who_does_not_wait_leaves_word_too)
{
    with_second_daemon();
    hold_and_wait();
    cluster_share(&v, &w);
    cluster_say(&v, "#v LOCK a 1s");
    cluster_share(&w, &v);
    ck_assert_mem_eq(cluster_value(&w, 0, "redlockd:waits:a"), v.engine.flights.daemon,
                     REDIS_DAEMON);
    expect_turn(QUEUE_STREAK_HANDOVERS);
    cluster_deinit(&v);
}
END_TEST

START_TEST(word_that_this_daemon_has_left_is_nothing_to_itself)
{
    cluster_occupy(&w, "a", 2000);
    cluster_say(&w, "#h LOCK a 10s WAIT 60s");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_ptr_nonnull(cluster_value(&w, i, "redlockd:waits:a"));
    cluster_vacate(&w, "a");
    take_it();
    for (unsigned i = 0; i < 2 * QUEUE_STREAK_HANDOVERS; i++)
        ck_assert(hand_on());
}
END_TEST

/* All takes a millisecond to a master; what is asked for here, two to these two masters. */
static void ask_late(struct cluster *cluster, unsigned first, const char *line)
{
    for (unsigned i = 0; i < 5; i++)
        cluster->masters[i].delay_ns = (i == first || i == first + 1 ? 2 : 1) * NS_PER_MS;
    cluster_say(cluster, "%s", line);
    for (unsigned i = 0; i < 5; i++)
        cluster->masters[i].delay_ns = NS_PER_MS;
}

START_TEST(two_daemons_that_collide_both_get_it_in_the_end)
{
    with_second_daemon();
    /* Each is first on two masters, and on the fifth somebody else is. */
    cluster_set(&w, 4, "a", "foreign", 10);
    ask_late(&w, 0, "#w LOCK a 1s WAIT 20s");
    cluster_share(&v, &w);
    ask_late(&v, 2, "#v LOCK a 1s WAIT 20s");
    cluster_share(&w, &v);
    pass_both(2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_str_eq(cluster_value(&w, i, "a"), cluster_value(&w, 0, "a"));
        ck_assert_str_eq(cluster_value(&w, 2 + i, "a"), cluster_value(&w, 2, "a"));
        ck_assert_str_ne(cluster_value(&w, i, "a"), cluster_value(&w, 2 + i, "a"));
    }
    cluster_expect(&w, "(nothing)");
    cluster_expect(&v, "(nothing)");
    for (unsigned i = 0; i < 100 && (w.reply_count == 0 || v.reply_count == 0); i++)
        pass_both(100);
    cluster_expect_grant(&w, "w");
    cluster_expect_grant(&v, "v");
    ck_assert_uint_ge(w.engine.stats.asked, 2);
    ck_assert_uint_ge(v.engine.stats.asked, 2);
    cluster_deinit(&v);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("turns");
    TCase *cases = tcase_create("turns");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_daemon_gives_others_their_turn);
    tcase_add_test(cases, where_names_are_shared_who_is_alone_loses_pauses_only);
    tcase_add_test(cases, where_nobody_leaves_word_turns_are_over_by_time_alone);
    tcase_add_test(cases, word_of_one_who_has_gone_is_forgotten);
    tcase_add_test(cases, word_is_not_lost_to_looks_of_who_has_the_lock);
    tcase_add_test(cases, word_is_left_though_a_lock_was_released_elsewhere);
    tcase_add_test(cases, a_daemon_that_is_far_is_given_the_time_it_needs);
    tcase_add_test(cases, word_of_one_who_is_near_hides_none_of_one_who_is_far);
    tcase_add_test(cases, where_nobody_waits_a_far_waiter_is_given_time_too);
    tcase_add_test(cases, a_far_waiter_is_found_on_any_master);
    tcase_add_test(cases, hints_that_name_no_far_waiter_are_ignored);
    tcase_add_test(cases, a_far_waiter_that_has_gone_is_forgotten);
    tcase_add_test(cases, what_is_kept_for_a_far_waiter_is_let_go);
    tcase_add_test(cases, who_does_not_wait_leaves_word_too);
    tcase_add_test(cases, word_that_this_daemon_has_left_is_nothing_to_itself);
    tcase_add_test(cases, two_daemons_that_collide_both_get_it_in_the_end);
    suite_add_tcase(suite, cases);
    return suite;
}
