/*
 * LOCK ... HOLD on real masters: holds live as long as their connection, and a loss is reported.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan five = {
    .masters = 5, .over_unix = true, .daemon = {.node_timeout_ms = 500}};
static const struct stage_plan five_tcp = {
    .masters = 5, .over_unix = true, .daemon = {.node_timeout_ms = 500, .tcp_host = "127.0.0.1"}};

/* A HOLD and its deadline on waiting_clock_ms(). */
struct held {
    struct client client;
    char token[41];
    int64_t until_ms;
};

static void note_grant(struct held *held, int64_t sent_ms)
{
    long validity_ms;
    long elapsed_ms;
    ck_assert_msg(
        sscanf(held->client.line, "OK %40s %ld %ld", held->token, &validity_ms, &elapsed_ms) == 3,
        "not granted: %s", held->client.line);
    held->until_ms = sent_ms + validity_ms + elapsed_ms;
}

/* The client is connected. `option` is "" or " LINGER". */
static void hold_connected(struct held *held, const char *ttl, const char *option)
{
    struct waiting waiting = waiting_for("the grant of a HOLD");
    int64_t sent_ms = waiting_clock_ms();
    while (client_masters_were_slow(client_ask(&held->client, "LOCK a %s HOLD%s", ttl, option))) {
        waiting_pause(&waiting);
        sent_ms = waiting_clock_ms();
    }
    note_grant(held, sent_ms);
}

static void hold(struct held *held, const struct stage *stage, const char *ttl)
{
    daemon_connect(&stage->daemon, &held->client);
    hold_connected(held, ttl, "");
}

static bool is_warning(const char *line)
{
    return strncmp(line, "! WARN ", 7) == 0;
}

/* Skips warnings: on a busy machine, a healthy master can be slow, which causes warnings. */
static const char *read_past_warnings(struct client *client)
{
    const char *line;
    do
        line = client_read(client);
    while (is_warning(line));
    return line;
}

static void expect_lost(struct held *held, const char *reason)
{
    char line[128];
    snprintf(line, sizeof(line), "! LOST a %s %s", held->token, reason);
    ck_assert_str_eq(read_past_warnings(&held->client), line);
}

static void expect_kept(struct held *held)
{
    while (client_has_line(&held->client))
        ck_assert_msg(is_warning(client_read(&held->client)), "%s", held->client.line);
}

TEST(a_hold_outlives_its_ttl)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "2s");
    stage_wait_count(&stage.client, "renewals", 6);
    expect_kept(&held);
    stage_wait_key(&stage, "redlock:a", 5);
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 1s");
    client_close(&held.client);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}

/* The client is a separate process. When it is killed, the kernel closes its connection, which is a
 * clean end. */
TEST(killing_a_client_frees_its_hold_at_once)
{
    struct stage stage;
    struct held held;
    int pipe_fds[2];
    char token[41];
    stage_open(&stage, __func__, &five);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        hold(&held, &stage, "60s");
        if (write(pipe_fds[1], held.token, 40) != 40)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(pipe_fds[0], token, 40), 40);
    client_send(&stage.client, "LOCK a 10s WAIT 50s\n");
    struct client watcher;
    daemon_connect(&stage.daemon, &watcher);
    stage_wait_stats(&watcher, " waiting=1 ");
    process_kill(child);
    /* The wait of 50 s ends before the TTL of 60 s, so the killed client's hold must have been
     * released. */
    client_read_match(&stage.client, "OK .*");
    client_close(&watcher);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    stage_close(&stage);
}

static void expect_release_after(const char *test, void (*end)(struct client *))
{
    struct stage stage;
    struct held held;
    stage_open(&stage, test, &five);
    hold(&held, &stage, "60s");
    end(&held.client);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " holding=0 "), 1);
    stage_close(&stage);
}

static void quit(struct client *client)
{
    client_expect(client, "BYE", "QUIT");
    client_close(client);
}

static void half_close(struct client *client)
{
    client_half_close(client);
    client_expect_end(client);
    client_close(client);
}

TEST(closing_the_connection_releases_a_hold)
{
    expect_release_after(__func__, client_close);
}

/* A close with an unread reply resets the connection. On a unix socket, that is a clean end too. */
static void leave_unread(struct client *client)
{
    client_send(client, "PING\n");
    struct waiting waiting = waiting_for("the reply to arrive");
    while (!client_has_input(client))
        waiting_pause(&waiting);
    client_close(client);
}

TEST(closing_with_an_unread_reply_releases_a_hold)
{
    expect_release_after(__func__, leave_unread);
}

/* With LINGER, processes started by a killed client may still rely on the lock. */
TEST(closing_the_connection_does_not_release_a_lingering_hold)
{
    static void (*const ends[])(struct client *) = {client_close, leave_unread, half_close};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct stage stage;
        struct held held;
        stage_open(&stage, __func__, &five);
        daemon_connect(&stage.daemon, &held.client);
        hold_connected(&held, "2s", " LINGER");
        ends[i](&held.client);
        stage_wait_stats(&stage.client, " holding=0 ");
        stage_wait_key(&stage, "redlock:a", 0);
        ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
        stage_close(&stage);
    }
}

/* The client has half-closed and does not read its replies, which exceed the socket buffer. The
 * session therefore stays open, but the daemon must not extend its hold. */
TEST(a_lingering_hold_is_not_extended_after_a_half_close)
{
    enum { LISTINGS = 220 };
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    daemon_connect(&stage.daemon, &held.client);
    hold_connected(&held, "2s", " LINGER");
    for (unsigned i = 0; i < LISTINGS; i++)
        client_send(&held.client, "HELP\n");
    client_half_close(&held.client);
    stage_wait_stats(&stage.client, " holding=0 ");
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", "client="), 2);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    client_close(&held.client);
    stage_close(&stage);
}

/* A listing of a thousand HOLDs with long names would exceed the limit of unread replies, and so
 * would the warnings about these HOLDs while the client does not read. The daemon leaves lines out
 * instead of closing the connection. */
TEST(a_slow_reader_with_many_holds_is_not_dropped)
{
    enum { HOLDS = 1000 };
    struct stage stage;
    struct client client;
    char name[257];
    char line[320];
    stage_open(&stage, __func__, &five);
    daemon_connect(&stage.daemon, &client);
    memset(name, 'x', sizeof(name));
    name[256] = '\0';
    for (unsigned i = 0; i < HOLDS; i++) {
        snprintf(line, sizeof(line), "LOCK %.250s-%05u 60s HOLD", name, i);
        client_expect_match(&client, "OK .*", "%s", line);
    }
    ck_assert_uint_eq(client_count(&client, "LOCKS", "more="), 1);
    for (unsigned i = 0; i < 2; i++) {
        master_stop(&stage.masters[i]);
        stage_wait_nodes(&stage, "vote=no", i + 1);
    }
    for (unsigned i = 0; i < 2; i++)
        master_continue(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=yes", 5);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " holding=1000 "), 1);
    client_send(&client, "PING\n");
    ck_assert_str_eq(read_past_warnings(&client), "PONG");
    client_close(&client);
    stage_wait_stats(&stage.client, " holding=0 ");
    stage_close(&stage);
}

TEST(quit_releases_a_hold)
{
    expect_release_after(__func__, quit);
}

TEST(a_half_close_releases_a_hold)
{
    expect_release_after(__func__, half_close);
}

/* The network can cause a reset, and then the client may be alive and rely on the lock. */
TEST(a_reset_does_not_release_a_hold_before_its_deadline)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five_tcp);
    client_connect_tcp(&held.client, "127.0.0.1", stage.daemon.port);
    hold_connected(&held, "3s", "");
    client_reset(&held.client);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 5);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    stage_close(&stage);
}

/* The daemon reads the request, and notices the reset only when it writes the reply. */
TEST(a_reset_after_a_request_does_not_release_a_hold)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five_tcp);
    client_connect_tcp(&held.client, "127.0.0.1", stage.daemon.port);
    hold_connected(&held, "3s", "");
    kill(stage.daemon.pid, SIGSTOP);
    client_send(&held.client, "PING\n");
    client_reset(&held.client);
    kill(stage.daemon.pid, SIGCONT);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    stage_close(&stage);
}

/* The client lives and can still send, although a reply to it fails as if it had closed. */
TEST(shutting_down_reading_does_not_release_a_hold_before_its_deadline)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "3s");
    ck_assert_int_eq(shutdown(held.client.fd, SHUT_RD), 0);
    client_send(&held.client, "PING\n");
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 5);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    client_close(&held.client);
    stage_close(&stage);
}

TEST(killing_the_daemon_frees_a_hold_after_its_ttl)
{
    struct stage stage;
    struct held held;
    struct daemon second;
    struct client client;
    stage_open(&stage, __func__, &five);
    stage_start_daemon(&stage, &second,
                       &(struct daemon_plan){.name = "second", .other_host = true});
    daemon_connect(&second, &client);
    hold(&held, &stage, "2s");
    client_send(&client, "LOCK a 10s WAIT 60s\n");
    process_kill(stage.daemon.pid);
    client_read_match(&client, "OK .*");
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    client_close(&client);
    client_close(&held.client);
    client_close(&stage.client);
    daemon_stop(&second);
    stage_close_masters(&stage);
}

TEST(losing_a_majority_is_reported_before_the_validity_ends)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "6s");
    stage_stop_masters(&stage, 0, 2); /* before the first extension */
    expect_lost(&held, "noquorum");
    ck_assert_int_lt(waiting_clock_ms(), held.until_ms);
    stage_continue_masters(&stage, 0, 2);
    client_close(&held.client);
    stage_close(&stage);
}

/* The flushed masters answer, but have no vote for max_ttl, which is a minute: longer than the TTL.
 */
TEST(a_flushed_majority_loses_a_hold)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "6s");
    masters_run(stage.masters, 3, "FLUSHALL"); /* before the first extension */
    expect_lost(&held, "noquorum");
    ck_assert_int_lt(waiting_clock_ms(), held.until_ms);
    client_expect_match(&stage.client, "NOQUORUM [0-2]/5 .*a:flushed.*", "EXTEND a %s 6s",
                        held.token);
    client_close(&held.client);
    stage_close(&stage);
}

TEST(losing_a_minority_is_a_warning)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "2s");
    stage_wait_key(&stage, "redlock:a", 5);
    master_kill(&stage.masters[4]);
    char of_it[128];
    int len = snprintf(of_it, sizeof(of_it), "! WARN a %s e:", held.token);
    /* Warnings about other, slow masters may come first. */
    do
        ck_assert_msg(is_warning(client_read(&held.client)), "%s", held.client.line);
    while (strncmp(held.client.line, of_it, (size_t)len) != 0);
    stage_wait_count(&stage.client, "renewals", 3);
    expect_kept(&held);
    client_close(&held.client);
    stage_close(&stage);
}

TEST(a_resumed_daemon_reports_the_loss_before_other_replies)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "2s");
    process_stop(stage.daemon.pid);
    client_send(&held.client, "PING\n");
    struct waiting waiting = waiting_for("the validity to end");
    while (waiting_clock_ms() <= held.until_ms)
        waiting_pause(&waiting);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    expect_lost(&held, "overdue");
    client_read_match(&held.client, "PONG");
    client_close(&held.client);
    stage_close(&stage);
}

TEST(a_hold_whose_keys_are_deleted_is_lost)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "2s");
    masters_run(stage.masters, 5, "DEL redlock:a");
    expect_lost(&held, "gone");
    client_close(&held.client);
    stage_close(&stage);
}

TEST(an_unlock_on_another_connection_is_reported_as_lost)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "2s");
    client_expect(&stage.client, "OK", "UNLOCK a %s", held.token);
    client_lock(&stage.client, "a", "30s");
    expect_lost(&held, "gone");
    client_expect(&held.client, "PONG", "PING");
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " holding=0 "), 1);
    client_close(&held.client);
    stage_close(&stage);
}

TEST(a_hold_is_lost_after_max_hold)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = 3,
                   .over_unix = true,
                   .daemon = {.node_timeout_ms = 500, .locks = ", max_ttl: 2s, max_hold: 4s"}});
    hold(&held, &stage, "2s");
    expect_lost(&held, "limit");
    client_expect(&held.client, "PONG", "PING");
    client_close(&held.client);
    stage_close(&stage);
}

TEST(a_stopping_daemon_reports_the_loss_and_releases_nothing)
{
    struct stage stage;
    struct held held;
    stage_open(&stage, __func__, &five);
    hold(&held, &stage, "30s");
    stage_wait_key(&stage, "redlock:a", 5);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    expect_lost(&held, "shutdown");
    stage_wait_key(&stage, "redlock:a", 5);
    client_close(&held.client);
    stage_close_masters(&stage);
}
