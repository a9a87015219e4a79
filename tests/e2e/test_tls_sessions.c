/*
 * Established TLS sessions: how their end affects a HOLD, and the limits for clients that send much
 * and read little.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/tls_stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static struct stage stage;

static void setup(void)
{
    tls_stage_open(&stage, runner_test_name);
}

static void teardown(void)
{
    stage_close(&stage);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

/* --- ends --- */

struct held {
    struct tls_client client;
    int64_t until_ms;
};

static void hold(struct held *held, const char *ttl)
{
    char line[64];
    long validity_ms;
    long elapsed_ms;
    struct waiting waiting = waiting_for("the grant of a HOLD");
    tls_stage_connect(&held->client, &stage);
    int64_t sent_ms = waiting_clock_ms();
    snprintf(line, sizeof(line), "LOCK a %s HOLD", ttl);
    while (client_masters_were_slow(tls_client_ask(&held->client, line))) {
        waiting_pause(&waiting);
        sent_ms = waiting_clock_ms();
    }
    ck_assert_int_eq(sscanf(held->client.line, "OK %*s %ld %ld", &validity_ms, &elapsed_ms), 2);
    held->until_ms = sent_ms + validity_ms + elapsed_ms;
}

static void quit(struct tls_client *client)
{
    ck_assert_str_eq(tls_client_ask(client, "QUIT"), "BYE");
    ck_assert(tls_client_ends_well(client));
    tls_client_cut(client);
}

/* Sends close_notify and still reads the replies. */
static void half_close(struct tls_client *client)
{
    tls_client_send(client, "#1 STATUS a\n#2 PING\n");
    tls_client_half_close(client);
    ck_assert_ptr_nonnull(strstr(tls_client_read(client), "PONG"));
    tls_expect(tls_client_read(client), "#1 ");
    ck_assert(tls_client_ends_well(client));
    tls_client_cut(client);
}

static void (*const clean_ends[])(struct tls_client *) = {tls_client_close, quit, half_close};

TEST_LOOP(a_clean_end_releases_a_hold_at_once, 0, 3)
{
    struct held held;
    hold(&held, "60s");
    clean_ends[_i](&held.client);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_wait_clients(&stage, 1);
}

/* A FIN without close_notify, and a reset: anyone on the network path can forge them. */
static void (*const other_ends[])(struct tls_client *) = {tls_client_cut, tls_client_reset};

TEST_LOOP(any_other_end_releases_nothing_before_the_deadline, 0, 2)
{
    struct held held;
    hold(&held, "2s");
    other_ends[_i](&held.client);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 3);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
}

/* A separate process is killed, and the kernel sends a FIN, but no close_notify. */
TEST(a_killed_client_keeps_its_hold_until_the_deadline)
{
    struct held held;
    int pipe_fds[2];
    int64_t until_ms;
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        hold(&held, "2s");
        if (write(pipe_fds[1], &held.until_ms, sizeof(held.until_ms)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(pipe_fds[0], &until_ms, sizeof(until_ms)), sizeof(until_ms));
    process_kill(child);
    daemon_wait_log(&stage.daemon, "client_dropped", "");
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), until_ms);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* Clients that close without close_notify would fill the log if the daemon logged each of them at
 * level info. */
TEST(a_close_without_notify_is_logged_only_if_it_costs_a_lock)
{
    struct tls_client client;
    struct held held;
    tls_stage_connect(&client, &stage);
    tls_expect(tls_client_ask(&client, "LOCK b 2s"), "OK ");
    tls_client_cut(&client);
    hold(&held, "2s");
    tls_client_cut(&held.client);
    stage_wait_clients(&stage, 1);
    daemon_wait_log(&stage.daemon, "debug client_dropped", "without close_notify");
    daemon_wait_log(&stage.daemon, "info client_dropped", "without close_notify");
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, "info client_dropped"), 1);
}

/* The forged alert is not encrypted with the keys of the session. */
TEST(a_forged_close_notify_releases_nothing)
{
    static const unsigned char alert[] = {0x15, 3, 3, 0, 2, 1, 0};
    struct held held;
    hold(&held, "2s");
    ck_assert_int_eq(send(held.client.fd, alert, sizeof(alert), 0), sizeof(alert));
    tls_client_cut(&held.client);
    stage_wait_clients(&stage, 1);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
}

TEST(requests_before_close_notify_are_executed)
{
    struct tls_client client;
    char line[128];
    tls_stage_connect(&client, &stage);
    tls_expect(tls_client_ask(&client, "LOCK a 60s"), "OK ");
    snprintf(line, sizeof(line), "PING\nUNLOCK a %.40s\n", client.line + 3);
    kill(stage.daemon.pid, SIGSTOP); /* the daemon then reads request and end at once */
    tls_client_send(&client, line);
    tls_client_half_close(&client);
    kill(stage.daemon.pid, SIGCONT);
    ck_assert_str_eq(tls_client_read(&client), "PONG");
    ck_assert_str_eq(tls_client_read(&client), "OK");
    ck_assert(tls_client_ends_well(&client));
    tls_client_cut(&client);
}

/* The LOCK and close_notify arrive together: the client no longer needs the lock. */
TEST(a_lock_before_close_notify_is_undone)
{
    struct tls_client client;
    tls_stage_connect(&client, &stage);
    kill(stage.daemon.pid, SIGSTOP);
    tls_client_send(&client, "LOCK a 60s HOLD\n");
    tls_client_half_close(&client);
    kill(stage.daemon.pid, SIGCONT);
    tls_expect(tls_client_read(&client), "ERR bad-arguments ");
    stage_wait_key(&stage, "redlock:a", 0);
    tls_client_cut(&client);
}

/* Sends all lines in one write. In many small packets, the kernel would buffer fewer bytes, and
 * there might be no room for close_notify. */
static void send_lines(struct tls_client *client, const char *line, unsigned count)
{
    size_t len = strlen(line);
    char *lines = calloc(count, len + 1);
    ck_assert_ptr_nonnull(lines);
    for (unsigned i = 0; i < count; i++)
        memcpy(lines + i * len, line, len);
    tls_client_send(client, lines);
    free(lines);
}

/* A LOCK waits, and so many lines are pending after it that the daemon stops reading. Then the
 * connection ends, with a close_notify that the daemon cannot read yet (loop index 0), or without
 * a close_notify (1). */
TEST_LOOP(an_unread_close_undoes_a_waiting_lock, 0, 2)
{
    /* So many lines that the daemon stops reading, but few enough for the kernel to buffer the
     * unread ones. */
    enum { LINES = 560 };
    struct held held;
    struct grant other;
    bool in_order = _i == 0;
    other = client_lock(&stage.client, "b", "60s");
    hold(&held, in_order ? "60s" : "4s");
    tls_client_send(&held.client, "LOCK b 60s WAIT 1h\n");
    send_lines(&held.client, "STATUS cccccccccccccccccccccccccccccccccccccccccccccccccc\n", LINES);
    stage_wait_stats(&stage.client, " waiting=1 ");
    if (in_order) {
        tls_client_half_close(&held.client);
        shutdown(held.client.fd, SHUT_WR);
        tls_expect(tls_client_read(&held.client), "ERR bad-arguments ");
        for (unsigned i = 0; i < LINES; i++) {
            const char *reply = tls_client_read(&held.client);
            if (!client_masters_were_slow(reply))
                ck_assert_str_eq(reply, "FREE");
        }
        ck_assert(tls_client_ends_well(&held.client));
        stage_wait_key(&stage, "redlock:a", 0);
        tls_client_cut(&held.client);
    } else {
        tls_client_cut(&held.client);
        stage_wait_stats(&stage.client, " waiting=0 ");
        stage_wait_clients(&stage, 1);
        stage_wait_key(&stage, "redlock:a", 0);
        ck_assert_int_ge(waiting_clock_ms(), held.until_ms);
    }
    client_expect(&stage.client, "OK", "UNLOCK b %s", other.token);
}

/* The client sends close_notify, but does not read its replies. Then it resets the connection: at
 * once (loop index 0), or after the daemon has answered all requests (1). The session must not wait
 * for ever. */
TEST_LOOP(a_closed_client_that_cannot_be_answered_is_dropped, 0, 2)
{
    /* The replies, of 1.2 KB each, exceed the kernel buffers, but not the output limit of a
     * session. */
    enum { REQUESTS = 190 };
    struct tls_client client;
    struct tls_client_plan small = tls_no_certificate;
    bool all_answered = _i == 1;
    small.small_buffers = true;
    tls_client_connect(&client, &stage.sandbox, stage.daemon.port, &small);
    send_lines(&client, "HELP\n", REQUESTS);
    tls_client_half_close(&client);
    struct waiting waiting = waiting_for("all requests to be answered");
    while (all_answered && client_count(&stage.client, "CLIENTS", " requests=190 ") != 1)
        waiting_pause(&waiting);
    tls_client_reset(&client);
    stage_wait_clients(&stage, 1);
}

/* --- limits --- */

/* Sends more requests than fit into the buffers, in records of the maximum size. */
TEST(pipelined_requests_are_all_answered)
{
    enum { REQUESTS = 20000 };
    struct tls_client client;
    tls_stage_connect(&client, &stage);
    char *lines = malloc(REQUESTS * 5 + 1);
    ck_assert_ptr_nonnull(lines);
    for (unsigned i = 0; i < REQUESTS; i++)
        memcpy(lines + i * 5, "PING\n", 6);
    tls_client_send(&client, lines);
    for (unsigned i = 0; i < REQUESTS; i++)
        ck_assert_str_eq(tls_client_read(&client), "PONG");
    free(lines);
    tls_client_close(&client);
}

/* The unread output of each client is limited, including the buffers of TLS. */
TEST(clients_that_do_not_read_are_dropped_with_bounded_memory)
{
    enum { CLIENTS = 50, ANSWERS_KIB = 256 };
    struct tls_client clients[CLIENTS];
    char request[1000];
    long before_kib = process_memory_kib(stage.daemon.pid);
    for (unsigned i = 0; i < sizeof(request) - 5; i += 5)
        memcpy(request + i, "HELP\n", 6);
    for (unsigned i = 0; i < CLIENTS; i++) {
        tls_stage_connect(&clients[i], &stage);
        struct timeval moment = {.tv_usec = 50000};
        setsockopt(clients[i].fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof(moment));
        while (SSL_write(clients[i].ssl, request, (int)strlen(request)) > 0)
            continue;
        ERR_clear_error();
    }
    /* All clients are dropped; the number of log lines is throttled. */
    stage_wait_clients(&stage, 1);
    ck_assert_uint_gt(daemon_count_log(&stage.daemon, "the client does not read its replies"), 0);
    if (!process_is_sanitized) /* ASan keeps freed memory */
        ck_assert_int_lt(process_memory_kib(stage.daemon.pid) - before_kib,
                         CLIENTS * (ANSWERS_KIB + 64));
    for (unsigned i = 0; i < CLIENTS; i++)
        tls_client_reset(&clients[i]);
}
