/*
 * The effect of the guard on rounds, and its cost. The tests run the engine on fake masters and
 * virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"
#include "tests/unit/cluster_guard.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

/* --- votes and probes --- */

/* The masters answer after 30 ms, too late for their clock samples to prove anything. The daemon
 * probes them again, and the votes then count. */
TEST(slow_answer_is_probed_again_in_the_same_round)
{
    cluster_hang(&w, 5, true);
    cluster_send(&w, "LOCK a 10s");
    cluster_settle(&w);
    cluster_pass_ms(&w, 30);
    cluster_hang(&w, 5, false);
    cluster_pass_ms(&w, 1);
    ck_assert_uint_eq(w.reply_count, 1);
    ck_assert(cluster_granted(w.replies[0]));
}

/* The masters answer too slowly for their clock samples to prove anything, so the votes for b
 * become too old. The votes for a come after them and keep their answer (HELD). */
TEST(vote_after_an_expired_one_keeps_its_answer)
{
    for (unsigned i = 0; i < 5; i++) {
        cluster_set(&w, i, "a", "somebody else", 0);
        w.masters[i].delay_ns = 20 * NS_PER_MS;
    }
    cluster_send(&w, "#b LOCK b 10s");
    cluster_pass_ms(&w, 35);
    cluster_send(&w, "#a LOCK a 10s FENCE");
    cluster_pass_ms(&w, 22);
    ck_assert_uint_eq(w.reply_count, 1);
    ck_assert_str_eq(w.replies[0],
                     "#b NOQUORUM 0/5 need=3 a:timeout b:timeout c:timeout d:timeout e:timeout");
    ck_assert_uint_eq(w.engine.flights.vote_count[0], 1);
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].delay_ns = 0;
    cluster_pass_ms(&w, 20);
    ck_assert_uint_eq(w.reply_count, 2);
    ck_assert_str_eq(w.replies[1], "#a HELD -1");
}

TEST(slow_master_under_load_accumulates_no_votes)
{
    w.masters[0].delay_ns = 20 * NS_PER_MS;
    for (unsigned i = 0; i < 3000; i++) {
        for (unsigned j = 0; j < 2; j++)
            cluster_send(&w, "#t%u LOCK k%u 1s", 2 * i + j, j);
        w.reply_count = 0;
        cluster_pass_ms(&w, 1);
        w.reply_count = 0;
        ck_assert_uint_lt(w.engine.flights.vote_count[0], 300);
    }
}

/* Many commands wait at a hung master that has lost its scripts. After it resumes, the engine sends
 * them again in full, and the link must still work. */
TEST(flushed_scripts_do_not_overflow_a_link)
{
    w.masters[0].hung = true;
    for (unsigned i = 0; i < 60; i++)
        cluster_send(&w, "#e%u EXTEND x%u %040u 1s", i, i % 4, i);
    cluster_settle(&w);
    for (unsigned i = 0; i < 4200; i++) {
        w.reply_count = 0;
        cluster_send(&w, "#u%u UNLOCK x%u %040u", i, i % 4, i + 1000);
        if (i % 40 == 39)
            cluster_settle(&w);
    }
    w.masters[0].redis.scripts_flushed = true;
    w.masters[0].hung = false;
    w.reply_count = 0;
    cluster_settle(&w);
    cluster_pass_ms(&w, 5000);
    cluster_expect_votes(&w, 0, 0, "-");
}

/* The masters lack the script of the fenced vote, so the vote would be sent again in full. The
 * client leaves before that, and the vote is undone. */
TEST(fenced_vote_is_not_sent_again_after_its_undo)
{
    for (unsigned i = 0; i < 5; i++) {
        w.masters[i].redis.scripts[REDIS_SCRIPT_FENCE] = false;
        w.masters[i].delay_ns = 5 * NS_PER_MS;
    }
    cluster_send(&w, "LOCK a 60s FENCE");
    engine_flush(&w.engine, w.now_ns);
    cluster_pass_ms(&w, 1);
    w.client.disconnected = true;
    engine_client_end(&w.engine, &w.client, ENGINE_GONE, w.now_ns);
    cluster_pass_ms(&w, 1000);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* The connection to A is lost each time that it is up. That must not cause many heartbeats to B. */
TEST(flapping_master_does_not_burden_the_others)
{
    cluster_pass_ms(&w, 3000);
    unsigned heartbeats = 0;
    int64_t last_ns = w.engine.flights.masters[1].link.heartbeat_ns;
    for (unsigned ms = 0; ms < 10000; ms++) {
        cluster_pass_ms(&w, 1);
        heartbeats += w.engine.flights.masters[1].link.heartbeat_ns != last_ns;
        last_ns = w.engine.flights.masters[1].link.heartbeat_ns;
        if (w.engine.flights.masters[0].link.state == LINK_UP)
            cluster_cut(&w, 0);
    }
    ck_assert_uint_le(heartbeats, 30);
}

/* --- votes, locks and releases --- */

TEST(node_without_a_vote_gets_releases_and_holds_keys)
{
    char token[LIMIT_TOKEN + 1];
    cluster_restart(&w, 0);
    cluster_pass_ms(&w, OBSERVED_MS);
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 10s")));
    ck_assert_str_eq(cluster_value(&w, 0, "a"), token);
    cluster_delete(&w, 0, "a");
    ck_assert(cluster_granted(cluster_ask(&w, "EXTEND a %s 20s", token)));
    ck_assert_str_eq(cluster_value(&w, 0, "a"), token);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* A, B and C deny the token only because they lost their data. So the EXTEND is answered NOQUORUM
 * and not GONE. */
TEST(masters_that_lost_data_do_not_make_a_token_gone)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        cluster_flush(&w, i);
    const char *reply = cluster_ask(&w, "EXTEND a %s 60s", token);
    ck_assert_msg(strncmp(reply, "NOQUORUM 2/5", 12) == 0, "%s", reply);
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
}

TEST(expired_token_stays_gone)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 1s")));
    cluster_pass_ms(&w, 1001);
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 60s", token), "GONE");
    /* The token stays GONE when a backfill has put it on a minority, when another master has lost
     * its data, and when that master votes again. */
    cluster_set(&w, 0, "a", token, 200000);
    cluster_set(&w, 1, "a", token, 200000);
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 60s", token), "GONE");
    cluster_flush(&w, 4);
    cluster_pass_ms(&w, QUARANTINE_MS + 3 * OBSERVED_MS);
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 60s", token), "GONE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 2);
}

/* --- UNLOCK --- */

/* A, B and E have granted the lock, and E cannot be reached now. */
TEST(token_that_a_silent_master_may_have_is_not_gone)
{
    static const char token[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    cluster_set(&w, 0, "a", token, 60000);
    cluster_set(&w, 1, "a", token, 60000);
    cluster_set(&w, 4, "a", token, 60000);
    cluster_kill(&w, 4);
    cluster_pass_ms(&w, 100);
    const char *reply = cluster_ask(&w, "UNLOCK a %s", token);
    ck_assert_msg(strncmp(reply, "NOQUORUM 4/5 need=3 e:", 22) == 0, "%s", reply);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    /* The first UNLOCK released the lock: the reachable masters no longer have the token. */
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "GONE");
}

/* A, B and C lack the token only because they lost their data. So the UNLOCK is answered NOQUORUM
 * and not GONE. */
TEST(masters_that_lost_data_do_not_make_an_unlocked_token_gone)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++)
        cluster_flush(&w, i);
    cluster_pass_ms(&w, OBSERVED_MS);
    const char *reply = cluster_ask(&w, "UNLOCK a %s", token);
    ck_assert_msg(strncmp(reply, "NOQUORUM 2/5 need=3 a:", 22) == 0, "%s", reply);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* A master without a vote may or may not have the token. If it deletes the token, it had it. */
TEST(masters_without_a_vote_confirm_releases)
{
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "LOCK a 60s")));
    for (unsigned i = 0; i < 3; i++) {
        cluster_flush(&w, i);
        cluster_pass_ms(&w, OBSERVED_MS);
        cluster_set(&w, i, "a", token, 60000);
    }
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
}
