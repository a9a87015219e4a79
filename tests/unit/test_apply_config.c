/*
 * engine_apply_config(): new rules for a running engine, on virtual time.
 */
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup_settled,
                                                .teardown = cluster_teardown};

static const char *hold(const char *line)
{
    cluster_submit(&w, "%s", line);
    return cluster_token(cluster_take_reply(&w));
}

TEST(shorter_max_hold_applies_to_existing_holds)
{
    struct engine_rules rules = w.engine.rules;
    const char *token = hold("LOCK a 9s HOLD");
    cluster_pass_ms(&w, 20000);
    cluster_expect(&w, "(nothing)");
    uint64_t renewals = w.engine.stats.renewals;
    rules.max_hold_ns = 10 * NS_PER_S;
    engine_apply_config(&w.engine, &rules);
    cluster_pass_ms(&w, 9000);
    cluster_expect(&w, "! LOST a %s limit", token);
    ck_assert_uint_eq(w.engine.stats.renewals, renewals);
}

TEST(longer_max_hold_applies_to_existing_holds)
{
    struct engine_rules rules = w.engine.rules;
    rules.max_hold_ns = 10 * NS_PER_S;
    engine_apply_config(&w.engine, &rules);
    hold("LOCK a 9s HOLD");
    rules.max_hold_ns = 3600 * NS_PER_S;
    engine_apply_config(&w.engine, &rules);
    cluster_pass_ms(&w, 30000);
    cluster_expect(&w, "(nothing)");
    ck_assert_uint_ge(w.engine.stats.renewals, 3);
}

TEST(lower_max_extensions_applies_at_once)
{
    struct engine_rules rules = w.engine.rules;
    const char *token = hold("LOCK a 9s");
    ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 9s", token), "OK ", 3), 0);
    rules.max_extensions = 1;
    engine_apply_config(&w.engine, &rules);
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 9s", token), "LIMIT extensions");
}

TEST(lower_waiter_limit_keeps_the_waiters_in_the_queue)
{
    struct engine_rules rules = w.engine.rules;
    const char *token = hold("LOCK a 60s");
    cluster_send(&w, "#1 LOCK a 9s WAIT 60s");
    cluster_send(&w, "#2 LOCK a 9s WAIT 60s");
    cluster_settle(&w);
    rules.waiters_per_resource = 1;
    engine_apply_config(&w.engine, &rules);
    cluster_submit(&w, "#3 LOCK a 9s WAIT 60s");
    cluster_expect(&w, "#3 LIMIT waiters_per_resource");
    cluster_send(&w, "UNLOCK a %s", token);
    cluster_pass_ms(&w, 100);
    const char *reply = cluster_take_reply(&w);
    ck_assert_msg(strncmp(reply, "#1 OK ", 6) == 0 || strcmp(reply, "OK") == 0, "%s", reply);
    ck_assert_uint_eq(w.engine.manager.waiting, 1);
}

TEST(fence_always_applies_at_once)
{
    struct engine_rules rules = w.engine.rules;
    const char *reply = cluster_ask(&w, "LOCK a 9s");
    ck_assert_str_eq(reply + strlen(reply) - 2, " -");
    rules.fence_always = true;
    engine_apply_config(&w.engine, &rules);
    reply = cluster_ask(&w, "LOCK b 9s");
    ck_assert_str_ne(reply + strlen(reply) - 2, " -");
}

TEST(fence_always_applies_to_waiters_in_the_queue)
{
    struct engine_rules rules = w.engine.rules;
    hold("LOCK a 9s");
    cluster_submit(&w, "LOCK a 9s WAIT 60s");
    rules.fence_always = true;
    engine_apply_config(&w.engine, &rules);
    cluster_pass_ms(&w, 12000);
    const char *reply = cluster_take_reply(&w);
    ck_assert_int_eq(strncmp(reply, "OK ", 3), 0);
    ck_assert_str_ne(reply + strlen(reply) - 2, " -");
}

TEST(new_logins_apply_to_the_next_connection)
{
    struct engine_rules rules = w.engine.rules;
    rules.logins[2] = (struct link_login){"app", "hunter2", 0};
    engine_apply_config(&w.engine, &rules);
    ck_assert_str_eq(w.engine.flights.masters[2].link.login->password, "hunter2");
    ck_assert_str_eq(w.engine.flights.masters[2].tracker.login->username, "app");
    /* Existing connections continue. */
    ck_assert_str_eq(cluster_vote(&w, 2), "-");
    hold("LOCK a 9s");
}

TEST(new_backoff_applies_to_existing_queues)
{
    struct engine_rules rules = w.engine.rules;
    rules.backoff_min_ns = 7 * NS_PER_MS;
    rules.backoff_max_ns = 70 * NS_PER_MS;
    hold("LOCK a 60s");
    cluster_send(&w, "LOCK a 9s WAIT 60s");
    cluster_settle(&w);
    engine_apply_config(&w.engine, &rules);
    const struct resource *resource = TAILQ_FIRST(&w.engine.manager.resources.all);
    ck_assert_ptr_nonnull(resource);
    ck_assert_int_eq(resource->queue.rules->backoff_min_ns, 7 * NS_PER_MS);
    ck_assert_int_eq(resource->queue.rules->backoff_max_ns, 70 * NS_PER_MS);
}
