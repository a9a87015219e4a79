/*
 * engine/engine.h and engine/master/link.h together, on fake masters and virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/cluster_fixture.h"

const struct runner_settings runner_settings = {.setup = cluster_setup,
                                                .teardown = cluster_teardown};

static char token[LIMIT_TOKEN + 1]; /* of the lock that was granted last */

static void hang(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        w.masters[i].hung = true;
}

static void resume_masters(void)
{
    for (unsigned i = 0; i < w.node_count; i++)
        w.masters[i].hung = false;
}

/* Send a LOCK, which must be granted, and set `token`. */
static void lock(const char *line)
{
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_ask(&w, "%s", line)));
}

/* --- requests --- */

TEST(lock_is_on_every_master_until_it_is_released)
{
    lock("LOCK a 10s");
    ck_assert_str_eq(w.replies[0] + 3 + LIMIT_TOKEN, " 9890 0 -");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(cluster_value(&w, i, "a"), token);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "GONE");
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    ck_assert_uint_eq(w.engine.manager.resources.pool.in_use, 0);
}

TEST(second_lock_is_refused_with_the_remaining_ttl)
{
    lock("LOCK a 10s");
    cluster_pass_ms(&w, 4000);
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 10s"), "HELD 6000");
    ck_assert_str_eq(cluster_ask(&w, "STATUS a"), "HELD 6000");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(cluster_value(&w, i, "a"), token);
    cluster_pass_ms(&w, 6001); /* Redis keeps a key until the end of its last millisecond */
    ck_assert_str_eq(cluster_ask(&w, "STATUS a"), "FREE");
    cluster_token(cluster_ask(&w, "LOCK a 10s"));
}

TEST(each_round_has_its_own_token)
{
    lock("LOCK a 10s");
    ck_assert_str_ne(token, cluster_token(cluster_ask(&w, "LOCK b 10s")));
}

TEST(reply_has_the_tag_of_its_request)
{
    cluster_send(&w, "#1 LOCK a 10s");
    cluster_send(&w, "#2 STATUS b");
    ck_assert(engine_tag_in_use(&w.engine, &w.client, "1", 1));
    ck_assert(!engine_tag_in_use(&w.engine, &w.client, "3", 1));
    ck_assert(!engine_tag_in_use(&w.engine, &w.others[0], "1", 1));
    cluster_send_as(&w, &w.others[0], "#2 STATUS b");
    ck_assert(!engine_tag_in_use(&w.engine, &w.others[0], "1", 1));
    cluster_settle(&w);
    ck_assert(!engine_tag_in_use(&w.engine, &w.client, "1", 1));
    ck_assert_uint_eq(w.reply_count, 3);
    ck_assert_int_eq(strncmp(w.replies[0], "#1 OK ", 6), 0);
    ck_assert_str_eq(w.replies[1], "#2 FREE");
}

TEST(extension_backfills_the_key_where_it_is_missing)
{
    lock("LOCK a 10s");
    cluster_delete(&w, 3, "a");
    cluster_pass_ms(&w, 1000);
    ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 20s", token), "OK", 2), 0);
    cluster_settle(&w);
    ck_assert_str_eq(cluster_value(&w, 3, "a"), token);
    ck_assert_uint_eq(w.engine.stats.backfilled, 1);
}

TEST(extension_never_shortens_a_lock)
{
    lock("LOCK a 10s");
    ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 1s", token), "OK", 2), 0);
    ck_assert_str_eq(cluster_ask(&w, "STATUS a"), "HELD 10000");
}

TEST(number_of_extensions_is_limited)
{
    lock("LOCK a 10s");
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 10s", token), "OK", 2), 0);
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 10s", token), "LIMIT extensions");
    /* The extensions of another lock are counted separately, and its count ends with its UNLOCK. */
    lock("LOCK b 10s");
    ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND b %s 10s", token), "OK", 2), 0);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK b %s", token), "OK");
    ck_assert_uint_eq(w.engine.manager.extension_limits.pool.in_use, 1);
}

TEST(extensions_are_limited_by_max_hold)
{
    lock("LOCK a 60s");
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 60s", token), "OK", 2), 0);
        cluster_pass_ms(&w, 59000);
    }
    ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 60s", token), "OK", 2), 0);
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 60s", token), "LIMIT extensions");
    lock("LOCK b 60s");
    for (unsigned i = 0; i < 3; i++) {
        cluster_pass_ms(&w, 59000);
        ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND b %s 60s", token), "OK", 2), 0);
    }
    /* The time of b counts from its first extension, 118 s ago. Of a max_hold of 150 s, 32 s are
     * left. */
    w.engine.rules.max_hold_ns = 150 * NS_PER_S;
    ck_assert_str_eq(cluster_ask(&w, "EXTEND b %s 60s", token), "LIMIT hold");
    ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND b %s 20s", token), "OK", 2), 0);
}

TEST(request_for_another_resource_does_not_reset_the_count)
{
    lock("LOCK a 10s");
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 10s", token), "OK", 2), 0);
        ck_assert_str_eq(cluster_ask(&w, "UNLOCK b %s", token), "GONE");
        ck_assert_str_eq(cluster_ask(&w, "EXTEND b %s 10s", token),
                         i < 4 ? "GONE" : "LIMIT extensions");
    }
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 10s", token), "LIMIT extensions");
}

TEST(unknown_tokens_are_not_remembered)
{
    for (unsigned i = 0; i < 10; i++)
        ck_assert_str_eq(cluster_ask(&w, "EXTEND a %040u 10s", i), "GONE");
    ck_assert_uint_eq(w.engine.manager.extension_limits.pool.in_use, 0);
}

TEST(extension_of_an_expired_token_is_always_gone)
{
    lock("LOCK a 1s");
    cluster_pass_ms(&w, 1001);
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 10s", token), "GONE");
    ck_assert_str_eq(cluster_ask(&w, "EXTEND a %s 10s", token), "GONE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* A lacks the key, so the EXTEND would backfill it on A once a quorum has answered. An UNLOCK of
 * the token is on its way by then, so it must not. */
TEST(extension_during_a_release_backfills_nothing)
{
    lock("LOCK a 10s");
    cluster_delete(&w, 0, "a");
    hang(1, 4);
    cluster_send(&w, "#1 EXTEND a %s 20s", token);
    cluster_settle(&w); /* node 0 has answered that the key is absent */
    cluster_send(&w, "#2 UNLOCK a %s", token);
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.stats.backfilled, 0);
}

TEST(extension_after_a_release_backfills_nothing)
{
    lock("LOCK a 10s");
    hang(0, 5);
    cluster_send(&w, "#1 UNLOCK a %s", token);
    cluster_send(&w, "#2 EXTEND a %s 20s", token);
    resume_masters();
    cluster_settle(&w);
    ck_assert_str_eq(w.replies[1], "#1 OK");
    ck_assert_str_eq(w.replies[2], "#2 GONE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(flushed_scripts_are_reloaded_unnoticed)
{
    lock("LOCK a 10s");
    for (unsigned i = 0; i < 5; i++)
        w.masters[i].redis.scripts_flushed = true;
    ck_assert_str_eq(cluster_ask(&w, "STATUS a"), "HELD 10000");
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
}

TEST(requests_of_one_client_are_limited)
{
    hang(0, 5);
    for (unsigned i = 0; i < LIMIT_CLIENT_REQUESTS; i++)
        cluster_send(&w, "STATUS a");
    cluster_send(&w, "#x STATUS a");
    ck_assert_str_eq(w.replies[0], "#x LIMIT requests");
    engine_client_end(&w.engine, &w.client, ENGINE_GONE, w.now_ns);
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    ck_assert_uint_eq(w.reply_count, 1);
}

/* --- faults --- */

TEST(hung_minority_costs_no_time)
{
    hang(3, 2);
    int64_t before_ns = w.now_ns;
    lock("LOCK a 10s");
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
    ck_assert_int_eq(w.now_ns, before_ns);
}

TEST(hung_majority_is_no_quorum_and_leaves_no_keys)
{
    hang(0, 3);
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 10s"),
                     "NOQUORUM 2/5 need=3 a:timeout b:timeout c:timeout");
    /* The masters are now suspect, so the next refusal costs no time. */
    cluster_pass_ms(&w, 1);
    int64_t before_ns = w.now_ns;
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 10s"),
                     "NOQUORUM 2/5 need=3 a:suspect b:suspect c:suspect");
    ck_assert_int_eq(w.now_ns, before_ns);
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    cluster_pass_ms(&w, 100);
    cluster_token(cluster_ask(&w, "LOCK a 10s"));
}

TEST(dead_majority_is_no_quorum_at_once)
{
    cluster_kill(&w, 0);
    cluster_kill(&w, 2);
    cluster_kill(&w, 4);
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 10s"),
                     "NOQUORUM 2/5 need=3 a:disconnected c:disconnected e:disconnected");
    cluster_pass_ms(&w, 100);
    ck_assert_str_eq(cluster_ask(&w, "STATUS a"),
                     "NOQUORUM 2/5 need=3 a:refused c:refused e:refused");
    ck_assert_uint_eq(w.masters[1].redis.lock_commands, 0);
}

TEST(errors_of_masters_are_named)
{
    w.masters[1].redis.refusals[FAKE_KEYS] = "OOM command not allowed";
    w.masters[2].redis.refusals[FAKE_KEYS] = "LOADING Redis is loading";
    w.masters[3].redis.refusals[FAKE_KEYS] = "READONLY You can't write";
    ck_assert_str_eq(cluster_ask(&w, "LOCK a 10s"),
                     "NOQUORUM 2/5 need=3 b:oom c:loading d:readonly");
}

TEST(client_that_leaves_before_its_answer_leaves_no_lock)
{
    hang(0, 3);
    cluster_send(&w, "LOCK a 10s");
    cluster_settle(&w);
    engine_client_end(&w.engine, &w.client, ENGINE_GONE, w.now_ns);
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.reply_count, 0);
    ck_assert_uint_eq(w.engine.stats.undone, 1);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

TEST(grant_that_cannot_be_delivered_is_undone)
{
    /* This node refuses the SET, so a grant that is delivered would cause a backfill on it. */
    cluster_set(&w, 0, "a", "a loser's token", 60000);
    w.reply_fails = true;
    cluster_send(&w, "LOCK a 10s");
    cluster_settle(&w);
    cluster_delete(&w, 0, "a");
    ck_assert_uint_eq(w.reply_count, 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
    ck_assert_uint_eq(w.engine.stats.backfilled, 0);
}

TEST(grant_to_a_disconnected_client_is_undone)
{
    cluster_send(&w, "LOCK a 10s");
    w.client.disconnected = true;
    cluster_settle(&w);
    ck_assert_uint_eq(w.reply_count, 0);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(undeliverable_failure_is_undone)
{
    w.reply_fails = true;
    hang(0, 3);
    cluster_send(&w, "LOCK a 10s");
    cluster_pass_ms(&w, 60);
    ck_assert(w.client.disconnected);
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

TEST(undeliverable_release_without_a_quorum_is_sent)
{
    lock("LOCK a 10s");
    for (unsigned i = 0; i < 3; i++)
        cluster_kill(&w, i);
    w.reply_fails = true;
    cluster_send(&w, "UNLOCK a %s", token);
    cluster_settle(&w);
    ck_assert(w.client.disconnected);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

TEST(undeliverable_unlock_releases_the_lock)
{
    lock("LOCK a 10s");
    w.reply_fails = true;
    cluster_send(&w, "UNLOCK a %s", token);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

TEST(half_closed_client_gets_its_answers_but_no_locks)
{
    hang(0, 3);
    cluster_send(&w, "#1 LOCK a 10s");
    cluster_send(&w, "#2 STATUS b");
    engine_client_end(&w.engine, &w.client, ENGINE_HALF_CLOSED, w.now_ns);
    resume_masters();
    cluster_settle(&w);
    ck_assert_str_eq(w.replies[0], "undone 1");
    ck_assert_str_eq(w.replies[1], "#2 FREE");
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(unlock_continues_after_its_client_has_left)
{
    cluster_send(&w, "UNLOCK a %s", cluster_token(cluster_ask(&w, "LOCK a 10s")));
    engine_client_end(&w.engine, &w.client, ENGINE_GONE, w.now_ns);
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(release_missed_by_a_dead_master_is_sent_when_it_is_back)
{
    lock("LOCK a 10s");
    /* The connection is lost, but the master keeps its data. */
    cluster_cut(&w, 4);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
    ck_assert_str_eq(cluster_value(&w, 4, "a"), token);
    cluster_pass_ms(&w, 200);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.masters[4].link.pending_releases.count, 0);
}

TEST(reconnect_does_not_release_a_granted_lock)
{
    w.masters[3].mute = w.masters[4].mute = true; /* they set the key, and their replies are lost */
    lock("LOCK a 10s");
    for (unsigned i = 3; i < 5; i++) {
        w.masters[i].mute = false;
        cluster_cut(&w, i);
    }
    cluster_pass_ms(&w, 500);
    ck_assert_uint_eq(cluster_count(&w, "a"), 5);
    ck_assert_int_eq(strncmp(cluster_ask(&w, "EXTEND a %s 20s", token), "OK", 2), 0);
}

/* A's connection is lost while the LOCK can still be granted, so no release is pending for A. Once
 * the LOCK has failed, one is. */
TEST(undecided_round_has_no_pending_release)
{
    hang(0, 3);
    cluster_send(&w, "LOCK a 10s");
    cluster_settle(&w);
    cluster_cut(&w, 0);
    ck_assert_uint_eq(w.engine.flights.masters[0].link.pending_releases.count, 0);
    cluster_pass_ms(&w, 50);
    ck_assert_int_eq(strncmp(w.replies[0], "NOQUORUM", 8), 0);
    ck_assert_uint_eq(w.engine.flights.masters[0].link.pending_releases.count, 1);
}

TEST(unread_set_on_a_cut_connection_does_not_outlive_its_release)
{
    hang(0, 3);
    cluster_send(&w, "LOCK a 60s");
    cluster_settle(&w);
    for (unsigned i = 0; i < 3; i++) {
        cluster_cut(&w, i);
        ck_assert_uint_gt(cluster_unread(&w, i), 0);
    }
    ck_assert_int_eq(strncmp(w.replies[0], "NOQUORUM", 8), 0);
    /* The worst order: the release on the new connection runs before the SET on the old one. */
    w.zombies_paused = true;
    resume_masters();
    cluster_pass_ms(&w, 3000);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(w.engine.flights.masters[i].link.state, LINK_UP);
        ck_assert_uint_eq(w.engine.flights.masters[i].link.pending_releases.count, 0);
    }
    w.zombies_paused = false;
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* A, B and C hang for so long that the daemon gives up their connections, on which a SET is still
 * unread. When they resume, that SET must not leave a key. */
TEST(connection_given_up_during_a_hang_leaves_no_keys)
{
    hang(0, 3);
    ck_assert_int_eq(strncmp(cluster_ask(&w, "LOCK a 60s"), "NOQUORUM", 8), 0);
    cluster_pass_ms(&w, 3000);
    ck_assert_int_ne(w.engine.flights.masters[0].link.state, LINK_UP);
    ck_assert_uint_gt(cluster_unread(&w, 0), 0);
    resume_masters();
    cluster_pass_ms(&w, 3000);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(w.engine.flights.masters[i].link.state, LINK_UP);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

TEST(reconnect_after_a_restart_kills_no_other_client)
{
    int64_t before = w.engine.flights.masters[1].link.client_id;
    cluster_kill(&w, 1);
    cluster_pass_ms(&w, 100);
    cluster_restart(&w, 1);
    /* The client id of the old connection now belongs to another client. */
    const struct fake_session *stranger = fake_accept(&w.masters[1].redis);
    ck_assert_int_eq(stranger->id, before);
    cluster_pass_ms(&w, 3000);
    ck_assert_int_eq(w.engine.flights.masters[1].link.state, LINK_UP);
    ck_assert_int_ne(w.engine.flights.masters[1].link.client_id, before);
    ck_assert(!stranger->killed);
}

TEST(refused_release_is_sent_again)
{
    lock("LOCK a 10s");
    w.masters[2].redis.refusals[FAKE_KEYS] = "BUSY Redis is busy";
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
    cluster_pass_ms(&w, 2500);
    ck_assert_str_eq(cluster_value(&w, 2, "a"), token);
    w.masters[2].redis.refusals[FAKE_KEYS] = NULL;
    cluster_pass_ms(&w, 1100);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.masters[2].link.pending_releases.count, 0);
}

TEST(releases_reach_a_suspect_master)
{
    lock("LOCK a 10s");
    hang(4, 1);
    cluster_pass_ms(&w, 1200);
    ck_assert_int_eq(w.engine.flights.masters[4].link.state, LINK_SUSPECT);
    ck_assert_str_eq(cluster_ask(&w, "UNLOCK a %s", token), "OK");
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
}

/* E hangs, and its link takes only LIMIT_LINK_RELEASES of the releases. The others become pending,
 * and E gets no votes. */
TEST(full_link_refuses_votes_and_keeps_releases_pending)
{
    lock("LOCK a 60s");
    hang(4, 1);
    for (unsigned i = 0; i < LIMIT_LINK_COMMANDS; i++) {
        cluster_send(&w, "UNLOCK b %s", token);
        w.reply_count = 0;
        cluster_settle(&w);
    }
    ck_assert_uint_eq(w.engine.flights.masters[4].link.outstanding_count, LIMIT_LINK_RELEASES);
    ck_assert_int_eq(link_refuses_release(&w.engine.flights.masters[4].link), REASON_BACKLOG);
    ck_assert_int_eq(link_refuses_vote(&w.engine.flights.masters[4].link), REASON_BACKLOG);
    ck_assert_uint_gt(w.engine.flights.masters[4].link.pending_releases.count, 0);
    w.reply_count = 0;
    cluster_token(cluster_ask(&w, "LOCK c 10s"));
    /* Pending releases are sent as soon as there is room. */
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(w.engine.flights.masters[4].link.pending_releases.count, 0);
}

/* --- shutdown --- */

TEST(abandoned_engine_answers_and_undoes_everything)
{
    hang(0, 3);
    cluster_send(&w, "#1 LOCK a 10s");
    cluster_send(&w, "#2 STATUS b");
    engine_drain(&w.engine, w.now_ns);
    engine_abandon(&w.engine, w.now_ns);
    ck_assert_str_eq(w.replies[0], "#1 SHUTDOWN");
    ck_assert_str_eq(w.replies[1], "#2 SHUTDOWN");
    resume_masters();
    cluster_settle(&w);
    ck_assert_uint_eq(cluster_count(&w, "a"), 0);
    ck_assert_uint_eq(w.engine.flights.pool.in_use, 0);
}

TEST(draining_engine_refuses_requests_and_becomes_idle)
{
    hang(0, 3);
    cluster_send(&w, "LOCK a 10s");
    engine_drain(&w.engine, w.now_ns);
    ck_assert_str_eq(cluster_ask(&w, "#2 LOCK b 10s"), "#2 SHUTDOWN");
    ck_assert(engine_busy(&w.engine));
    resume_masters();
    cluster_settle(&w);
    ck_assert(!engine_busy(&w.engine));
    cluster_token(w.replies[1]);
}
