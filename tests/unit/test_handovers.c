/*
 * The round that releases a lock also grants it to the first waiter. Whatever happens during that
 * round, no stray token may be left on the masters. The tests run the shipped engine on fake
 * masters and virtual time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

static char holder[LIMIT_TOKEN + 1];

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

/* One client holds the lock, another waits. */
static void hold_and_wait(const char *request)
{
    cluster_submit(&w, "#h LOCK a 50s");
    memcpy(holder, cluster_expect_grant(&w, "h"), sizeof(holder));
    cluster_submit(&w, "%s", request);
    cluster_expect(&w, "(nothing)");
}

/* Assert that a quorum of the masters has this value, and no master another one. With NULL: no
 * master has any value. */
static void expect_values(const char *value)
{
    if (value != NULL)
        ck_assert_uint_ge(cluster_count(&w, "a"), 3);
    for (unsigned i = 0; i < 5; i++) {
        const char *found = cluster_value(&w, i, "a");
        ck_assert_msg(found == NULL || (value != NULL && strcmp(found, value) == 0),
                      "master %u has %s", i, found);
    }
}

TEST(hand_over_without_a_quorum_leaves_neither_token)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    cluster_hang(&w, 3, true);
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_pass_ms(&w, 60);
    cluster_expect(&w, "#u NOQUORUM 2/5 need=3 a:timeout b:timeout c:timeout");
    cluster_expect(&w, "(nothing)");
    cluster_hang(&w, 3, false);
    cluster_settle(&w);
    /* The waiter has kept its place, and gets the lock as soon as a quorum votes again. */
    expect_values(cluster_expect_grant(&w, "b"));
}

/* The batch of this pass contains the release of another token of the same key. That release must
 * be written before the hand-over, but it fills the links, so that they take no more votes. The
 * waiter must get the lock nevertheless. */
TEST(hand_over_follows_a_batched_release_of_the_same_key)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    w.engine.flights.admission.limit = LIMIT_ROUNDS;
    for (unsigned i = 0; w.engine.flights.masters[0].link.load < LIMIT_LINK_VOTES - 1; i++)
        cluster_send_as(&w, &w.others[i / 1000], "#s%u STATUS x", i);
    /* The replies to the STATUS requests are not needed. */
    for (unsigned i = 0; i < 3; i++)
        w.others[i].disconnected = true;
    cluster_send_as(&w, &w.others[3], "#o UNLOCK a aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    cluster_send_as(&w, &w.others[3], "#u UNLOCK a %s", holder);
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.manager.waiting, 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}

TEST(hand_over_on_lost_connections_leaves_neither_token)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].mute = true;
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    for (unsigned i = 0; i < 3; i++) {
        cluster_cut(&w, i);
        w.masters[i].mute = false;
    }
    cluster_settle(&w);
    cluster_expect(&w, "#u NOQUORUM 2/5 need=3 a:disconnected b:disconnected c:disconnected");
    cluster_pass_ms(&w, 5000);
    const char *token = cluster_expect_grant(&w, "b");
    expect_values(token);
}

/* The masters never read the hand-over, because it is lost with the connection, so they still have
 * the old token. After the reconnect the daemon releases it and grants the lock to the waiter. */
TEST(hand_over_that_was_never_read_is_undone_and_repeated)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    cluster_hang(&w, 3, true);
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_pass_ms(&w, 60);
    cluster_expect(&w, "#u NOQUORUM 2/5 need=3 a:timeout b:timeout c:timeout");
    for (unsigned i = 0; i < 3; i++) {
        cluster_cut(&w, i);
        w.masters[i].hung = false;
        ck_assert_str_eq(cluster_value(&w, i, "a"), holder);
    }
    w.zombies_paused = true;
    cluster_pass_ms(&w, 300);
    w.zombies_paused = false;
    cluster_pass_ms(&w, 3000);
    const char *token = cluster_expect_grant(&w, "b");
    expect_values(token);
}

/* Three masters lose their data before the hand-over reaches them. They vote for the waiter, but
 * the guard's probe finds the loss and their votes do not count. */
TEST(hand_over_needs_votes_that_the_guard_accepts)
{
    hold_and_wait("#b LOCK a 50s WAIT 500s");
    w.lazy = true;
    cluster_send(&w, "#u UNLOCK a %s", holder);
    for (unsigned i = 0; i < 3; i++)
        cluster_flush(&w, i);
    cluster_settle(&w);
    w.lazy = false;
    /* Three masters no longer had the old token. */
    cluster_expect(&w, "#u GONE");
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 50000);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 30000);
    cluster_expect_grant(&w, "b");
}

TEST(hand_over_leaves_foreign_keys_alone)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 3; i++) {
        cluster_delete(&w, i, "a");
        cluster_set(&w, i, "a", "foreign", 20000);
    }
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u GONE");
    cluster_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 3; i++)
        ck_assert_str_eq(cluster_value(&w, i, "a"), "foreign");
    for (unsigned i = 3; i < 5; i++)
        ck_assert_ptr_null(cluster_value(&w, i, "a"));
    cluster_pass_ms(&w, 20002);
    cluster_expect_grant(&w, "b");
}

TEST(hand_over_counts_expired_keys_as_free)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 2; i++)
        cluster_delete(&w, i, "a");
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
    cluster_expect_grant(&w, "b");
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}

TEST(hand_over_after_a_script_flush_is_sent_in_full)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.scripts_flushed = true;
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
    cluster_expect_grant(&w, "b");
}

/* The UNLOCK by c's client begins a hand-over to x, but three masters hang. The client of x leaves
 * before they resume, so d gets the lock. */
TEST(hand_over_to_a_client_that_leaves_goes_to_the_next_waiter)
{
    hold_and_wait("#c LOCK a 50s WAIT 100s");
    cluster_send_as(&w, &w.others[0], "#x LOCK a 50s WAIT 100s");
    cluster_submit(&w, "#d LOCK a 50s WAIT 100s");
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
    memcpy(holder, cluster_expect_grant(&w, "c"), sizeof(holder));
    cluster_hang(&w, 3, true);
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_end_client(&w, &w.others[0]);
    cluster_expect(&w, "undone x");
    cluster_hang(&w, 3, false);
    cluster_settle(&w);
    cluster_expect(&w, "#u OK");
    expect_values(cluster_expect_grant(&w, "d"));
}

TEST(undeliverable_grant_goes_to_the_next_waiter)
{
    cluster_occupy(&w, "a", 5000);
    cluster_send_as(&w, &w.others[0], "#x LOCK a 10s WAIT 60s");
    cluster_settle(&w);
    cluster_submit(&w, "#z LOCK a 10s WAIT 60s");
    w.reply_fails = true;
    /* The first grant cannot be delivered, and the connection breaks. */
    cluster_vacate(&w, "a");
    ck_assert(w.others[0].disconnected);
    cluster_lose_client(&w, &w.others[0]);
    cluster_pass_ms(&w, 100);
    expect_values(cluster_expect_grant(&w, "z"));
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}

TEST(token_not_granted_by_this_daemon_is_released_without_a_hand_over)
{
    cluster_occupy(&w, "a", 50000);
    cluster_submit(&w, "#b LOCK a 50s WAIT 100s");
    uint64_t rounds_before = w.engine.stats.acquire_rounds;
    cluster_submit(&w, "#u UNLOCK a %s", "0123456789012345678901234567890123456789");
    cluster_expect(&w, "#u GONE");
    ck_assert_uint_eq(w.engine.stats.acquire_rounds, rounds_before);
    cluster_expect(&w, "(nothing)");
}

TEST(unlock_of_an_old_token_takes_nothing_from_the_next_holder)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    char first[LIMIT_TOKEN + 1];
    memcpy(first, holder, sizeof(first));
    cluster_submit(&w, "#u UNLOCK a %s", first);
    cluster_expect(&w, "#u OK");
    memcpy(holder, cluster_expect_grant(&w, "b"), sizeof(holder));
    cluster_submit(&w, "#c LOCK a 50s WAIT 100s");
    cluster_submit(&w, "#u UNLOCK a %s", first);
    cluster_expect(&w, "#u GONE");
    cluster_expect(&w, "(nothing)");
    expect_values(holder);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}

TEST(extension_in_flight_does_not_restore_a_released_token)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s");
    cluster_delete(&w, 4, "a");
    w.masters[4].hung = true;
    cluster_submit(&w, "#e EXTEND a %s 50s", holder);
    cluster_expect_grant(&w, "e");
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
    const char *token = cluster_expect_grant(&w, "b");
    w.masters[4].hung = false;
    cluster_settle(&w);
    expect_values(token);
}

/* --- fencing tokens --- */

/* Assert that the next reply is a grant. Returns its fencing token, and copies its lock token to
 * `holder`. */
static int64_t expect_fence(const char *tag)
{
    int64_t fence = -1;
    const char *reply = w.replies[w.replies_read];
    memcpy(holder, cluster_expect_grant(&w, tag), sizeof(holder));
    ck_assert_int_eq(sscanf(reply, "%*s OK %*s %*s %*s %" SCNd64, &fence), 1);
    return fence;
}

TEST(fences_rise_with_each_hand_over)
{
    cluster_submit(&w, "#h LOCK a 50s FENCE");
    int64_t last = expect_fence("h");
    for (unsigned i = 0; i < 5; i++) {
        cluster_submit(&w, "#h LOCK a 50s WAIT 10s FENCE");
        cluster_submit(&w, "#u UNLOCK a %s", holder);
        cluster_expect(&w, "#u OK");
        int64_t fence = expect_fence("h");
        ck_assert_int_gt(fence, last);
        last = fence;
    }
    ck_assert_uint_eq(w.engine.stats.handovers, 5);
}

TEST(hand_over_below_a_ballot_proposes_again_above_it)
{
    hold_and_wait("#b LOCK a 50s WAIT 100s FENCE");
    for (unsigned i = 0; i < 5; i++)
        cluster_set(&w, i, "redlockd:fence:a", "2000000000000000", 0);
    cluster_submit(&w, "#u UNLOCK a %s", holder);
    cluster_expect(&w, "#u OK");
    ck_assert_int_eq(expect_fence("b"), 2000000000000001);
}
