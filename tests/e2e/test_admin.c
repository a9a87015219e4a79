/*
 * The admin listener: the requests that it serves and refuses, and its limits. Locks are granted
 * even when its limits are reached.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/e2e/admin_fixture.h"
#include "tests/e2e/http.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

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

TEST(each_path_is_served_and_head_has_no_body)
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
    admin_open(&stage, __func__, NULL, "");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        http_request(admin_port, "GET", paths[i].path, &answer);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(http_header(&answer, "Content-Type"), paths[i].type);
        ck_assert_msg(strstr(answer.body, paths[i].words) != NULL, "%s", answer.text);
        ck_assert_uint_eq(answer.len, (size_t)atoi(http_header(&answer, "Content-Length")));
        check_headers(&answer);
        http_free(&answer);
        http_request(admin_port, "HEAD", paths[i].path, &answer);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_str_eq(http_header(&answer, "Content-Type"), paths[i].type);
        ck_assert_uint_eq(answer.len, 0);
        check_headers(&answer);
        http_free(&answer);
    }
    stage_close(&stage);
}

TEST(other_paths_methods_and_hosts_are_refused)
{
    static const char *const methods[] = {"POST",  "PUT",     "DELETE",  "OPTIONS",
                                          "PATCH", "CONNECT", "NONSENSE"};
    struct stage stage;
    struct http_response answer;
    admin_open(&stage, __func__, NULL, "");
    static const char *const unknown_paths[] = {"/nothing", "/metrics/", "/../etc/passwd",
                                                "/%2e%2e/x"};
    for (size_t i = 0; i < sizeof(unknown_paths) / sizeof(unknown_paths[0]); i++)
        free(http_get(admin_port, unknown_paths[i], 404));
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        http_request(admin_port, methods[i], "/metrics", &answer);
        ck_assert_msg(answer.status == 405 || answer.status == 501, "%s", answer.text);
        ck_assert_ptr_null(strstr(answer.text, "redlockd_"));
        http_free(&answer);
    }
    http_request(admin_port, "POST", "/healthz", &answer);
    ck_assert_int_eq(answer.status, 405);
    ck_assert_str_eq(http_header(&answer, "Allow"), "GET, HEAD");
    http_free(&answer);
    stage_close(&stage);
}

static int status_for_host(const char *host)
{
    char request[512];
    struct http_response answer;
    int fd = http_open(admin_port);
    snprintf(request, sizeof(request), "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    http_send(fd, request);
    http_read(fd, &answer);
    int status = answer.status;
    http_free(&answer);
    return status;
}

/* A foreign web page whose host name resolves to 127.0.0.1 (DNS rebinding) must not read
 * anything. */
TEST(a_foreign_host_header_is_refused)
{
    static const char *const allowed[] = {"127.0.0.1", "127.0.0.1:7336", "localhost:1",
                                          "LOCALHOST", "[::1]:7336",     "10.1.2.3"};
    static const char *const denied[] = {"example.com", "localhost.example.com:7336",
                                         "127.0.0.1.example.com", "[evil]", "x"};
    struct stage stage;
    admin_open(&stage, __func__, NULL, "");
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        ck_assert_int_eq(status_for_host(allowed[i]), 200);
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
        ck_assert_int_eq(status_for_host(denied[i]), 403);
    stage_close(&stage);
}

TEST(insecure_does_not_allow_a_foreign_host_header)
{
    struct stage stage;
    admin_open(&stage, __func__, NULL, "insecure: true\n");
    ck_assert_int_eq(status_for_host("locks.example.com"), 403);
    ck_assert_int_eq(status_for_host("127.0.0.1"), 200);
    stage_close(&stage);
}

TEST(the_daemon_does_not_start_when_the_admin_port_is_taken)
{
    struct stage stage;
    struct daemon second;
    char yaml[128];
    admin_open(&stage, __func__, NULL, "");
    snprintf(yaml, sizeof(yaml), "admin: http://127.0.0.1:%d\n", admin_port);
    daemon_prepare(&second, &stage.sandbox, stage.masters, 5,
                   &(struct daemon_plan){.name = "second", .yaml = yaml});
    ck_assert_int_eq(daemon_refuses(&second), 1);
    daemon_wait_log(&second, "listen_failed", "Address already in use");
    stage_close(&stage);
}

/* --- limits --- */

TEST(long_and_broken_requests_are_refused)
{
    static char large[70000];
    struct stage stage;
    struct http_response answer;
    admin_open(&stage, __func__, NULL, "");
    static const char *const broken[] = {"nonsense\r\n\r\n", "GET\r\n\r\n", "\r\n\r\n\r\n",
                                         "GET / HTTP/9.9\r\n\r\n"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        int fd = http_open(admin_port);
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
        int fd = http_open(admin_port);
        memset(large, 'x', sizeof(large) - 1);
        memcpy(large, beginnings[i], strlen(beginnings[i]));
        http_send(fd, large);
        http_read(fd, &answer);
        ck_assert_msg(answer.status == 0 || answer.status >= 400, "%s", answer.text);
        http_free(&answer);
    }
    free(http_get(admin_port, "/healthz", 200));
    stage_close(&stage);
}

TEST(silent_and_half_sent_requests_time_out)
{
    struct stage stage;
    struct waiting waiting;
    admin_open(&stage, __func__, NULL, "");
    int silent = http_open(admin_port);
    int half = http_open(admin_port);
    http_send(half, "GET /metrics HTTP/1.1\r\nHost: ");
    waiting = waiting_for("the end of a silent connection");
    while (!http_has_input(silent) || !http_has_input(half)) {
        /* A byte now and then must not extend the time limit. */
        send(half, "1", 1, MSG_NOSIGNAL);
        waiting_pause(&waiting);
    }
    close(silent);
    close(half);
    free(http_get(admin_port, "/healthz", 200));
    stage_close(&stage);
}

static unsigned has_input(const int *fds, unsigned count)
{
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++)
        found += http_has_input(fds[i]);
    return found;
}

TEST(admin_connections_are_limited_and_locks_still_granted)
{
    enum { MANY = LIMIT_HTTP_CONNECTIONS + 20 };
    int fds[MANY];
    struct stage stage;
    struct http_response answer;
    unsigned rejected = 0;
    admin_open(&stage, __func__, NULL, "");
    for (unsigned i = 0; i < MANY; i++)
        fds[i] = http_open(admin_port);
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
        http_request(admin_port, "GET", "/metrics", &answer);
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

/* A service manager restarts a daemon whose /healthz does not answer. A local user must not cause
 * that by filling the listener. */
TEST_LOOP(healthz_answers_while_silent_connections_fill_the_listener, 0, 2)
{
    static const char *const partial_requests[] = {"", "GET /heal"};
    enum { MANY = LIMIT_HTTP_CONNECTIONS + 8 };
    int fds[MANY];
    struct stage stage;
    admin_open(&stage, __func__, NULL, "");
    for (unsigned i = 0; i < MANY; i++) {
        fds[i] = http_open(admin_port);
        http_send(fds[i], partial_requests[_i]);
    }
    for (unsigned i = 0; i < 3; i++)
        free(http_get(admin_port, "/healthz", 200));
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
    stage_close(&stage);
}

/* `nc -N` and some libraries half-close after the request. */
TEST(a_half_closed_request_gets_the_whole_response)
{
    struct stage stage;
    struct http_response answer;
    admin_open(&stage, __func__, NULL, "");
    int fd = http_open(admin_port);
    http_send(fd, "GET /metrics HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    http_read(fd, &answer);
    ck_assert_int_eq(answer.status, 200);
    ck_assert_uint_gt(answer.len, 0);
    ck_assert_uint_eq(answer.len, strtoul(http_header(&answer, "Content-Length"), NULL, 10));
    http_free(&answer);
    stage_close(&stage);
}
