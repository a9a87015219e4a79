/*
 * What a BREAK is allowed to take from the holder. Two daemons use the same masters: v grants and
 * extends the lock, and w gets the BREAK. If an EXTEND begins after w has answered the BREAK, and v
 * answers the EXTEND with OK, the lock must stay valid. The tests run the shipped engine on fake
 * masters and virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

enum { NODES = 5 };

/* The daemon that granted the lock. `w` gets the BREAK. */
static struct cluster v;
static char token[LIMIT_TOKEN + 1];

static void to_v(void)
{
    cluster_share(&v, &w);
}

static void to_w(void)
{
    cluster_share(&w, &v);
}

static void setup(void)
{
    cluster_setup_settled();
    cluster_join(&v, &w, "elsewhere");
    w.now_ns = v.now_ns;
    cluster_pass_both_ms(&w, &v, 3000);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_str_eq(cluster_vote(&v, i), "-");
    cluster_submit(&v, "LOCK a 20s");
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_take_reply(&v)));
    to_w();
}

static void teardown(void)
{
    cluster_pass_both_ms(&w, &v, 3000);
    ck_assert_uint_eq(w.engine.manager.breakings.in_use, 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    cluster_teardown();
    cluster_deinit(&v);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

/* Extend the lock through the daemon that granted it. Returns the reply. */
static const char *extend(void)
{
    to_v();
    cluster_submit(&v, "EXTEND a %s 20s", token);
    cluster_pass_ms(&v, 100);
    to_w();
    return cluster_take_reply(&v);
}

/* The first three masters refuse these commands: a class of FAKE_* or a script. */
static void refuse(unsigned commands, const char *error)
{
    for (unsigned i = 0; i < 3; i++)
        w.masters[i].redis.refusals[commands] = error;
}

static void skip_replies(void)
{
    while (cluster_next_reply(&w) != NULL)
        continue;
}

/* Assert that no other client is granted the lock within `ms`. */
static void expect_exclusive_for_ms(int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 500) {
        cluster_pass_both_ms(&w, &v, 500);
        cluster_submit(&w, "LOCK a 1s");
        cluster_pass_ms(&w, 60);
        const char *answer = cluster_take_reply(&w);
        ck_assert_msg(strncmp(answer, "HELD ", 5) == 0, "%s after %lld ms", answer,
                      (long long)passed);
        to_v();
    }
}

TEST(extension_outlives_a_break_that_could_not_freeze_the_token)
{
    refuse(REDIS_SCRIPT_FREEZE, "BUSY Redis is busy running a script.");
    cluster_send_as(&w, &w.others[0], "BREAK a");
    cluster_pass_ms(&w, 200);
    skip_replies();
    refuse(REDIS_SCRIPT_FREEZE, NULL);
    const char *answer = extend();
    ck_assert_msg(strncmp(answer, "OK ", 3) == 0, "%s", answer);
    expect_exclusive_for_ms(15000);
}

TEST(extension_is_gone_after_a_break_that_could_not_delete_the_key)
{
    refuse(FAKE_DELETING, "NOPERM No permissions to access a key");
    cluster_send_as(&w, &w.others[0], "BREAK a");
    cluster_pass_ms(&w, 200);
    skip_replies();
    ck_assert_str_eq(extend(), "GONE");
    refuse(FAKE_DELETING, NULL);
}

/* All masters hang from _i ms after the BREAK was sent until w has answered it. They then execute
 * v's extension first and the rest of w's commands after it. */
TEST_LOOP(extension_outlives_a_break_whose_commands_arrive_late, 1, 12)
{
    for (unsigned i = 0; i < NODES; i++)
        w.masters[i].delay_ns = 3 * NS_PER_MS;
    cluster_send_as(&w, &w.others[0], "BREAK a");
    cluster_pass_ms(&w, _i);
    cluster_hang(&w, NODES, true);
    cluster_pass_ms(&w, 200);
    skip_replies();
    cluster_hang(&w, NODES, false); /* v's commands run first */
    for (unsigned i = 0; i < NODES; i++)
        w.masters[i].delay_ns = 0;
    const char *answer = extend();
    ck_assert(strncmp(answer, "OK ", 3) == 0 || strcmp(answer, "GONE") == 0);
    cluster_pass_both_ms(&w, &v, 1);
    if (strncmp(answer, "OK ", 3) == 0)
        expect_exclusive_for_ms(15000);
}
