/*
 * redlockd -t --probe: the report for masters in each state. The probe must not change their state.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/e2e/command.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

/* On a busy machine, a round trip can exceed 20 ms, half of the default clock_drift_margin. The
 * probe reports such a master as too slow. */
enum { MARGIN_MS = 400 };

static const struct stage_plan three = {
    .masters = 3, .over_unix = true, .daemon = {.margin_ms = MARGIN_MS}};
static struct stage stage;
static struct command command;

static void open_masters(const char *test, const struct stage_plan *plan)
{
    stage_open_masters(&stage, test, plan);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, plan->masters, &plan->daemon);
}

static void open_bootstrapped(const char *test)
{
    open_masters(test, &three);
    daemon_bootstrap(&stage.daemon);
}

static void probe(int status)
{
    const char *argv[] = {daemon_program(), "-t", "--probe", "-c", stage.daemon.config, NULL};
    command_run(&command, &stage.sandbox, argv);
    ck_assert_msg(command.status == status, "exit status %d: %s%s", command.status, command.output,
                  command.errors);
}

/* In the report's line for this node, the text after the colon must begin with `expected`. */
static void expect(char node, const char *expected)
{
    char start[8];
    snprintf(start, sizeof(start), "%c ", node);
    const char *line = command.output;
    while (line != NULL && strncmp(line, start, 2) != 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    ck_assert_msg(line != NULL, "no line for %c: %s", node, command.output);
    const char *rest = strstr(line, ": ");
    ck_assert_ptr_nonnull(rest);
    ck_assert_msg(strncmp(rest + 2, expected, strlen(expected)) == 0, "\"%s\": %s", expected, line);
}

static void close_all(void)
{
    command_free(&command);
    stage_close_masters(&stage);
}

TEST(masters_that_can_vote_are_reported_ok)
{
    open_bootstrapped(__func__);
    probe(0);
    for (char node = 'a'; node <= 'c'; node++)
        expect(node, "ok, round trip ");
    ck_assert_ptr_null(strstr(command.output, "backoff_max"));
    ck_assert_str_eq(command.errors, "");
    close_all();
}

/* The round trip to these masters requires a backoff_max of more than a millisecond. The first
 * two lines of `yaml` continue the section `rounds`, which the test framework writes before it. */
TEST(a_backoff_too_short_for_the_round_trip_is_a_warning)
{
    const struct stage_plan plan = {
        .masters = 3,
        .over_unix = true,
        .daemon = {.yaml = "  backoff_min: 1ms\n  backoff_max: 1ms\nlog: {level: debug}\n",
                   .margin_ms = MARGIN_MS}};
    open_masters(__func__, &plan);
    daemon_bootstrap(&stage.daemon);
    probe(0);
    expect('a', "ok, round trip ");
    ck_assert_ptr_nonnull(strstr(command.output, "raise rounds.backoff_max of all daemons from "));
    ck_assert_ptr_nonnull(strstr(command.output, "from 1.0 ms to "));
    close_all();
}

TEST(a_failed_write_of_the_findings_is_an_error)
{
    char line[2 * SANDBOX_FILE + 64];
    const char *argv[] = {"sh", "-c", line, NULL};
    open_bootstrapped(__func__);
    snprintf(line, sizeof(line), "exec %s -t --probe -c %s >/dev/full", daemon_program(),
             stage.daemon.config);
    command_run(&command, &stage.sandbox, argv);
    ck_assert_int_eq(command.status, 1);
    ck_assert_str_eq(command.errors,
                     "redlockd: cannot write to standard output: No space left on device\n");
    close_all();
}

/* --bootstrap must still be possible afterwards. */
TEST(probing_new_masters_writes_nothing)
{
    open_masters(__func__, &three);
    probe(0);
    expect('a', "no vote for max_ttl after the daemon starts, unless you use --bootstrap (new); "
                "otherwise ok");
    ck_assert_uint_eq(masters_with(stage.masters, 3, "redlockd:node"), 0);
    struct waiting waiting = waiting_for("the trial keys to be gone");
    for (unsigned i = 0; i < 3; i++)
        while (strcmp(master_text(&stage.masters[i], "EVAL %s 0",
                                  "return tostring(redis.call('DBSIZE'))"),
                      "0") != 0)
            waiting_pause(&waiting);
    daemon_bootstrap(&stage.daemon);
    close_all();
}

TEST(each_master_is_reported_with_its_reason)
{
    open_bootstrapped(__func__);
    master_kill(&stage.masters[0]);
    masters_run(&stage.masters[1], 1, "REPLICAOF 127.0.0.1 1");
    masters_run(&stage.masters[2], 1, "CONFIG SET maxmemory 100mb");
    masters_run(&stage.masters[2], 1, "CONFIG SET maxmemory-policy allkeys-lru");
    probe(1);
    expect('a', "refused: ");
    expect('b', "replica: ");
    expect('c', "eviction: ");
    close_all();
}

/* A daemon has two connections to a master: one for commands and one for tracking. */
enum { CONNECTIONS = 2 };

/* Takes the place of a master, and replies to every command with an error. */
static void *answer_all(void *listening)
{
    static const char answer[] = "-ERR \033[2J says this\r\n";
    char bytes[4096];
    ssize_t len;
    int fd;
    while ((fd = accept(*(const int *)listening, NULL, NULL)) >= 0) {
        while ((len = read(fd, bytes, sizeof(bytes))) > 0)
            for (ssize_t i = 0; i < len; i++)
                if (bytes[i] == '*' && (i == 0 || bytes[i - 1] == '\n'))
                    (void)!send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

/* The report goes to a terminal, so control characters must be escaped. */
TEST(an_unknown_error_is_shown_with_escaped_control_characters)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    pthread_t threads[CONNECTIONS];
    open_bootstrapped(__func__);
    master_kill(&stage.masters[0]);
    unlink(stage.masters[0].socket);
    memcpy(where.sun_path, stage.masters[0].socket, strlen(stage.masters[0].socket));
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(listen(listening, CONNECTIONS), 0);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, answer_all, &listening), 0);
    probe(1);
    expect('a', "error: ERR \\x1b[2J says this\n");
    shutdown(listening, SHUT_RDWR);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        pthread_join(threads[i], NULL);
    close(listening);
    close_all();
}

/* The guard's own commands succeed: only a trial lock shows the missing right. */
TEST(an_acl_that_lacks_a_command_or_key_is_reported)
{
    open_bootstrapped(__func__);
    masters_run(&stage.masters[0], 1, "ACL SETUSER default -del");
    masters_run(&stage.masters[1], 1, "ACL SETUSER default resetkeys ~redlockd:*");
    masters_run(&stage.masters[2], 1, "ACL SETUSER default -pexpire");
    probe(1);
    expect('a', "noperm to release.lua: ");
    expect('b', "noperm to SET: ");
    expect('c', "noperm to extend.lua: ");
    masters_run(stage.masters, 3, "ACL SETUSER default +@all allkeys");
    masters_run(&stage.masters[0], 1, "ACL SETUSER default -exists");
    masters_run(&stage.masters[1], 1, "ACL SETUSER default -eval");
    command_free(&command);
    probe(1);
    expect('a', "noperm to releases.lua: ");
    expect('b', "noperm to release.lua: ");
    masters_run(stage.masters, 3, "ACL SETUSER default +@all allkeys");
    close_all();
}

TEST(a_hung_master_does_not_block_the_probe)
{
    open_bootstrapped(__func__);
    kill(stage.masters[1].pid, SIGSTOP);
    probe(1);
    kill(stage.masters[1].pid, SIGCONT);
    expect('a', "ok, ");
    expect('b', "hung: ");
    close_all();
}

/* The address of master c becomes another name of master b. */
TEST(a_duplicate_is_reported_beside_the_others)
{
    open_bootstrapped(__func__);
    master_kill(&stage.masters[2]);
    unlink(stage.masters[2].socket);
    ck_assert_int_eq(symlink(stage.masters[1].socket, stage.masters[2].socket), 0);
    probe(1);
    expect('a', "ok, round trip ");
    expect('c', "duplicate of b: ");
    close_all();
}

TEST(masters_of_another_set_are_reported_and_unchanged)
{
    static const struct daemon_plan other = {.locks = ", max_ttl: 7s", .margin_ms = MARGIN_MS};
    open_bootstrapped(__func__);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &other);
    probe(1);
    for (char node = 'a'; node <= 'c'; node++)
        expect(node, "otherset: ");
    close_all();
}

/* The configuration exchanges the names of two servers that a running daemon uses. */
TEST(names_leased_to_other_servers_are_reported)
{
    struct master exchanged[3];
    stage_open(&stage, __func__, &three);
    memcpy(exchanged, stage.masters, sizeof(exchanged));
    exchanged[0] = stage.masters[1];
    exchanged[1] = stage.masters[0];
    struct daemon served = stage.daemon;
    daemon_prepare(&stage.daemon, &stage.sandbox, exchanged, 3,
                   &(struct daemon_plan){.name = "exchanged", .margin_ms = MARGIN_MS});
    probe(1);
    expect('a', "repointed: ");
    expect('b', "repointed: ");
    expect('c', "ok, ");
    stage.daemon = served;
    command_free(&command);
    stage_close(&stage);
}

TEST(durable_nodes_without_persistence_are_reported)
{
    const struct stage_plan plan = {
        .masters = 3,
        .over_unix = true,
        .daemon = {.node_fields = ", durable: true", .margin_ms = MARGIN_MS}};
    open_masters(__func__, &plan);
    probe(1);
    expect('a', "no vote for max_ttl after the daemon starts, unless you use --bootstrap (new); "
                "otherwise not "
                "durable: ");
    close_all();
}

/* A probe affects neither a lock nor a quarantine. It reports how long the quarantine will last. */
TEST(probing_does_not_disturb_a_running_daemon)
{
    struct client client;
    stage_open(&stage, __func__, &three);
    daemon_connect(&stage.daemon, &client);
    client_lock(&client, "a", "30s");
    probe(0);
    client_expect_match(&client, "HELD [0-9]+", "LOCK a 1s");
    stage_wait_nodes(&stage, "vote=yes", 3);
    master_restart(&stage.masters[1]);
    stage_wait_nodes(&stage, "vote=no reason=restarted", 1);
    command_free(&command);
    probe(0);
    expect('b', "no vote for ");
    ck_assert_ptr_nonnull(strstr(command.output, " s (restarted); otherwise ok"));
    client_close(&client);
    command_free(&command);
    stage_close(&stage);
}

TEST(probe_requires_the_check_option)
{
    open_masters(__func__, &three);
    const char *argv[] = {daemon_program(), "--probe", "-c", stage.daemon.config, NULL};
    command_run(&command, &stage.sandbox, argv);
    ck_assert_int_eq(command.status, 2);
    ck_assert_ptr_nonnull(strstr(command.errors, "--probe requires -t"));
    close_all();
}
