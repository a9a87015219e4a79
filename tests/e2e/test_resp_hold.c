/*
 * LOCK ... HOLD over RESP3: LOST and WARN are push messages, and a held lock ends with its
 * connection by the rules of the line protocol (test_hold.c, test_tls_sessions.c).
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/e2e/process.h"
#include "tests/e2e/resp_client.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan five = {
    .masters = 5, .over_unix = true, .daemon = {.node_timeout_ms = 500, .tcp_host = "127.0.0.1"}};

/* A HOLD of "a" and its deadline on waiting_clock_ms(). */
struct held {
    struct resp_client resp;
    struct grant grant;
    int64_t until_ms;
};

/* The client is connected. `option` is "" or " LINGER". */
static void hold(struct held *held, const char *ttl, const char *option)
{
    struct waiting waiting = waiting_for("the grant of a HOLD");
    resp_hello(&held->resp);
    int64_t sent_ms = waiting_clock_ms();
    resp_send(&held->resp, "LOCK a %s HOLD%s", ttl, option);
    while (client_masters_were_slow(resp_read(&held->resp))) {
        waiting_pause(&waiting);
        sent_ms = waiting_clock_ms();
        resp_send(&held->resp, "LOCK a %s HOLD%s", ttl, option);
    }
    held->grant = resp_grant(&held->resp);
    held->until_ms = sent_ms + held->grant.validity_ms + held->grant.elapsed_ms;
}

static void hold_over_tcp(struct held *held, const struct stage *stage, const char *ttl)
{
    resp_connect_tcp(&held->resp, stage);
    hold(held, ttl, "");
}

static void expect_release_at_the_deadline(struct stage *stage, const struct held *held)
{
    stage_wait_stats(&stage->client, " holding=0 ");
    stage_wait_key(stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held->until_ms);
}

/* --- push messages --- */

static bool is_warning(const char *reply)
{
    return strncmp(reply, ">4 $4 WARN ", 11) == 0;
}

/* Skips warnings, which a healthy but slow master can cause on a busy machine. */
static const char *read_past_warnings(struct resp_client *resp)
{
    const char *reply;
    do
        reply = resp_read(resp);
    while (is_warning(reply));
    return reply;
}

static void expect_lost(struct resp_client *resp, const char *token, const char *reason)
{
    char push[128];
    snprintf(push, sizeof(push), ">4 $4 LOST $1 a $40 %s $%zu %s", token, strlen(reason), reason);
    ck_assert_str_eq(read_past_warnings(resp), push);
}

TEST(a_hold_outlives_its_ttl)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "2s");
    stage_wait_count(&stage.client, "renewals", 4);
    stage_wait_key(&stage, "redlock:a", 5);
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 1s");
    resp_send(&held.resp, "PING");
    ck_assert_str_eq(read_past_warnings(&held.resp), "+PONG");
    resp_close(&held.resp);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}

TEST(losing_a_majority_is_pushed_before_the_validity_ends)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "6s");
    stage_stop_masters(&stage, 0, 2); /* before the first extension */
    expect_lost(&held.resp, held.grant.token, "noquorum");
    ck_assert_int_lt(waiting_clock_ms(), held.until_ms);
    stage_continue_masters(&stage, 0, 2);
    resp_close(&held.resp);
    stage_close(&stage);
}

TEST(losing_a_minority_is_pushed_as_a_warning)
{
    char prefix[128];
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "2s");
    stage_wait_key(&stage, "redlock:a", 5);
    master_kill(&stage.masters[4]);
    /* The reason is e:refused or e:timeout. */
    int len = snprintf(prefix, sizeof(prefix), ">4 $4 WARN $1 a $40 %s ", held.grant.token);
    do
        ck_assert_msg(is_warning(resp_read(&held.resp)), "%s", held.resp.text);
    while (strncmp(held.resp.text, prefix, (size_t)len) != 0 ||
           strstr(held.resp.text, " e:") == NULL);
    stage_wait_count(&stage.client, "renewals", 3);
    resp_close(&held.resp);
    stage_close(&stage);
}

/* The grant has been delivered, so the push does not wait for the LOCK that is pending. */
TEST(lost_overtakes_a_pending_command_once_the_grant_is_delivered)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    struct grant grant = client_lock(&stage.client, "b", "60s");
    hold_over_tcp(&held, &stage, "3s");
    resp_send(&held.resp, "LOCK b 60s WAIT 1h");
    resp_send(&held.resp, "PING");
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", held.grant.token);
    expect_lost(&held.resp, held.grant.token, "gone");
    client_expect(&stage.client, "OK", "UNLOCK b %s", grant.token);
    resp_read_match(&held.resp, RESP_GRANT_3);
    resp_read_equal(&held.resp, "+PONG");
    resp_close(&held.resp);
    stage_close(&stage);
}

/* The grant of the HOLD waits for the reply to an earlier LOCK. LOST must not precede it. It must
 * precede the PONG to a PING that was sent after the loss. */
TEST_LOOP(lost_follows_its_grant_that_waits_for_an_earlier_reply, 0, 3)
{
    static const char *const options[] = {"", " FENCE", " SLOTS 1"};
    static const char *const names[] = {"a", "a", "a#1"};
    char push[128];
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &five);
    struct grant grant = client_lock(&stage.client, "b", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_hello(&resp);
    resp_send(&resp, "LOCK b 60s WAIT 1h");
    resp_send(&resp, "LOCK a 3s HOLD%s", options[_i]);
    resp_send(&resp, "PING before");
    stage_wait_stats(&stage.client, " waiting=1 ");
    snprintf(push, sizeof(push), "DEL redlock:%s", names[_i]);
    stage_wait_key(&stage, push + 4, 5);
    masters_run(stage.masters, 5, push);
    stage_wait_count(&stage.client, "lost", 1);
    resp_send(&resp, "PING after");
    ck_assert(!client_has_input(&resp.client));
    client_expect(&stage.client, "OK", "UNLOCK b %s", grant.token);
    resp_read_match(&resp, RESP_GRANT_3);
    resp_read_prefix(&resp, _i == 2 ? "*6 $2 OK " : "*5 $2 OK ");
    grant = resp_grant(&resp);
    ck_assert_str_eq(read_past_warnings(&resp), "$6 before");
    snprintf(push, sizeof(push), ">4 $4 LOST $%zu %s $40 %s $4 gone", strlen(names[_i]), names[_i],
             grant.token);
    ck_assert_str_eq(read_past_warnings(&resp), push);
    resp_read_equal(&resp, "$5 after");
    resp_close(&resp);
    stage_close(&stage);
}

TEST_LOOP(a_resumed_daemon_pushes_the_loss_before_other_replies, 0, 2)
{
    static const char *const pings[] = {"PING", "PING hi"};
    static const char *const pongs[] = {"+PONG", "$2 hi"};
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "2s");
    process_stop(stage.daemon.pid);
    resp_send(&held.resp, "%s", pings[_i]);
    struct waiting waiting = waiting_for("the validity to end");
    while (waiting_clock_ms() <= held.until_ms)
        waiting_pause(&waiting);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    expect_lost(&held.resp, held.grant.token, "overdue");
    resp_read_equal(&held.resp, pongs[_i]);
    resp_close(&held.resp);
    stage_close(&stage);
}

TEST(a_stopping_daemon_pushes_the_loss_and_releases_nothing)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "30s");
    stage_wait_key(&stage, "redlock:a", 5);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    expect_lost(&held.resp, held.grant.token, "shutdown");
    resp_expect_end(&held.resp);
    stage_wait_key(&stage, "redlock:a", 5);
    resp_close(&held.resp);
    stage_close_masters(&stage);
}

/* --- the end of the connection --- */

static void close_it(struct resp_client *resp)
{
    resp_close(resp);
}

static void quit(struct resp_client *resp)
{
    resp_expect(resp, "+OK", "QUIT");
    resp_expect_end(resp);
    resp_close(resp);
}

static void half_close(struct resp_client *resp)
{
    client_half_close(&resp->client);
    resp_expect_end(resp);
    resp_close(resp);
}

static void (*const clean_ends[])(struct resp_client *) = {close_it, quit, half_close};

TEST_LOOP(a_clean_end_releases_a_hold_at_once, 0, 6)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    if (_i / 3 == 0)
        resp_connect_tcp(&held.resp, &stage);
    else
        resp_connect_unix(&held.resp, &stage);
    hold(&held, "60s", "");
    clean_ends[_i % 3](&held.resp);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_wait_stats(&stage.client, " holding=0 ");
    stage_close(&stage);
}

/* RESET returns the connection to its start, without its HOLDs. */
TEST(reset_releases_a_hold_and_the_connection_can_lock_again)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    for (unsigned i = 0; i < 2; i++) {
        if (i == 0)
            resp_connect_tcp(&held.resp, &stage);
        hold(&held, "60s", "");
        resp_expect(&held.resp, "+OK", "CLIENT SETNAME me");
        resp_expect(&held.resp, "+RESET", "RESET");
        stage_wait_key(&stage, "redlock:a", 0);
        stage_wait_stats(&stage.client, " holding=0 ");
        resp_expect(&held.resp, "$-1", "CLIENT GETNAME");
        resp_expect_match(&held.resp, "-ERR bad-arguments HOLD needs RESP3.*", "LOCK a 2s HOLD");
        struct grant grant = resp_lock(&held.resp, "a", "60s WAIT 1s");
        resp_expect(&held.resp, "+OK", "UNLOCK a %s", grant.token);
    }
    resp_close(&held.resp);
    stage_close(&stage);
}

/* The network can cause a reset, and then the client may be alive and rely on the lock. */
TEST(a_reset_does_not_release_a_hold_before_its_deadline)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "2s");
    client_reset(&held.resp.client);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 5);
    expect_release_at_the_deadline(&stage, &held);
    stage_close(&stage);
}

/* The daemon reads the command, and notices the reset only when it writes the reply. */
TEST(a_reset_after_a_command_does_not_release_a_hold)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "2s");
    kill(stage.daemon.pid, SIGSTOP);
    resp_send(&held.resp, "PING");
    client_reset(&held.resp.client);
    kill(stage.daemon.pid, SIGCONT);
    stage_wait_clients(&stage, 1);
    expect_release_at_the_deadline(&stage, &held);
    stage_close(&stage);
}

/* The daemon takes no more commands until the client reads. */
TEST(a_client_that_does_not_read_keeps_its_connection_and_its_hold)
{
    enum { LISTINGS = 1000 };
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "2s");
    for (unsigned i = 0; i < LISTINGS; i++)
        ck_assert(client_try_send(&held.resp.client, "*1\r\n$4\r\nHELP\r\n"));
    stage_wait_key(&stage, "redlock:a", 5);
    for (unsigned i = 0; i < LISTINGS; i++)
        ck_assert_int_eq(read_past_warnings(&held.resp)[0], '*');
    resp_expect(&held.resp, "+PONG", "PING");
    stage_wait_key(&stage, "redlock:a", 5);
    resp_close(&held.resp);
    stage_close(&stage);
}

/* The daemon closes the connection, but the client may still work under its lock. */
TEST(a_protocol_error_does_not_release_a_hold_before_its_deadline)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold_over_tcp(&held, &stage, "2s");
    resp_send_raw(&held.resp, "PING\r\n");
    ck_assert_ptr_nonnull(strstr(read_past_warnings(&held.resp), "Protocol error"));
    resp_expect_end(&held.resp);
    stage_wait_key(&stage, "redlock:a", 5);
    expect_release_at_the_deadline(&stage, &held);
    resp_close(&held.resp);
    stage_close(&stage);
}

TEST_LOOP(a_clean_end_does_not_release_a_lingering_hold, 0, 2)
{
    static void (*const ends[])(struct resp_client *) = {close_it, half_close};
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    resp_connect_tcp(&held.resp, &stage);
    hold(&held, "2s", " LINGER");
    ends[_i](&held.resp);
    expect_release_at_the_deadline(&stage, &held);
    stage_close(&stage);
}

TEST(quit_releases_a_lingering_hold_at_once)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    resp_connect_tcp(&held.resp, &stage);
    hold(&held, "60s", " LINGER");
    quit(&held.resp);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}

/* A HOLD whose grant still waits for an earlier reply, when the connection ends. */
TEST(a_hold_whose_grant_was_not_delivered_ends_with_its_connection)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &five);
    client_lock(&stage.client, "b", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_hello(&resp);
    resp_send(&resp, "LOCK b 60s WAIT 1h");
    resp_send(&resp, "LOCK a 60s HOLD");
    stage_wait_key(&stage, "redlock:a", 5);
    resp_close(&resp);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_wait_stats(&stage.client, " holding=0 ");
    stage_wait_stats(&stage.client, " waiting=0 ");
    stage_close(&stage);
}

/* The last commands wait for the reply to the LOCK, so the daemon has not read them when the
 * connection ends. */
static void leave_commands_unread(struct held *held, struct stage *stage, const char *ttl)
{
    client_lock(&stage->client, "b", "60s");
    hold_over_tcp(held, stage, ttl);
    resp_send(&held->resp, "LOCK b 60s WAIT 1h");
    resp_send(&held->resp, "HELLO 3");
    resp_send(&held->resp, "PING");
    stage_wait_stats(&stage->client, " waiting=1 ");
}

TEST_LOOP(a_clean_end_with_unread_commands_releases_a_hold_at_once, 0, 2)
{
    static void (*const ends[])(struct client *) = {client_close, client_half_close};
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    leave_commands_unread(&held, &stage, "60s");
    ends[_i](&held.resp.client);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_wait_stats(&stage.client, " waiting=0 ");
    stage_wait_stats(&stage.client, " holding=0 ");
    stage_close(&stage);
}

TEST(a_reset_with_unread_commands_releases_nothing_before_the_deadline)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    leave_commands_unread(&held, &stage, "2s");
    client_reset(&held.resp.client);
    stage_wait_stats(&stage.client, " waiting=0 ");
    stage_wait_key(&stage, "redlock:a", 5);
    expect_release_at_the_deadline(&stage, &held);
    stage_close(&stage);
}

TEST(an_unread_unlock_of_a_reset_client_is_carried_out)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    leave_commands_unread(&held, &stage, "60s");
    resp_send(&held.resp, "UNLOCK a %s", held.grant.token);
    client_reset(&held.resp.client);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}

/* --- over TLS --- */

static void hold_over_tls(struct held *held, struct stage *stage, const char *test, const char *ttl)
{
    tls_stage_open(stage, test);
    resp_connect_tls(&held->resp, stage);
    hold(held, ttl, "");
}

TEST_LOOP(close_notify_and_quit_release_a_hold_over_tls, 0, 2)
{
    static void (*const ends[])(struct resp_client *) = {close_it, quit};
    struct stage stage;
    struct held held;
    hold_over_tls(&held, &stage, __func__, "60s");
    ends[_i](&held.resp);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_wait_clients(&stage, 1);
    stage_close(&stage);
}

TEST_LOOP(any_other_end_over_tls_releases_nothing_before_the_deadline, 0, 2)
{
    static void (*const ends[])(struct tls_client *) = {tls_client_cut, tls_client_reset};
    struct stage stage;
    struct held held;
    hold_over_tls(&held, &stage, __func__, "2s");
    ends[_i](&held.resp.secure);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 3);
    expect_release_at_the_deadline(&stage, &held);
    stage_close(&stage);
}
