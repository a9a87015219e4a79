/*
 * Clients that close or half-close before they got their replies.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* While three of the five masters are stopped, a LOCK is pending for at most this node_timeout. */
static const struct stage_plan slow_requests = {
    .masters = 5, .daemon = {.node_timeout_ms = 5000, .tcp_host = "127.0.0.1"}};

static const struct stage_plan briefly_slow_requests = {.masters = 5,
                                                        .daemon = {.node_timeout_ms = 1500}};

/* Opens a stage, stops three of its five masters, and sends the request, which locks "a", from a
 * new client. Returns when the two other masters have the key. */
static void open_with_pending_lock(struct stage *stage, const char *test,
                                   const struct stage_plan *plan, struct client *client,
                                   const char *request)
{
    stage_open(stage, test, plan);
    stage_stop_masters(stage, 2, 4);
    if (plan->daemon.tcp_host != NULL)
        client_connect_tcp(client, plan->daemon.tcp_host, stage->daemon.port);
    else
        daemon_connect(&stage->daemon, client);
    client_send(client, request);
    stage_wait_in_flight(stage);
    struct waiting waiting = waiting_for("the running masters to have the key");
    while (masters_with(stage->masters, 2, "redlock:a") < 2)
        waiting_pause(&waiting);
}

/* Resumes the masters and waits until no key is left on any of them. */
static void close_without_keys(struct stage *stage)
{
    stage_wait_clients(stage, 1);
    stage_continue_masters(stage, 2, 4);
    stage_wait_no_keys(stage);
    stage_wait_nodes(stage, "vote=yes", 5);
    client_expect(&stage->client, "FREE", "STATUS a");
    stage_close(stage);
}

TEST(a_pending_lock_of_a_closed_client_is_undone)
{
    struct stage stage;
    struct client client;
    open_with_pending_lock(&stage, __func__, &slow_requests, &client, "LOCK a 60s\n");
    client_close(&client);
    close_without_keys(&stage);
}

TEST(a_pending_lock_of_a_reset_client_is_undone)
{
    struct stage stage;
    struct client client;
    open_with_pending_lock(&stage, __func__, &slow_requests, &client, "LOCK a 60s\n");
    client_reset(&client);
    close_without_keys(&stage);
}

TEST(a_pending_lock_of_a_client_that_quit_is_undone)
{
    struct stage stage;
    struct client client;
    open_with_pending_lock(&stage, __func__, &slow_requests, &client, "#t LOCK a 60s\n");
    client_expect(&client, "BYE", "QUIT");
    client_expect_end(&client);
    client_close(&client);
    close_without_keys(&stage);
}

TEST(a_pending_lock_at_a_half_close_is_undone_and_answered)
{
    struct stage stage;
    struct client client;
    open_with_pending_lock(&stage, __func__, &slow_requests, &client, "LOCK a 60s\n");
    client_half_close(&client);
    client_read_match(&client, "ERR bad-arguments .*");
    client_expect_end(&client);
    client_close(&client);
    close_without_keys(&stage);
}

/* The test stops the daemon until the LOCK and the half-close have arrived, so the daemon reads
 * both in one pass. The masters might vote before the daemon notices the half-close, so the test
 * makes many attempts. */
TEST(a_lock_sent_with_a_half_close_is_never_granted)
{
    struct stage stage;
    struct client client;
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    for (unsigned i = 0; i < 20; i++) {
        client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
        client_expect(&client, "PONG", "PING");
        kill(stage.daemon.pid, SIGSTOP);
        client_send(&client, "LOCK a 60s\n");
        client_half_close(&client);
        kill(stage.daemon.pid, SIGCONT);
        client_read_match(&client, "ERR bad-arguments .*");
        client_expect_end(&client);
        client_close(&client);
    }
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(only_the_first_of_many_locks_before_a_half_close_starts_a_round)
{
    enum { LOCKS = 200 };
    char lines[LOCKS * 16];
    struct stage stage;
    struct client client;
    size_t len = 0;
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_expect(&client, "PONG", "PING");
    kill(stage.daemon.pid, SIGSTOP);
    for (unsigned i = 0; i < LOCKS; i++)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len, "LOCK a%u 60s\n", i);
    client_send(&client, lines);
    client_half_close(&client);
    kill(stage.daemon.pid, SIGCONT);
    for (unsigned i = 0; i < LOCKS; i++)
        client_read_match(&client, "ERR bad-arguments .*");
    client_expect_end(&client);
    client_close(&client);
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "STATS\n");
    /* Only the first LOCK has started a round; the others waited for its reply. */
    client_read_match(&client, "subject=daemon .* acquire_rounds=1 .*");
    client_close(&client);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(locks_that_fail_after_their_client_closed_leave_no_keys)
{
    struct stage stage;
    struct client client;
    /* The daemon does not start the second LOCK before the first one has its reply. */
    open_with_pending_lock(&stage, __func__, &briefly_slow_requests, &client,
                           "LOCK a 60s\nLOCK b 60s\n");
    client_close(&client);
    close_without_keys(&stage);
}

TEST(a_half_closed_client_gets_every_reply)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3, .over_unix = true});
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "PING\nSTATUS x\n");
    client_half_close(&client);
    client_read_match(&client, "PONG");
    client_read_match(&client, "FREE");
    client_expect_end(&client);
    client_close(&client);
    stage_close(&stage);
}

TEST(a_half_closed_client_gets_the_reply_to_its_unlock)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &slow_requests);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    stage_stop_masters(&stage, 2, 4);
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "UNLOCK a ");
    client_send(&client, grant.token);
    client_send(&client, "\n");
    client_half_close(&client);
    stage_wait_in_flight(&stage);
    stage_continue_masters(&stage, 2, 4);
    client_read_match(&client, "OK");
    client_expect_end(&client);
    client_close(&client);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(an_unlock_completes_after_its_client_closed)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &slow_requests);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    stage_stop_masters(&stage, 2, 4);
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "UNLOCK a ");
    client_send(&client, grant.token);
    client_send(&client, "\n");
    stage_wait_in_flight(&stage);
    client_close(&client);
    stage_wait_clients(&stage, 1);
    stage_continue_masters(&stage, 2, 4);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

static void end_receiving(struct client *client)
{
    ck_assert_int_eq(shutdown(client->fd, SHUT_RD), 0);
}

/* Untagged requests are carried out one after the other. The daemon has all of them when it cannot
 * send the first replies. */
TEST_LOOP(requests_before_an_end_are_carried_out_although_replies_fail, 0, 4)
{
    static const struct {
        bool tcp;
        void (*end)(struct client *client);
    } ends[] = {
        {false, client_close}, {true, client_close}, {true, client_reset}, {false, end_receiving}};
    struct stage stage;
    struct client client;
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    if (ends[_i].tcp)
        client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    else
        daemon_connect(&stage.daemon, &client);
    struct grant first = client_lock(&client, "a", "60s");
    struct grant second = client_lock(&client, "b", "60s");
    ck_assert_int_eq(strncmp(client_ask(&client, "LOCK c 60s HOLD LINGER"), "OK ", 3), 0);
    process_stop(stage.daemon.pid);
    char lines[200];
    snprintf(lines, sizeof(lines), "PING\nUNLOCK a %s\nUNLOCK b %s\nQUIT\n", first.token,
             second.token);
    client_send(&client, lines);
    ends[_i].end(&client);
    kill(stage.daemon.pid, SIGCONT);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

/* Sends a request whose reply the client does not read. If the client ends then, its kernel resets
 * the connection. */
static void leave_reply_unread(struct client *client)
{
    client_send(client, "PING\n");
    struct waiting waiting = waiting_for("a reply that is left unread");
    while (!client_has_input(client))
        waiting_pause(&waiting);
}

/* Many requests take many passes of the daemon. Before the last of them, the HOLD is released. */
TEST(a_hold_of_a_killed_client_is_released_before_its_requests_are_carried_out)
{
    enum { UNLOCKS = 1000 };
    struct stage stage;
    struct client client;
    char lines[UNLOCKS * 64];
    size_t len = 0;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3, .over_unix = true});
    daemon_connect(&stage.daemon, &client);
    client_lock(&client, "a", "60s HOLD");
    struct grant last = client_lock(&client, "last", "60s");
    client_send(&stage.client, "#a LOCK a 60s WAIT 1h\n#last LOCK last 60s WAIT 1h\n");
    struct client other;
    daemon_connect(&stage.daemon, &other);
    stage_wait_stats(&other, " waiting=2 ");
    leave_reply_unread(&client);
    process_stop(stage.daemon.pid);
    for (unsigned i = 0; i < UNLOCKS; i++)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len, "UNLOCK %s %s\n",
                                i < UNLOCKS - 1 ? "x" : "last", last.token);
    client_send(&client, lines);
    client_close(&client);
    kill(stage.daemon.pid, SIGCONT);
    client_read_match(&stage.client, "#a OK .*");
    client_read_match(&stage.client, "#last OK .*");
    client_close(&other);
    stage_close(&stage);
}

/* The connection stays until the client has read its replies, but the daemon extends the lock no
 * more, and says so at once. */
TEST(a_half_closed_client_with_unread_replies_has_no_hold)
{
    enum { LISTINGS = 150 }; /* more than the kernel takes, and less than the daemon's limit */
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = 3, .over_unix = true, .daemon = {.locks = ", max_ttl: 5m"}});
    daemon_connect(&stage.daemon, &client);
    client_lock(&client, "a", "5m HOLD LINGER");
    for (unsigned i = 0; i < LISTINGS; i++)
        client_send(&client, "HELP\n");
    client_half_close(&client);
    struct waiting waiting = waiting_for_release("the lock to be listed without HOLD");
    while (client_count(&stage.client, "LOCKS a", " hold=no ") == 0)
        waiting_pause(&waiting);
    client_close(&client);
    stage_close(&stage);
}

/* Queries whose replies cannot be sent would only cost time. */
TEST(queries_of_a_lost_client_are_not_carried_out)
{
    enum { QUERIES = 3000 };
    struct stage stage;
    struct client client;
    char lines[QUERIES * 16 + 100];
    size_t len = 0;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3, .over_unix = true});
    daemon_connect(&stage.daemon, &client);
    struct grant grant = client_lock(&client, "a", "60s");
    leave_reply_unread(&client);
    process_stop(stage.daemon.pid);
    for (unsigned i = 0; i < QUERIES; i++)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len, "STATUS x\n");
    snprintf(lines + len, sizeof(lines) - len, "UNLOCK a %s\n", grant.token);
    client_send(&client, lines);
    client_close(&client);
    kill(stage.daemon.pid, SIGCONT);
    stage_wait_key(&stage, "redlock:a", 0);
    client_send(&stage.client, "STATS\n");
    struct waiting waiting = waiting_for("the row of STATUS");
    while (strncmp(client_read(&stage.client), "subject=status ", 15) != 0)
        waiting_pause(&waiting);
    const char *free_at = strstr(stage.client.line, " free=");
    unsigned carried_out = QUERIES;
    ck_assert(free_at != NULL && sscanf(free_at, " free=%u", &carried_out) == 1);
    ck_assert_uint_lt(carried_out, QUERIES / 2);
    stage_close(&stage);
}

/* With so many pending lines, the daemon does not read from the connection, and has to notice the
 * reset without reading. */
TEST(a_reset_waiter_with_unread_input_leaves_the_queue)
{
    struct stage stage;
    struct client client;
    enum { LINES = 2000 };
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send(&client, "LOCK a 60s WAIT 1h\n");
    for (unsigned i = 0; i < LINES; i++)
        client_send(&client, "STATUS bbbb\n");
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "PONG", "PING");
    client_reset(&client);
    stage_wait_stats(&stage.client, " waiting=0 ");
    stage_wait_clients(&stage, 1);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

/* While the daemon is stopped, a client sends part of a line or a LOCK that has to wait, and resets
 * the connection. libevent reports this like input alone. */
TEST_LOOP(a_reset_together_with_input_is_noticed, 0, 2)
{
    static const char *const inputs[] = {"LOC", "LOCK a 60s WAIT 1h\n"};
    struct stage stage;
    struct client client;
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_expect(&client, "PONG", "PING");
    process_stop(stage.daemon.pid);
    client_send(&client, inputs[_i]);
    client_reset(&client);
    kill(stage.daemon.pid, SIGCONT);
    stage_wait_clients(&stage, 1);
    stage_wait_stats(&stage.client, " waiting=0 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

/* A line without an LF is not a request. */
TEST(an_unfinished_line_is_not_executed)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &(struct stage_plan){.masters = 3, .over_unix = true});
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "PING\nLOCK a 60s");
    client_half_close(&client);
    client_read_match(&client, "PONG");
    client_expect_end(&client);
    client_close(&client);
    ck_assert_int_eq(masters_keys(stage.masters, 3), 0);
    stage_close(&stage);
}
