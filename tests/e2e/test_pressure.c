/*
 * The daemon under pressure: masters that answer too late, clients that send too much, and no free
 * descriptors.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* While the first three of the five masters are stopped, a request is pending for at most this
 * node_timeout. */
static const struct stage_plan slow_requests = {.masters = 5, .daemon = {.node_timeout_ms = 5000}};

/* --- late grants --- */

static void wait_ms(int64_t duration_ms)
{
    struct waiting waiting = waiting_for("the TTL to pass");
    int64_t until_ms = waiting_clock_ms() + duration_ms;
    while (waiting_clock_ms() < until_ms)
        waiting_pause(&waiting);
}

/* Sends a request that is pending until more than `ttl_ms` have passed, and reads its reply. */
static void expect_late_reply(struct stage *stage, struct client *client, const char *request,
                              int64_t ttl_ms)
{
    stage_stop_masters(stage, 0, 2);
    client_send(client, request);
    stage_wait_in_flight(stage);
    wait_ms(ttl_ms);
    stage_continue_masters(stage, 0, 2);
    client_read_match(client, "LATE [0-9]+");
}

TEST(a_lock_granted_too_late_is_undone)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &slow_requests);
    daemon_connect(&stage.daemon, &client);
    expect_late_reply(&stage, &client, "LOCK a 500ms\n", 500);
    stage_wait_no_keys(&stage);
    client_close(&client);
    stage_close(&stage);
}

TEST(an_extension_granted_too_late_leaves_the_lock_unchanged)
{
    struct stage stage;
    struct client client;
    char request[64];
    stage_open(&stage, __func__, &slow_requests);
    daemon_connect(&stage.daemon, &client);
    struct grant grant = client_lock(&client, "a", "60s");
    snprintf(request, sizeof(request), "EXTEND a %s 500ms\n", grant.token);
    expect_late_reply(&stage, &client, request, 500);
    client_expect_match(&client, "HELD [0-9]{5}", "STATUS a");
    client_expect(&client, "OK", "UNLOCK a %s", grant.token);
    client_close(&client);
    stage_close(&stage);
}

/* --- a slow daemon --- */

/* The masters answer while the daemon is stopped for longer than node_timeout. The daemon then has
 * to read these answers before it judges the masters. */
TEST(a_daemon_that_was_stopped_suspects_no_master)
{
    enum { NODE_TIMEOUT_MS = 2000 };
    const struct stage_plan plan = {.masters = 3, .daemon = {.node_timeout_ms = NODE_TIMEOUT_MS}};
    struct stage stage;
    struct client holder;
    stage_open(&stage, __func__, &plan);
    daemon_connect(&stage.daemon, &holder);
    client_lock(&holder, "held", "60s HOLD");
    stage_stop_masters(&stage, 0, 2);
    client_send(&holder, "LOCK a 60s WAIT 60s\n");
    stage_wait_in_flight(&stage);
    process_stop(stage.daemon.pid);
    stage_continue_masters(&stage, 0, 2);
    wait_ms(NODE_TIMEOUT_MS + 500);
    kill(stage.daemon.pid, SIGCONT);
    client_read_match(&holder, "OK .*");
    client_expect(&holder, "PONG", "PING");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "node_suspect"), 0);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "hold_lost"), 0);
    client_close(&holder);
    stage_close(&stage);
}

/* --- too much input --- */

/* Untagged requests are answered strictly in order, including a line that is too long. */
TEST(a_line_too_long_is_answered_in_order)
{
    struct stage stage;
    struct client client;
    char line[3000];
    stage_open(&stage, __func__, &slow_requests);
    daemon_connect(&stage.daemon, &client);
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    stage_stop_masters(&stage, 0, 2);
    client_send(&client, "LOCK a 60s\n");
    client_send_bytes(&client, line, sizeof(line));
    client_send(&client, "PING\n");
    stage_wait_in_flight(&stage);
    stage_continue_masters(&stage, 0, 2);
    client_read_match(&client, "OK .*");
    client_read_match(&client, "ERR line-too-long .*");
    client_read_match(&client, "PONG");
    client_close(&client);
    stage_close(&stage);
}

/* With so many pending lines, the daemon does not read from the connection, and has to notice its
 * end without reading. */
TEST(a_lock_followed_by_much_input_is_undone_when_its_client_closes)
{
    struct stage stage;
    struct client client;
    enum { LINES = 3000 };
    static const char line[] = "STATUS b\n";
    char *lines = malloc(LINES * strlen(line) + 1);
    ck_assert_ptr_nonnull(lines);
    for (size_t i = 0; i < LINES; i++)
        memcpy(lines + i * strlen(line), line, sizeof(line));
    stage_open(&stage, __func__, &slow_requests);
    daemon_connect(&stage.daemon, &client);
    stage_stop_masters(&stage, 0, 2);
    client_send(&client, "LOCK a 60s\n");
    client_send(&client, lines);
    stage_wait_in_flight(&stage);
    client_close(&client);
    stage_continue_masters(&stage, 0, 2);
    stage_wait_clients(&stage, 1);
    stage_wait_no_keys(&stage);
    free(lines);
    stage_close(&stage);
}

/* Clients in the backlog must not take the descriptor that a lost link has released. */
TEST(a_master_reconnects_while_clients_use_every_descriptor)
{
    enum { OPEN_FILES = 40, TOO_MANY = 60 };
    const struct stage_plan plan = {.masters = 3,
                                    .daemon = {.tcp_host = "127.0.0.1", .open_files = OPEN_FILES}};
    struct stage stage;
    struct client *clients = calloc(TOO_MANY, sizeof(*clients));
    ck_assert_ptr_nonnull(clients);
    stage_open(&stage, __func__, &plan);
    for (int i = 0; i < TOO_MANY; i++)
        client_connect_tcp(&clients[i], "127.0.0.1", stage.daemon.port);
    daemon_wait_log(&stage.daemon, "clients_limited", "possible");
    master_kill(&stage.masters[0]);
    stage_wait_nodes(&stage, "state=up", 2);
    /* Released descriptors go to clients in the backlog, except those reserved for masters. */
    for (int i = 0; i < TOO_MANY / 4; i++)
        client_close(&clients[i]);
    master_restart(&stage.masters[0]);
    stage_wait_nodes(&stage, "state=up", 3);
    for (int i = TOO_MANY / 4; i < TOO_MANY; i++)
        client_close(&clients[i]);
    free(clients);
    stage_close(&stage);
}
