/*
 * The HTTP listener `metrics`: what it serves to other hosts, what it does not, and that neither it
 * nor `admin` can be filled through the other.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "tests/e2e/http.h"
#include "tests/e2e/port.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum { WRONG_CONFIGURATION = 78 };

static const char *const served[] = {"/metrics", "/healthz", "/readyz"};
enum { SERVED = sizeof(served) / sizeof(served[0]) };

static int admin_port;
static int metrics_port;

/* Opens three masters and a daemon with both listeners and these further YAML lines. */
static void open_both(struct stage *stage, const char *test, const char *yaml)
{
    static char text[2 * SECRETS_YAML];
    admin_port = port_free();
    metrics_port = port_free();
    snprintf(text, sizeof(text), "admin: http://127.0.0.1:%d\nmetrics: http://0.0.0.0:%d\n%s",
             admin_port, metrics_port, yaml);
    stage_open(stage, test,
               &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.yaml = text}});
}

/* --- what it serves --- */

TEST(the_three_paths_are_served_on_every_address_and_nothing_else)
{
    static const char *const others[] = {
        "/",          "/live",           "/status.json",         "/nothing",
        "/metrics/",  "//metrics",       "/%6detrics",           "/Metrics",
        "/healthz/x", "/../status.json", "http://a/status.json", "*"};
    struct stage stage;
    struct http_response answer;
    char yaml[64];
    metrics_port = port_free();
    snprintf(yaml, sizeof(yaml), "metrics: http://0.0.0.0:%d\n", metrics_port);
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.yaml = yaml}});
    for (size_t i = 0; i < SERVED; i++) {
        http_request(metrics_port, "GET", served[i], &answer);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_uint_gt(answer.len, 0);
        ck_assert_str_eq(http_header(&answer, "Connection"), "close");
        ck_assert_str_eq(http_header(&answer, "X-Content-Type-Options"), "nosniff");
        http_free(&answer);
        http_request(metrics_port, "HEAD", served[i], &answer);
        ck_assert_int_eq(answer.status, 200);
        ck_assert_uint_eq(answer.len, 0);
        http_free(&answer);
        http_request(metrics_port, "POST", served[i], &answer);
        ck_assert_int_eq(answer.status, 405);
        http_free(&answer);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        http_request(metrics_port, "GET", others[i], &answer);
        ck_assert_msg(answer.status == 404 || answer.status == 400, "%s: %d", others[i],
                      answer.status);
        ck_assert_ptr_null(strstr(answer.text, "redlockd_"));
        http_free(&answer);
    }
    char *body = http_get(metrics_port, "/", 404);
    ck_assert_msg(strstr(body, "at the address `admin`") != NULL, "%s", body);
    free(body);
    stage_close(&stage);
}

static int status_of(const char *address, const char *request)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)metrics_port)};
    struct http_response answer;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(inet_pton(AF_INET, address, &where.sin_addr), 1);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&where, sizeof(where)), 0);
    http_send(fd, request);
    http_read(fd, &answer);
    int status = answer.status;
    http_free(&answer);
    return status;
}

/* Prometheus sends the name by which it knows the host. */
TEST(any_host_header_and_any_address_of_the_host_will_do)
{
    static const char *const hosts[] = {"redlockd-1.example:7338", "127.0.0.1", "localhost", "x",
                                        "[::1]:7338"};
    char request[256];
    struct stage stage;
    open_both(&stage, __func__, "log: {level: debug}\n");
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        snprintf(request, sizeof(request), "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i]);
        ck_assert_int_eq(status_of("127.0.0.1", request), 200);
        ck_assert_int_eq(status_of("127.0.0.2", request), 200);
    }
    ck_assert_int_eq(status_of("127.0.0.2", "GET /metrics HTTP/1.0\r\n\r\n"), 200);
    daemon_wait_log(&stage.daemon, " listening ", "address=http://0.0.0.0:");
    stage_close(&stage);
}

static void check_no_names(void)
{
    /* "unix:" would be the URL of a master. */
    static const char *const names[] = {"secret-resource", "secret-client", "secret-waited",
                                        "tester", "unix:"};
    for (size_t i = 0; i < SERVED; i++) {
        struct http_response answer;
        http_request(metrics_port, "GET", served[i], &answer);
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            ck_assert_msg(strstr(answer.text, names[k]) == NULL, "%s has %s: %s", served[i],
                          names[k], answer.text);
        http_free(&answer);
    }
}

static void wait_admin(const char *words)
{
    struct waiting waiting = waiting_for(words);
    for (;;) {
        char *body = http_get(admin_port, "/status.json", 200);
        bool found = strstr(body, words) != NULL;
        free(body);
        if (found)
            return;
        waiting_pause(&waiting);
    }
}

TEST(it_names_no_resource_client_user_or_address_of_a_master)
{
    struct stage stage;
    struct secrets secrets;
    struct client waiter;
    secrets_open(&secrets, "");
    open_both(&stage, __func__, secrets.yaml);
    client_expect(&stage.client, "OK", "NAME secret-client");
    client_lock(&stage.client, "secret-waited", "60s");
    daemon_connect(&stage.daemon, &waiter);
    client_send(&waiter, "LOCK secret-waited 60s WAIT 60s\n");
    wait_admin("secret-waited");
    check_no_names();
    client_close(&waiter);
    client_expect_match(&stage.client, "OK .*", "LOCK secret-resource 3s HOLD");
    for (unsigned i = 0; i < 2; i++)
        master_kill(&stage.masters[i]);
    do {
        client_read(&stage.client);
    } while (strncmp(stage.client.line, "! WARN", 6) == 0);
    ck_assert_int_eq(strncmp(stage.client.line, "! LOST", 6), 0);
    wait_admin("secret-resource");
    check_no_names();
    char *ready = http_get(metrics_port, "/readyz", 503);
    ck_assert_msg(strstr(ready, "node=a vote=no reason=") != NULL, "%s", ready);
    free(ready);
    stage_close(&stage);
    secrets_close(&secrets);
}

/* --- the configuration --- */

TEST(admin_on_every_address_is_refused_even_with_insecure)
{
    struct stage stage;
    struct daemon second;
    char yaml[128];
    open_both(&stage, __func__, "log: {level: debug}\n");
    snprintf(yaml, sizeof(yaml), "insecure: true\nadmin: http://0.0.0.0:%d\n", port_free());
    daemon_prepare(&second, &stage.sandbox, stage.masters, 3,
                   &(struct daemon_plan){.name = "second", .yaml = yaml});
    ck_assert_int_eq(daemon_refuses(&second), WRONG_CONFIGURATION);
    daemon_wait_log(&second, "admin: other hosts can reach", "Use metrics: for Prometheus");
    stage_close(&stage);
}

TEST(the_daemon_does_not_start_when_the_port_is_taken)
{
    struct stage stage;
    struct daemon second;
    char yaml[128];
    open_both(&stage, __func__, "log: {level: debug}\n");
    snprintf(yaml, sizeof(yaml), "admin: http://127.0.0.1:%d\nmetrics: http://127.0.0.1:%d\n",
             port_free(), metrics_port);
    daemon_prepare(&second, &stage.sandbox, stage.masters, 3,
                   &(struct daemon_plan){.name = "second", .yaml = yaml});
    ck_assert_int_eq(daemon_refuses(&second), 1);
    daemon_wait_log(&second, "listen_failed", "Address already in use");
    stage_close(&stage);
}

/* A reload that adds (0), moves (1) or removes (2) `metrics` is refused, as for `admin`. */
TEST_LOOP(a_reload_refuses_to_add_move_or_remove_it, 0, 3)
{
    struct stage stage;
    char yaml[64];
    char text[8192];
    int other = port_free();
    metrics_port = port_free();
    snprintf(yaml, sizeof(yaml), "metrics: http://0.0.0.0:%d\n", metrics_port);
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = 3, .over_unix = true, .daemon = {.yaml = _i == 0 ? "" : yaml}});
    char *file = sandbox_read(stage.daemon.config);
    char *at = strstr(file, yaml);
    ck_assert_int_eq(at != NULL, _i != 0);
    if (at != NULL)
        *at = '\0';
    snprintf(text, sizeof(text), "%s%s", file, _i == 0 ? yaml : "");
    if (_i == 1)
        snprintf(text, sizeof(text), "%smetrics: http://0.0.0.0:%d\n", file, other);
    sandbox_write(stage.daemon.config, text);
    free(file);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGHUP), 0);
    daemon_wait_log(&stage.daemon, "reload_cannot_change key=metrics",
                    "why=\"the address is opened only at the start\"");
    daemon_wait_log(&stage.daemon, "reload_refused", "a reload cannot change some");
    if (_i != 0)
        free(http_get(metrics_port, "/healthz", 200));
    /* The new port was not opened. */
    int fd = port_listen(AF_INET, _i == 0 ? metrics_port : other);
    ck_assert_int_ge(fd, 0);
    close(fd);
    stage_close(&stage);
}

/* --- limits --- */

/* Reads the counter of one listener through a port of either. */
static unsigned rejected(int port, const char *listener)
{
    unsigned count = 0;
    char series[128];
    char *body = http_get(port, "/metrics", 200);
    snprintf(series, sizeof(series),
             "\nredlockd_admin_connections_rejected_total{listener=\"%s\"} ", listener);
    const char *at = strstr(body, series);
    ck_assert_msg(at != NULL && sscanf(at + strlen(series), "%u", &count) == 1, "%s", body);
    free(body);
    return count;
}

/* Fills `metrics` (0) or `admin` (1) with requests that do not end. */
TEST_LOOP(a_full_listener_does_not_disturb_the_other, 0, 2)
{
    enum { MANY = 2 * LIMIT_HTTP_CONNECTIONS };
    int fds[MANY];
    struct stage stage;
    open_both(&stage, __func__, "log: {level: debug}\n");
    int full = _i == 0 ? metrics_port : admin_port;
    int other = _i == 0 ? admin_port : metrics_port;
    for (unsigned i = 0; i < MANY; i++) {
        fds[i] = http_open(full);
        http_send(fds[i], "GET /metr");
    }
    struct waiting waiting = waiting_for("connections over the limit to be counted");
    while (rejected(other, _i == 0 ? "metrics" : "admin") < LIMIT_HTTP_CONNECTIONS)
        waiting_pause(&waiting);
    free(http_get(other, "/healthz", 200));
    free(http_get(other, "/readyz", 200));
    client_expect(&stage.client, "PONG", "PING");
    ck_assert_uint_eq(rejected(other, _i == 0 ? "admin" : "metrics"), 0);
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
    stage_close(&stage);
}
