/*
 * libredlock and the command redlock with a daemon that has users. Both send the secret first on
 * every connection, and no error message contains it. Only an operator's secret allows BREAK.
 * A job or a waiter survives a restart of the daemon with a new secret. A waiter also survives a
 * reload that introduces users, and tries again while the daemon has too many clients.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/c/redlock.h"
#include "tests/e2e/command.h"
#include "tests/e2e/library.h"
#include "tests/e2e/process.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/e2e/wrapper.h"
#include "tests/runner.h"

static struct secrets secrets;
static char url[64];

static void open_stage(struct stage *stage, const char *test)
{
    secrets_open(&secrets, "");
    stage_open(stage, test,
               &(struct stage_plan){.masters = 3,
                                    .daemon = {.tcp_host = "127.0.0.1", .yaml = secrets.yaml}});
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage->daemon.port);
    setenv("REDLOCK_URL", url, 1);
    unsetenv("REDLOCK_SECRET_FILE");
}

static void close_stage(struct stage *stage)
{
    stage_close(stage);
    secrets_close(&secrets);
}

/* --- the library --- */

static void expect(const struct redlock *redlock, enum redlock_status status,
                   enum redlock_status expected)
{
    library_expect(redlock, status, expected);
    ck_assert_ptr_null(strstr(redlock_error(redlock), "0123456789abcdef"));
}

TEST(a_handle_authenticates_again_after_a_reconnect)
{
    struct stage stage;
    struct redlock_lock lock;
    int64_t hint_ms = 0;
    open_stage(&stage, __func__);
    struct redlock *redlock = redlock_new(url);
    expect(redlock, redlock_set_secret(redlock, SECRET_CI), REDLOCK_OK);
    expect(redlock, redlock_set_label(redlock, "me"), REDLOCK_OK);
    expect(redlock, redlock_acquire(redlock, "ci:a", 60000, NULL, &lock, NULL), REDLOCK_OK);
    expect(redlock, redlock_acquire(redlock, "prod", 60000, NULL, &lock, NULL), REDLOCK_DENIED);
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", "name=me"), 1);
    /* After the daemon's restart, the handle authenticates again with its first request. */
    daemon_stop(&stage.daemon);
    client_close(&stage.client);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    expect(redlock, redlock_query(redlock, "ci:a", &hint_ms), REDLOCK_HELD);
    expect(redlock, redlock_break(redlock, "ci:a", &hint_ms), REDLOCK_DENIED);
    redlock_free(redlock);
    close_stage(&stage);
}

TEST(a_handle_with_no_secret_or_a_wrong_one_is_denied)
{
    struct stage stage;
    open_stage(&stage, __func__);
    struct redlock *redlock = redlock_new(url);
    expect(redlock, redlock_query(redlock, "ci:a", NULL), REDLOCK_DENIED);
    redlock_free(redlock);
    redlock = redlock_new(url);
    expect(redlock, redlock_set_secret(redlock, "wrong-0123456789abcdef"), REDLOCK_OK);
    expect(redlock, redlock_query(redlock, "ci:a", NULL), REDLOCK_DENIED);
    ck_assert_ptr_nonnull(strstr(redlock_error(redlock), "wrong secret"));
    expect(redlock, redlock_ping(redlock), REDLOCK_DENIED);
    expect(redlock, redlock_set_secret(redlock, SECRET_OPS), REDLOCK_OK);
    expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    expect(redlock, redlock_set_secret(redlock, "a b"), REDLOCK_INVALID);
    expect(redlock, redlock_set_secret(redlock, ""), REDLOCK_INVALID);
    expect(redlock, redlock_set_secret(redlock, NULL), REDLOCK_OK);
    redlock_free(redlock);
    close_stage(&stage);
}

TEST(a_handle_of_an_operator_breaks_a_lock)
{
    struct stage stage;
    struct redlock_lock lock;
    int64_t hint_ms = 0;
    open_stage(&stage, __func__);
    struct redlock *ci = redlock_new(url);
    struct redlock *ops = redlock_new(url);
    redlock_set_secret(ci, SECRET_CI);
    redlock_set_secret(ops, SECRET_OPS);
    expect(ci, redlock_acquire(ci, "ci:a", 60000, NULL, &lock, NULL), REDLOCK_OK);
    expect(ops, redlock_break(ops, "ci:a", &hint_ms), REDLOCK_OK);
    expect(ops, redlock_break(ops, "ci:a", &hint_ms), REDLOCK_FREE);
    expect(ops, redlock_break(ops, "a b", &hint_ms), REDLOCK_INVALID);
    expect(ci, redlock_extend(ci, &lock, 60000), REDLOCK_GONE);
    redlock_free(ci);
    redlock_free(ops);
    close_stage(&stage);
}

/* --- the command --- */

static void run(const struct stage *stage, const char *const *words, int status, const char *output,
                const char *errors)
{
    struct command command;
    const char *argv[12] = {wrapper_program()};
    for (unsigned i = 0; words[i] != NULL; i++)
        argv[1 + i] = words[i];
    command_run(&command, &stage->sandbox, argv);
    ck_assert_msg(command.status == status, "%s: status %d\n%s\n%s", words[0], command.status,
                  command.output, command.errors);
    ck_assert_msg(strncmp(command.output, output, strlen(output)) == 0, "%s", command.output);
    ck_assert_msg(strncmp(command.errors, errors, strlen(errors)) == 0, "%s", command.errors);
    ck_assert_ptr_null(strstr(command.errors, "0123456789abcdef"));
    command_free(&command);
}

TEST(the_command_reads_its_secret_from_a_file)
{
    struct stage stage;
    char ci[64];
    char ops[64];
    open_stage(&stage, __func__);
    secrets_path(&secrets, "ci", ci);
    secrets_path(&secrets, "ops", ops);
    const char *denied[] = {"status", "ci:a", NULL};
    run(&stage, denied, 125, "",
        "redlock: access denied: authenticate first: AUTH <secret>\n"
        "redlock: set --secret-file or REDLOCK_SECRET_FILE to the file with the secret\n");
    const char *given[] = {"--secret-file", ci, "status", "ci:a", NULL};
    run(&stage, given, 0, "free\n", "");
    setenv("REDLOCK_SECRET_FILE", ci, 1);
    const char *held[] = {"run", "ci:a", "--", "sh", "-c", "\"$REDLOCK\" status ci:a", NULL};
    setenv("REDLOCK", wrapper_program(), 1);
    run(&stage, held, 0, "held ", "");
    const char *lock[] = {"lock", "ci:a", NULL};
    run(&stage, lock, 0, "", "");
    const char *break_it[] = {"break", "ci:a", NULL};
    run(&stage, break_it, 125, "", "redlock: access denied: user ci may not use BREAK\n");
    setenv("REDLOCK_SECRET_FILE", ops, 1);
    run(&stage, break_it, 0, "", "");
    run(&stage, break_it, 0, "free\n", "");
    const char *json[] = {"--json", "break", "ci:a", NULL};
    run(&stage, json, 0, "{\"status\":\"free\",\"resource\":\"ci:a\"}\n", "");
    close_stage(&stage);
}

TEST(an_error_names_an_unusable_secret_file)
{
    struct stage stage;
    char none[64];
    char empty[SANDBOX_FILE];
    char two[SANDBOX_FILE];
    char message[256];
    open_stage(&stage, __func__);
    secrets_path(&secrets, "none", none);
    sandbox_write(sandbox_path(&stage.sandbox, "empty", empty), "\n");
    sandbox_write(sandbox_path(&stage.sandbox, "two", two), SECRET_CI "\n" SECRET_OPS "\n");
    const struct {
        const char *path;
        const char *why;
    } rows[] = {{none, "No such file or directory"},
                {empty, "the file is empty"},
                {two, "the file must contain only the secret, on one line"},
                {"/", "Is a directory"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *words[] = {"--secret-file", rows[i].path, "ping", NULL};
        snprintf(message, sizeof(message), "redlock: the secret in \"%s\": %s\n", rows[i].path,
                 rows[i].why);
        run(&stage, words, 125, "", message);
    }
    const char *missing[] = {"--secret-file", "", "ping", NULL};
    run(&stage, missing, 125, "", "redlock: --secret-file must not be empty\n");
    close_stage(&stage);
}

/* --- waiters --- */

/* A `redlock lock` that waits in the queue; its messages go to a file. */
struct waiter {
    pid_t pid;
    char errors[SANDBOX_FILE];
};

static void start_waiter(struct waiter *waiter, const struct stage *stage, const char *secret)
{
    char file[64] = "";
    char name[32];
    const char *const argv[] = {wrapper_program(), "lock", "ci:a", NULL};
    const char *environment[] = {"REDLOCK_SECRET_FILE", file, NULL};
    snprintf(name, sizeof(name), "%s.log", secret != NULL ? secret : "none");
    sandbox_path(&stage->sandbox, name, waiter->errors);
    if (secret != NULL)
        secrets_path(&secrets, secret, file);
    else
        environment[0] = NULL;
    waiter->pid = process_start(
        &(struct process_plan){.argv = argv, .errors = waiter->errors, .environment = environment});
}

static void end_waiter(const struct waiter *waiter, int code, const char *expected)
{
    int status = process_wait(waiter->pid, "redlock lock");
    char *errors = sandbox_read(waiter->errors);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code, "status %d: %s", status,
                  errors);
    ck_assert_msg(strstr(errors, expected) != NULL, "redlock lock wrote: %s", errors);
    free(errors);
}

static void restart(struct stage *stage)
{
    daemon_stop(&stage->daemon);
    client_close(&stage->client);
    daemon_start(&stage->daemon, 0);
    daemon_wait_up(&stage->daemon, 3);
    daemon_connect(&stage->daemon, &stage->client);
}

static void restart_with_new_secret(struct stage *stage)
{
    char ci[64];
    sandbox_write(secrets_path(&secrets, "ci", ci), "ci-next-0123456789abcdef\n");
    restart(stage);
}

TEST(a_running_job_survives_the_rotation_of_its_secret)
{
    struct stage stage;
    char ci[64], file[SANDBOX_FILE];
    open_stage(&stage, __func__);
    secrets_path(&secrets, "ci", ci);
    const char *const argv[] = {
        wrapper_program(), "run", "--ttl", "10s", "--secret-file", ci, "ci:a",
        "sleep",           "600", NULL};
    pid_t job = process_start(&(struct process_plan){
        .argv = argv, .errors = sandbox_path(&stage.sandbox, "job.log", file)});
    stage_wait_stats(&stage.client, " holding=1 ");
    unsigned before = daemon_count_log(&stage.daemon, " user=ci");
    restart_with_new_secret(&stage);
    struct waiting waiting = waiting_for("the job to authenticate with the new secret");
    while (daemon_count_log(&stage.daemon, " user=ci") == before)
        waiting_pause(&waiting);
    client_expect_match(&stage.client, "HELD .*", "STATUS ci:a");
    ck_assert_int_eq(kill(job, SIGTERM), 0);
    int status = process_wait(job, "redlock run");
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM, "status %d", status);
    close_stage(&stage);
}

/* Until its command runs, a signal ends the job itself. */
static void wait_for_command(const char *file)
{
    struct waiting waiting = waiting_for("the command to run");
    for (bool runs = false; !runs; waiting_pause(&waiting)) {
        char *errors = sandbox_read(file);
        runs = strstr(errors, "running\n") != NULL;
        free(errors);
    }
}

/* The user of a job loses the verb unlock before the job begins (0) or meanwhile (1). The
 * restart ends the connection on which the job got the lock, so only in the first case QUIT
 * releases it. */
TEST_LOOP(a_job_without_the_verb_unlock_says_so, 0, 2)
{
    struct stage stage;
    char ci[64], file[SANDBOX_FILE];
    open_stage(&stage, __func__);
    const char *const argv[] = {wrapper_program(),
                                "run",
                                "--secret-file",
                                secrets_path(&secrets, "ci", ci),
                                "ci:a",
                                "sh",
                                "-c",
                                "echo running >&2; exec sleep 600",
                                NULL};
    daemon_edit(&stage.daemon, "verbs: [lock, unlock, extend,", "verbs: [lock, extend,");
    if (_i == 0)
        restart(&stage);
    pid_t job = process_start(&(struct process_plan){
        .argv = argv, .errors = sandbox_path(&stage.sandbox, "job.log", file)});
    wait_for_command(file);
    if (_i == 1)
        restart(&stage);
    ck_assert_int_eq(kill(job, SIGTERM), 0);
    int status = process_wait(job, "redlock run");
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM, "status %d", status);
    char *errors = sandbox_read(file);
    ck_assert_msg(strstr(errors, "ci:a: its release was not confirmed; the lock expires after its "
                                 "TTL at the latest: access denied") != NULL,
                  "redlock run wrote: %s", errors);
    free(errors);
    client_expect_match(&stage.client, _i == 0 ? "FREE" : "HELD .*", "STATUS ci:a");
    close_stage(&stage);
}

TEST(a_waiter_survives_the_rotation_of_its_secret)
{
    struct stage stage;
    struct waiter waiter;
    open_stage(&stage, __func__);
    struct grant grant = client_lock(&stage.client, "ci:a", "60s");
    start_waiter(&waiter, &stage, "ci");
    stage_wait_stats(&stage.client, " waiting=1 ");
    restart_with_new_secret(&stage);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK ci:a %s", grant.token);
    end_waiter(&waiter, 0, "trying again\n");
    close_stage(&stage);
}

/* Opens a daemon without users on TCP; stage.client holds the lock "ci:a". */
static struct grant open_stage_without_users(struct stage *stage, const char *test)
{
    secrets_open(&secrets, "");
    stage_open(stage, test,
               &(struct stage_plan){.masters = 3, .daemon = {.tcp_host = "127.0.0.1"}});
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage->daemon.port);
    setenv("REDLOCK_URL", url, 1);
    unsetenv("REDLOCK_SECRET_FILE");
    return client_lock(&stage->client, "ci:a", "60s");
}

/* Appends to the configuration and reloads it. */
static void reload_with(const struct daemon *daemon, const char *more)
{
    char text[8192];
    char *before = sandbox_read(daemon->config);
    snprintf(text, sizeof(text), "%s%s", before, more);
    sandbox_write(daemon->config, text);
    free(before);
    daemon_reload(daemon, " reloaded ");
}

TEST(a_waiter_with_a_secret_survives_the_introduction_of_users)
{
    struct stage stage;
    struct waiter waiter;
    struct grant grant = open_stage_without_users(&stage, __func__);
    start_waiter(&waiter, &stage, "ci");
    stage_wait_stats(&stage.client, " waiting=1 ");
    reload_with(&stage.daemon, strstr(secrets.yaml, "auth:"));
    daemon_wait_log(&stage.daemon, "client_authenticated", "user=ci");
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK ci:a %s", grant.token);
    end_waiter(&waiter, 0, "the users of this daemon have changed; trying again\n");
    close_stage(&stage);
}

TEST(a_waiter_without_a_valid_secret_ends_when_users_are_introduced)
{
    struct stage stage;
    struct waiter wrong_secret;
    struct waiter no_secret;
    char path[64];
    open_stage_without_users(&stage, __func__);
    sandbox_write(secrets_path(&secrets, "bad", path), "bad-0123456789abcdef\n");
    start_waiter(&wrong_secret, &stage, "bad");
    start_waiter(&no_secret, &stage, NULL);
    stage_wait_stats(&stage.client, " waiting=2 ");
    reload_with(&stage.daemon, strstr(secrets.yaml, "auth:"));
    end_waiter(&wrong_secret, 125, "access denied: wrong secret\n");
    end_waiter(&no_secret, 125, "access denied: authenticate first");
    unlink(path);
    close_stage(&stage);
}

/* After a restart of the daemon, other clients can reach the limit before the waiter reconnects.
 * The test stops the waiter until another client has taken the only place for their address. */
TEST(a_waiter_retries_while_the_client_limit_is_reached)
{
    struct stage stage;
    struct waiter waiter;
    struct client other;
    struct grant grant = open_stage_without_users(&stage, __func__);
    start_waiter(&waiter, &stage, NULL);
    stage_wait_stats(&stage.client, " waiting=1 ");
    ck_assert_int_eq(kill(waiter.pid, SIGSTOP), 0);
    daemon_stop(&stage.daemon);
    client_close(&stage.client);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    client_connect_tcp(&other, "127.0.0.1", stage.daemon.port);
    client_expect(&other, "PONG", "PING");
    reload_with(&stage.daemon, "limits: {clients_per_address: 1}\n");
    ck_assert_int_eq(kill(waiter.pid, SIGCONT), 0);
    daemon_wait_log(&stage.daemon, "client_refused", "limit=clients");
    client_close(&other);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK ci:a %s", grant.token);
    end_waiter(&waiter, 0, "trying again\n");
    close_stage(&stage);
}

TEST(a_new_client_retries_while_the_client_limit_is_reached)
{
    struct stage stage;
    struct waiter waiter;
    struct client other;
    struct grant grant = open_stage_without_users(&stage, __func__);
    client_connect_tcp(&other, "127.0.0.1", stage.daemon.port);
    client_expect(&other, "PONG", "PING");
    reload_with(&stage.daemon, "limits: {clients_per_address: 1}\n");
    start_waiter(&waiter, &stage, NULL);
    daemon_wait_log(&stage.daemon, "client_refused", "limit=clients");
    client_close(&other);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK ci:a %s", grant.token);
    end_waiter(&waiter, 0, "trying again\n");
    close_stage(&stage);
}
