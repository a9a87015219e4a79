/*
 * `redlock run`: exit codes, signals, and restarts of the daemon.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/run_fixture.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.setup = run_set_up, .teardown = run_tear_down};

/* --- exit codes --- */

TEST(the_exit_code_is_that_of_the_command)
{
    ck_assert_int_eq(run(WORDS("a", "true")), 0);
    ck_assert_int_eq(run(WORDS("a", "--", "false")), 1);
    ck_assert_int_eq(run(WORDS("a", SHELL("exit 77"))), 77);
    ck_assert_int_eq(run(WORDS("a", SHELL("kill -TERM $$"))), 128 + SIGTERM);
    ck_assert_int_eq(run(WORDS("a", SHELL("kill -KILL $$"))), 128 + SIGKILL);
    client_expect(&stage.client, "FREE", "STATUS a");
}

TEST(a_command_that_cannot_run_has_the_exit_codes_of_env)
{
    /* An unreadable folder in PATH would change the exit code, as for env(1). */
    setenv("PATH", "/usr/bin:/bin", 1);
    ck_assert_int_eq(run(WORDS("a", "no-such-command")), 127);
    wrapper_wait_errors(&wrapper, "redlock: cannot run no-such-command: No such file");
    ck_assert_int_eq(run(WORDS("a", "/etc/passwd")), 126);
    wrapper_wait_errors(&wrapper, "redlock: cannot run /etc/passwd: Permission denied");
    client_expect(&stage.client, "FREE", "STATUS a");
}

TEST(a_lock_held_elsewhere_has_its_own_exit_codes)
{
    client_expect_match(&stage.client, "OK .*", "LOCK a 60s");
    ck_assert_int_eq(run(WORDS("--nonblock", "a", "echo", "ran")), 1);
    ck_assert_int_eq(run(WORDS("-n", "-E", "9", "a", "echo", "ran")), 9);
    ck_assert_int_eq(run(WORDS("--wait", "50ms", "a", "echo", "ran")), 124);
    ck_assert_int_eq(run(WORDS("-w", "50ms", "-E", "9", "a", "echo", "ran")), 9);
    ck_assert(wrapper_complained(&wrapper, "redlock: a: another client"));
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
}

TEST(a_quiet_run_that_is_not_granted_the_lock_prints_nothing)
{
    client_expect_match(&stage.client, "OK .*", "LOCK a 60s");
    ck_assert_int_eq(run(WORDS("-n", "-q", "-E", "0", "a", "echo", "ran")), 0);
    ck_assert(!wrapper_complained(&wrapper, "redlock"));
    ck_assert_int_eq(run(WORDS("-w", "50ms", "--quiet", "-E", "0", "a", "echo", "ran")), 0);
    ck_assert(!wrapper_complained(&wrapper, "redlock"));
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
    ck_assert_int_eq(run(WORDS("-n", "-q", "-E", "0", "b", SHELL("echo bad >&2; exit 3"))), 3);
    ck_assert(wrapper_complained(&wrapper, "bad"));
}

TEST(without_quorum_or_daemon_the_command_does_not_run)
{
    ck_assert_int_eq(
        wrapper_run(&wrapper, &stage.sandbox, "/nowhere/redlockd.sock", WORDS("a", "echo", "ran")),
        125);
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    stage_wait_nodes(&stage, "state=down", 2);
    ck_assert_int_eq(run(WORDS("-n", "a", "echo", "ran")), 123);
    ck_assert_int_eq(run(WORDS("-w", "50ms", "a", "echo", "ran")), 123);
    ck_assert_int_eq(run(WORDS("--ttl", "9h", "a", "echo", "ran")), 125);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
}

TEST(the_environment_describes_the_lock)
{
    char expected[128], token[41] = "";
    long long deadline_ms = 0, fence = 0;
    struct timespec now;
    ck_assert_int_eq(
        run(WORDS(
            "--ttl", "20s", "--fence", "deploy",
            SHELL("echo $REDLOCK_RESOURCE $REDLOCK_TOKEN $REDLOCK_DEADLINE_MS $REDLOCK_FENCE"))),
        0);
    char *output = sandbox_read(wrapper.output);
    ck_assert_int_eq(sscanf(output, "deploy %40s %lld %lld", token, &deadline_ms, &fence), 3);
    clock_gettime(CLOCK_BOOTTIME, &now);
    ck_assert_uint_eq(strspn(token, "0123456789abcdef"), 40);
    ck_assert_int_gt(fence, 0);
    ck_assert_int_lt(deadline_ms, (now.tv_sec + 1) * 1000 + 20000);
    ck_assert_int_gt(deadline_ms, now.tv_sec * 1000);
    free(output);
    snprintf(expected, sizeof(expected), "UNLOCK deploy %s", token);
    client_expect(&stage.client, "GONE", "%s", expected);
    /* Without --fence the variable is unset, even if an enclosing redlock run has set it. */
    setenv("REDLOCK_FENCE", "1", 1);
    ck_assert_int_eq(run(WORDS("deploy", SHELL("test -z \"$REDLOCK_FENCE\""))), 0);
}

/* --- signals --- */

/* Each signal must arrive exactly once. */
TEST(signals_reach_the_command_once)
{
    static const struct {
        int signal;
        const char *name;
    } forwarded[] = {{SIGINT, "INT"},   {SIGTERM, "TERM"}, {SIGHUP, "HUP"},    {SIGQUIT, "QUIT"},
                     {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGWINCH, "WINCH"}};
    char text[32];
    start(WORDS("a", SHELL("for s in INT TERM HUP QUIT USR1 USR2 WINCH; do"
                           "  trap \"echo got $s\" $s; done; trap 'echo end; exit 3' ALRM;"
                           "echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
        kill(wrapper.pid, forwarded[i].signal);
        snprintf(text, sizeof(text), "got %s\n", forwarded[i].name);
        wrapper_wait_output(&wrapper, text);
    }
    kill(wrapper_command(&wrapper), SIGALRM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 3);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "got "),
                      sizeof(forwarded) / sizeof(forwarded[0]));
}

/* A shell without job control sees only the parent, which must stop and continue together with the
 * command. */
TEST(run_stops_and_continues_with_its_command)
{
    start(/* exec, because a shell that is starting another process does not stop at once. */
          WORDS("a", SHELL("echo ready; exec sleep 600")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t command = wrapper_command(&wrapper);
    for (unsigned i = 0; i < 20; i++) {
        kill(wrapper.pid, SIGTSTP);
        process_wait_state(command, 'T');
        process_wait_state(wrapper.pid, 'T');
        kill(wrapper.pid, SIGCONT);
        process_wait_state(command, 'S');
        /* Sent at once: if `redlock run` sent a second SIGCONT, it would undo this stop. */
        kill(command, SIGSTOP);
        process_wait_state(wrapper.pid, 'T');
        kill(command, SIGCONT);
        process_wait_state(wrapper.pid, 'S');
    }
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
}

/* The parent has to continue by itself: no other process would send it SIGCONT. */
TEST(a_stopped_parent_continues_when_its_command_is_killed)
{
    start(WORDS("a", "sleep", "600"));
    pid_t command = wrapper_command(&wrapper);
    kill(command, SIGSTOP);
    process_wait_state(wrapper.pid, 'T');
    kill(command, SIGKILL);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGKILL);
}

/* The command is stopped and continued in quick succession, at varying intervals. */
TEST(a_parent_never_stays_stopped_without_the_command)
{
    start(WORDS("a", "sleep", "600"));
    pid_t command = wrapper_command(&wrapper);
    for (unsigned i = 0; i < 500; i++) {
        kill(command, SIGSTOP);
        usleep(i);
        kill(command, SIGCONT);
        usleep(i);
    }
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
}

/* --- restarts of the daemon --- */

TEST(a_daemon_restart_costs_no_lock)
{
    start(WORDS("--ttl", "10s", "a", SHELL("echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    int64_t before_ms = run_first_expiry_ms(&stage);
    struct waiting waiting = waiting_for("an extension through the new daemon");
    while (run_first_expiry_ms(&stage) == before_ms)
        waiting_pause(&waiting);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    client_expect(&stage.client, "FREE", "STATUS a");
}

TEST(a_waiter_reconnects_to_a_restarted_daemon)
{
    struct grant grant = client_lock(&stage.client, "a", "60s");
    start(WORDS("a", "echo", "ran"));
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    wrapper_wait_errors(&wrapper, "; trying again");
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    ck_assert_int_eq(wrapper_wait(&wrapper), 0);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 1);
}
