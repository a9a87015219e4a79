/*
 * engine/round/fence.h alone, and fencing tokens in the engine on fake masters.
 */
#include "engine/round/fence.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

/* --- ballots --- */

TEST(ballots_follow_the_clock_and_only_rise)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 1000);
    ck_assert_int_eq(fence_propose(&fence, 2000, 0), 2000);
    ck_assert_int_eq(fence_propose(&fence, 2000, 0), 2001);
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 2002);
    ck_assert_int_eq(fence_propose(&fence, 3000, 0), 3000);
}

TEST(ballot_exceeds_those_seen_but_does_not_raise_others)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, 1000, 5000), 5001);
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 1001);
    ck_assert_int_eq(fence_propose(&fence, 1000, 900), 1002);
}

TEST(ballots_stay_within_the_precision_of_lua)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, 1000, (INT64_C(1) << 53) - 2), (INT64_C(1) << 53) - 1);
    ck_assert_int_eq(fence_propose(&fence, 1000, (INT64_C(1) << 53) - 1), 0);
}

TEST(absurd_clock_is_not_remembered)
{
    struct fence fence = {0};
    ck_assert_int_eq(fence_propose(&fence, INT64_C(1) << 53, 0), 0);
    ck_assert_int_eq(fence_propose(&fence, 1000, 0), 1000);
}

TEST(only_digits_are_a_ballot)
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

/* --- fencing tokens of grants --- */

/* Send LOCK a FENCE and release the lock. Returns the fencing token, or 0 if the lock was not
 * granted. */
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

TEST(fence_is_the_wall_clock_in_microseconds)
{
    ck_assert_int_eq(take_fence(), (w.now_ns + w.wall_ns) / 1000);
}

TEST(lock_without_fence_has_no_fencing_token)
{
    const char *reply = cluster_ask(&w, "LOCK a 10s");
    ck_assert_str_eq(strrchr(reply, ' '), " -");
    ck_assert_ptr_null(cluster_value(&w, 0, "redlockd:fence:a"));
}

TEST(fences_rise_while_the_clock_steps_back)
{
    int64_t before = take_fence();
    for (unsigned i = 0; i < 100; i++) {
        w.wall_ns += i % 2 == 0 ? -3600 * NS_PER_S : 3600 * NS_PER_S;
        int64_t fence = take_fence();
        ck_assert_int_gt(fence, before);
        before = fence;
    }
}

/* A daemon whose clock is slow learns the greatest ballot from the masters, and proposes a greater
 * one. */
TEST(outbid_daemon_proposes_again_at_once)
{
    for (unsigned i = 0; i < 5; i++)
        cluster_set(&w, i, "redlockd:fence:a", "1900000000000000", 0);
    ck_assert_int_eq(take_fence(), 1900000000000001);
    ck_assert_uint_eq(w.engine.stats.outcomes[ROUND_ACQUIRE][OUTCOME_OUTBID], 1);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

TEST(higher_ballot_on_a_minority_costs_no_round)
{
    for (unsigned i = 0; i < 2; i++)
        cluster_set(&w, i, "redlockd:fence:a", "1900000000000000", 0);
    ck_assert_int_lt(take_fence(), 1900000000000000);
    ck_assert_uint_eq(w.engine.stats.outcomes[ROUND_ACQUIRE][OUTCOME_OUTBID], 0);
}

/* First, a LOCK of resource a is outbid while D and E hang; its outcome is not checked. Then the
 * masters have the greatest possible ballot for resource b. No round can propose a greater one, so
 * the LOCK of b is refused and leaves no key. */
TEST(request_is_refused_if_no_greater_ballot_is_possible)
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

TEST(lock_with_fence_answers_held_and_stores_no_ballot)
{
    cluster_ask(&w, "LOCK a 10s");
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 10s FENCE"), "HELD 10000");
    ck_assert_ptr_null(cluster_value(&w, 0, "redlockd:fence:a"));
}

TEST(client_that_leaves_between_two_ballots_leaves_no_keys)
{
    for (unsigned i = 0; i < 5; i++)
        cluster_set(&w, i, "redlockd:fence:a", "1900000000000000", 0);
    w.reply_fails = true;
    cluster_send(&w, "LOCK a 10s FENCE");
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

/* Two masters lose their data, and with it the ballots that they stored. They have no vote for a
 * quarantine. By its end, the wall clock has passed these ballots, so every new ballot is greater.
 */
TEST(fences_rise_while_minorities_lose_their_data)
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
