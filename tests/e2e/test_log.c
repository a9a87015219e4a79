/*
 * The log: priorities for the journal, a blocked reader, and the throttle of events that clients
 * cause.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log_throttle.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum { MANY = 300 };

static const struct stage_plan three = {.masters = 3, .over_unix = true};

/* --- the journal --- */

/* Starts a daemon with JOURNAL_STREAM set to its standard error. `off` is added to the inode
 * number: with 1, JOURNAL_STREAM names another file. */
static void open_journal(struct stage *stage, const char *test, unsigned off, char stream[64],
                         const char *environment[3])
{
    struct stat status;
    stage_open_masters(stage, test, &three);
    daemon_prepare(&stage->daemon, &stage->sandbox, stage->masters, 3, &three.daemon);
    daemon_bootstrap(&stage->daemon);
    ck_assert_int_eq(stat(stage->daemon.log, &status), 0);
    sandbox_write(stage->daemon.log, "");
    snprintf(stream, 64, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino + off);
    environment[0] = "JOURNAL_STREAM";
    environment[1] = stream;
    environment[2] = NULL;
    stage->daemon.environment = environment;
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, 3);
    daemon_connect(&stage->daemon, &stage->client);
}

static unsigned lines_beginning(const struct daemon *daemon, const char *prefix, unsigned *others)
{
    char *log = sandbox_read(daemon->log);
    char *rest = NULL;
    unsigned count = 0;
    *others = 0;
    for (char *line = strtok_r(log, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        *(strncmp(line, prefix, strlen(prefix)) == 0 ? &count : others) += 1;
    free(log);
    return count;
}

TEST(journal_lines_have_a_priority)
{
    struct stage stage;
    char stream[64];
    const char *environment[3];
    unsigned others;
    open_journal(&stage, __func__, 0, stream, environment);
    master_kill(&stage.masters[2]);
    daemon_wait_log(&stage.daemon, " warning node_down ", "node=c");
    lines_beginning(&stage.daemon, "<", &others);
    ck_assert_uint_eq(others, 0);
    char *log = sandbox_read(stage.daemon.log);
    char *rest = NULL;
    for (char *line = strtok_r(log, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        ck_assert_msg(strncmp(line,
                              strstr(line, "Z debug ") != NULL     ? "<7>2"
                              : strstr(line, "Z info ") != NULL    ? "<6>2"
                              : strstr(line, "Z warning ") != NULL ? "<4>2"
                                                                   : "<3>2",
                              4) == 0,
                      "%s", line);
    free(log);
    stage_close(&stage);
}

TEST(lines_for_other_outputs_have_no_priority)
{
    struct stage stage;
    char stream[64];
    const char *environment[3];
    unsigned others;
    /* Processes started by a service inherit JOURNAL_STREAM, but their standard error can be
     * another file than the one it names. */
    open_journal(&stage, __func__, 1, stream, environment);
    ck_assert_uint_eq(lines_beginning(&stage.daemon, "<", &others), 0);
    ck_assert_uint_gt(others, 0);
    stage_close(&stage);
}

/* --- a blocked reader --- */

static void read_all(int fd, char *text, size_t size)
{
    size_t len = strlen(text);
    ssize_t got;
    while (len + 1 < size && (got = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)got;
    text[len] = '\0';
}

/* When the pipe is full, the daemon drops and counts lines, and still serves its clients. */
TEST(a_blocked_log_reader_does_not_delay_the_daemon)
{
    enum { PIPE = 4096 };
    struct stage stage;
    struct client client;
    static char text[1 << 20];
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    daemon_bootstrap(&stage.daemon);
    unlink(stage.daemon.log);
    ck_assert_int_eq(mkfifo(stage.daemon.log, 0600), 0);
    int reader = open(stage.daemon.log, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(fcntl(reader, F_SETPIPE_SZ, PIPE), PIPE);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    for (unsigned i = 0; i < MANY; i++) {
        daemon_connect(&stage.daemon, &client);
        client_expect(&client, "PONG", "PING");
        client_close(&client);
    }
    client_lock(&stage.client, "a", "10s");
    struct waiting waiting = waiting_for("the log to continue");
    while (strstr(text, " warning log_lost lines=") == NULL) {
        read_all(reader, text, sizeof(text));
        daemon_connect(&stage.daemon, &client);
        client_close(&client);
        waiting_pause(&waiting);
    }
    unsigned long lost = strtoul(strstr(text, " lines=") + 7, NULL, 10);
    ck_assert_uint_gt(lost, MANY);
    close(reader);
    unlink(stage.daemon.log);
    sandbox_write(stage.daemon.log, "");
    stage_close(&stage);
}

/* --- throttle --- */

/* Sums the counts of the lines_left_out events for this event. */
static unsigned count_left_out(const struct daemon *daemon, const char *event)
{
    char form[64];
    char *log = sandbox_read(daemon->log);
    unsigned sum = 0;
    snprintf(form, sizeof(form), "lines_left_out of=%s count=", event);
    for (char *at = log; (at = strstr(at, form)) != NULL;) {
        at += strlen(form);
        sum += (unsigned)strtoul(at, NULL, 10);
    }
    free(log);
    return sum;
}

/* Waits until all `count` events are either logged or counted. Fails if the daemon has logged more
 * lines than the throttle allows since begin_ms. */
static void expect_throttled(const struct daemon *daemon, const char *event, unsigned count,
                             int64_t begin_ms)
{
    char line[64];
    struct waiting waiting = waiting_for("all lines to be written or counted");
    snprintf(line, sizeof(line), " warning %s ", event);
    if (strcmp(event, "client_dropped") == 0)
        snprintf(line, sizeof(line), " info %s ", event);
    while (daemon_count_log(daemon, line) + count_left_out(daemon, event) < count)
        waiting_pause(&waiting);
    unsigned written = daemon_count_log(daemon, line);
    ck_assert_uint_eq(written + count_left_out(daemon, event), count);
    unsigned seconds = 2 + (unsigned)((waiting_clock_ms() - begin_ms) / 1000);
    ck_assert_uint_le(written, LOG_THROTTLE_LINES * seconds);
    ck_assert_uint_gt(count_left_out(daemon, event), 0);
}

TEST(garbage_from_many_clients_does_not_fill_the_log)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &three);
    int64_t begin_ms = waiting_clock_ms();
    for (unsigned i = 0; i < MANY; i++) {
        daemon_connect(&stage.daemon, &client);
        client_send(&client, "GET / HTTP/1.1\n");
        client_close(&client);
    }
    expect_throttled(&stage.daemon, "client_dropped", MANY, begin_ms);
    stage_close(&stage);
}

TEST(many_lost_holds_do_not_fill_the_log)
{
    struct stage stage;
    char line[64];
    stage_open(&stage, __func__, &three);
    /* All at once: one after the other, a busy machine needs longer than their TTL. */
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(line, sizeof(line), "#%u LOCK r%u 3s HOLD\n", i, i);
        client_send(&stage.client, line);
    }
    for (unsigned i = 0; i < MANY; i++)
        client_read_match(&stage.client, "#[0-9]+ OK [0-9a-f]{40} .*");
    int64_t begin_ms = waiting_clock_ms();
    stage_stop_masters(&stage, 1, 2);
    expect_throttled(&stage.daemon, "hold_lost", MANY, begin_ms);
    /* The client gets a LOST for each hold, even if the log omits it. */
    for (unsigned lost = 0; lost < MANY;)
        lost += strncmp(client_read(&stage.client), "! LOST ", 7) == 0;
    stage_continue_masters(&stage, 1, 2);
    stage_close(&stage);
}

TEST(a_master_that_is_suspect_again_and_again_does_not_fill_the_log)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    unsigned up = daemon_count_log(&stage.daemon, " node_up ");
    unsigned votes = daemon_count_log(&stage.daemon, " info node_votes ");
    for (unsigned i = 0; i < 5; i++) {
        kill(stage.masters[1].pid, SIGSTOP);
        stage_wait_nodes(&stage, "reason=suspect", 1);
        kill(stage.masters[1].pid, SIGCONT);
        stage_wait_nodes(&stage, "vote=yes", 3);
    }
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " node_suspect "), 1);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " node_up "), up + 1);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " info node_votes "), votes + 1);
    /* The end of an unlogged suspicion is logged if the master is lost. */
    kill(stage.masters[1].pid, SIGSTOP);
    daemon_wait_log(&stage.daemon, " warning node_down ", "node=b reason=hung");
    kill(stage.masters[1].pid, SIGCONT);
    stage_wait_nodes(&stage, "vote=yes", 3);
    stage_close(&stage);
}

/* A master that comes up later than the others takes their votes away for a moment. */
TEST(a_vote_is_logged_once_at_the_start)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    daemon_bootstrap(&stage.daemon);
    unsigned votes = daemon_count_log(&stage.daemon, " info node_votes ");
    kill(stage.masters[2].pid, SIGSTOP);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 2);
    kill(stage.masters[2].pid, SIGCONT);
    daemon_wait_up(&stage.daemon, 3);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " info node_votes "), votes + 3);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}

TEST(a_missing_quorum_is_logged)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " no_quorum "), 0);
    stage_stop_masters(&stage, 1, 2);
    daemon_wait_log(&stage.daemon, " error no_quorum voting=1 need=2 ", "no lock can be granted");
    stage_continue_masters(&stage, 1, 2);
    daemon_wait_log(&stage.daemon, " info quorum_reached voting=2 need=2 ", "after_ms=");
    stage_close(&stage);
}

static void open_with_users(struct stage *stage, struct secrets *secrets, const char *test,
                            const char *more)
{
    secrets_open(secrets, more);
    stage_open(stage, test,
               &(struct stage_plan){.masters = 3,
                                    .over_unix = true,
                                    .daemon = {.tcp_host = "127.0.0.1", .yaml = secrets->yaml}});
}

TEST(wrong_secrets_from_many_addresses_do_not_fill_the_log)
{
    struct stage stage;
    struct secrets secrets;
    struct client client;
    char from[32];
    open_with_users(&stage, &secrets, __func__, "");
    int64_t begin_ms = waiting_clock_ms();
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(from, sizeof(from), "127.1.%u.%u", i / 250, 1 + i % 250);
        client_connect_from(&client, from, "127.0.0.1", stage.daemon.port);
        client_expect(&client, "DENIED wrong secret", "AUTH 0123456789abcdef0123");
        client_close(&client);
    }
    expect_throttled(&stage.daemon, "auth_failed", MANY, begin_ms);
    stage_close(&stage);
    secrets_close(&secrets);
}

/* There is room for one more connection: each new one displaces the previous one. */
TEST(displaced_connections_do_not_fill_the_log)
{
    struct stage stage;
    struct secrets secrets;
    struct client clients[2];
    open_with_users(&stage, &secrets, __func__, "limits: {clients: 2}\n");
    client_connect_tcp(&clients[1], "127.0.0.1", stage.daemon.port);
    int64_t begin_ms = waiting_clock_ms();
    for (unsigned i = 0; i < MANY; i++) {
        client_connect_tcp(&clients[i % 2], "127.0.0.1", stage.daemon.port);
        ck_assert_str_eq(client_read(&clients[1 - i % 2]), "LIMIT unauthenticated");
        client_close(&clients[1 - i % 2]);
    }
    daemon_wait_log(&stage.daemon, "unauthenticated_limited", "limits.clients is reached");
    expect_throttled(&stage.daemon, "unauthenticated_limited", MANY, begin_ms);
    client_close(&clients[1 - MANY % 2]);
    stage_close(&stage);
    secrets_close(&secrets);
}
