/*
 * A signal ends `redlock run` or `redlock lock` while it waits for its lock. The lock must not stay
 * held for its TTL, which is long.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/run_fixture.h"
#include "tests/runner.h"

static const struct stage_plan long_ttl = {
    .masters = 3, .over_unix = true, .daemon = {.locks = ", max_ttl: 1h"}};

static void set_up(void)
{
    stage_open(&stage, runner_test_name, &long_ttl);
}

const struct runner_settings runner_settings = {.setup = set_up, .teardown = run_tear_down};

/* Starts `redlock run` or `redlock lock`, which waits for lock "a". */
static pid_t start_waiter(bool runs)
{
    char url[SANDBOX_FILE + 8], errors[SANDBOX_FILE];
    const char *program = wrapper_program();
    snprintf(url, sizeof(url), "unix:%s", stage.daemon.socket);
    pid_t pid = process_start(&(struct process_plan){
        .argv = runs ? WORDS(program, "run", "--url", url, "--ttl", "1h", "a", "echo", "ran")
                     : WORDS(program, "lock", "--url", url, "--ttl", "1h", "a"),
        .errors = sandbox_path(&stage.sandbox, "waiter.out", errors)});
    stage_wait_stats(&stage.client, " waiting=1 ");
    return pid;
}

static void expect_ended(pid_t pid, int signal)
{
    char output[SANDBOX_FILE];
    int status = process_wait(pid, "a waiter");
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == signal, "status %#x",
                  (unsigned)status);
    char *text = sandbox_read(sandbox_path(&stage.sandbox, "waiter.out", output));
    ck_assert_str_eq(text, "");
    free(text);
}

/* While the waiter is stopped, it is granted the lock and gets the signal. When it is continued, it
 * finds both at once. */
TEST_LOOP(a_waiter_ended_by_a_signal_leaves_no_lock, 0, 10)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM};
    int signal = signals[_i / 2];
    struct grant grant = client_lock(&stage.client, "a", "60s");
    pid_t pid = start_waiter(_i % 2 == 0);
    process_stop(pid);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_stats(&stage.client, " waiting=0 ");
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    kill(pid, signal);
    kill(pid, SIGCONT);
    expect_ended(pid, signal);
    client_expect_match(&stage.client, "OK .*", "LOCK a 60s WAIT 60s");
}

TEST_LOOP(a_waiter_of_a_hung_daemon_ends_by_a_signal, 0, 2)
{
    struct grant grant = client_lock(&stage.client, "a", "60s");
    pid_t pid = start_waiter(_i == 0);
    process_stop(stage.daemon.pid);
    kill(pid, SIGTERM);
    expect_ended(pid, SIGTERM);
    kill(stage.daemon.pid, SIGCONT);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    client_expect_match(&stage.client, "OK .*", "LOCK a 60s WAIT 60s");
}

/* Starts `redlock lock`, whose standard output is a pipe that is full. Returns when the lock is
 * granted. *pipe: to be closed. */
static pid_t start_with_full_output(const char *ttl, int *pipe)
{
    char url[SANDBOX_FILE + 8], errors[SANDBOX_FILE], output[SANDBOX_FILE];
    static const char bytes[4096];
    snprintf(url, sizeof(url), "unix:%s", stage.daemon.socket);
    sandbox_path(&stage.sandbox, "full", output);
    ck_assert_int_eq(mkfifo(output, 0600), 0);
    *pipe = open(output, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    while (write(*pipe, bytes, sizeof(bytes)) > 0)
        ;
    pid_t pid = process_start(&(struct process_plan){
        .argv = WORDS(wrapper_program(), "lock", "--url", url, "--ttl", ttl, "a"),
        .output = output,
        .errors = sandbox_path(&stage.sandbox, "waiter.out", errors)});
    client_wait_count(&stage.client, "STATS", " acquire_rounds=1 ", 1);
    unlink(output);
    return pid;
}

/* Without its token, the lock could not be released. */
TEST(redlock_lock_ended_by_a_signal_before_its_output_leaves_no_lock)
{
    int pipe;
    pid_t pid = start_with_full_output("1h", &pipe);
    client_wait_count(&stage.client, "LOCKS a", "resource=a ", 1);
    kill(pid, SIGTERM);
    expect_ended(pid, SIGTERM);
    close(pipe);
    client_expect_match(&stage.client, "OK .*", "LOCK a 60s WAIT 60s");
}

TEST(redlock_lock_fails_if_its_output_takes_nothing_until_the_lock_expires)
{
    int pipe;
    char file[SANDBOX_FILE];
    pid_t pid = start_with_full_output("1s", &pipe);
    int status = process_wait(pid, "redlock lock");
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 125, "status %#x", (unsigned)status);
    char *text = sandbox_read(sandbox_path(&stage.sandbox, "waiter.out", file));
    ck_assert_str_eq(text, "redlock: standard output: took nothing until the lock expired\n");
    free(text);
    close(pipe);
}
