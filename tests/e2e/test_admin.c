/*
 * The admin listener: its pages, the requests that it refuses, and its limits. Locks are granted
 * even when its limits are reached.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/e2e/command.h"
#include "tests/e2e/http.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static int port; /* port of the admin listener */

/* Opens five masters and a daemon with an admin listener and these further YAML lines. */
static void open_admin(struct stage *stage, const char *test, const struct stage_plan *plan,
                       const char *yaml)
{
    static char text[512];
    struct stage_plan with = plan != NULL ? *plan : (struct stage_plan){.over_unix = true};
    port = port_free();
    snprintf(text, sizeof(text), "admin: http://127.0.0.1:%d\nlog: {level: debug}\n%s", port, yaml);
    with.masters = 5;
    with.daemon.yaml = text;
    stage_open(stage, test, &with);
}

/* --- pages --- */

static void check_headers(const struct http_response *answer)
{
    ck_assert_str_eq(http_header(answer, "Connection"), "close");
    ck_assert_str_eq(http_header(answer, "Cache-Control"), "no-store");
    ck_assert_str_eq(http_header(answer, "X-Content-Type-Options"), "nosniff");
    ck_assert_ptr_nonnull(
        strstr(http_header(answer, "Content-Security-Policy"), "default-src 'none'"));
    ck_assert_int_gt(atoi(http_header(answer, "Content-Length")), 0);
}

START_TEST(each_path_is_served_and_head_has_no_body)
{
    static const struct {
        const char *path;
        const char *type;
        const char *words;
    } paths[] = {
        {"/", "text/html; charset=utf-8", "<h1>Locks can be granted</h1>"},
        {"/live", "text/html; charset=utf-8", "<main class=ok"},
        {"/?a=b", "text/html; charset=utf-8", "<!doctype html>"},
        {"/status.json", "application/json", "\"ready\":true"},
        {"/metrics", "text/plain; version=0.0.4; charset=utf-8", "redlockd_ready 1\n"},
        {"/healthz", "text/plain; charset=utf-8", "ok\n"},
        {"/readyz", "text/plain; charset=utf-8", "ready voting=5/5 need=3\n"},
    };
    struct stage stage;
    struct http_response answer;
    open_admin(&stage, __func__, NULL, "");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        http_request(port, "GET", paths[i].path, &answer);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(http_header(&answer, "Content-Type"), paths[i].type);
        ck_assert_msg(strstr(answer.body, paths[i].words) != NULL, "%s", answer.text);
        ck_assert_uint_eq(answer.len, (size_t)atoi(http_header(&answer, "Content-Length")));
        check_headers(&answer);
        http_free(&answer);
        http_request(port, "HEAD", paths[i].path, &answer);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(http_header(&answer, "Content-Type"), paths[i].type);
        ck_assert_uint_eq(answer.len, 0);
        check_headers(&answer);
        http_free(&answer);
    }
    stage_close(&stage);
}
END_TEST

START_TEST(other_paths_methods_and_hosts_are_refused)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "NONSENSE"};
    struct stage stage;
    struct http_response answer;
    open_admin(&stage, __func__, NULL, "");
    static const char *const unknown_paths[] = {"/nothing", "/metrics/", "/../etc/passwd",
                                                "/%2e%2e/x"};
    for (size_t i = 0; i < sizeof(unknown_paths) / sizeof(unknown_paths[0]); i++)
        free(http_get(port, unknown_paths[i], 404));
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        http_request(port, methods[i], "/metrics", &answer);
        ck_assert_msg(answer.status == 405 || answer.status == 501, "%s", answer.text);
        ck_assert_ptr_null(strstr(answer.text, "redlockd_"));
        http_free(&answer);
    }
    http_request(port, "POST", "/healthz", &answer);
    ck_assert_int_eq(answer.status, 405);
    ck_assert_str_eq(http_header(&answer, "Allow"), "GET, HEAD");
    http_free(&answer);
    stage_close(&stage);
}
END_TEST

static int status_for_host(const char *host)
{
    char request[512];
    struct http_response answer;
    int fd = http_open(port);
    snprintf(request, sizeof(request), "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    http_send(fd, request);
    http_read(fd, &answer);
    int status = answer.status;
    http_free(&answer);
    return status;
}

/* A foreign web page whose host name resolves to 127.0.0.1 (DNS rebinding) must not read
 * anything. */
START_TEST(a_foreign_host_header_is_refused)
{
    static const char *const allowed[] = {"127.0.0.1", "127.0.0.1:7336", "localhost:1",
                                          "LOCALHOST", "[::1]:7336",     "10.1.2.3"};
    static const char *const denied[] = {"example.com", "localhost.example.com:7336",
                                         "127.0.0.1.example.com", "[evil]", "x"};
    struct stage stage;
    open_admin(&stage, __func__, NULL, "");
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        ck_assert_int_eq(status_for_host(allowed[i]), 200);
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
        ck_assert_int_eq(status_for_host(denied[i]), 403);
    stage_close(&stage);
}
END_TEST

START_TEST(insecure_does_not_allow_a_foreign_host_header)
{
    struct stage stage;
    open_admin(&stage, __func__, NULL, "insecure: true\n");
    ck_assert_int_eq(status_for_host("locks.example.com"), 403);
    ck_assert_int_eq(status_for_host("127.0.0.1"), 200);
    stage_close(&stage);
}
END_TEST

START_TEST(the_daemon_does_not_start_when_the_admin_port_is_taken)
{
    struct stage stage;
    struct daemon second;
    char yaml[128];
    open_admin(&stage, __func__, NULL, "");
    snprintf(yaml, sizeof(yaml), "admin: http://127.0.0.1:%d\n", port);
    daemon_prepare(&second, &stage.sandbox, stage.masters, 5,
                   &(struct daemon_plan){.name = "second", .yaml = yaml});
    ck_assert_int_eq(daemon_refuses(&second), 1);
    daemon_wait_log(&second, "listen_failed", "Address already in use");
    stage_close(&stage);
}
END_TEST

/* --- limits --- */

START_TEST(long_and_broken_requests_are_refused)
{
    static char large[70000];
    struct stage stage;
    struct http_response answer;
    open_admin(&stage, __func__, NULL, "");
    static const char *const broken[] = {"nonsense\r\n\r\n", "GET\r\n\r\n", "\r\n\r\n\r\n",
                                         "GET / HTTP/9.9\r\n\r\n"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        int fd = http_open(port);
        http_send(fd, broken[i]);
        shutdown(fd, SHUT_WR);
        http_read(fd, &answer);
        ck_assert_ptr_null(strstr(answer.text, "redlockd_"));
        http_free(&answer);
    }
    /* An endless path, an endless header and an endless body. */
    static const char *const beginnings[] = {
        "GET /", "GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n"};
    for (size_t i = 0; i < 3; i++) {
        int fd = http_open(port);
        memset(large, 'x', sizeof(large) - 1);
        memcpy(large, beginnings[i], strlen(beginnings[i]));
        http_send(fd, large);
        http_read(fd, &answer);
        ck_assert_msg(answer.status == 0 || answer.status >= 400, "%s", answer.text);
        http_free(&answer);
    }
    free(http_get(port, "/healthz", 200));
    stage_close(&stage);
}
END_TEST

START_TEST(silent_and_half_sent_requests_time_out)
{
    struct stage stage;
    struct waiting waiting;
    open_admin(&stage, __func__, NULL, "");
    int silent = http_open(port);
    int half = http_open(port);
    http_send(half, "GET /metrics HTTP/1.1\r\nHost: ");
    waiting = waiting_for("the end of a silent connection");
    while (!http_has_input(silent) || !http_has_input(half)) {
        /* A byte now and then must not extend the time limit. */
        send(half, "1", 1, MSG_NOSIGNAL);
        waiting_pause(&waiting);
    }
    close(silent);
    close(half);
    free(http_get(port, "/healthz", 200));
    stage_close(&stage);
}
END_TEST

static unsigned has_input(const int *fds, unsigned count)
{
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++)
        found += http_has_input(fds[i]);
    return found;
}

START_TEST(admin_connections_are_limited_and_locks_still_granted)
{
    enum { MANY = LIMIT_HTTP_CONNECTIONS + 20 };
    int fds[MANY];
    struct stage stage;
    struct http_response answer;
    unsigned rejected = 0;
    open_admin(&stage, __func__, NULL, "");
    for (unsigned i = 0; i < MANY; i++)
        fds[i] = http_open(port);
    struct waiting waiting = waiting_for("the connections over the limit to be closed");
    while (has_input(fds, MANY) < 20)
        waiting_pause(&waiting);
    /* The remaining connections request a long response and do not read it. */
    for (unsigned i = 0; i < MANY; i++)
        if (!http_has_input(fds[i]))
            http_send(fds[i], "GET /metrics HTTP/1.1\r\n\r\n");
    for (unsigned i = 0; i < 50; i++) {
        struct grant grant = client_lock(&stage.client, "a", "10s");
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    }
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
    waiting = waiting_for("the listener to accept again");
    do {
        waiting_pause(&waiting);
        http_request(port, "GET", "/metrics", &answer);
        if (answer.status == 0)
            http_free(&answer);
    } while (answer.text == NULL);
    const char *counter =
        strstr(answer.body, "\nredlockd_admin_connections_rejected_total{listener=\"admin\"} ");
    ck_assert(counter != NULL && sscanf(counter, " %*s %u", &rejected) == 1);
    ck_assert_uint_ge(rejected, 20);
    http_free(&answer);
    stage_close(&stage);
}
END_TEST

/* --- metrics --- */

/* Returns the value of a series in /metrics; -1 if there is none. */
static double sample(const char *series)
{
    char *metrics = http_get(port, "/metrics", 200);
    double value = -1;
    size_t len = strlen(series);
    for (char *line = metrics; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, len) == 0 && line[len] == ' ')
            value = strtod(line + len, NULL);
    }
    free(metrics);
    return value;
}

static void wait_sample(const char *series, double value)
{
    char what[256];
    snprintf(what, sizeof(what), "%s to be %g", series, value);
    struct waiting waiting = waiting_for(what);
    while (sample(series) != value)
        waiting_pause(&waiting);
}

static void wait_page(const char *words)
{
    struct waiting waiting = waiting_for(words);
    for (;;) {
        char *page = http_get(port, "/", 200);
        bool found = strstr(page, words) != NULL;
        free(page);
        if (found)
            return;
        waiting_pause(&waiting);
    }
}

/* A service manager restarts a daemon whose /healthz does not answer. A local user must not cause
 * that by filling the listener. */
START_TEST(healthz_answers_while_silent_connections_fill_the_listener)
{
    static const char *const partial_requests[] = {"", "GET /heal"};
    enum { MANY = LIMIT_HTTP_CONNECTIONS + 8 };
    int fds[MANY];
    struct stage stage;
    open_admin(&stage, __func__, NULL, "");
    for (unsigned i = 0; i < MANY; i++) {
        fds[i] = http_open(port);
        http_send(fds[i], partial_requests[_i]);
    }
    for (unsigned i = 0; i < 3; i++)
        free(http_get(port, "/healthz", 200));
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
    stage_close(&stage);
}
END_TEST

/* `nc -N` and some libraries half-close after the request. */
START_TEST(a_half_closed_request_gets_the_whole_response)
{
    struct stage stage;
    struct http_response answer;
    open_admin(&stage, __func__, NULL, "");
    int fd = http_open(port);
    http_send(fd, "GET /metrics HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    http_read(fd, &answer);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_uint_gt(answer.len, 0);
    ck_assert_uint_eq(answer.len, strtoul(http_header(&answer, "Content-Length"), NULL, 10));
    http_free(&answer);
    stage_close(&stage);
}
END_TEST

START_TEST(requests_and_outcomes_are_counted)
{
    struct stage stage;
    open_admin(&stage, __func__, NULL, "");
    double status = sample("redlockd_requests_total{verb=\"status\"}");
    struct grant grant = client_lock(&stage.client, "a", "10s");
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 10s");
    client_expect_match(&stage.client, "HELD [0-9]+", "STATUS a");
    client_expect_match(&stage.client, "OK .*", "EXTEND a %s 10s", grant.token);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_expect(&stage.client, "GONE", "UNLOCK a %s", grant.token);
    client_expect_match(&stage.client, "ERR bad-time .*", "LOCK a xyz");
    client_expect_match(&stage.client, "ERR unknown-verb .*", "NONSENSE");
    wait_sample("redlockd_request_errors_total{code=\"unknown-verb\"}", 1);
    ck_assert_double_eq(sample("redlockd_request_errors_total{code=\"bad-time\"}"), 1);
    ck_assert_double_eq(sample("redlockd_requests_total{verb=\"lock\"}"), 2);
    ck_assert_double_eq(sample("redlockd_requests_total{verb=\"unlock\"}"), 2);
    ck_assert_double_eq(sample("redlockd_requests_total{verb=\"extend\"}"), 1);
    ck_assert_double_eq(sample("redlockd_requests_total{verb=\"status\"}"), status + 1);
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
        ck_assert_msg(sample(outcomes[i]) == 1, "%s is %g", outcomes[i], sample(outcomes[i]));
    ck_assert_double_eq(sample("redlockd_queue_duration_seconds_count"), 0);
    ck_assert_double_ge(sample("redlockd_node_round_trip_seconds_count{node=\"c\"}"), 6);
    ck_assert_double_gt(sample("redlockd_loop_lag_seconds_count"), 0);
    ck_assert_double_gt(sample("process_resident_memory_bytes"), 1e6);
    stage_close(&stage);
}
END_TEST

START_TEST(waiters_and_holds_are_counted)
{
    struct stage stage;
    struct client waiter;
    open_admin(&stage, __func__, NULL, "");
    daemon_connect(&stage.daemon, &waiter);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_send(&waiter, "LOCK a 60s WAIT 60s HOLD\n");
    wait_sample("redlockd_waiters", 1);
    ck_assert_double_eq(sample("redlockd_resources_waited_for"), 1);
    wait_sample("redlockd_clients", 2);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_read_match(&waiter, "OK .*");
    wait_sample("redlockd_waiters", 0);
    ck_assert_double_eq(sample("redlockd_resources_waited_for"), 0);
    ck_assert_double_eq(sample("redlockd_holds"), 1);
    ck_assert_double_eq(sample("redlockd_handovers_total"), 1);
    ck_assert_double_eq(sample("redlockd_queue_duration_seconds_count"), 1);
    client_close(&waiter);
    wait_sample("redlockd_holds", 0);
    stage_close(&stage);
}
END_TEST

START_TEST(clients_over_the_limit_are_counted)
{
    struct stage stage;
    struct client second;
    open_admin(&stage, __func__, NULL, "limits: {clients: 1}\n");
    daemon_connect(&stage.daemon, &second);
    client_read_match(&second, "LIMIT clients");
    client_close(&second);
    wait_sample("redlockd_connections_rejected_total{limit=\"clients\"}", 1);
    ck_assert_double_eq(
        sample("redlockd_connections_rejected_total{limit=\"clients_per_address\"}"), 0);
    ck_assert_double_eq(sample("redlockd_clients_max"), 1);
    stage_close(&stage);
}
END_TEST

START_TEST(limits_are_counted_by_their_word)
{
    struct stage stage;
    open_admin(&stage, __func__, NULL, "limits: {waiters: 1}\n");
    client_lock(&stage.client, "a", "10s");
    client_send(&stage.client, "#1 LOCK a 10s WAIT 60s\n");
    client_expect(&stage.client, "#2 LIMIT waiters", "#2 LOCK a 10s WAIT 60s");
    wait_sample("redlockd_limits_total{limit=\"waiters\"}", 1);
    ck_assert_double_eq(sample("redlockd_limits_total{limit=\"busy\"}"), 0);
    stage_close(&stage);
}
END_TEST

START_TEST(denied_requests_and_wrong_secrets_are_counted)
{
    struct stage stage;
    struct client client;
    struct secrets secrets;
    char admin[64];
    port = port_free();
    snprintf(admin, sizeof(admin), "admin: http://127.0.0.1:%d\n", port);
    secrets_open(&secrets, admin);
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3,
                                    .daemon = {.tcp_host = "127.0.0.1", .yaml = secrets.yaml}});
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_expect_match(&client, "DENIED .*", "LOCK a 1s");
    client_expect_match(&client, "DENIED .*", "STATUS a");
    client_expect_match(&client, "DENIED .*", "AUTH nobodys");
    client_close(&client);
    wait_sample("redlockd_requests_denied_total", 2);
    wait_sample("redlockd_secrets_refused_total", 1);
    ck_assert_double_eq(sample("redlockd_connections_unauthenticated_total{reason=\"late\"}"), 0);
    stage_close(&stage);
    secrets_close(&secrets);
}
END_TEST

START_TEST(a_refused_reload_shows_until_one_succeeds)
{
    struct stage stage;
    open_admin(&stage, __func__, NULL, "");
    char *text = sandbox_read(stage.daemon.config);
    ck_assert_double_eq(sample("redlockd_reload_refused"), 0);
    sandbox_write(stage.daemon.config, "nodes: none\n");
    kill(stage.daemon.pid, SIGHUP);
    wait_sample("redlockd_reload_refused", 1);
    sandbox_write(stage.daemon.config, text);
    free(text);
    kill(stage.daemon.pid, SIGHUP);
    wait_sample("redlockd_reload_refused", 0);
    stage_close(&stage);
}
END_TEST

START_TEST(clients_over_the_limit_per_address_are_counted_separately)
{
    struct stage stage;
    struct client second;
    open_admin(&stage, __func__, NULL, "limits: {clients_per_address: 1}\n");
    daemon_connect(&stage.daemon, &second);
    client_read_match(&second, "LIMIT clients");
    client_close(&second);
    wait_sample("redlockd_connections_rejected_total{limit=\"clients_per_address\"}", 1);
    ck_assert_double_eq(sample("redlockd_connections_rejected_total{limit=\"clients\"}"), 0);
    daemon_wait_log(&stage.daemon, " info client_refused ", "limit=clients_per_address");
    stage_close(&stage);
}
END_TEST

START_TEST(metrics_are_well_formed_with_and_without_a_quorum)
{
    struct stage stage;
    struct command command;
    char file[SANDBOX_FILE];
    char check[4 * SANDBOX_FILE];
    open_admin(&stage, __func__, NULL, "");
    client_lock(&stage.client, "a", "10s");
    for (unsigned i = 0; i < 2; i++) {
        char *metrics = http_get(port, "/metrics", 200);
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
END_TEST

/* --- states --- */

START_TEST(readyz_follows_the_votes_of_the_masters)
{
    /* A restarted master has no vote for max_ttl, so max_ttl is short here. */
    const struct stage_plan plan = {.over_unix = true, .daemon = {.locks = ", max_ttl: 1s"}};
    struct stage stage;
    open_admin(&stage, __func__, &plan, "");
    master_kill(&stage.masters[0]);
    wait_page("Locks can be granted, but 1 master has no vote");
    wait_sample("redlockd_node_vote{node=\"a\"}", 0);
    free(http_get(port, "/readyz", 200));
    master_kill(&stage.masters[1]);
    wait_page("If one more fails, no lock can be granted.");
    master_kill(&stage.masters[2]);
    stage_wait_nodes(&stage, "vote=no", 3);
    char *ready = http_get(port, "/readyz", 503);
    ck_assert_int_eq(strncmp(ready, "not ready voting=2/5 need=3\n", 28), 0);
    ck_assert_ptr_nonnull(strstr(ready, "node=b vote=no reason="));
    ck_assert_ptr_null(strstr(ready, "node=e"));
    free(ready);
    free(http_get(port, "/healthz", 200));
    wait_page("<h1>No locks can be granted</h1>");
    wait_page("Only 2 of 5 masters vote");
    wait_sample("redlockd_ready", 0);
    ck_assert_double_eq(sample("redlockd_nodes_voting"), 2);
    client_expect_match(&stage.client, "NOQUORUM .*", "LOCK a 1s");
    ck_assert_double_gt(sample("redlockd_node_without_vote_seconds{node=\"a\"}"), 0);
    for (unsigned i = 0; i < 3; i++)
        master_restart(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=yes", 5);
    free(http_get(port, "/readyz", 200));
    wait_page("All 5 masters vote");
    wait_sample("redlockd_ready", 1);
    wait_sample("redlockd_node_without_vote_seconds{node=\"a\"}", 0);
    stage_close(&stage);
}
END_TEST

/* The ACL allows the keys of the guard, but not those of locks. */
START_TEST(a_daemon_whose_masters_allow_another_prefix_is_not_ready)
{
    struct stage stage;
    open_admin(&stage, __func__, NULL, "");
    masters_run(stage.masters, 5, "ACL SETUSER default resetkeys ~other:* ~redlockd:*");
    stage_wait_nodes(&stage, "vote=no reason=noperm", 5);
    daemon_wait_log(&stage.daemon, "node_without_vote node=a", "reason=noperm");
    char *ready = http_get(port, "/readyz", 503);
    ck_assert_ptr_nonnull(strstr(ready, "node=a vote=no reason=noperm"));
    free(ready);
    client_expect(&stage.client, "NOQUORUM 0/5 need=3 a:noperm b:noperm c:noperm d:noperm e:noperm",
                  "LOCK a 1s");
    masters_run(stage.masters, 5, "ACL SETUSER default allkeys");
    stage_wait_nodes(&stage, "vote=yes", 5);
    free(http_get(port, "/readyz", 200));
    client_lock(&stage.client, "a", "1s");
    stage_close(&stage);
}
END_TEST

START_TEST(a_stopping_daemon_is_not_ready)
{
    const struct stage_plan plan = {.daemon = {.node_timeout_ms = 5000}};
    struct stage stage;
    open_admin(&stage, __func__, &plan, "");
    /* The stopped masters keep this LOCK in flight. After SIGTERM the daemon waits for it, so the
     * test can read /readyz before the daemon ends. */
    stage_stop_masters(&stage, 0, 4);
    client_send(&stage.client, "LOCK a 10s\n");
    struct client other;
    daemon_connect(&stage.daemon, &other);
    struct waiting waiting = waiting_for("the request to be in flight");
    while (client_count(&other, "CLIENTS", "under_way=1") == 0)
        waiting_pause(&waiting);
    /* Admin connections in any state must not delay the end of the daemon. */
    int silent = http_open(port);
    int half = http_open(port);
    http_send(half, "GET /metrics HTTP/1.1\r\n");
    int unread = http_open(port);
    http_send(unread, "GET /metrics HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(kill(stage.daemon.pid, SIGTERM), 0);
    daemon_wait_log(&stage.daemon, "stopping", "SIGTERM");
    char *ready = http_get(port, "/readyz", 503);
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
END_TEST

START_TEST(lost_holds_are_shown_by_name_and_never_by_token)
{
    static const char *const paths[] = {"/", "/live", "/status.json", "/metrics", "/readyz"};
    struct stage stage;
    open_admin(&stage, __func__, NULL, "");
    client_expect(&stage.client, "OK", "NAME job.7");
    client_expect_match(&stage.client, "OK .*", "LOCK <b>&amp;\"x\"</b> 3s HOLD");
    for (unsigned i = 0; i < 3; i++)
        master_kill(&stage.masters[i]);
    do {
        client_read(&stage.client);
    } while (strncmp(stage.client.line, "! WARN", 6) == 0);
    ck_assert_int_eq(strncmp(stage.client.line, "! LOST", 6), 0);
    wait_page("&lt;b&gt;&amp;amp;&quot;x&quot;&lt;/b&gt;");
    wait_page("too few masters voted for its extension");
    wait_page("job.7");
    wait_sample("redlockd_holds_lost_total{reason=\"noquorum\"}", 1);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char *body = http_get(port, paths[i], strcmp(paths[i], "/readyz") == 0 ? 503 : 200);
        ck_assert_msg(!daemon_shows_token(body), "%s", body);
        free(body);
    }
    stage_close(&stage);
}
END_TEST

START_TEST(the_longest_queues_come_first)
{
    struct stage stage;
    struct client waiters[6];
    char line[64];
    open_admin(&stage, __func__, NULL, "");
    client_lock(&stage.client, "few", "60s");
    client_lock(&stage.client, "<i>many", "60s");
    for (unsigned i = 0; i < 6; i++) {
        daemon_connect(&stage.daemon, &waiters[i]);
        snprintf(line, sizeof(line), "LOCK %s 60s WAIT 60s\n", i < 1 ? "few" : "<i>many");
        client_send(&waiters[i], line);
    }
    wait_sample("redlockd_waiters", 6);
    wait_page("for 2 resources");
    char *page = http_get(port, "/live", 200);
    const char *many = strstr(page, "&lt;i&gt;many</td>");
    const char *few = strstr(page, ">few</td>");
    ck_assert_msg(many != NULL && few != NULL && many < few, "%s", page);
    ck_assert_ptr_null(strstr(page, "<i>"));
    free(page);
    for (unsigned i = 0; i < 6; i++)
        client_close(&waiters[i]);
    wait_page("No clients are waiting.");
    stage_close(&stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("admin");
    TCase *tests = sandbox_case("admin");
    tcase_add_test(tests, each_path_is_served_and_head_has_no_body);
    tcase_add_test(tests, other_paths_methods_and_hosts_are_refused);
    tcase_add_test(tests, a_foreign_host_header_is_refused);
    tcase_add_test(tests, insecure_does_not_allow_a_foreign_host_header);
    tcase_add_test(tests, the_daemon_does_not_start_when_the_admin_port_is_taken);
    tcase_add_test(tests, long_and_broken_requests_are_refused);
    tcase_add_test(tests, silent_and_half_sent_requests_time_out);
    tcase_add_test(tests, admin_connections_are_limited_and_locks_still_granted);
    tcase_add_loop_test(tests, healthz_answers_while_silent_connections_fill_the_listener, 0, 2);
    tcase_add_test(tests, a_half_closed_request_gets_the_whole_response);
    tcase_add_test(tests, requests_and_outcomes_are_counted);
    tcase_add_test(tests, waiters_and_holds_are_counted);
    tcase_add_test(tests, clients_over_the_limit_are_counted);
    tcase_add_test(tests, clients_over_the_limit_per_address_are_counted_separately);
    tcase_add_test(tests, limits_are_counted_by_their_word);
    tcase_add_test(tests, denied_requests_and_wrong_secrets_are_counted);
    tcase_add_test(tests, a_refused_reload_shows_until_one_succeeds);
    tcase_add_test(tests, metrics_are_well_formed_with_and_without_a_quorum);
    tcase_add_test(tests, readyz_follows_the_votes_of_the_masters);
    tcase_add_test(tests, a_daemon_whose_masters_allow_another_prefix_is_not_ready);
    tcase_add_test(tests, a_stopping_daemon_is_not_ready);
    tcase_add_test(tests, lost_holds_are_shown_by_name_and_never_by_token);
    tcase_add_test(tests, the_longest_queues_come_first);
    suite_add_tcase(suite, tests);
    return suite;
}
