/*
 * Extensions by clients of a lock that the daemon holds: which of them are counted.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster.h"

static struct cluster w;
static char token[LIMIT_TOKEN + 1];

static void setup(void)
{
    cluster_init(&w, 5);
    cluster_pass_ms(&w, 10);
}

static void teardown(void)
{
    cluster_deinit(&w);
}

static void expect_push(const char *what, const char *reason)
{
    cluster_expect(&w, "! %s a %s %s", what, token, reason);
}

static void hold(const char *line)
{
    cluster_say(&w, "%s", line);
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_heard(&w)));
    ck_assert_uint_eq(w.client.hold_count, 1);
}

static void expect_held(void)
{
    ck_assert_uint_ge(cluster_count(&w, "a"), 3);
    for (unsigned i = 0; i < 5; i++)
        if (cluster_value(&w, i, "a") != NULL)
            ck_assert_str_eq(cluster_value(&w, i, "a"), token);
}

/* The keys that are there end in so many milliseconds at the latest. */
static int64_t longest_ms(void)
{
    int64_t longest_ms = 0;
    for (unsigned i = 0; i < 5; i++) {
        const struct fake_key *key =
            fake_find(&w.masters[i].redis, "a", 1, cluster_clock_us(&w, i));
        int64_t left_ms = key != NULL ? key->ends_ms - cluster_clock_us(&w, i) / 1000 : 0;
        longest_ms = left_ms > longest_ms ? left_ms : longest_ms;
    }
    return longest_ms;
}

/* --- extensions of clients: max_extensions is five here, and max_hold 300 s --- */

/* The daemon stands still: what it could not extend it tells before anything else. */
static void stand_still(int64_t ms)
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
    const char *reply = cluster_heard(&w);
    ck_assert_msg(strncmp(reply, "OK ", 3) == 0, "%s", reply);
}

static void expect_refused(struct engine_client *client, const char *ttl, const char *reply)
{
    send_extend(client, ttl);
    cluster_settle(&w);
    cluster_expect(&w, "%s", reply);
}

START_TEST(an_extension_of_the_client_saves_the_daemon_one_and_it_goes_on)
{
    hold("LOCK a 3s HOLD");
    cluster_pass_ms(&w, 500);
    expect_extended(&w.client, "30s");
    /* Nothing to do for it before two thirds of its time to live are left. */
    cluster_pass_ms(&w, 27500);
    ck_assert_uint_eq(w.engine.stats.renewals, 0);
    cluster_pass_ms(&w, 20000);
    ck_assert_uint_gt(w.engine.stats.renewals, 10);
    expect_held();
    cluster_expect(&w, "(nothing)");
}
END_TEST

START_TEST(over_its_own_connection_extensions_are_not_counted)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 50; i++) {
        cluster_pass_ms(&w, 1000);
        expect_extended(&w.client, "3s");
    }
    ck_assert_uint_eq(w.engine.manager.extensions.pool.in_use, 0);
    expect_held();
}
END_TEST

START_TEST(over_its_own_connection_the_longest_hold_counts_from_the_grant)
{
    hold("LOCK a 60s HOLD");
    cluster_pass_ms(&w, 239000);
    expect_extended(&w.client, "60s");
    cluster_pass_ms(&w, 1000);
    expect_extended(&w.client, "60s");
    cluster_pass_ms(&w, 1);
    expect_refused(&w.client, "60s", "LIMIT hold");
    expect_extended(&w.client, "59s");
    /* The earlier deadline stands, and is lost in time. */
    cluster_pass_ms(&w, 60000 - 610 - 20000 - 2);
    cluster_expect(&w, "(nothing)");
    cluster_pass_ms(&w, 1);
    expect_push("LOST", "limit");
    ck_assert_int_ge(longest_ms(), 20000);
}
END_TEST

START_TEST(by_another_connection_each_extension_counts)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 5; i++) {
        expect_extended(&w.others[0], "3s");
        expect_extended(&w.client, "3s");
    }
    expect_refused(&w.others[0], "3s", "LIMIT extensions");
    expect_extended(&w.client, "3s");
}
END_TEST

START_TEST(a_token_that_is_not_the_one_held_is_counted)
{
    char held[LIMIT_TOKEN + 1];
    cluster_say(&w, "LOCK a 3s");
    snprintf(token, sizeof(token), "%.40s", cluster_heard(&w) + 3);
    cluster_say(&w, "LOCK b 3s HOLD");
    snprintf(held, sizeof(held), "%.40s", cluster_heard(&w) + 3);
    for (unsigned i = 0; i < 5; i++)
        expect_extended(&w.client, "3s");
    expect_refused(&w.client, "3s", "LIMIT extensions");
    memcpy(token, held, sizeof(token));
    expect_refused(&w.client, "3s", "GONE");
}
END_TEST

START_TEST(once_it_is_lost_each_extension_counts)
{
    hold("LOCK a 3s HOLD");
    for (unsigned i = 0; i < 10; i++)
        expect_extended(&w.client, "3s");
    stand_still(2500);
    for (unsigned i = 0; i < 5; i++) {
        send_extend(&w.client, "3s");
        if (i == 0)
            expect_push("LOST", "overdue");
        cluster_settle(&w);
        ck_assert_int_eq(strncmp(cluster_heard(&w), "OK ", 3), 0);
    }
    expect_refused(&w.client, "3s", "LIMIT extensions");
}
END_TEST

/* Send an EXTEND at 1955 ms, of which the masters hear 10 ms later; it is lost at 1960. */
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

START_TEST(an_extension_under_way_when_it_is_lost_counts_once)
{
    extend_just_before_the_loss();
    cluster_pass_ms(&w, 5);
    expect_push("LOST", "overdue");
    cluster_pass_ms(&w, 30);
    ck_assert_int_eq(strncmp(cluster_heard(&w), "OK ", 3), 0);
    for (unsigned i = 0; i < 4; i++)
        expect_extended(&w.client, "3s");
    expect_refused(&w.client, "3s", "LIMIT extensions");
}
END_TEST

START_TEST(an_extension_whose_connection_is_lost_counts_once)
{
    extend_just_before_the_loss();
    cluster_lose_client(&w, &w.client);
    cluster_pass_ms(&w, 30);
    cluster_expect(&w, "(nothing)");
    for (unsigned i = 0; i < 4; i++)
        expect_extended(&w.others[0], "3s");
    expect_refused(&w.others[0], "3s", "LIMIT extensions");
}
END_TEST

/*
 * A connection ends with many holds while there is no room for a round: their releases go out some
 * at a time. Whoever knows a token, and heard OK to an extension before its turn came, would be
 * left without the lock.
 */
START_TEST(one_that_is_to_be_released_later_is_extended_no_more)
{
    enum { HOLDS = 80 };
    static void *rounds[LIMIT_ROUNDS + 1];
    unsigned count = 0;
    hold("LOCK a 3s HOLD");
    for (unsigned i = 1; i < HOLDS; i++) {
        cluster_token(cluster_ask(&w, "LOCK r%u 3s HOLD", i));
        cluster_heard(&w);
    }
    while ((rounds[count] = pool_take(&w.engine.flights.pool)) != NULL)
        count++;
    cluster_end_client(&w, &w.client);
    while (count > 0)
        pool_give(&w.engine.flights.pool, rounds[--count]);
    expect_refused(&w.others[0], "3s", "GONE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("extensions of holds");
    TCase *engine = tcase_create("engine");
    tcase_add_checked_fixture(engine, setup, teardown);
    tcase_add_test(engine, an_extension_of_the_client_saves_the_daemon_one_and_it_goes_on);
    tcase_add_test(engine, over_its_own_connection_extensions_are_not_counted);
    tcase_add_test(engine, over_its_own_connection_the_longest_hold_counts_from_the_grant);
    tcase_add_test(engine, by_another_connection_each_extension_counts);
    tcase_add_test(engine, a_token_that_is_not_the_one_held_is_counted);
    tcase_add_test(engine, once_it_is_lost_each_extension_counts);
    tcase_add_test(engine, an_extension_under_way_when_it_is_lost_counts_once);
    tcase_add_test(engine, an_extension_whose_connection_is_lost_counts_once);
    tcase_add_test(engine, one_that_is_to_be_released_later_is_extended_no_more);
    suite_add_tcase(suite, engine);
    return suite;
}
