/*
 * Clients that ask too much at once, locks that come too late, descriptors that run out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* Stop the first masters, and a request lingers until they go on. */
static const struct stage_plan lingering = {.masters = 5, .daemon = {.node_timeout_ms = 5000}};

/* --- too late --- */

static void let_pass(int64_t duration_ms)
{
    struct waiting waiting = waiting_for("a time to live to pass");
    int64_t until_ms = waiting_clock_ms() + duration_ms;
    while (waiting_clock_ms() < until_ms)
        waiting_pause(&waiting);
}

/* Send a request that lingers until more than `ttl_ms` have passed, and read its answer. */
static void answer_late(struct stage *stage, struct client *client, const char *request,
                        int64_t ttl_ms)
{
    stage_stop_masters(stage, 0, 2);
    client_send(client, request);
    stage_wait_under_way(stage);
    let_pass(ttl_ms);
    stage_continue_masters(stage, 0, 2);
    client_read_match(client, "LATE [0-9]+");
}

START_TEST(a_lock_granted_too_late_is_undone)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &lingering);
    daemon_connect(&stage.daemon, &client);
    answer_late(&stage, &client, "LOCK a 500ms\n", 500);
    stage_wait_no_keys(&stage);
    client_close(&client);
    stage_close(&stage);
}
END_TEST

START_TEST(an_extension_granted_too_late_leaves_the_lock_unchanged)
{
    struct stage stage;
    struct client client;
    char request[64];
    stage_open(&stage, __func__, &lingering);
    daemon_connect(&stage.daemon, &client);
    struct grant grant = client_lock(&client, "a", "60s");
    snprintf(request, sizeof(request), "EXTEND a %s 500ms\n", grant.token);
    answer_late(&stage, &client, request, 500);
    client_expect_match(&client, "HELD [0-9]{5}", "STATUS a");
    client_expect(&client, "OK", "UNLOCK a %s", grant.token);
    client_close(&client);
    stage_close(&stage);
}
END_TEST

/* --- too much --- */

/* Untagged requests are answered strictly in order: a line that is too long is one of them. */
START_TEST(a_line_too_long_is_answered_in_order)
{
    struct stage stage;
    struct client client;
    char line[3000];
    stage_open(&stage, __func__, &lingering);
    daemon_connect(&stage.daemon, &client);
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    stage_stop_masters(&stage, 0, 2);
    client_send(&client, "LOCK a 60s\n");
    client_send_bytes(&client, line, sizeof(line));
    client_send(&client, "PING\n");
    stage_wait_under_way(&stage);
    stage_continue_masters(&stage, 0, 2);
    client_read_match(&client, "OK .*");
    client_read_match(&client, "ERR line-too-long .*");
    client_read_match(&client, "PONG");
    client_close(&client);
    stage_close(&stage);
}
END_TEST

/* So many lines behind the LOCK that the daemon does not read on: the end is behind them all. */
START_TEST(a_lock_followed_by_much_input_is_undone_when_its_client_closes)
{
    struct stage stage;
    struct client client;
    enum { LINES = 3000 };
    static const char line[] = "STATUS b\n";
    char *lines = malloc(LINES * strlen(line) + 1);
    ck_assert_ptr_nonnull(lines);
    for (size_t i = 0; i < LINES; i++)
        memcpy(lines + i * strlen(line), line, sizeof(line));
    stage_open(&stage, __func__, &lingering);
    daemon_connect(&stage.daemon, &client);
    stage_stop_masters(&stage, 0, 2);
    client_send(&client, "LOCK a 60s\n");
    client_send(&client, lines);
    stage_wait_under_way(&stage);
    client_close(&client);
    stage_continue_masters(&stage, 0, 2);
    stage_wait_clients(&stage, 1);
    stage_wait_no_keys(&stage);
    free(lines);
    stage_close(&stage);
}
END_TEST

/* Clients that wait for a descriptor must not take the one that a link to a master gave up. */
START_TEST(a_master_reconnects_while_clients_use_every_descriptor)
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
    /* Places that are free again go to those who wait, all but what the masters need. */
    for (int i = 0; i < TOO_MANY / 4; i++)
        client_close(&clients[i]);
    master_restart(&stage.masters[0]);
    stage_wait_nodes(&stage, "state=up", 3);
    for (int i = TOO_MANY / 4; i < TOO_MANY; i++)
        client_close(&clients[i]);
    free(clients);
    stage_close(&stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("pressure");
    TCase *tests = sandbox_case("too late and too much");
    tcase_add_test(tests, a_lock_granted_too_late_is_undone);
    tcase_add_test(tests, an_extension_granted_too_late_leaves_the_lock_unchanged);
    tcase_add_test(tests, a_line_too_long_is_answered_in_order);
    tcase_add_test(tests, a_lock_followed_by_much_input_is_undone_when_its_client_closes);
    tcase_add_test(tests, a_master_reconnects_while_clients_use_every_descriptor);
    suite_add_tcase(suite, tests);
    return suite;
}
