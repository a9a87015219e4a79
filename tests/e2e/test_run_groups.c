/*
 * `redlock run` and processes that outlive its command.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/run_fixture.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.setup = run_set_up, .teardown = run_tear_down};

TEST(the_lock_outlives_the_command_until_its_group_has_ended)
{
    char file[SANDBOX_FILE];
    sandbox_path(&stage.sandbox, "end", file);
    start(WORDS("a", SHELL("(while [ ! -e \"$0\" ]; do sleep 0.01; done) & echo pid $$; exit 5"),
                file));
    wrapper_wait_output(&wrapper, "pid ");
    pid_t command;
    ck_assert_uint_eq(wrapper_printed_pids(&wrapper, &command, 1), 1);
    process_wait_gone(command);
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    sandbox_write(file, "");
    ck_assert_int_eq(wrapper_wait(&wrapper), 5);
    client_expect(&stage.client, "FREE", "STATUS a");
    unlink(file);
}

static long reads_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    char *text = sandbox_read(path);
    const char *reads = strstr(text, "syscr: ");
    ck_assert_ptr_nonnull(reads);
    long count = strtol(reads + 7, NULL, 10);
    free(text);
    return count;
}

/* To check the group, the supervisor reads one file in /proc for each process of the machine. The
 * checks become rarer, down to one a second. */
TEST(a_remaining_group_is_polled_ever_less_often)
{
    struct sysinfo machine;
    pid_t command;
    start(WORDS("a", SHELL("sleep 600 & echo pid $$; exit 5")));
    wrapper_wait_output(&wrapper, "pid ");
    ck_assert_uint_eq(wrapper_printed_pids(&wrapper, &command, 1), 1);
    process_wait_gone(command);
    pid_t supervisor = wrapper_supervisor(&wrapper);
    sleep(2);
    long before = reads_of(supervisor);
    int64_t began_ms = run_wall_ms();
    sleep(2);
    ck_assert_int_eq(sysinfo(&machine), 0);
    int64_t checks = (reads_of(supervisor) - before) / machine.procs;
    ck_assert_int_le(checks, 2 + 2 * (run_wall_ms() - began_ms) / 1000);
    kill(-command, SIGKILL);
    ck_assert_int_eq(wrapper_wait(&wrapper), 5);
}

/* Orphans become children of the supervisor, which has to reap them when they end. The command
 * stays a zombie as long as its group exists, and must not keep the supervisor from reaping the
 * orphans. */
TEST(orphans_in_a_remaining_group_are_reaped)
{
    enum { ORPHANS = 3 };
    char go[SANDBOX_FILE];
    char end[SANDBOX_FILE];
    pid_t pids[1 + ORPHANS]; /* the command, then the orphans */
    sandbox_path(&stage.sandbox, "go", go);
    sandbox_path(&stage.sandbox, "end", end);
    start(
        WORDS("a",
              SHELL("echo pid $$;"
                    "(for i in 1 2 3; do"
                    "   (sh -c 'echo pid $$; while [ ! -e \"$0\" ]; do sleep 0.01; done' \"$0\" &);"
                    " done; while [ ! -e \"$1\" ]; do sleep 0.01; done) & exit 0"),
              go, end));
    struct waiting waiting = waiting_for("the orphans to start");
    while (wrapper_printed_pids(&wrapper, pids, 1 + ORPHANS) < 1 + ORPHANS)
        waiting_pause(&waiting);
    process_wait_gone(pids[0]);
    sandbox_write(go, "");
    waiting = waiting_for("the orphans to be reaped");
    for (unsigned i = 1; i <= ORPHANS; i++)
        while (kill(pids[i], 0) == 0)
            waiting_pause(&waiting);
    sandbox_write(end, "");
    ck_assert_int_eq(wrapper_wait(&wrapper), 0);
    unlink(go);
    unlink(end);
}

/* The others go on, so redlock must go on, too, and forward signals. */
TEST(a_stopped_process_of_a_remaining_group_does_not_stop_run)
{
    pid_t pids[3]; /* two processes that remain, then the command */
    start(WORDS("a", SHELL("for i in 1 2; do sleep 600 & echo pid $!; done; echo pid $$; exit 5")));
    struct waiting waiting = waiting_for("the processes to start");
    while (wrapper_printed_pids(&wrapper, pids, 3) < 3)
        waiting_pause(&waiting);
    process_wait_gone(pids[2]);
    kill(pids[0], SIGSTOP);
    process_wait_state(pids[0], 'T');
    kill(wrapper.pid, SIGTERM);
    process_wait_gone(pids[1]);
    kill(pids[0], SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 5);
}

/* Each process forks and exits at once, so any listing of /proc can miss both the old and the new
 * process. */
TEST(a_group_that_keeps_forking_keeps_the_lock)
{
    ck_assert_int_eq(run(WORDS("a", SHELL("f() { [ $1 -gt 0 ] || { echo last; exit; }; "
                                          "f $(($1 - 1)) & exit 0; }; f 300"))),
                     0);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "last"), 1);
    client_expect(&stage.client, "FREE", "STATUS a");
}

/* A process that has left the group counts as a daemon that was started on purpose. */
TEST(a_daemon_started_by_the_command_is_not_killed)
{
    char file[SANDBOX_FILE];
    pid_t daemon;
    ck_assert_int_eq(
        run(WORDS("a",
                  SHELL("setsid sh -c 'echo pid $$; exec sleep 600' & while [ ! -s \"$0\" ]; do"
                        "  sleep 0.01; done"),
                  sandbox_path(&stage.sandbox, "run.out", file))),
        0);
    ck_assert_uint_eq(wrapper_printed_pids(&wrapper, &daemon, 1), 1);
    ck_assert(process_runs(daemon));
    client_expect(&stage.client, "FREE", "STATUS a");
    kill(daemon, SIGKILL);
    process_wait_gone(daemon);
}
