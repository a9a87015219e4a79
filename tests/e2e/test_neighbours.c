/*
 * Other users of the same masters: Redlock libraries, other daemons, other keys.
 */
#include <string.h>

#include "tests/e2e/guard_stage.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan five = {.masters = 5, .over_unix = true};
static const struct stage_plan five_bare = {
    .masters = 5, .over_unix = true, .daemon = {.locks = ", key_prefix: \"\""}};

TEST(a_lock_of_a_foreign_library_is_respected)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 3, "SET redlock:a theirs NX PX 30000");
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 10s");
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    /* Only the foreign keys remain, unchanged. */
    stage_wait_key(&stage, "redlock:a", 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_str_eq(master_text(&stage.masters[i], "GET redlock:a"), "theirs");
    masters_run(stage.masters, 3, "DEL redlock:a");
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

TEST(a_foreign_minority_does_not_block_a_lock)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 2, "SET redlock:a theirs NX PX 30000");
    struct grant grant = client_lock(&stage.client, "a", "10s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

/* The masters that granted a library its lock lose their data, before they grant it or after it. In
 * both cases redlockd grants the lock only after the library's lock has ended. */
TEST_LOOP(a_foreign_lock_is_respected_despite_a_loss_of_data, 0, 2)
{
    bool before = _i == 0;
    struct stage stage;
    stage_open(&stage, __func__, &guard_careful);
    if (before) {
        client_lock(&stage.client, "a", GUARD_MAX_TTL);
        masters_run(stage.masters, 3, "FLUSHALL");
    }
    int64_t sent_ms = waiting_clock_ms();
    unsigned won = 0;
    for (unsigned i = 0; i < 3; i++)
        won += master_text(&stage.masters[i], "SET redlock:a theirs NX PX 4000") != NULL;
    ck_assert_uint_eq(won, 3);
    if (!before)
        masters_run(stage.masters, 2, "FLUSHALL");
    /* A library subtracts 1 % of its TTL and 2 ms. */
    guard_expect_grant_after(&stage.client, sent_ms + 4000 - 42);
    stage_close(&stage);
}

TEST(a_foreign_library_respects_our_lock)
{
    struct stage stage;
    unsigned won = 0;
    stage_open(&stage, __func__, &five_bare);
    struct grant grant = client_lock(&stage.client, "a", "30s");
    for (unsigned i = 0; i < 5; i++)
        won += master_text(&stage.masters[i], "SET a theirs NX PX 30000") != NULL;
    ck_assert_uint_lt(won, 3);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

TEST(empty_prefix_shares_bare_names)
{
    struct stage stage;
    stage_open(&stage, __func__, &five_bare);
    struct grant grant = client_lock(&stage.client, "bare", "10s");
    stage_wait_key(&stage, "bare", 5);
    ck_assert_str_eq(master_text(&stage.masters[4], "GET bare"), grant.token);
    masters_run(stage.masters, 3, "SET other theirs NX PX 30000");
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK other 10s");
    stage_close(&stage);
}

TEST(keys_of_redlockd_cannot_be_locked)
{
    struct stage stage;
    stage_open(&stage, __func__, &five_bare);
    client_expect_match(&stage.client, "ERR bad-resource .*", "LOCK redlockd:node 10s");
    ck_assert_int_eq(masters_keys(stage.masters, 5), 0);
    stage_close(&stage);
}

TEST(key_of_another_type_counts_as_held)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 3, "LPUSH redlock:a item");
    client_expect(&stage.client, "HELD -1", "LOCK a 10s");
    client_expect(&stage.client, "HELD -1", "STATUS a");
    client_expect(&stage.client, "GONE", "UNLOCK a 0123456789abcdef0123456789abcdef01234567");
    client_expect(&stage.client, "GONE", "EXTEND a 0123456789abcdef0123456789abcdef01234567 9s");
    stage_wait_key(&stage, "redlock:a", 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(master_integer(&stage.masters[i], "LLEN redlock:a"), 1);
    stage_close(&stage);
}

TEST(a_key_without_a_ttl_gives_no_hint)
{
    struct stage stage;
    stage_open(&stage, __func__, &five);
    masters_run(stage.masters, 5, "SET redlock:a forever");
    client_expect(&stage.client, "HELD -1", "LOCK a 10s");
    stage_close(&stage);
}

TEST(a_token_is_valid_at_any_daemon)
{
    struct stage stage;
    struct daemon second;
    struct client other;
    stage_open(&stage, __func__, &five);
    stage_start_daemon(&stage, &second, &(struct daemon_plan){.name = "second"});
    daemon_connect(&second, &other);
    struct grant grant = client_lock(&stage.client, "a", "10s");
    client_expect_match(&other, "HELD [0-9]+", "LOCK a 10s");
    client_expect_match(&other, "OK [0-9a-f]{40} [0-9]+ [0-9]+", "EXTEND a %s 20s", grant.token);
    client_expect(&other, "OK", "UNLOCK a %s", grant.token);
    client_expect(&stage.client, "GONE", "UNLOCK a %s", grant.token);
    client_close(&other);
    daemon_stop(&second);
    stage_close(&stage);
}

/* Both daemons request the lock at the same time. Both may fail, but they must never both
 * succeed. */
TEST(two_daemons_never_both_grant)
{
    struct stage stage;
    struct daemon second;
    struct client clients[2];
    unsigned granted = 0;
    stage_open(&stage, __func__, &five);
    stage_start_daemon(&stage, &second, &(struct daemon_plan){.name = "second"});
    daemon_connect(&stage.daemon, &clients[0]);
    daemon_connect(&second, &clients[1]);
    for (unsigned race = 0; race < 50; race++) {
        unsigned winners = 0;
        client_send(&clients[race % 2], "LOCK a 30s\n");
        client_send(&clients[1 - race % 2], "LOCK a 30s\n");
        for (unsigned i = 0; i < 2; i++)
            winners += strncmp(client_read(&clients[i]), "OK ", 3) == 0;
        ck_assert_uint_le(winners, 1);
        granted += winners;
        for (unsigned i = 0; i < 2; i++)
            if (strncmp(clients[i].line, "OK ", 3) == 0)
                client_expect(&clients[i], "OK", "UNLOCK a %.40s", clients[i].line + 3);
        /* A daemon that got too few votes may still be deleting its keys. */
        stage_wait_no_keys(&stage);
    }
    ck_assert_uint_gt(granted, 0);
    client_close(&clients[0]);
    client_close(&clients[1]);
    daemon_stop(&second);
    stage_close(&stage);
}
