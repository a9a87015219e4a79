/*
 * The clients of docs/clients.md, extracted from the page and run against a real daemon.
 *
 * A guest is a program of tests/e2e/guests that takes a lock with such a client, works under the
 * lock and prints the outcome. A relay stands between guest and daemon, or takes the place of the
 * daemon, to delay, split or damage replies.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/clock.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct language {
    const char *fence; /* start of its block in the page; the first such block is the client */
    const char *file;
    const char *program;
    const char *guest;
} languages[] = {
    {"\n```python\n", "client.py", "python3", "tests/e2e/guests/guest.py"},
    {"\n```js\n", "client.mjs", "node", "tests/e2e/guests/guest.mjs"},
};

enum { LANGUAGES = sizeof(languages) / sizeof(languages[0]) };

static const struct stage_plan three = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};

/* --- guests --- */

struct guest {
    pid_t pid;
    char output[SANDBOX_FILE];
};

static void copy_client(const struct sandbox *sandbox, const struct language *language)
{
    char path[SANDBOX_FILE];
    char *document = sandbox_read("docs/clients.md");
    char *block = strstr(document, language->fence);
    ck_assert_msg(block != NULL, "no block in docs/clients.md for %s", language->file);
    block += strlen(language->fence);
    char *end = strstr(block, "\n```\n");
    ck_assert_ptr_nonnull(end);
    end[1] = '\0';
    sandbox_write(sandbox_path(sandbox, language->file, path), block);
    free(document);
}

struct options {
    const char *resource;
    const char *ttl_ms;
    const char *wait_ms;
    const char *work; /* what the guest does under the lock */
    const char *const *environment;
};

static const struct options default_options = {"a", "60000", "0", "until-finish", NULL};

/* Starts a guest whose output goes to the file `name`. */
static void start_named(struct guest *guest, const struct sandbox *sandbox, int language, int port,
                        const struct options *options, const char *name)
{
    const struct language *spec = &languages[language];
    char port_text[16];
    copy_client(sandbox, spec);
    sandbox_path(sandbox, name, guest->output);
    snprintf(port_text, sizeof(port_text), "%d", port);
    const char *argv[] = {spec->program,    spec->guest,       sandbox->dir,
                          port_text,        options->resource, options->ttl_ms,
                          options->wait_ms, options->work,     NULL};
    guest->pid = process_start(&(struct process_plan){
        .argv = argv, .errors = guest->output, .environment = options->environment});
}

static void start(struct guest *guest, const struct sandbox *sandbox, int language, int port,
                  const struct options *options)
{
    start_named(guest, sandbox, language, port, options, "guest.log");
}

/* Waits until the guest has printed the text. */
static void wait_printed(const struct guest *guest, const char *text)
{
    struct waiting waiting = waiting_for(text);
    for (bool found = false; !found;) {
        bool runs = process_runs(guest->pid);
        char *output = sandbox_read(guest->output);
        found = strstr(output, text) != NULL;
        ck_assert_msg(found || runs, "printed: %s\nexpected: %s", output, text);
        free(output);
        if (!found)
            waiting_pause(&waiting);
    }
}

/* Waits for the guest, which must exit with 0 after printing `lines` lines. The last one must begin
 * with the text. */
static void end_after(struct guest *guest, unsigned lines, const char *text)
{
    int status = process_wait(guest->pid, "a guest");
    char *output = sandbox_read(guest->output);
    const char *line = output;
    for (unsigned i = 1; i < lines && line != NULL; i++) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    ck_assert_msg(status == 0, "the guest ended with status %d: %s", status, output);
    ck_assert_msg(line != NULL && strncmp(line, text, strlen(text)) == 0,
                  "printed: %s\nexpected: %s", output, text);
    const char *line_end = strchr(line, '\n');
    ck_assert_msg(line_end != NULL && line_end[1] == '\0', "more lines than %u: %s", lines, output);
    free(output);
    unlink(guest->output);
}

/* Waits for a guest that prints one line only. */
static void end_with(struct guest *guest, const char *text)
{
    end_after(guest, 1, text);
}

static void tell_to_finish(const struct sandbox *sandbox)
{
    char path[SANDBOX_FILE];
    sandbox_write(sandbox_path(sandbox, "finish", path), "");
}

/* Ends the work of a guest that has printed "working"; its second line must begin with the text. */
static void finish(struct guest *guest, const struct sandbox *sandbox, const char *text)
{
    tell_to_finish(sandbox);
    end_after(guest, 2, text);
}

/* --- the relay --- */

struct relay {
    int fd;
    int port;
    struct client guest; /* latest connection of a guest */
};

static void relay_open(struct relay *relay)
{
    struct sockaddr_in where;
    socklen_t len = sizeof(where);
    relay->fd = port_listen(AF_INET, 0);
    ck_assert_int_ge(relay->fd, 0);
    ck_assert_int_eq(getsockname(relay->fd, (struct sockaddr *)&where, &len), 0);
    relay->port = ntohs(where.sin_port);
}

/* Accepts the next connection and returns its first request. */
static const char *relay_accept(struct relay *relay)
{
    struct waiting waiting = waiting_for("a guest to connect");
    struct pollfd ready = {.fd = relay->fd, .events = POLLIN};
    ck_assert_msg(poll(&ready, 1, waiting_left_ms(&waiting)) == 1, "no guest connects");
    relay->guest.fd = accept4(relay->fd, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(relay->guest.fd, 0);
    relay->guest.input_len = 0;
    int on = 1;
    setsockopt(relay->guest.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return client_read(&relay->guest);
}

/* Sends the text and closes the connection. */
static void relay_reply(struct relay *relay, const char *text)
{
    client_send(&relay->guest, text);
    client_close(&relay->guest);
}

static void relay_close(struct relay *relay)
{
    close(relay->fd);
}

/* Returns the number of bytes that the guest has not read; -1 if its connection is not found. */
static long unread_bytes(const struct relay *relay)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof(peer);
    char line[512];
    long unread_bytes = -1;
    ck_assert_int_eq(getpeername(relay->guest.fd, (struct sockaddr *)&peer, &len), 0);
    FILE *sockets = fopen("/proc/net/tcp", "re");
    ck_assert_ptr_nonnull(sockets);
    while (fgets(line, sizeof(line), sockets) != NULL) {
        unsigned from;
        unsigned to;
        unsigned long queued;
        if (sscanf(line, "%*d: %*x:%x %*x:%x %*x %*x:%lx", &from, &to, &queued) == 3 &&
            from == ntohs(peer.sin_port) && to == (unsigned)relay->port)
            unread_bytes = (long)queued;
    }
    fclose(sockets);
    return unread_bytes;
}

static bool acknowledged(const struct client *accepted)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    ck_assert_int_eq(getsockopt(accepted->fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    return info.tcpi_unacked == 0;
}

/* Sends a part and waits until the guest has read it, so that the guest reads the next part
 * separately. */
static void relay_send_part(struct relay *relay, const char *text)
{
    struct waiting waiting = waiting_for("the guest to read a part");
    client_send(&relay->guest, text);
    while (!acknowledged(&relay->guest) || unread_bytes(relay) != 0)
        waiting_pause(&waiting);
}

static void wait_until(int64_t until_ms)
{
    struct waiting waiting = waiting_for("time to pass");
    while (waiting_clock_ms() <= until_ms)
        waiting_pause(&waiting);
}

/* --- with the daemon --- */

START_TEST(a_client_locks_works_and_unlocks)
{
    struct stage stage;
    struct guest guest;
    stage_open(&stage, __func__, &three);
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &default_options);
    wait_printed(&guest, "working ");
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 1s");
    stage_wait_key(&stage, "redlock:a", 3);
    finish(&guest, &stage.sandbox, "done");
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}
END_TEST

START_TEST(a_client_waits_in_the_queue_and_is_granted_the_lock)
{
    struct stage stage;
    struct guest guest;
    struct options waits = default_options;
    char token[41];
    waits.wait_ms = "50000";
    stage_open(&stage, __func__, &three);
    snprintf(token, sizeof(token), "%s", client_lock(&stage.client, "a", "60s").token);
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &waits);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", token);
    wait_printed(&guest, "working ");
    finish(&guest, &stage.sandbox, "done");
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}
END_TEST

START_TEST(a_lock_held_elsewhere_is_an_error)
{
    struct stage stage;
    struct guest guest;
    stage_open(&stage, __func__, &three);
    client_lock(&stage.client, "a", "60s");
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &default_options);
    end_with(&guest, "not locked: HELD ");
    stage_wait_key(&stage, "redlock:a", 3);
    stage_close(&stage);
}
END_TEST

START_TEST(no_quorum_is_an_error)
{
    struct stage stage;
    struct guest guest;
    stage_open(&stage, __func__, &three);
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    stage_wait_nodes(&stage, "vote=no", 2);
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &default_options);
    end_with(&guest, "not locked: NOQUORUM 1/3 need=2 ");
    stage_close(&stage);
}
END_TEST

START_TEST(failed_work_unlocks_and_keeps_its_error)
{
    struct stage stage;
    struct guest guest;
    struct options fails = default_options;
    fails.work = "fail";
    stage_open(&stage, __func__, &three);
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &fails);
    end_with(&guest, "error: the work failed");
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", "subject=unlock ok=1 "), 1);
    stage_close(&stage);
}
END_TEST

START_TEST(the_daemon_can_be_restarted_during_the_work)
{
    struct stage stage;
    struct guest guest;
    stage_open(&stage, __func__, &three);
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &default_options);
    wait_printed(&guest, "working ");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    finish(&guest, &stage.sandbox, "done");
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}
END_TEST

START_TEST(an_unlock_that_fails_is_not_an_error)
{
    struct stage stage;
    struct guest guest;
    stage_open(&stage, __func__, &three);
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &default_options);
    wait_printed(&guest, "working ");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    finish(&guest, &stage.sandbox, "done");
    stage_close_masters(&stage);
}
END_TEST

START_TEST(a_stopping_daemon_is_an_error)
{
    struct stage stage;
    struct guest guest;
    struct options waits = default_options;
    waits.wait_ms = "50000";
    stage_open(&stage, __func__, &three);
    client_lock(&stage.client, "a", "60s");
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &waits);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    end_with(&guest, "not locked: SHUTDOWN");
    stage_close_masters(&stage);
}
END_TEST

START_TEST(a_killed_daemon_is_an_error)
{
    struct stage stage;
    struct guest guest;
    struct options waits = default_options;
    waits.wait_ms = "50000";
    stage_open(&stage, __func__, &three);
    client_lock(&stage.client, "a", "60s");
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &waits);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_close(&stage.client);
    process_kill(stage.daemon.pid);
    end_with(&guest, "error: ");
    stage_close_masters(&stage);
}
END_TEST

/* Makes the path of the shim absolute: a python3 that is a script, such as that of pyenv, changes
 * its folder before it runs Python. */
static void find_shim(void)
{
    const char *shim = getenv("CLOCK_SHIM");
    char *whole = realpath(shim != NULL ? shim : "build/tests/shim/clock.so", NULL);
    ck_assert_ptr_nonnull(whole);
    setenv("CLOCK_SHIM", whole, 1);
    free(whole);
}

/* The client must not use the wall clock, which is set back by an hour during the work. */
START_TEST(work_past_the_deadline_is_an_error)
{
    struct stage stage;
    struct guest guest;
    struct clock_file clock;
    struct options brief = default_options;
    stage_open(&stage, __func__, &three);
    find_shim();
    clock_open(&clock, &stage.sandbox, "guest");
    brief.ttl_ms = "3000";
    brief.environment = clock.environment;
    start(&guest, &stage.sandbox, _i, stage.daemon.port, &brief);
    wait_printed(&guest, "working ");
    clock_set(&clock, -3600);
    wait_until(waiting_clock_ms() + 3000);
    finish(&guest, &stage.sandbox, "error: a: the work took longer than the lock");
    stage_close(&stage);
}
END_TEST

/* Two clients of each language compete for a lock and check that they are alone under it. */
START_TEST(clients_of_all_languages_exclude_each_other)
{
    enum { GUESTS = 2 * LANGUAGES, TIMES = 25 };
    static const struct options alone = {"a", "30000", "50000", "alone", NULL};
    struct stage stage;
    struct guest guests[GUESTS];
    char path[SANDBOX_FILE];
    char name[32];
    char waiting_text[32];
    char token[41];
    stage_open(&stage, __func__, &three);
    snprintf(token, sizeof(token), "%s", client_lock(&stage.client, "a", "60s").token);
    for (int i = 0; i < GUESTS; i++) {
        snprintf(name, sizeof(name), "guest-%d.log", i);
        start_named(&guests[i], &stage.sandbox, i % LANGUAGES, stage.daemon.port, &alone, name);
    }
    /* The test releases its lock when all guests wait for it, so they compete from the start. */
    snprintf(waiting_text, sizeof(waiting_text), " waiting=%d ", GUESTS);
    stage_wait_stats(&stage.client, waiting_text);
    client_expect(&stage.client, "OK", "UNLOCK a %s", token);
    for (int i = 0; i < GUESTS; i++)
        end_with(&guests[i], "done");
    char *fences = sandbox_read(sandbox_path(&stage.sandbox, "fences", path));
    char *rest = fences;
    unsigned count = 0;
    for (unsigned long last = 0; *rest != '\0'; count++, rest++) {
        unsigned long fence = strtoul(rest, &rest, 10);
        ck_assert_uint_gt(fence, last);
        last = fence;
    }
    ck_assert_uint_eq(count, GUESTS * TIMES);
    free(fences);
    stage_wait_key(&stage, "redlock:a", 0);
    stage_close(&stage);
}
END_TEST

/* --- with the relay --- */

/* The daemon is stopped before the relay passes the LOCK on, and continues when the TTL has passed.
 * `elapsed` in its reply does not contain that pause. So t_send + elapsed + validity, the client's
 * deadline, has passed when the reply arrives. */
START_TEST(a_grant_past_its_deadline_on_arrival_is_unlocked)
{
    static const struct options brief = {"a", "2000", "9000", "until-finish", NULL};
    struct stage stage;
    struct guest guest;
    static struct relay relay;
    static struct client upstream;
    stage_open(&stage, __func__, &three);
    relay_open(&relay);
    client_connect_tcp(&upstream, "127.0.0.1", stage.daemon.port);
    client_expect(&upstream, "PONG", "PING");
    start(&guest, &stage.sandbox, _i, relay.port, &brief);
    const char *request = relay_accept(&relay);
    int64_t sent_ms = waiting_clock_ms();
    ck_assert_str_eq(request, "LOCK a 2000 WAIT 9000 FENCE");
    kill(stage.daemon.pid, SIGSTOP);
    client_send(&upstream, "LOCK a 2000 WAIT 9000 FENCE\n");
    wait_until(sent_ms + 2000);
    kill(stage.daemon.pid, SIGCONT);
    client_read_match(&upstream, "OK [0-9a-f]{40} [0-9]+ [0-9]+ [0-9]+");
    char unlock[64];
    char answer[CLIENT_LINE + 1];
    snprintf(unlock, sizeof(unlock), "UNLOCK a %.40s", upstream.line + 3);
    snprintf(answer, sizeof(answer), "%s\n", upstream.line);
    relay_reply(&relay, answer);
    ck_assert_str_eq(relay_accept(&relay), unlock);
    /* GONE is possible on a busy machine, if the lock has expired. */
    client_expect_match(&upstream, "OK|GONE", "%s", unlock);
    relay_reply(&relay, "OK\n");
    end_with(&guest, "not locked: LATE on arrival");
    stage_wait_key(&stage, "redlock:a", 0);
    client_close(&upstream);
    relay_close(&relay);
    stage_close(&stage);
}
END_TEST

#define TOKEN "6c7bac0d008c92701fb34223a36eaf20dda7a0ce"

START_TEST(a_reply_can_arrive_in_pieces_and_have_more_fields)
{
    struct sandbox sandbox;
    struct guest guest;
    static struct relay relay;
    sandbox_open(&sandbox, __func__);
    relay_open(&relay);
    start(&guest, &sandbox, _i, relay.port, &default_options);
    relay_accept(&relay);
    relay_send_part(&relay, "O");
    relay_send_part(&relay, "K " TOKEN " 29");
    relay_send_part(&relay, "689 0 17 later=1");
    relay_reply(&relay, "\n");
    wait_printed(&guest, "working 17\n");
    tell_to_finish(&sandbox);
    ck_assert_str_eq(relay_accept(&relay), "UNLOCK a " TOKEN);
    relay_send_part(&relay, "O");
    relay_reply(&relay, "K\n");
    end_after(&guest, 2, "done");
    relay_close(&relay);
    sandbox_close(&sandbox);
}
END_TEST

/* The deadline is t_send + elapsed + validity, and `elapsed` contains the time in the queue. So a
 * long wait moves the deadline later. */
START_TEST(the_deadline_counts_from_the_grant_not_the_request)
{
    struct sandbox sandbox;
    struct guest guest;
    static struct relay relay;
    sandbox_open(&sandbox, __func__);
    relay_open(&relay);
    start(&guest, &sandbox, _i, relay.port, &default_options);
    relay_accept(&relay);
    /* According to this reply, the LOCK has waited for 60 s, and its validity is 0. The deadline is
     * therefore 60 s after the request. */
    relay_reply(&relay, "OK " TOKEN " 0 60000 17\n");
    wait_printed(&guest, "working 17\n");
    tell_to_finish(&sandbox);
    relay_accept(&relay);
    relay_reply(&relay, "OK\n");
    end_after(&guest, 2, "done");
    relay_close(&relay);
    sandbox_close(&sandbox);
}
END_TEST

/* A line without its LF is not a reply. */
START_TEST(a_broken_connection_is_an_error)
{
    static const char *const parts[] = {"", "O", "OK " TOKEN " 2", "OK " TOKEN " 29689 0 17"};
    struct sandbox sandbox;
    struct guest guest;
    static struct relay relay;
    sandbox_open(&sandbox, __func__);
    relay_open(&relay);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        start(&guest, &sandbox, _i, relay.port, &default_options);
        relay_accept(&relay);
        relay_reply(&relay, parts[i]);
        end_with(&guest, "error: redlockd closed the connection");
    }
    /* After this, no process listens at the port. */
    relay_close(&relay);
    start(&guest, &sandbox, _i, relay.port, &default_options);
    end_with(&guest, "error: ");
    sandbox_close(&sandbox);
}
END_TEST

START_TEST(every_other_reply_is_an_error_that_quotes_it)
{
    static const char *const answers[] = {"LATE 900",         "SHUTDOWN",
                                          "LIMIT waiters",    "ERR ttl-range too long",
                                          "DENIED not yours", "OKAY"};
    struct sandbox sandbox;
    struct guest guest;
    static struct relay relay;
    sandbox_open(&sandbox, __func__);
    relay_open(&relay);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        char line[64];
        char output[64];
        snprintf(line, sizeof(line), "%s\n", answers[i]);
        snprintf(output, sizeof(output), "not locked: %s", answers[i]);
        start(&guest, &sandbox, _i, relay.port, &default_options);
        relay_accept(&relay);
        relay_reply(&relay, line);
        end_with(&guest, output);
    }
    relay_close(&relay);
    sandbox_close(&sandbox);
}
END_TEST

START_TEST(a_silent_daemon_is_an_error)
{
    struct sandbox sandbox;
    struct guest guest;
    static struct relay relay;
    sandbox_open(&sandbox, __func__);
    relay_open(&relay);
    start(&guest, &sandbox, _i, relay.port, &default_options);
    relay_accept(&relay);
    end_with(&guest, "error: ");
    /* The guest has closed its connection, so a daemon would undo the LOCK. */
    client_expect_end(&relay.guest);
    client_close(&relay.guest);
    relay_close(&relay);
    sandbox_close(&sandbox);
}
END_TEST

START_TEST(an_invalid_resource_name_is_never_sent)
{
    static const char *const names[] = {"", "a b", "a\nUNLOCK b", "a\n"};
    struct sandbox sandbox;
    struct guest guest;
    static struct relay relay;
    sandbox_open(&sandbox, __func__);
    relay_open(&relay);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct options bad = default_options;
        bad.resource = names[i];
        start(&guest, &sandbox, _i, relay.port, &bad);
        end_with(&guest, "error: a resource has no spaces or newlines");
    }
    struct pollfd ready = {.fd = relay.fd, .events = POLLIN};
    ck_assert_int_eq(poll(&ready, 1, 0), 0);
    relay_close(&relay);
    sandbox_close(&sandbox);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("documented clients");
    TCase *cases = sandbox_case("documented clients");
    tcase_add_loop_test(cases, a_client_locks_works_and_unlocks, 0, LANGUAGES);
    tcase_add_loop_test(cases, a_client_waits_in_the_queue_and_is_granted_the_lock, 0, LANGUAGES);
    tcase_add_loop_test(cases, a_lock_held_elsewhere_is_an_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, no_quorum_is_an_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, failed_work_unlocks_and_keeps_its_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, the_daemon_can_be_restarted_during_the_work, 0, LANGUAGES);
    tcase_add_loop_test(cases, an_unlock_that_fails_is_not_an_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, a_stopping_daemon_is_an_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, a_killed_daemon_is_an_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, work_past_the_deadline_is_an_error, 0, LANGUAGES);
    tcase_add_test(cases, clients_of_all_languages_exclude_each_other);
    tcase_add_loop_test(cases, a_grant_past_its_deadline_on_arrival_is_unlocked, 0, LANGUAGES);
    tcase_add_loop_test(cases, a_reply_can_arrive_in_pieces_and_have_more_fields, 0, LANGUAGES);
    tcase_add_loop_test(cases, the_deadline_counts_from_the_grant_not_the_request, 0, LANGUAGES);
    tcase_add_loop_test(cases, a_broken_connection_is_an_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, every_other_reply_is_an_error_that_quotes_it, 0, LANGUAGES);
    tcase_add_loop_test(cases, a_silent_daemon_is_an_error, 0, LANGUAGES);
    tcase_add_loop_test(cases, an_invalid_resource_name_is_never_sent, 0, LANGUAGES);
    suite_add_tcase(suite, cases);
    return suite;
}
