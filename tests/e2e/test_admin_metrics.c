/*
 * What the admin listener reports: the metrics, whether the daemon is ready, and the status page.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/admin_fixture.h"
#include "tests/e2e/command.h"
#include "tests/e2e/http.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/secrets.h"
#include "tests/runner.h"

/* --- metrics --- */

TEST(requests_and_outcomes_are_counted)
{
    struct stage stage;
    admin_open(&stage, __func__, NULL, "");
    double status = admin_sample("redlockd_requests_total{verb=\"status\"}");
    struct grant grant = client_lock(&stage.client, "a", "10s");
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 10s");
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    client_expect_match(&stage.client, "OK .*", "EXTEND a %s 10s", grant.token);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_expect(&stage.client, "GONE", "UNLOCK a %s", grant.token);
    client_expect_match(&stage.client, "ERR bad-time .*", "LOCK a xyz");
    client_expect_match(&stage.client, "ERR unknown-verb .*", "NONSENSE");
    admin_wait_sample("redlockd_request_errors_total{code=\"unknown-verb\"}", 1);
    ck_assert_double_eq(admin_sample("redlockd_request_errors_total{code=\"bad-time\"}"), 1);
    ck_assert_double_eq(admin_sample("redlockd_requests_total{verb=\"lock\"}"), 2);
    ck_assert_double_eq(admin_sample("redlockd_requests_total{verb=\"unlock\"}"), 2);
    ck_assert_double_eq(admin_sample("redlockd_requests_total{verb=\"extend\"}"), 1);
    ck_assert_double_eq(admin_sample("redlockd_requests_total{verb=\"status\"}"), status + 1);
    static const char *const outcomes[] = {
        "redlockd_outcomes_total{verb=\"lock\",outcome=\"ok\"}",
        "redlockd_outcomes_total{verb=\"lock\",outcome=\"held\"}",
        "redlockd_outcomes_total{verb=\"unlock\",outcome=\"ok\"}",
        "redlockd_outcomes_total{verb=\"unlock\",outcome=\"gone\"}",
        "redlockd_outcomes_total{verb=\"extend\",outcome=\"ok\"}",
        "redlockd_outcomes_total{verb=\"status\",outcome=\"held\"}",
        "redlockd_lock_duration_seconds_count",
        "redlockd_lock_round_duration_seconds_count",
    };
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
        ck_assert_msg(admin_sample(outcomes[i]) == 1, "%s is %g", outcomes[i],
                      admin_sample(outcomes[i]));
    ck_assert_double_eq(admin_sample("redlockd_queue_duration_seconds_count"), 0);
    ck_assert_double_ge(admin_sample("redlockd_node_round_trip_seconds_count{node=\"c\"}"), 6);
    ck_assert_double_gt(admin_sample("redlockd_loop_lag_seconds_count"), 0);
    ck_assert_double_gt(admin_sample("process_resident_memory_bytes"), 1e6);
    stage_close(&stage);
}

TEST(waiters_and_holds_are_counted)
{
    struct stage stage;
    struct client waiter;
    admin_open(&stage, __func__, NULL, "");
    daemon_connect(&stage.daemon, &waiter);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_send(&waiter, "LOCK a 60s WAIT 60s HOLD\n");
    admin_wait_sample("redlockd_waiters", 1);
    ck_assert_double_eq(admin_sample("redlockd_resources_waited_for"), 1);
    admin_wait_sample("redlockd_clients", 2);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_read_match(&waiter, "OK .*");
    admin_wait_sample("redlockd_waiters", 0);
    ck_assert_double_eq(admin_sample("redlockd_resources_waited_for"), 0);
    ck_assert_double_eq(admin_sample("redlockd_holds"), 1);
    ck_assert_double_eq(admin_sample("redlockd_handovers_total"), 1);
    ck_assert_double_eq(admin_sample("redlockd_queue_duration_seconds_count"), 1);
    client_close(&waiter);
    admin_wait_sample("redlockd_holds", 0);
    stage_close(&stage);
}

TEST(clients_over_the_limit_are_counted)
{
    struct stage stage;
    struct client second;
    admin_open(&stage, __func__, NULL, "limits: {clients: 1}\n");
    daemon_connect(&stage.daemon, &second);
    client_read_match(&second, "LIMIT clients");
    client_close(&second);
    admin_wait_sample("redlockd_connections_rejected_total{limit=\"clients\"}", 1);
    ck_assert_double_eq(
        admin_sample("redlockd_connections_rejected_total{limit=\"clients_per_address\"}"), 0);
    ck_assert_double_eq(admin_sample("redlockd_clients_max"), 1);
    stage_close(&stage);
}

TEST(limits_are_counted_by_their_word)
{
    struct stage stage;
    admin_open(&stage, __func__, NULL, "limits: {waiters: 1}\n");
    client_lock(&stage.client, "a", "10s");
    client_send(&stage.client, "#1 LOCK a 10s WAIT 60s\n");
    client_expect(&stage.client, "#2 LIMIT waiters", "#2 LOCK a 10s WAIT 60s");
    admin_wait_sample("redlockd_limits_total{limit=\"waiters\"}", 1);
    ck_assert_double_eq(admin_sample("redlockd_limits_total{limit=\"busy\"}"), 0);
    stage_close(&stage);
}

TEST(denied_requests_and_wrong_secrets_are_counted)
{
    struct stage stage;
    struct client client;
    struct secrets secrets;
    char admin[64];
    admin_port = port_free();
    snprintf(admin, sizeof(admin), "admin: http://127.0.0.1:%d\n", admin_port);
    secrets_open(&secrets, admin);
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3,
                                    .daemon = {.tcp_host = "127.0.0.1", .yaml = secrets.yaml}});
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_expect_match(&client, "DENIED .*", "LOCK a 1s");
    client_expect_match(&client, "DENIED .*", "STATUS a");
    client_expect_match(&client, "DENIED .*", "AUTH nobodys");
    client_close(&client);
    admin_wait_sample("redlockd_requests_denied_total", 2);
    admin_wait_sample("redlockd_secrets_refused_total", 1);
    ck_assert_double_eq(admin_sample("redlockd_connections_unauthenticated_total{reason=\"late\"}"),
                        0);
    stage_close(&stage);
    secrets_close(&secrets);
}

TEST(a_refused_reload_shows_until_one_succeeds)
{
    struct stage stage;
    admin_open(&stage, __func__, NULL, "");
    char *text = sandbox_read(stage.daemon.config);
    ck_assert_double_eq(admin_sample("redlockd_reload_refused"), 0);
    sandbox_write(stage.daemon.config, "nodes: none\n");
    kill(stage.daemon.pid, SIGHUP);
    admin_wait_sample("redlockd_reload_refused", 1);
    sandbox_write(stage.daemon.config, text);
    free(text);
    kill(stage.daemon.pid, SIGHUP);
    admin_wait_sample("redlockd_reload_refused", 0);
    stage_close(&stage);
}

TEST(clients_over_the_limit_per_address_are_counted_separately)
{
    struct stage stage;
    struct client second;
    admin_open(&stage, __func__, NULL, "limits: {clients_per_address: 1}\n");
    daemon_connect(&stage.daemon, &second);
    client_read_match(&second, "LIMIT clients");
    client_close(&second);
    admin_wait_sample("redlockd_connections_rejected_total{limit=\"clients_per_address\"}", 1);
    ck_assert_double_eq(admin_sample("redlockd_connections_rejected_total{limit=\"clients\"}"), 0);
    daemon_wait_log(&stage.daemon, " info client_refused ", "limit=clients_per_address");
    stage_close(&stage);
}

TEST(metrics_are_well_formed_with_and_without_a_quorum)
{
    struct stage stage;
    struct command command;
    char file[SANDBOX_FILE];
    char check[4 * SANDBOX_FILE];
    admin_open(&stage, __func__, NULL, "");
    client_lock(&stage.client, "a", "10s");
    for (unsigned i = 0; i < 2; i++) {
        char *metrics = http_get(admin_port, "/metrics", 200);
        sandbox_write(sandbox_path(&stage.sandbox, "metrics", file), metrics);
        free(metrics);
        snprintf(check, sizeof(check),
                 "python3 tests/metrics.py <%s && if command -v promtool >/dev/null; then "
                 "promtool check metrics <%s; fi",
                 file, file);
        command_run(&command, &stage.sandbox, (const char *[]){"sh", "-c", check, NULL});
        ck_assert_msg(command.status == 0, "%s%s", command.output, command.errors);
        command_free(&command);
        for (unsigned k = 0; k < 3 && i == 0; k++)
            master_kill(&stage.masters[k]);
        client_expect_match(&stage.client, "NOQUORUM .*|OK .*", "LOCK b 10s");
    }
    stage_close(&stage);
}

/* --- states --- */

TEST(readyz_follows_the_votes_of_the_masters)
{
    /* A restarted master has no vote for max_ttl, so max_ttl is short here. */
    const struct stage_plan plan = {.over_unix = true, .daemon = {.locks = ", max_ttl: 1s"}};
    struct stage stage;
    admin_open(&stage, __func__, &plan, "");
    master_kill(&stage.masters[0]);
    admin_wait_page("Locks can be granted, but 1 master has no vote");
    admin_wait_sample("redlockd_node_vote{node=\"a\"}", 0);
    free(http_get(admin_port, "/readyz", 200));
    master_kill(&stage.masters[1]);
    admin_wait_page("If one more fails, no lock can be granted.");
    master_kill(&stage.masters[2]);
    stage_wait_nodes(&stage, "vote=no", 3);
    char *ready = http_get(admin_port, "/readyz", 503);
    ck_assert_int_eq(strncmp(ready, "not ready voting=2/5 need=3\n", 28), 0);
    ck_assert_ptr_nonnull(strstr(ready, "node=b vote=no reason="));
    ck_assert_ptr_null(strstr(ready, "node=e"));
    free(ready);
    free(http_get(admin_port, "/healthz", 200));
    admin_wait_page("<h1>No locks can be granted</h1>");
    admin_wait_page("Only 2 of 5 masters vote");
    admin_wait_sample("redlockd_ready", 0);
    ck_assert_double_eq(admin_sample("redlockd_nodes_voting"), 2);
    client_expect_match(&stage.client, "NOQUORUM .*", "LOCK a 1s");
    ck_assert_double_gt(admin_sample("redlockd_node_without_vote_seconds{node=\"a\"}"), 0);
    for (unsigned i = 0; i < 3; i++)
        master_restart(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=yes", 5);
    free(http_get(admin_port, "/readyz", 200));
    admin_wait_page("All 5 masters vote");
    admin_wait_sample("redlockd_ready", 1);
    admin_wait_sample("redlockd_node_without_vote_seconds{node=\"a\"}", 0);
    stage_close(&stage);
}

/* The ACL allows the keys of the guard, but not those of locks. */
TEST(a_daemon_whose_masters_allow_another_prefix_is_not_ready)
{
    struct stage stage;
    admin_open(&stage, __func__, NULL, "");
    masters_run(stage.masters, 5, "ACL SETUSER default resetkeys ~other:* ~redlockd:*");
    stage_wait_nodes(&stage, "vote=no reason=noperm", 5);
    daemon_wait_log(&stage.daemon, "node_without_vote node=a", "reason=noperm");
    char *ready = http_get(admin_port, "/readyz", 503);
    ck_assert_ptr_nonnull(strstr(ready, "node=a vote=no reason=noperm"));
    free(ready);
    client_expect(&stage.client, "NOQUORUM 0/5 need=3 a:noperm b:noperm c:noperm d:noperm e:noperm",
                  "LOCK a 1s");
    masters_run(stage.masters, 5, "ACL SETUSER default allkeys");
    stage_wait_nodes(&stage, "vote=yes", 5);
    free(http_get(admin_port, "/readyz", 200));
    client_lock(&stage.client, "a", "1s");
    stage_close(&stage);
}

TEST(a_stopping_daemon_is_not_ready)
{
    const struct stage_plan plan = {.daemon = {.node_timeout_ms = 5000}};
    struct stage stage;
    admin_open(&stage, __func__, &plan, "");
    /* The stopped masters keep this LOCK in flight. After SIGTERM the daemon waits for it, so the
     * test can read /readyz before the daemon ends. */
    stage_stop_masters(&stage, 0, 4);
    client_send(&stage.client, "LOCK a 10s\n");
    struct client other;
    daemon_connect(&stage.daemon, &other);
    client_wait_count(&other, "CLIENTS", "under_way=1", 1);
    /* Admin connections in any state must not delay the end of the daemon. */
    int silent = http_open(admin_port);
    int half = http_open(admin_port);
    http_send(half, "GET /metrics HTTP/1.1\r\n");
    int unread = http_open(admin_port);
    http_send(unread, "GET /metrics HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(kill(stage.daemon.pid, SIGTERM), 0);
    daemon_wait_log(&stage.daemon, "stopping", "SIGTERM");
    char *ready = http_get(admin_port, "/readyz", 503);
    ck_assert_int_eq(strncmp(ready, "stopping ", 9), 0);
    free(ready);
    daemon_check_end(&stage.daemon);
    close(silent);
    close(half);
    close(unread);
    stage_continue_masters(&stage, 0, 4);
    client_close(&other);
    stage_close(&stage);
}

TEST(lost_holds_are_shown_by_name_and_never_by_token)
{
    static const char *const paths[] = {"/", "/live", "/status.json", "/metrics", "/readyz"};
    struct stage stage;
    admin_open(&stage, __func__, NULL, "");
    client_expect(&stage.client, "OK", "NAME job.7");
    client_expect_match(&stage.client, "OK .*", "LOCK <b>&amp;\"x\"</b> 3s HOLD");
    for (unsigned i = 0; i < 3; i++)
        master_kill(&stage.masters[i]);
    do {
        client_read(&stage.client);
    } while (strncmp(stage.client.line, "! WARN", 6) == 0);
    ck_assert_int_eq(strncmp(stage.client.line, "! LOST", 6), 0);
    admin_wait_page("&lt;b&gt;&amp;amp;&quot;x&quot;&lt;/b&gt;");
    admin_wait_page("too few masters voted for its extension");
    admin_wait_page("job.7");
    admin_wait_sample("redlockd_holds_lost_total{reason=\"noquorum\"}", 1);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char *body = http_get(admin_port, paths[i], strcmp(paths[i], "/readyz") == 0 ? 503 : 200);
        ck_assert_msg(!daemon_shows_token(body), "%s", body);
        free(body);
    }
    stage_close(&stage);
}

TEST(the_longest_queues_come_first)
{
    struct stage stage;
    struct client waiters[6];
    char line[64];
    admin_open(&stage, __func__, NULL, "");
    client_lock(&stage.client, "few", "60s");
    client_lock(&stage.client, "<i>many", "60s");
    for (unsigned i = 0; i < 6; i++) {
        daemon_connect(&stage.daemon, &waiters[i]);
        snprintf(line, sizeof(line), "LOCK %s 60s WAIT 60s\n", i < 1 ? "few" : "<i>many");
        client_send(&waiters[i], line);
    }
    admin_wait_sample("redlockd_waiters", 6);
    admin_wait_page("for 2 resources");
    char *page = http_get(admin_port, "/live", 200);
    const char *many = strstr(page, "&lt;i&gt;many</td>");
    const char *few = strstr(page, ">few</td>");
    ck_assert_msg(many != NULL && few != NULL && many < few, "%s", page);
    ck_assert_ptr_null(strstr(page, "<i>"));
    free(page);
    for (unsigned i = 0; i < 6; i++)
        client_close(&waiters[i]);
    admin_wait_page("No clients are waiting.");
    stage_close(&stage);
}
