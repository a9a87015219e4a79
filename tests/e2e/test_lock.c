/*
 * LOCK, UNLOCK, EXTEND and STATUS on five healthy masters.
 */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* Only one test stops a master, and then needs a long timeout. */
static const struct stage_plan five = {
    .masters = 5, .over_unix = true, .daemon = {.node_timeout_ms = 5000}};

static struct stage stage;

static void setup(void)
{
    stage_open(&stage, runner_test_name, &five);
}

static void teardown(void)
{
    stage_close(&stage);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

static const char wrong_token[] = "0123456789abcdef0123456789abcdef01234567";

static void wait_free(struct client *client, const char *resource)
{
    struct waiting waiting = waiting_for("a lock to expire");
    while (strcmp(client_ask(client, "STATUS %s", resource), "FREE") != 0)
        waiting_pause(&waiting);
}

static long read_hint(const struct client *client)
{
    long hint_ms;
    ck_assert_int_eq(sscanf(client->line, "HELD %ld", &hint_ms), 1);
    return hint_ms;
}

/* --- LOCK --- */

TEST(lock_sets_the_canonical_key_on_every_master)
{
    struct grant grant = client_lock(&stage.client, "a", "10s");
    stage_wait_key(&stage, "redlock:a", 5);
    for (unsigned i = 0; i < 5; i++) {
        struct master *master = &stage.masters[i];
        ck_assert_str_eq(master_text(master, "GET redlock:a"), grant.token);
        int64_t pttl_ms = master_integer(master, "PTTL redlock:a");
        ck_assert_int_gt(pttl_ms, 0);
        ck_assert_int_le(pttl_ms, 10000);
    }
}

TEST(the_validity_of_a_lock_is_less_than_its_ttl)
{
    struct grant grant = client_lock(&stage.client, "a", "10s");
    ck_assert_int_gt(grant.validity_ms, 0);
    /* For clock drift, the daemon subtracts at least 1 % and 10 ms. */
    ck_assert_int_le(grant.elapsed_ms + grant.validity_ms, 10000 - 100 - 10);
}

TEST(lock_on_a_held_resource_is_refused_with_a_hint)
{
    struct client other;
    daemon_connect(&stage.daemon, &other);
    client_lock(&stage.client, "a", "10s");
    client_expect_match(&other, "HELD [0-9]+", "LOCK a 10s");
    ck_assert_int_ge(read_hint(&other), 1);
    ck_assert_int_le(read_hint(&other), 10000);
    client_close(&other);
}

TEST(a_lock_is_granted_again_after_its_release)
{
    struct grant first = client_lock(&stage.client, "a", "10s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", first.token);
    struct grant second = client_lock(&stage.client, "a", "10s");
    ck_assert_str_ne(first.token, second.token);
}

TEST(a_lock_is_granted_again_after_its_ttl)
{
    struct grant first = client_lock(&stage.client, "a", "1s");
    wait_free(&stage.client, "a");
    struct grant second = client_lock(&stage.client, "a", "10s");
    ck_assert_str_ne(first.token, second.token);
}

TEST(locks_of_other_resources_are_independent)
{
    client_lock(&stage.client, "a", "10s");
    client_lock(&stage.client, "A", "10s");
    client_lock(&stage.client, "b", "10s");
}

TEST(a_resource_can_be_any_256_bytes)
{
    char resource[257];
    /* The daemon must not give a meaning to bytes above 0x7f, braces, quotes or a percent sign. */
    memset(resource, 'x', sizeof(resource) - 1);
    static const char odd[] = "{\"\xc3\xa4\\'%s\xff}:*?[";
    memcpy(resource, odd, sizeof(odd) - 1);
    resource[256] = '\0';
    struct grant grant = client_lock(&stage.client, resource, "10s");
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS %s", resource);
    ck_assert_str_eq(master_text(&stage.masters[0], "GET redlock:%s", resource), grant.token);
    client_expect(&stage.client, "OK", "UNLOCK %s %s", resource, grant.token);
}

/* --- UNLOCK --- */

TEST(unlock_is_ok_once_and_then_gone)
{
    struct grant grant = client_lock(&stage.client, "a", "10s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_expect(&stage.client, "GONE", "UNLOCK a %s", grant.token);
    stage_wait_no_keys(&stage);
}

TEST(unlock_with_a_wrong_token_changes_nothing)
{
    struct grant grant = client_lock(&stage.client, "a", "10s");
    stage_wait_key(&stage, "redlock:a", 5);
    client_expect(&stage.client, "GONE", "UNLOCK a %s", wrong_token);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(master_text(&stage.masters[i], "GET redlock:a"), grant.token);
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
}

TEST(unlock_after_the_ttl_is_gone)
{
    struct grant grant = client_lock(&stage.client, "a", "1s");
    wait_free(&stage.client, "a");
    client_expect(&stage.client, "GONE", "UNLOCK a %s", grant.token);
}

/* --- EXTEND --- */

TEST(extend_prolongs_on_every_master)
{
    char pattern[96];
    struct grant grant = client_lock(&stage.client, "a", "5s");
    stage_wait_key(&stage, "redlock:a", 5);
    snprintf(pattern, sizeof(pattern), "OK %s [0-9]+ [0-9]+", grant.token);
    client_expect_match(&stage.client, pattern, "EXTEND a %s 30s", grant.token);
    for (unsigned i = 0; i < 5; i++) {
        struct waiting waiting = waiting_for("a longer TTL");
        while (master_integer(&stage.masters[i], "PTTL redlock:a") <= 5000)
            waiting_pause(&waiting);
        ck_assert_int_le(master_integer(&stage.masters[i], "PTTL redlock:a"), 30000);
    }
}

TEST(extend_never_shortens)
{
    struct grant grant = client_lock(&stage.client, "a", "60s");
    stage_wait_key(&stage, "redlock:a", 5);
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+", "EXTEND a %s 1s",
                        grant.token);
    /* The daemon sends the command of STATUS to each master after that of the extension, on the
     * same connection. So at least a quorum of the masters has executed the extension by now. */
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_gt(master_integer(&stage.masters[i], "PTTL redlock:a"), 30000);
}

TEST(extend_with_a_wrong_token_is_gone)
{
    struct grant grant = client_lock(&stage.client, "a", "10s");
    client_expect(&stage.client, "GONE", "EXTEND a %s 20s", wrong_token);
    client_expect(&stage.client, "GONE", "EXTEND free %s 20s", wrong_token);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_no_keys(&stage);
}

TEST(extend_after_the_ttl_stays_gone)
{
    struct grant grant = client_lock(&stage.client, "a", "1s");
    wait_free(&stage.client, "a");
    client_expect(&stage.client, "GONE", "EXTEND a %s 1s", grant.token);
    client_expect(&stage.client, "GONE", "EXTEND a %s 1s", grant.token);
    client_expect(&stage.client, "FREE", "STATUS a");
    /* The key may not have expired yet on a master whose clock is slightly behind, and an EXTEND
     * may have prolonged it there, by a second. */
    stage_wait_no_keys(&stage);
}

/*
 * When the third master has confirmed the extension, the daemon backfills the key on the masters
 * that have answered by then that they lack it. Here master e is down and c lacks the key, so the
 * daemon needs the confirmations of a, b and d. Master a is stopped until c has answered.
 */
TEST(extend_backfills_the_key_on_a_master_that_lost_it)
{
    struct client client;
    daemon_connect(&stage.daemon, &client);
    struct grant grant = client_lock(&client, "a", "60s");
    stage_wait_key(&stage, "redlock:a", 5);
    master_kill(&stage.masters[4]);
    stage_wait_nodes(&stage, "reason=refused", 1);
    masters_run(&stage.masters[2], 1, "DEL redlock:a");
    master_stop(&stage.masters[0]);
    client_send(&client, "EXTEND a ");
    client_send(&client, grant.token);
    client_send(&client, " 60s\n");
    stage_wait_in_flight(&stage);
    stage_wait_nodes(&stage, "unanswered=0", 4);
    master_continue(&stage.masters[0]);
    client_read_match(&client, "OK [0-9a-f]{40} [0-9]+ [0-9]+");
    struct waiting waiting = waiting_for("the key to be backfilled");
    while (master_text(&stage.masters[2], "GET redlock:a") == NULL)
        waiting_pause(&waiting);
    ck_assert_str_eq(master_text(&stage.masters[2], "GET redlock:a"), grant.token);
    int64_t pttl_ms = master_integer(&stage.masters[2], "PTTL redlock:a");
    ck_assert_int_gt(pttl_ms, 0);
    ck_assert_int_le(pttl_ms, 60000);
    client_close(&client);
}

TEST(extend_is_gone_if_a_majority_lost_the_key)
{
    struct grant grant = client_lock(&stage.client, "a", "10s");
    stage_wait_key(&stage, "redlock:a", 5);
    masters_run(stage.masters, 3, "DEL redlock:a");
    client_expect(&stage.client, "GONE", "EXTEND a %s 1s", grant.token);
    client_expect(&stage.client, "GONE", "EXTEND a %s 1s", grant.token);
    client_expect(&stage.client, "FREE", "STATUS a");
    /* The lost keys were not backfilled. */
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlock:a"), 0);
}

/* A minority still has keys with a token that a majority has lost. The daemon does not delete these
 * keys, because their holder may still rely on the lock until its deadline. The keys expire by
 * their TTL, and until then they must not block other clients. */
TEST(a_failed_extend_does_not_block_the_next_lock)
{
    struct grant grant = client_lock(&stage.client, "a", "2s");
    stage_wait_key(&stage, "redlock:a", 5);
    masters_run(stage.masters, 3, "DEL redlock:a");
    client_expect(&stage.client, "GONE", "EXTEND a %s 2s", grant.token);
    grant = client_lock(&stage.client, "a", "2s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_no_keys(&stage);
}

/* --- STATUS --- */

TEST(status_says_free_or_held)
{
    client_expect(&stage.client, "FREE", "STATUS a");
    struct grant grant = client_lock(&stage.client, "a", "10s");
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    ck_assert_int_ge(read_hint(&stage.client), 1);
    ck_assert_int_le(read_hint(&stage.client), 10000);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_expect(&stage.client, "FREE", "STATUS a");
}

TEST(status_acquires_nothing)
{
    client_expect(&stage.client, "FREE", "STATUS a");
    ck_assert_int_eq(masters_keys(stage.masters, 5), 0);
    client_lock(&stage.client, "a", "10s");
}
