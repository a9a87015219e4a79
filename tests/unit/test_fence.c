/*
 * engine/round/fence.h, and fences in the engine on fake masters.
 */
#include "engine/round/fence.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster.h"

static struct cluster w;

static void five(void)
{
    cluster_init(&w, 5);
}

static void end(void)
{
    cluster_deinit(&w);
}

/* --- ballots --- */

START_TEST(ballots_follow_the_clock_and_only_rise)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 1000);
    ck_assert_int_eq(fence_propose(&fence, 2000, 0), 2000);
    ck_assert_int_eq(fence_propose(&fence, 2000, 0), 2001);
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 2002);
    ck_assert_int_eq(fence_propose(&fence, 3000, 0), 3000);
}
END_TEST

START_TEST(ballot_is_above_what_was_seen_and_lifts_no_other)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, 1000, 5000), 5001);
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 1001);
    ck_assert_int_eq(fence_propose(&fence, 1000, 900), 1002);
}
END_TEST

START_TEST(ballots_end_where_lua_would_round)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, 1000, (INT64_C(1) << 53) - 2), (INT64_C(1) << 53) - 1);
    ck_assert_int_eq(fence_propose(&fence, 1000, (INT64_C(1) << 53) - 1), 0);
}
END_TEST

START_TEST(absurd_clock_is_not_remembered)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, INT64_C(1) << 53, 0), 0);
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 1000);
}
END_TEST

START_TEST(only_digits_are_a_ballot)
{
    ck_assert_int_eq(redis_ballot("0", 1), 0);
    ck_assert_int_eq(redis_ballot("1763640000123456", 16), 1763640000123456);
    ck_assert_int_eq(redis_ballot("9007199254740991", 16), 9007199254740991);
    ck_assert_int_eq(redis_ballot("9007199254740992", 16), -1);
    ck_assert_int_eq(redis_ballot("1.7636400001235e+15", 19), -1);
    ck_assert_int_eq(redis_ballot("", 0), -1);
    ck_assert_int_eq(redis_ballot("-1", 2), -1);
    ck_assert_int_eq(redis_ballot("00000000000000001", 17), -1);
}
END_TEST

/* --- in the engine --- */

/* LOCK a FENCE, and its fence; 0 if it was not granted. Then it is released. */
static int64_t take_fence(void)
{
    const char *reply = cluster_ask(&w, "LOCK a 10s FENCE");
    w.reply_count = 0;
    if (strncmp(reply, "OK ", 3) != 0)
        return 0;
    int64_t fence = atoll(strrchr(reply, ' ') + 1);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", cluster_token(reply)), "OK");
    w.reply_count = 0;
    return fence;
}

START_TEST(fence_is_the_wall_clock_in_microseconds)
{
    ck_assert_int_eq(take_fence(), (w.now_ns + w.wall_ns) / 1000);
}
END_TEST

START_TEST(lock_without_fence_has_none)
{
    const char *reply = cluster_ask(&w, "LOCK a 10s");
    ck_assert_str_eq(strrchr(reply, ' '), " -");
    ck_assert_ptr_null(cluster_value(&w, 0, "redlockd:fence:a"));
}
END_TEST

START_TEST(fences_rise_though_the_clock_goes_back)
{
    int64_t before = take_fence();
    for (unsigned i = 0; i < 100; i++) {
        w.wall_ns += i % 2 == 0 ? -3600 * NS_PER_S : 3600 * NS_PER_S;
        int64_t fence = take_fence();
        ck_assert_int_gt(fence, before);
        before = fence;
    }
}
END_TEST

/* A daemon whose clock is behind has to be told, and then bids above what it was told. */
START_TEST(daemon_that_is_outbid_bids_again_at_once)
{
    for (unsigned i = 0; i < 5; i++)
        cluster_set(&w, i, "redlockd:fence:a", "1900000000000000", 0);
    ck_assert_int_eq(take_fence(), 1900000000000001);
    ck_assert_uint_eq(w.engine.stats.outcomes[ROUND_ACQUIRE][OUTCOME_OUTBID], 1);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}
END_TEST

START_TEST(minority_that_saw_more_costs_nothing)
{
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "redlockd:fence:a", "1900000000000000", 0);
    ck_assert_int_lt(take_fence(), 1900000000000000);
    ck_assert_uint_eq(w.engine.stats.outcomes[ROUND_ACQUIRE][OUTCOME_OUTBID], 0);
}
END_TEST

/* The rival raises the ballot in between: no third try, and nothing stays behind. */
START_TEST(who_is_outbid_twice_is_refused)
{
    for (unsigned i = 0; i < 5; i++)
        cluster_set(&w, i, "redlockd:fence:a", i < 3 ? "1900000000000000" : "1900000000000005", 0);
    w.masters[3].hung = w.masters[4].hung = true;
    cluster_send(&w, "LOCK a 10s FENCE");
    engine_flush(&w.engine, w.now_ns);
    for (unsigned i = 0; i < 3; i++)
        cluster_set(&w, i, "redlockd:fence:a", "1900000000000000", 0);
    cluster_settle(&w);
    w.masters[3].hung = w.masters[4].hung = false;
    cluster_settle(&w);
    w.reply_count = 0;
    for (unsigned i = 0; i < 5; i++)
        cluster_set(&w, i, "redlockd:fence:b", "9007199254740991", 0);
    ck_assert_str_eq(cluster_ask(&w, "LOCK b 10s FENCE"), "LIMIT fence");
    ck_assert_uint_eq(cluster_count(&w, "b"), 0);
    cluster_pass_ms(&w, 100);
    ck_assert_uint_eq(cluster_count(&w, "b"), 0);
}
END_TEST

START_TEST(held_lock_is_held_with_a_fence_too)
{
    cluster_ask(&w, "LOCK a 10s");
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 10s FENCE"), "HELD 10000");
    ck_assert_ptr_null(cluster_value(&w, 0, "redlockd:fence:a"));
}
END_TEST

START_TEST(client_that_leaves_between_two_bids_leaves_nothing)
{
    for (unsigned i = 0; i < 5; i++)
        cluster_set(&w, i, "redlockd:fence:a", "1900000000000000", 0);
    w.deaf = true;
    cluster_send(&w, "LOCK a 10s FENCE");
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}
END_TEST

/* A minority loses its ballots with its data: it has no vote until the clock is beyond them. */
START_TEST(fences_rise_though_a_minority_forgets)
{
    int64_t before = take_fence();
    for (unsigned i = 0; i < 10; i++) {
        cluster_flush(&w, i % 5);
        cluster_flush(&w, (i + 1) % 5);
        for (unsigned s = 0; s < 65; s++) {
            int64_t fence = take_fence();
            ck_assert_int_gt(fence, before);
            before = fence;
            cluster_pass_ms(&w, 1000);
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("fence");
    TCase *ballots = tcase_create("ballots");
    tcase_add_test(ballots, ballots_follow_the_clock_and_only_rise);
    tcase_add_test(ballots, ballot_is_above_what_was_seen_and_lifts_no_other);
    tcase_add_test(ballots, ballots_end_where_lua_would_round);
    tcase_add_test(ballots, absurd_clock_is_not_remembered);
    tcase_add_test(ballots, only_digits_are_a_ballot);
    suite_add_tcase(suite, ballots);
    TCase *grants = tcase_create("grants");
    tcase_set_timeout(grants, 60);
    tcase_add_checked_fixture(grants, five, end);
    tcase_add_test(grants, fence_is_the_wall_clock_in_microseconds);
    tcase_add_test(grants, lock_without_fence_has_none);
    tcase_add_test(grants, fences_rise_though_the_clock_goes_back);
    tcase_add_test(grants, daemon_that_is_outbid_bids_again_at_once);
    tcase_add_test(grants, minority_that_saw_more_costs_nothing);
    tcase_add_test(grants, who_is_outbid_twice_is_refused);
    tcase_add_test(grants, held_lock_is_held_with_a_fence_too);
    tcase_add_test(grants, client_that_leaves_between_two_bids_leaves_nothing);
    tcase_add_test(grants, fences_rise_though_a_minority_forgets);
    suite_add_tcase(suite, grants);
    return suite;
}
