/*
 * Many clients and faulty clients: no client may affect another one.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};
static const struct stage_plan three_and_tcp = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};

/* --- other protocols --- */

TEST(http_is_closed_with_one_line_in_the_log)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three_and_tcp);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send(&client, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
    client_expect_end(&client);
    client_close(&client);
    daemon_wait_log(&stage.daemon, "client_dropped", "HTTP");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "HTTP"), 1);
    client_expect(&stage.client, "PONG", "PING");
    stage_close(&stage);
}

TEST(http_in_two_segments_is_closed)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three_and_tcp);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send(&client, "POST /lock");
    /* After this reply, the daemon has read the first segment. */
    client_expect(&stage.client, "PONG", "PING");
    client_send(&client, "s HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_expect_end(&client);
    client_close(&client);
    daemon_wait_log(&stage.daemon, "client_dropped", "HTTP");
    stage_close(&stage);
}

/* The web page sends a LOCK as the body of its request, after a line that is too long. */
TEST(a_web_page_with_a_long_path_takes_no_lock)
{
    struct stage stage;
    struct client client;
    char path[20000];
    stage_open(&stage, __func__, &three_and_tcp);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    memset(path, 'x', sizeof(path));
    client_send(&client, "POST /");
    client_send_bytes(&client, path, sizeof(path));
    client_try_send(&client, " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nLOCK deploy 30s\n");
    daemon_wait_log(&stage.daemon, "client_dropped", "HTTP");
    client_expect(&stage.client, "FREE", "STATUS deploy");
    client_close(&client);
    stage_close(&stage);
}

/* If the daemon answered the PROXY header with an error, the client behind the proxy would take the
 * error for the reply to its first request. */
TEST(a_proxy_header_is_closed_with_one_line_in_the_log)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three_and_tcp);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send(&client, "PROXY TCP4 10.0.0.1 10.0.0.2 5000 7335\r\nPING\n");
    client_expect_end(&client);
    client_close(&client);
    daemon_wait_log(&stage.daemon, "client_dropped", "PROXY header");
    client_expect(&stage.client, "PONG", "PING");
    stage_close(&stage);
}

TEST(a_resource_can_have_a_name_like_http)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three_and_tcp);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_expect(&client, "FREE", "STATUS HTTP/1.1");
    client_close(&client);
    stage_close(&stage);
}

TEST(tls_hello_is_closed_with_one_line_in_the_log)
{
    struct stage stage;
    struct client client;
    static const unsigned char hello[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01,
                                          0x00, 0x01, 0xfc, 0x03, 0x03, 0x0a};
    stage_open(&stage, __func__, &three_and_tcp);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    client_send_bytes(&client, hello, sizeof(hello));
    client_expect_end(&client);
    client_close(&client);
    daemon_wait_log(&stage.daemon, "client_dropped", "TLS");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "TLS"), 1);
    client_expect(&stage.client, "PONG", "PING");
    stage_close(&stage);
}

/* --- slow clients --- */

/* Sends requests without reading, until the daemon closes the connection. */
static void never_read(struct stage *stage, struct client *client)
{
    struct waiting waiting = waiting_for("a client that does not read to be dropped");
    while (client_try_send(client, "HELP\nSTATS\n"))
        if (waiting_left_ms(&waiting) == 0)
            waiting_pause(&waiting);
        else
            client_expect(&stage->client, "PONG", "PING");
}

TEST(a_client_that_never_reads_is_dropped_and_others_are_served)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three);
    daemon_connect(&stage.daemon, &client);
    never_read(&stage, &client);
    client_close(&client);
    daemon_wait_log(&stage.daemon, "client_dropped", "read");
    client_lock(&stage.client, "a", "10s");
    stage_close(&stage);
}

TEST(a_tcp_client_that_never_reads_is_dropped)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three_and_tcp);
    client_connect_tcp(&client, "127.0.0.1", stage.daemon.port);
    never_read(&stage, &client);
    client_close(&client);
    daemon_wait_log(&stage.daemon, "client_dropped", "read");
    stage_close(&stage);
}

TEST(silent_and_slow_clients_do_not_delay_others)
{
    struct stage stage;
    struct client silent;
    struct client halting;
    stage_open(&stage, __func__, &three);
    daemon_connect(&stage.daemon, &silent);
    daemon_connect(&stage.daemon, &halting);
    static const char request[] = "STATUS other\n";
    for (const char *byte = request; *byte != '\0'; byte++) {
        client_send_bytes(&halting, byte, 1);
        struct grant grant = client_lock(&stage.client, "a", "10s");
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    }
    client_read_match(&halting, "FREE");
    client_expect(&silent, "PONG", "PING");
    client_close(&silent);
    client_close(&halting);
    stage_close(&stage);
}

TEST(hundreds_of_clients_are_served)
{
    struct stage stage;
    enum { CLIENTS = 300 };
    struct client *clients = calloc(CLIENTS, sizeof(*clients));
    ck_assert_ptr_nonnull(clients);
    stage_open(&stage, __func__, &three_and_tcp);
    for (int i = 0; i < CLIENTS; i++) {
        client_connect_tcp(&clients[i], "127.0.0.1", stage.daemon.port);
        client_send(&clients[i], "STATUS a\n");
    }
    for (int i = 0; i < CLIENTS; i++)
        client_read_match(&clients[i], "FREE");
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", "client="), CLIENTS + 1);
    for (int i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
    stage_wait_clients(&stage, 1);
    free(clients);
    stage_close(&stage);
}

/* --- limits --- */

TEST(a_client_over_the_limit_is_answered_limit)
{
    const struct stage_plan plan = {
        .masters = 3, .over_unix = true, .daemon = {.yaml = "limits: {clients: 2}\n"}};
    struct stage stage;
    struct client second;
    struct client third;
    stage_open(&stage, __func__, &plan);
    daemon_connect(&stage.daemon, &second);
    client_expect(&second, "PONG", "PING");

    daemon_connect(&stage.daemon, &third);
    client_read_match(&third, "LIMIT clients");
    client_expect_end(&third);
    client_close(&third);

    /* After a client has left, another one is accepted. */
    client_close(&second);
    stage_wait_clients(&stage, 1);
    daemon_connect(&stage.daemon, &third);
    client_expect(&third, "PONG", "PING");
    client_close(&third);
    stage_close(&stage);
}

enum { OPEN_FILES = 40, TOO_MANY = 60 };

/* An idle daemon gives no event to wait for, hence the sleep. */
static long cpu_ms_in_a_second(pid_t pid)
{
    long before_ms = process_cpu_ms(pid);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return process_cpu_ms(pid) - before_ms;
}

TEST(a_daemon_out_of_descriptors_does_not_spin_and_recovers)
{
    const struct rlimit few = {OPEN_FILES, OPEN_FILES};
    struct stage stage;
    struct client fresh;
    struct client *clients = calloc(TOO_MANY, sizeof(*clients));
    ck_assert_ptr_nonnull(clients);
    stage_open(&stage, __func__, &three_and_tcp);
    /* The limit is lowered while the daemon runs, because a starting daemon makes sure that it has
     * enough descriptors. */
    ck_assert_int_eq(prlimit(stage.daemon.pid, RLIMIT_NOFILE, &few, NULL), 0);
    for (int i = 0; i < TOO_MANY; i++)
        client_connect_tcp(&clients[i], "127.0.0.1", stage.daemon.port);
    daemon_wait_log(&stage.daemon, "accept_paused", "tcp");
    ck_assert_uint_ge(process_open_files(stage.daemon.pid), OPEN_FILES - 1);
    ck_assert_int_lt(cpu_ms_in_a_second(stage.daemon.pid), 300);
    /* Connected clients are still served. */
    client_expect(&stage.client, "PONG", "PING");
    client_lock(&stage.client, "a", "10s");

    for (int i = 0; i < TOO_MANY; i++)
        client_close(&clients[i]);
    client_connect_tcp(&fresh, "127.0.0.1", stage.daemon.port);
    client_expect(&fresh, "PONG", "PING");
    client_close(&fresh);
    free(clients);
    stage_close(&stage);
}

/* --- read budget --- */

/* A client that requests many long listings must not delay other clients. */
TEST(a_listing_ends_the_read_budget_of_its_session)
{
    struct stage stage;
    struct client eager;
    stage_open(&stage, __func__, &three);
    daemon_connect(&stage.daemon, &eager);
    client_expect(&eager, "OK", "NAME eager");
    kill(stage.daemon.pid, SIGSTOP);
    for (unsigned i = 0; i < 10; i++)
        client_send(&eager, "LOCKS\n");
    client_send(&stage.client, "CLIENTS\n");
    kill(stage.daemon.pid, SIGCONT);
    /* The daemon reads the input of both clients in the same pass, in any order. A pass has one
     * listing, and the eager client can be before the other one twice: when the input is read, and
     * in the queue for the next pass. So when the daemon answers CLIENTS, it has handled the NAME
     * of the eager client and at most two of its listings. */
    client_read(&stage.client);
    while (strstr(stage.client.line, "name=eager") == NULL)
        client_read(&stage.client);
    ck_assert_msg(strstr(stage.client.line, " requests=1 ") != NULL ||
                      strstr(stage.client.line, " requests=2 ") != NULL ||
                      strstr(stage.client.line, " requests=3 ") != NULL,
                  "%s", stage.client.line);
    for (unsigned i = 0; i < 10; i++)
        client_read_match(&eager, "END");
    /* Lines after an unanswered LOCK are pending input. Listings among them end the read budget
     * too, and the daemon must still answer all lines. */
    client_send(&eager, "LOCK a 10s\n");
    for (unsigned i = 0; i < 40; i++)
        client_send(&eager, "LOCKS b\nLOCKS\n");
    client_read_match(&eager, "OK .*");
    for (unsigned i = 0; i < 40; i++) {
        client_read_match(&eager, "END");
        client_read_match(&eager, "resource=a .*");
        client_read_match(&eager, "END");
    }
    client_close(&eager);
    stage_close(&stage);
}
