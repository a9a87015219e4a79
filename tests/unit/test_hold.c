/*
 * LOCK ... HOLD: the times at which the daemon extends the lock, reports it as lost or releases it.
 * The first tests check only the arithmetic (engine/locks/hold.h). The others run the shipped
 * engine on fake masters and virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "engine/locks/hold.h"
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/hold_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

static const struct drift drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS};

/* --- the arithmetic --- */

static void grant(struct hold *hold, int64_t ttl_ns, int64_t since_ns)
{
    hold_init(hold, ttl_ns, since_ns, valid_until(&drift, ttl_ns, since_ns));
}

static void extend(struct hold *hold, int64_t ttl_ns, int64_t started_ns)
{
    hold_on_extended(hold, valid_until(&drift, ttl_ns, started_ns));
}

TEST(hold_is_extended_after_a_third_and_lost_with_a_third_left)
{
    struct hold hold;
    grant(&hold, 30 * NS_PER_S, 100 * NS_PER_S);
    ck_assert_int_eq(hold.until_ns, 130 * NS_PER_S - 310 * NS_PER_MS);
    ck_assert_int_eq(hold_renew_ns(&hold, 3600 * NS_PER_S), 110 * NS_PER_S);
    ck_assert_int_eq(hold_lost_ns(&hold), 120 * NS_PER_S - 310 * NS_PER_MS);
    extend(&hold, 30 * NS_PER_S, 110 * NS_PER_S);
    ck_assert_int_eq(hold_renew_ns(&hold, 3600 * NS_PER_S), 120 * NS_PER_S);
    ck_assert_int_eq(hold_lost_ns(&hold), 130 * NS_PER_S - 310 * NS_PER_MS);
}

TEST(late_or_shorter_extension_shortens_no_hold)
{
    struct hold hold;
    grant(&hold, 30 * NS_PER_S, 100 * NS_PER_S);
    int64_t until_ns = hold.until_ns;
    extend(&hold, 1 * NS_PER_S, 110 * NS_PER_S);
    ck_assert_int_eq(hold.until_ns, until_ns);
    extend(&hold, 30 * NS_PER_S, 99 * NS_PER_S);
    ck_assert_int_eq(hold.until_ns, until_ns);
}

TEST(hold_is_not_extended_beyond_max_hold)
{
    struct hold hold;
    grant(&hold, 30 * NS_PER_S, 100 * NS_PER_S);
    ck_assert_int_eq(hold_renew_ns(&hold, 40 * NS_PER_S), 110 * NS_PER_S);
    ck_assert_int_eq(hold_renew_ns(&hold, 40 * NS_PER_S - 1), INT64_MAX);
}

TEST(client_may_extend_a_hold_up_to_max_hold_from_its_grant)
{
    struct hold hold;
    grant(&hold, 30 * NS_PER_S, 100 * NS_PER_S);
    extend(&hold, 30 * NS_PER_S, 105 * NS_PER_S);
    ck_assert(hold_may_extend(&hold, 30 * NS_PER_S, 40 * NS_PER_S, 110 * NS_PER_S));
    ck_assert(!hold_may_extend(&hold, 30 * NS_PER_S, 40 * NS_PER_S, 110 * NS_PER_S + 1));
    ck_assert(hold_may_extend(&hold, 29 * NS_PER_S, 40 * NS_PER_S, 110 * NS_PER_S + 1));
}

TEST(shortest_ttl_of_a_hold_leaves_time_for_a_round)
{
    struct hold hold;
    int64_t ttl_ms = hold_shortest_ms(&drift, 50 * NS_PER_MS);
    ck_assert_int_eq(ttl_ms, 186);
    grant(&hold, ttl_ms * NS_PER_MS, 0);
    ck_assert_int_ge(hold_lost_ns(&hold) - hold_renew_ns(&hold, INT64_MAX), 50 * NS_PER_MS);
    grant(&hold, (ttl_ms - 1) * NS_PER_MS, 0);
    ck_assert_int_lt(hold_lost_ns(&hold) - hold_renew_ns(&hold, INT64_MAX), 50 * NS_PER_MS);
}

/* --- in the engine --- */

TEST(hold_lives_as_long_as_its_connection)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 100; i++) {
        cluster_pass_ms(&w, 1000);
        expect_held();
    }
    cluster_expect(&w, "(nothing)");
    /* One extension per third of the TTL; max_extensions (five here) does not count them. */
    ck_assert_uint_eq(w.engine.stats.renewals, 100);
    ck_assert_uint_eq(w.engine.manager.extension_limits.pool.in_use, 0);
    cluster_end_client(&w, &w.client);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.manager.holding, 0);
    ck_assert_uint_eq(w.engine.manager.locks.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
}

TEST(end_of_the_connection_hands_its_hold_over)
{
    hold("LOCK a 3s HOLD");
    cluster_send_as(&w, &w.others[0], "#b LOCK a 3s WAIT 60s");
    cluster_settle(&w);
    cluster_end_client(&w, &w.client);
    cluster_settle(&w);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "#b OK", 5), 0);
    ck_assert_uint_eq(w.engine.stats.handovers, 1);
}

/* ENGINE_ENDING: the connection is about to end. Over TLS the daemon cannot tell yet whether the
 * client ends it cleanly, or whether the connection is lost. */
TEST(ending_connection_keeps_its_hold_and_leaves_queues)
{
    hold("LOCK a 3s HOLD");
    cluster_send_as(&w, &w.others[0], "#b LOCK b 60s");
    cluster_settle(&w);
    cluster_take_reply(&w);
    cluster_send(&w, "#w LOCK b 3s WAIT 60s HOLD");
    cluster_settle(&w);
    engine_client_end(&w.engine, &w.client, ENGINE_ENDING, w.now_ns);
    cluster_settle(&w);
    cluster_expect(&w, "undone w");
    cluster_pass_ms(&w, 2900);
    expect_held();
    ck_assert_uint_eq(w.engine.manager.waiting, 0);
    cluster_pass_ms(&w, 200);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* A lost connection does not prove that the client has ended. The client may be alive and rely on
 * its deadline. */
TEST(lost_connection_keeps_its_hold_until_the_deadline)
{
    hold("LOCK a 3s HOLD");
    cluster_pass_ms(&w, 1500);
    cluster_lose_client(&w, &w.client);
    cluster_settle(&w);
    expect_held();
    uint64_t renewals = w.engine.stats.renewals;
    cluster_pass_ms(&w, 2499);
    expect_held();
    cluster_pass_ms(&w, 2);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.stats.renewals, renewals);
    ck_assert_uint_eq(w.engine.manager.locks.in_use, 0);
}

TEST(hold_ends_with_its_unlock)
{
    hold("LOCK a 3s HOLD");
    cluster_pass_ms(&w, 5000);
    cluster_submit(&w, "UNLOCK a %s", token);
    cluster_expect(&w, "OK");
    uint64_t renewals = w.engine.stats.renewals;
    cluster_pass_ms(&w, 10000);
    ck_assert_uint_eq(w.engine.stats.renewals, renewals);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    cluster_expect(&w, "(nothing)");
}

/* The holder relies on the lock, so it must be told. */
TEST(holder_is_told_of_an_unlock_by_another_client)
{
    hold("LOCK a 3s HOLD");
    cluster_send_as(&w, &w.others[0], "#u UNLOCK a %s", token);
    cluster_settle(&w);
    expect_push("LOST", "gone");
    cluster_expect(&w, "#u OK");
    ck_assert_uint_eq(w.engine.manager.holding, 0);
}

TEST(holder_is_told_when_any_extension_finds_the_lock_gone)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 5; i++)
        cluster_delete(&w, i, "a");
    cluster_send_as(&w, &w.others[0], "#e EXTEND a %s 3s", token);
    cluster_settle(&w);
    expect_push("LOST", "gone");
    cluster_expect(&w, "#e GONE");
}

/* A killed process closes its connection, but its children can go on running and rely on the
 * lock. */
TEST(lingering_hold_outlives_its_connection_until_its_deadline)
{
    hold("LOCK a 3s HOLD LINGER");
    cluster_pass_ms(&w, 1500);
    uint64_t renewals = w.engine.stats.renewals;
    cluster_end_client(&w, &w.client);
    cluster_settle(&w);
    /* The last extension was at 1 s. */
    cluster_pass_ms(&w, 2499);
    expect_held();
    cluster_pass_ms(&w, 2);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.stats.renewals, renewals);
    ck_assert_uint_eq(w.engine.manager.locks.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.holding, 0);
}

TEST(lingering_hold_outlives_a_close_without_quit)
{
    hold("LOCK a 3s HOLD LINGER");
    engine_client_end(&w.engine, &w.client, ENGINE_HALF_CLOSED, w.now_ns);
    cluster_lose_client(&w, &w.client);
    cluster_pass_ms(&w, 2900);
    expect_held();
    cluster_pass_ms(&w, 200);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(quit_releases_a_lingering_hold)
{
    hold("LOCK a 3s LINGER HOLD");
    engine_client_end(&w.engine, &w.client, ENGINE_QUIT, w.now_ns);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.manager.holding, 0);
}

TEST(unlock_releases_a_lingering_hold)
{
    hold("LOCK a 3s HOLD LINGER");
    cluster_submit(&w, "UNLOCK a %s", token);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* The daemon can see the end of the connection before it has read all lines of the client, and QUIT
 * can be one of these lines. */
TEST(quit_after_a_half_close_releases_a_lingering_hold)
{
    hold("LOCK a 3s HOLD LINGER");
    engine_client_end(&w.engine, &w.client, ENGINE_HALF_CLOSED, w.now_ns);
    cluster_pass_ms(&w, 1900);
    expect_held();
    engine_client_end(&w.engine, &w.client, ENGINE_QUIT, w.now_ns);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

static struct resource_view first_view(void)
{
    struct resource_view view;
    const struct resource *place = NULL;
    ck_assert(engine_next_resource(&w.engine, &place, &view));
    return view;
}

/* A client that reads its replies slowly, or not at all, can be there for long after its end. */
TEST(hold_is_not_extended_after_the_end_of_its_client)
{
    hold("LOCK a 3s HOLD LINGER");
    cluster_pass_ms(&w, 1500);
    uint64_t renewals = w.engine.stats.renewals;
    ck_assert(first_view().hold);
    engine_client_end(&w.engine, &w.client, ENGINE_HALF_CLOSED, w.now_ns);
    ck_assert(!first_view().hold);
    cluster_pass_ms(&w, 2499);
    expect_held();
    cluster_pass_ms(&w, 2);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.stats.renewals, renewals);
    cluster_expect(&w, "(nothing)");
}

/* RESET of a Redis client ends its HOLDs like QUIT, but the client goes on. */
TEST(hold_after_a_reset_is_extended)
{
    hold("LOCK b 3s HOLD");
    engine_client_end(&w.engine, &w.client, ENGINE_QUIT, w.now_ns);
    cluster_settle(&w);
    hold("LOCK a 3s HOLD");
    cluster_pass_ms(&w, 10000);
    expect_held();
    ck_assert_uint_eq(w.engine.manager.holding, 1);
}

TEST(only_lingering_holds_outlive_their_connection)
{
    hold("LOCK a 3s HOLD LINGER");
    for (char name = 'b'; name <= 'd'; name++) {
        cluster_submit(&w, "LOCK %c 3s HOLD%s", name, name == 'c' ? " LINGER" : "");
        cluster_take_reply(&w);
    }
    cluster_end_client(&w, &w.client);
    cluster_settle(&w);
    expect_held();
    ck_assert_uint_eq(cluster_count(&w, "b"), 0);
    ck_assert_uint_ge(cluster_count(&w, "c"), 3);
    ck_assert_uint_eq(cluster_count(&w, "d"), 0);
}

TEST(quit_hands_no_lock_to_the_same_client)
{
    hold("LOCK a 3s HOLD");
    cluster_submit(&w, "#b LOCK a 3s WAIT 60s");
    engine_client_end(&w.engine, &w.client, ENGINE_QUIT, w.now_ns);
    cluster_settle(&w);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(hold_granted_during_a_shutdown_is_lost_at_once)
{
    cluster_send(&w, "LOCK a 3s HOLD");
    engine_drain(&w.engine, w.now_ns);
    cluster_settle(&w);
    const char *reply = cluster_take_reply(&w);
    ck_assert_int_eq(strncmp(reply, "OK ", 3), 0);
    snprintf(token, sizeof(token), "%.40s", reply + 3);
    expect_push("LOST", "shutdown");
    ck_assert_uint_eq(w.client.hold_count, 0);
}

/* The extension and the release are in flight at the same time. */
TEST(extension_in_flight_does_not_outlive_the_release)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 5 * NS_PER_MS;
    cluster_pass_ms(&w, 1002);
    ck_assert_uint_eq(w.engine.stats.renewals, 1);
    cluster_send(&w, "UNLOCK a %s", token);
    cluster_pass_ms(&w, 100);
    cluster_expect(&w, "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    cluster_pass_ms(&w, 5000);
    cluster_expect(&w, "(nothing)");
}

TEST(loss_of_a_majority_is_reported_with_a_third_left)
{
    hold("LOCK a 3s HOLD");
    cluster_pass_ms(&w, 1100);
    cluster_hang(&w, 3, true);
    /* The lock was extended at 1 s. It is valid until 3960 ms: a TTL of 3 s less 40 ms of drift. So
     * the loss is due at 2960 ms, a third of the TTL before that. */
    cluster_pass_ms(&w, 1859);
    unsigned warnings = 0;
    const char *reply;
    while ((reply = cluster_next_reply(&w)) != NULL) {
        ck_assert_int_eq(strncmp(reply, "! WARN a ", 9), 0);
        warnings++;
    }
    ck_assert_uint_eq(warnings, 3);
    cluster_pass_ms(&w, 1);
    expect_push("LOST", "noquorum");
    ck_assert_uint_eq(w.client.hold_count, 0);
    /* LOST is final even if the masters come back, and the daemon releases nothing before the
     * deadline. */
    cluster_hang(&w, 3, false);
    cluster_pass_ms(&w, 900);
    expect_held();
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    cluster_expect(&w, "(nothing)");
}

TEST(loss_of_a_minority_is_only_a_warning)
{
    hold("LOCK a 3s HOLD");
    w.masters[4].hung = true;
    cluster_pass_ms(&w, 20000);
    expect_push("WARN", "e:suspect");
    cluster_expect(&w, "(nothing)");
    expect_held();
    w.masters[4].hung = false;
    cluster_pass_ms(&w, 20000);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
}

TEST(lost_master_without_the_key_causes_no_warning)
{
    w.masters[4].hung = true;
    cluster_pass_ms(&w, 3000);
    hold("LOCK a 3s HOLD");
    cluster_kill(&w, 4);
    cluster_pass_ms(&w, 500);
    cluster_expect(&w, "(nothing)");
}

TEST(hold_released_elsewhere_is_lost_with_the_next_extension)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 5; i++)
        cluster_delete(&w, i, "a");
    cluster_pass_ms(&w, 999);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 1);
    expect_push("LOST", "gone");
}

TEST(hold_that_reached_max_hold_is_lost_in_time)
{
    /* max_hold is 300 s here. The last extension begins at 240 s: one at 260 s would exceed it. So
     * the lock is valid until 300 s less 610 ms of drift, and is lost 20 s before that. */
    hold("LOCK a 60s HOLD");
    cluster_pass_ms(&w, 240000 + 60000 - 610 - 20000 - 1);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 1);
    expect_push("LOST", "limit");
    ck_assert_int_ge(remaining_ttl_ms(), 20000);
    cluster_pass_ms(&w, 21000);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* The daemon stops for this time. When it resumes, it reports overdue holds before anything
 * else. */
static void stop_daemon(int64_t ms)
{
    w.now_ns += ms * NS_PER_MS;
}

TEST(loss_after_a_stop_precedes_the_answer_to_a_request)
{
    hold("LOCK a 3s HOLD");
    stop_daemon(2500);
    cluster_send(&w, "STATUS b");
    cluster_settle(&w);
    expect_push("LOST", "overdue");
}

TEST(loss_after_a_stop_precedes_answers_of_masters)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 5 * NS_PER_MS;
    cluster_pass_ms(&w, 1002);
    ck_assert_uint_eq(w.engine.stats.renewals, 1);
    stop_daemon(1500);
    cluster_settle(&w);
    expect_push("LOST", "overdue");
    cluster_pass_ms(&w, 100);
    cluster_expect(&w, "(nothing)");
}

TEST(hold_is_extended_after_a_short_stop)
{
    hold("LOCK a 3s HOLD");
    stop_daemon(1900);
    cluster_pass_ms(&w, 3000);
    cluster_expect(&w, "(nothing)");
    expect_held();
}

/* The daemon reports overdue holds before it answers any request (engine_catch_up()). After that,
 * each hold that is not reported as lost has at least a third of its TTL left. */
TEST(hold_not_reported_lost_has_a_third_of_its_ttl)
{
    hold("LOCK a 3s HOLD");
    uint64_t random = 1;
    for (unsigned i = 0; i < 20000; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        unsigned what = (unsigned)(random >> 33) % 400;
        if (what == 0)
            stop_daemon(100 + (int64_t)(random >> 40) % 3000);
        else if (what < 10)
            w.masters[what % 5].hung = !w.masters[what % 5].hung;
        else
            cluster_pass_ms(&w, 7);
        engine_catch_up(&w.engine, w.now_ns);
        const char *reply;
        while ((reply = cluster_next_reply(&w)) != NULL)
            if (strncmp(reply, "! LOST", 6) == 0)
                ck_assert_uint_eq(w.client.hold_count, 0);
        if (w.client.hold_count == 1) {
            ck_assert_int_ge(LIST_FIRST(&w.client.holds)->hold.until_ns - w.now_ns, NS_PER_S);
            continue;
        }
        for (unsigned node = 0; node < 5; node++)
            w.masters[node].hung = false;
        cluster_pass_ms(&w, 70000);
        w.reply_count = w.replies_read = 0;
        hold("LOCK a 3s HOLD");
    }
    ck_assert_uint_gt(w.engine.stats.lost, 10);
}

TEST(shutdown_reports_holds_as_lost)
{
    hold("LOCK a 3s HOLD");
    engine_drain(&w.engine, w.now_ns);
    expect_push("LOST", "shutdown");
    cluster_settle(&w);
    expect_held();
}

TEST(waiting_hold_is_extended_after_its_grant)
{
    cluster_occupy(&w, "a", 10000);
    cluster_submit(&w, "LOCK a 3s WAIT 60s HOLD");
    ck_assert_uint_eq(w.engine.manager.holding, 1);
    cluster_pass_ms(&w, 60000);
    const char *reply = cluster_take_reply(&w);
    ck_assert_msg(strncmp(reply, "OK ", 3) == 0, "%s", reply);
    snprintf(token, sizeof(token), "%.40s", reply + 3);
    expect_held();
    ck_assert_uint_eq(w.engine.manager.holding, 1);
}

TEST(hold_that_was_not_granted_is_not_counted)
{
    cluster_occupy(&w, "a", 10000);
    cluster_submit(&w, "LOCK a 3s HOLD");
    cluster_expect(&w, "HELD 10000");
    cluster_submit(&w, "LOCK a 3s WAIT 1s HOLD");
    cluster_pass_ms(&w, 1000);
    cluster_expect(&w, "HELD 9000");
    ck_assert_uint_eq(w.engine.manager.holding, 0);
}

/* Many extensions are due at once, and at most two may run at a time (renewals_max). They run in
 * the order in which their locks would be lost. */
TEST(extensions_take_turns)
{
    enum { HOLDS = 40 };
    unsigned most = 0;
    w.engine.manager.renewals_max = 2;
    for (unsigned i = 0; i < HOLDS; i++)
        cluster_submit(&w, "LOCK r%u %s HOLD", i, i % 2 == 0 ? "3s" : "600ms");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 3 * NS_PER_MS;
    for (unsigned i = 0; i < 10000; i++) {
        cluster_pass_ms(&w, 1);
        most = w.engine.manager.renewing > most ? w.engine.manager.renewing : most;
    }
    ck_assert_uint_eq(most, 2);
    ck_assert_uint_eq(w.engine.stats.lost, 0);
    ck_assert_uint_eq(w.client.hold_count, HOLDS);
    cluster_end_client(&w, &w.client);
    ck_assert_int_eq(w.engine.manager.due.first_ns, TIMER_NEVER);
}

TEST(number_of_holds_is_limited)
{
    w.engine.manager.holding = LIMIT_HOLDS;
    cluster_submit(&w, "LOCK a 3s HOLD");
    cluster_expect(&w, "LIMIT holds");
    w.engine.manager.holding = 0;
}
