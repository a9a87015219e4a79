/*
 * Extensions by clients of a lock that the daemon holds for them: which of them count against
 * max_extensions.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/hold_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

/* --- max_extensions is five here, and max_hold 300 s --- */

/* The daemon stops for this time. When it resumes, it reports overdue holds before anything
 * else. */
static void stop_daemon(int64_t ms)
{
    w.now_ns += ms * NS_PER_MS;
}

static void send_extend(struct engine_client *client, const char *ttl)
{
    cluster_send_as(&w, client, "EXTEND a %s %s", token, ttl);
}

static void expect_extended(struct engine_client *client, const char *ttl)
{
    send_extend(client, ttl);
    cluster_settle(&w);
    const char *reply = cluster_take_reply(&w);
    ck_assert_msg(strncmp(reply, "OK ", 3) == 0, "%s", reply);
}

static void expect_refused(struct engine_client *client, const char *ttl, const char *reply)
{
    send_extend(client, ttl);
    cluster_settle(&w);
    cluster_expect(&w, "%s", reply);
}

TEST(extension_by_the_client_replaces_one_by_the_daemon)
{
    hold("LOCK a 3s HOLD");
    cluster_pass_ms(&w, 500);
    expect_extended(&w.client, "30s");
    /* The lock now lasts 30 s. The daemon does not extend it until two thirds of the hold's own TTL
     * (3 s) are left, so not before 28 s. */
    cluster_pass_ms(&w, 27500);
    ck_assert_uint_eq(w.engine.stats.renewals, 0);
    cluster_pass_ms(&w, 20000);
    ck_assert_uint_gt(w.engine.stats.renewals, 10);
    expect_held();
    cluster_expect(&w, "(nothing)");
}

TEST(extensions_over_the_holds_connection_are_not_counted)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 50; i++) {
        cluster_pass_ms(&w, 1000);
        expect_extended(&w.client, "3s");
    }
    ck_assert_uint_eq(w.engine.manager.extension_limits.pool.in_use, 0);
    expect_held();
}

TEST(max_hold_counts_from_the_grant_over_the_holds_connection)
{
    hold("LOCK a 60s HOLD");
    cluster_pass_ms(&w, 239000);
    expect_extended(&w.client, "60s");
    cluster_pass_ms(&w, 1000);
    expect_extended(&w.client, "60s");
    cluster_pass_ms(&w, 1);
    expect_refused(&w.client, "60s", "LIMIT hold");
    expect_extended(&w.client, "59s");
    /* The extension by 59 s does not shorten the lock: the earlier deadline stands. The loss is
     * reported while a third of the TTL (20 s) is left. */
    cluster_pass_ms(&w, 60000 - 610 - 20000 - 2);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 1);
    expect_push("LOST", "limit");
    ck_assert_int_ge(remaining_ttl_ms(), 20000);
}

TEST(extensions_over_another_connection_are_counted)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 5; i++) {
        expect_extended(&w.others[0], "3s");
        expect_extended(&w.client, "3s");
    }
    expect_refused(&w.others[0], "3s", "LIMIT extensions");
    expect_extended(&w.client, "3s");
}

TEST(extensions_of_another_token_are_counted)
{
    char held[LIMIT_TOKEN + 1];
    cluster_submit(&w, "LOCK a 3s");
    snprintf(token, sizeof(token), "%.40s", cluster_take_reply(&w) + 3);
    cluster_submit(&w, "LOCK b 3s HOLD");
    snprintf(held, sizeof(held), "%.40s", cluster_take_reply(&w) + 3);
    for (unsigned i = 0; i < 5; i++)
        expect_extended(&w.client, "3s");
    expect_refused(&w.client, "3s", "LIMIT extensions");
    memcpy(token, held, sizeof(token));
    expect_refused(&w.client, "3s", "GONE");
}

TEST(extensions_after_the_loss_are_counted)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 10; i++)
        expect_extended(&w.client, "3s");
    stop_daemon(2500);
    for (unsigned i = 0; i < 5; i++) {
        send_extend(&w.client, "3s");
        if (i == 0)
            expect_push("LOST", "overdue");
        cluster_settle(&w);
        ck_assert_int_eq(strncmp(cluster_take_reply(&w), "OK ", 3), 0);
    }
    expect_refused(&w.client, "3s", "LIMIT extensions");
}

/* Send an EXTEND at 1955 ms that reaches the masters 10 ms later; the hold is lost at 1960 ms. */
static void extend_just_before_the_loss(void)
{
    w.engine.manager.renewals_max = 0;
    hold("LOCK a 3s HOLD");
    cluster_pass_ms(&w, 1955);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 10 * NS_PER_MS;
    send_extend(&w.client, "3s");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 0;
}

TEST(extension_in_flight_at_the_loss_counts_once)
{
    extend_just_before_the_loss();
    cluster_pass_ms(&w, 5);
    expect_push("LOST", "overdue");
    cluster_pass_ms(&w, 30);
    ck_assert_int_eq(strncmp(cluster_take_reply(&w), "OK ", 3), 0);
    for (unsigned i = 0; i < 4; i++)
        expect_extended(&w.client, "3s");
    expect_refused(&w.client, "3s", "LIMIT extensions");
}

TEST(extension_whose_connection_is_lost_counts_once)
{
    extend_just_before_the_loss();
    cluster_lose_client(&w, &w.client);
    cluster_pass_ms(&w, 30);
    cluster_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 4; i++)
        expect_extended(&w.others[0], "3s");
    expect_refused(&w.others[0], "3s", "LIMIT extensions");
}

/*
 * A connection with many holds ends while no round is free, so their releases go out a few at a
 * time. If another client knows the token of such a hold, its EXTEND must be refused even before
 * the release is sent.
 */
TEST(hold_with_a_pending_release_is_not_extended)
{
    enum { HOLDS = 80 };
    static void *rounds[LIMIT_ROUNDS + 1];
    unsigned count = 0;
    hold("LOCK a 3s HOLD");
    for (unsigned i = 1; i < HOLDS; i++) {
        cluster_token(cluster_ask(&w, "LOCK r%u 3s HOLD", i));
        cluster_take_reply(&w);
    }
    while ((rounds[count] = pool_take(&w.engine.flights.pool)) != NULL)
        count++;
    cluster_end_client(&w, &w.client);
    while (count > 0)
        pool_give(&w.engine.flights.pool, rounds[--count]);
    expect_refused(&w.others[0], "3s", "GONE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* The connection of the HOLD has ended, but masters have refused the release. They would still
 * extend the lock, and delete it when the release is repeated. */
TEST(hold_whose_release_was_refused_is_not_extended)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = "MISCONF Errors writing to disk";
    cluster_end_client(&w, &w.client);
    cluster_settle(&w);
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].redis.refusals[FAKE_KEYS] = NULL;
    ck_assert_uint_eq(cluster_count(&w, "a"), 3);
    expect_refused(&w.others[0], "3s", "GONE");
    cluster_pass_ms(&w, 1100);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* The masters execute the extension before the release. The daemon has the answers after it has
 * begun the release. */
TEST(extension_in_flight_at_the_end_of_the_hold_is_gone)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = NS_PER_MS;
    send_extend(&w.others[0], "3s");
    cluster_end_client(&w, &w.client);
    cluster_pass_ms(&w, 60);
    cluster_expect(&w, "GONE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
