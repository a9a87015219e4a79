/*
 * Several releases of one pass go to a master as one command, up to LIMIT_BATCH of them
 * (engine/flight/write.c). Each has the outcome that a single command would have, and stays in
 * order with other commands for the same key.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

enum { NODES = 5, LOCKS = 70 };

static char tokens[LOCKS][LIMIT_TOKEN + 1];

static void teardown(void)
{
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    cluster_deinit(&w);
}

const struct runner_settings runner_settings = {.setup = cluster_setup, .teardown = teardown};

static void lock_each(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        snprintf(tokens[i], sizeof(tokens[i]), "%s",
                 cluster_token(cluster_ask(&w, "LOCK r%u 10s", i)));
    w.replies_read = w.reply_count;
}

static void unlock_each(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        cluster_send(&w, "#%u UNLOCK r%u %s", i, i, tokens[i]);
}

static void expect_each(unsigned count, const char *outcome)
{
    for (unsigned i = 0; i < count; i++)
        cluster_expect(&w, "#%u %s", i, outcome);
    ck_assert_str_eq(cluster_take_reply(&w), "(nothing)");
}

static unsigned keys_left(unsigned count)
{
    char resource[16];
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        snprintf(resource, sizeof(resource), "r%u", i);
        sum += cluster_count(&w, resource);
    }
    return sum;
}

TEST(releases_of_one_pass_are_one_command)
{
    lock_each(3);
    unlock_each(3);
    cluster_settle(&w);
    expect_each(3, "OK");
    ck_assert_uint_eq(keys_left(3), 0);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(w.masters[i].redis.runs[REDIS_SCRIPT_RELEASES], 1);
}

TEST(single_release_is_its_own_command)
{
    lock_each(2);
    cluster_send(&w, "#0 UNLOCK r0 %s", tokens[0]);
    cluster_settle(&w);
    cluster_send(&w, "#1 UNLOCK r1 %s", tokens[1]);
    cluster_settle(&w);
    expect_each(2, "OK");
    ck_assert_uint_eq(w.masters[0].redis.runs[REDIS_SCRIPT_RELEASES], 0);
}

TEST(many_releases_are_several_commands)
{
    lock_each(LOCKS);
    unlock_each(LOCKS);
    cluster_settle(&w);
    ck_assert_uint_eq(keys_left(LOCKS), 0);
    ck_assert_uint_eq(w.masters[0].redis.runs[REDIS_SCRIPT_RELEASES],
                      (LOCKS + LIMIT_BATCH - 1) / LIMIT_BATCH);
}

TEST(missing_key_is_gone_and_the_others_are_released)
{
    lock_each(3);
    for (unsigned i = 0; i < NODES; i++)
        cluster_delete(&w, i, "r1");
    unlock_each(3);
    cluster_settle(&w);
    cluster_expect(&w, "#0 OK");
    cluster_expect(&w, "#1 GONE");
    cluster_expect(&w, "#2 OK");
    ck_assert_uint_eq(keys_left(3), 0);
}

TEST(foreign_key_stays_and_its_ttl_is_cut)
{
    static const char other[] = "ffffffffffffffffffffffffffffffffffffffff";
    lock_each(2);
    for (unsigned i = 0; i < NODES; i++) {
        cluster_delete(&w, i, "r0");
        cluster_set(&w, i, "r0", other, 3600000);
    }
    unlock_each(2);
    cluster_settle(&w);
    cluster_expect(&w, "#1 OK");
    cluster_expect(&w, "#0 GONE");
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_str_eq(cluster_value(&w, i, "r0"), other);
    ck_assert_str_eq(cluster_value(&w, 0, "r0"), other);
    /* The TTL of the other token exceeded max_ttl. The engine has called release.lua for this key
     * alone, and the script has cut the TTL. */
    cluster_pass_ms(&w, w.engine.rules.max_ttl_ns / NS_PER_MS + 1);
    ck_assert_uint_eq(cluster_count(&w, "r0"), 0);
}

TEST(flushed_scripts_are_sent_in_full)
{
    lock_each(3);
    for (unsigned i = 0; i < NODES; i++)
        w.masters[i].redis.scripts_flushed = true;
    unlock_each(3);
    cluster_settle(&w);
    expect_each(3, "OK");
    ck_assert_uint_eq(keys_left(3), 0);
    ck_assert_uint_eq(w.masters[0].redis.runs[REDIS_SCRIPT_RELEASES], 1);
}

TEST(lock_after_the_release_of_the_same_key_is_granted)
{
    lock_each(2);
    unlock_each(2);
    cluster_send(&w, "#2 LOCK r1 10s");
    cluster_settle(&w);
    cluster_expect(&w, "#0 OK");
    cluster_expect(&w, "#1 OK");
    ck_assert_ptr_nonnull(strstr(cluster_take_reply(&w), "#2 OK "));
    ck_assert_uint_eq(cluster_count(&w, "r1"), NODES);
}

TEST(command_contains_each_key_once)
{
    lock_each(2);
    cluster_send(&w, "#0 UNLOCK r0 %s", tokens[0]);
    cluster_send(&w, "#1 UNLOCK r0 %s", tokens[0]);
    cluster_send(&w, "#2 UNLOCK r1 %s", tokens[1]);
    cluster_settle(&w);
    cluster_expect(&w, "#0 OK");
    cluster_expect(&w, "#1 GONE");
    cluster_expect(&w, "#2 OK");
}

TEST(releases_for_a_master_lost_before_the_flush_are_sent_later)
{
    lock_each(2);
    unlock_each(2);
    cluster_cut(&w, 4);
    cluster_settle(&w);
    expect_each(2, "OK");
    ck_assert_uint_eq(w.engine.flights.masters[4].link.pending_releases.count, 2);
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(keys_left(2), 0);
}

TEST(masters_lost_before_the_flush_are_named_as_disconnected)
{
    lock_each(1);
    unlock_each(1);
    for (unsigned i = 2; i < NODES; i++)
        cluster_cut(&w, i);
    cluster_settle(&w);
    cluster_expect(&w, "#0 NOQUORUM 2/5 need=3 c:disconnected d:disconnected e:disconnected");
}

/* E's connection is lost after two of the three UNLOCKs of this pass. All three releases go to the
 * other masters in one batch, and are pending for E. */
TEST(each_release_goes_to_its_own_masters)
{
    lock_each(3);
    cluster_send(&w, "#0 UNLOCK r0 %s", tokens[0]);
    cluster_send(&w, "#1 UNLOCK r1 %s", tokens[1]);
    cluster_cut(&w, 4);
    cluster_send(&w, "#2 UNLOCK r2 %s", tokens[2]);
    cluster_settle(&w);
    expect_each(3, "OK");
    ck_assert_uint_eq(w.masters[0].redis.runs[REDIS_SCRIPT_RELEASES], 1);
    ck_assert_uint_eq(w.engine.flights.masters[4].link.pending_releases.count, 3);
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(keys_left(3), 0);
}

TEST(releases_for_a_master_lost_before_its_answer_are_sent_later)
{
    lock_each(3);
    w.masters[4].hung = true;
    unlock_each(3);
    cluster_settle(&w);
    expect_each(3, "OK");
    w.masters[4].hung = false;
    cluster_cut(&w, 4);
    ck_assert_uint_eq(w.engine.flights.masters[4].link.pending_releases.count, 3);
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(keys_left(3), 0);
}

/* The flight of each UNLOCK waits for the hung master, and the number of commands that can wait
 * there is limited. All other releases for this master must become pending. */
TEST(batched_releases_of_a_hung_master_count_against_its_limit)
{
    w.masters[4].hung = true;
    for (unsigned i = 0; i < 2 * LIMIT_LINK_COMMANDS / LOCKS; i++) {
        w.reply_count = w.replies_read = 0;
        lock_each(LOCKS);
        unlock_each(LOCKS);
        cluster_settle(&w);
        expect_each(LOCKS, "OK");
    }
    ck_assert_uint_le(w.engine.flights.pool.in_use, LIMIT_LINK_COMMANDS);
    ck_assert_uint_gt(w.engine.flights.masters[4].link.pending_releases.count, 0);
    w.masters[4].hung = false;
    cluster_cut(&w, 4);
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(keys_left(LOCKS), 0);
}

TEST(releases_refused_by_a_master_are_sent_later)
{
    lock_each(2);
    w.masters[2].redis.refusals[FAKE_KEYS] = "MISCONF Errors writing to disk";
    unlock_each(2);
    cluster_settle(&w);
    expect_each(2, "OK");
    ck_assert_uint_eq(w.engine.flights.masters[2].link.pending_releases.count, 2);
    /* The master still votes, so the error is reported, but only once. */
    ck_assert_uint_eq(w.refused_commands, 1);
    ck_assert_uint_eq(w.refused_releases, 1);
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(w.refused_commands, 1);
    w.masters[2].redis.refusals[FAKE_KEYS] = NULL;
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(keys_left(2), 0);
}

/* There are more releases than can be in flight at once, and the master refuses one of them for
 * good. */
TEST(permanently_refused_release_delays_no_other)
{
    lock_each(LOCKS);
    w.masters[2].redis.refusals[FAKE_DELETING] = "NOPERM No permissions to access a key";
    w.masters[2].redis.kept_key = "r0";
    cluster_cut(&w, 2);
    unlock_each(LOCKS);
    cluster_settle(&w);
    expect_each(LOCKS, "OK");
    ck_assert_uint_eq(w.engine.flights.masters[2].link.pending_releases.count, LOCKS);
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(keys_left(LOCKS), 1);
    ck_assert_uint_eq(w.engine.flights.masters[2].link.pending_releases.count, 1);
    w.masters[2].redis.refusals[FAKE_DELETING] = NULL;
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(keys_left(LOCKS), 0);
    ck_assert_uint_eq(w.engine.flights.masters[2].link.pending_releases.count, 0);
}

/* A master whose ACL lacks +mget refuses the batch script. No release may be lost, and the refusal
 * is reported once for each connection. */
TEST(master_that_refuses_batches_gets_single_releases)
{
    w.masters[2].redis.refusals[REDIS_SCRIPT_RELEASES] =
        "ERR The user executing the script can't run this";
    for (unsigned repetition = 0; repetition < 2; repetition++) {
        lock_each(4);
        unlock_each(4);
        cluster_settle(&w);
        expect_each(4, "OK");
        ck_assert_uint_eq(keys_left(4), 0);
        ck_assert_uint_eq(w.engine.flights.masters[2].link.pending_releases.count, 0);
    }
    ck_assert_uint_eq(w.refused_releases, 1);
    ck_assert_uint_eq(w.masters[2].redis.runs[REDIS_SCRIPT_RELEASE], 8);
    w.masters[2].redis.refusals[REDIS_SCRIPT_RELEASES] = NULL;
    lock_each(2);
    unlock_each(2);
    cluster_settle(&w);
    expect_each(2, "OK");
    ck_assert_uint_eq(w.masters[2].redis.runs[REDIS_SCRIPT_RELEASE], 8);
}

/* --- single releases where a master has its own compare-and-delete --- */

static const char valkey[] = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2";
static const char redis8[] = "redis_version:8.6.3";

/* Two Valkeys, a Redis 8 and two Redis 7. */
static void upgrade_servers(void)
{
    w.masters[0].redis.version = w.masters[1].redis.version = valkey;
    w.masters[2].redis.version = redis8;
    for (unsigned i = 0; i < 3; i++)
        cluster_cut(&w, i);
    cluster_pass_ms(&w, 5000);
}

static unsigned native_releases(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < NODES; i++)
        sum += w.masters[i].redis.native;
    return sum;
}

TEST(single_release_uses_the_command_of_each_master)
{
    upgrade_servers();
    lock_each(3);
    unlock_each(1);
    cluster_settle(&w);
    expect_each(1, "OK");
    ck_assert_uint_eq(keys_left(1), 0);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(w.masters[i].redis.native, i < 3);
    /* For several releases, the script is cheaper on these servers as well. */
    cluster_send(&w, "#1 UNLOCK r1 %s", tokens[1]);
    cluster_send(&w, "#2 UNLOCK r2 %s", tokens[2]);
    cluster_settle(&w);
    ck_assert_uint_eq(keys_left(3), 0);
    ck_assert_uint_eq(native_releases(), 3);
    ck_assert_uint_eq(w.masters[0].redis.runs[REDIS_SCRIPT_RELEASES], 1);
}

/* A command takes three fifths of node_timeout to reach a master, so there is no time for a second
 * one. The reply to the server's own command must decide. */
TEST(key_that_the_servers_command_does_not_delete_is_gone)
{
    static const char other[] = "ffffffffffffffffffffffffffffffffffffffff";
    upgrade_servers();
    lock_each(2);
    for (unsigned i = 0; i < NODES; i++) {
        cluster_delete(&w, i, "r0");
        cluster_set(&w, i, "r0", other, 3600000);
        cluster_delete(&w, i, "r1");
        w.masters[i].delay_ns = w.engine.rules.round.node_timeout_ns * 3 / 5;
    }
    cluster_send(&w, "#0 UNLOCK r0 %s", tokens[0]);
    cluster_settle(&w);
    cluster_pass_ms(&w, w.engine.rules.round.node_timeout_ns / NS_PER_MS);
    cluster_expect(&w, "#0 GONE");
    cluster_send(&w, "#1 UNLOCK r1 %s", tokens[1]);
    cluster_settle(&w);
    cluster_pass_ms(&w, w.engine.rules.round.node_timeout_ns / NS_PER_MS);
    cluster_expect(&w, "#1 GONE");
    ck_assert_uint_eq(native_releases(), 6);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_str_eq(cluster_value(&w, i, "r0"), other);
}

/* A master whose ACL lacks +delifeq refuses its own command. No release may be lost, and the
 * refusal is reported once for each connection. */
TEST(master_that_refuses_its_own_command_gets_the_script)
{
    upgrade_servers();
    w.masters[1].redis.refusals[FAKE_NATIVE] = "NOPERM User redlockd has no permissions";
    lock_each(2);
    for (unsigned i = 0; i < 2; i++) {
        cluster_send(&w, "#%u UNLOCK r%u %s", i, i, tokens[i]);
        cluster_settle(&w);
    }
    expect_each(2, "OK");
    ck_assert_uint_eq(keys_left(2), 0);
    ck_assert_uint_eq(w.masters[1].redis.runs[REDIS_SCRIPT_RELEASE], 2);
    ck_assert_uint_eq(w.refused_releases, 1);
}

/* The master refuses its own command, and also the script that the engine sends after it. */
TEST(release_refused_in_both_forms_is_sent_later)
{
    upgrade_servers();
    lock_each(1);
    w.masters[1].redis.refusals[FAKE_KEYS] = "NOPERM No permissions to access a key";
    unlock_each(1);
    cluster_settle(&w);
    expect_each(1, "OK");
    ck_assert_uint_eq(w.engine.flights.masters[1].link.pending_releases.count, 1);
    w.masters[1].redis.refusals[FAKE_KEYS] = NULL;
    cluster_pass_ms(&w, 5000);
    ck_assert_uint_eq(keys_left(1), 0);
}

TEST(release_lost_with_its_connection_is_sent_later)
{
    upgrade_servers();
    lock_each(1);
    w.masters[0].hung = true;
    unlock_each(1);
    cluster_settle(&w);
    expect_each(1, "OK");
    w.masters[0].hung = false;
    cluster_cut(&w, 0);
    ck_assert_uint_eq(w.engine.flights.masters[0].link.pending_releases.count, 1);
    cluster_pass_ms(&w, 2000);
    ck_assert_uint_eq(keys_left(1), 0);
}

TEST(releases_are_sent_although_their_client_leaves)
{
    lock_each(3);
    unlock_each(3);
    cluster_lose_client(&w, &w.client);
    cluster_settle(&w);
    ck_assert_uint_eq(keys_left(3), 0);
    engine_client_init(&w.client, 1);
}

TEST(stopping_engine_sends_its_releases)
{
    lock_each(2);
    unlock_each(2);
    engine_drain(&w.engine, w.now_ns);
    engine_abandon(&w.engine, w.now_ns);
    ck_assert(engine_wants_flush(&w.engine));
    engine_flush(&w.engine, w.now_ns);
    cluster_settle(&w);
    expect_each(2, "SHUTDOWN");
    ck_assert_uint_eq(keys_left(2), 0);
}
