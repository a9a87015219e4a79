/*
 * `redlock run` in difficult environments: few descriptors, inherited children, blocked standard
 * error, restricted /proc.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/command.h"
#include "tests/e2e/process.h"
#include "tests/e2e/run.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three_tcp = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};

/* A long timeout keeps masters from seeming to be down on a busy machine. */
static const struct stage_plan unhurried = {
    .masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 5000}};

static struct stage stage;
static struct command command;

static void set_up(void)
{
    stage_open(&stage, runner_test_name, &unhurried);
}

static void tear_down(void)
{
    command_free(&command);
    stage_close(&stage);
}

const struct runner_settings runner_settings = {.setup = set_up, .teardown = tear_down};

/* Runs a shell script with $REDLOCK and $REDLOCK_URL set. */
__attribute__((format(printf, 1, 2))) static void shell(const char *form, ...)
{
    char script[1024];
    char path[256];
    va_list arguments;
    command_free(&command);
    va_start(arguments, form);
    vsnprintf(script, sizeof(script), form, arguments);
    va_end(arguments);
    snprintf(path, sizeof(path), "unix:%s", stage.daemon.socket);
    setenv("REDLOCK", wrapper_program(), 1);
    setenv("REDLOCK_URL", path, 1);
    command_run(&command, &stage.sandbox, (const char *[]){"/bin/sh", "-c", script, NULL});
}

/* Process 1 of a container often does not reap orphans. Here the test itself is the subreaper, so
 * the kernel would give it every zombie that `redlock run` leaves. */
TEST(run_leaves_no_zombie_to_its_parent)
{
    pid_t left[8];
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    unsigned before = process_children(getpid(), left, 8);
    for (unsigned i = 0; i < 3; i++) {
        shell("exec $REDLOCK run a true");
        ck_assert_int_eq(command.status, 0);
    }
    ck_assert_uint_eq(process_children(getpid(), left, 8), before);
}

/* Raises the limit of descriptors one by one, from the lowest that the dynamic loader needs, until
 * `redlock run` succeeds. With every lower limit, it must fail without leaving a lock. */
TEST(running_out_of_descriptors_fails_without_a_lock)
{
    unsigned limit = 3;
    bool failed = false;
    do {
        ck_assert_uint_lt(++limit, 64);
        shell("ulimit -n %u && exec $REDLOCK version", limit);
    } while (command.status != 0);
    do {
        ck_assert_uint_lt(limit, 64);
        shell("ulimit -n %u && exec $REDLOCK run a echo ran", limit++);
        ck_assert_msg(command.status == 0 || command.status == 125, "limit %u: status %d, %s",
                      limit, command.status, command.errors);
        ck_assert_str_eq(command.output, command.status == 0 ? "ran\n" : "");
        failed = failed || strstr(command.errors, "cannot start a process: Too many open files");
        client_expect(&stage.client, "FREE", "STATUS a");
    } while (command.status != 0);
    ck_assert(failed);
}

/* The shell starts a process and then becomes redlock by exec. The process must survive when the
 * command kills the supervisor. */
TEST(earlier_children_survive_a_killed_supervisor)
{
    shell("sleep 1000 >/dev/null 2>&1 & echo $!; "
          "exec $REDLOCK run a sh -c 'kill -KILL $PPID; sleep 1000'");
    pid_t before = (pid_t)strtol(command.output, NULL, 10);
    ck_assert_int_eq(command.status, 125);
    ck_assert_ptr_nonnull(strstr(command.errors, "the supervisor process was killed"));
    ck_assert_int_gt(before, 1);
    bool runs = process_runs(before);
    kill(before, SIGKILL);
    ck_assert(runs);
}

/* The lock is lost after max_hold. `redlock run` writes a message about the loss to standard error,
 * a pipe that no process reads. */
TEST(a_blocked_stderr_costs_no_grace)
{
    stage_close(&stage);
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3,
                                    .over_unix = true,
                                    .daemon = {.locks = ", max_ttl: 10s, max_hold: 10s"}});
    shell("mkfifo %s/pipe; exec 8<>%s/pipe 7>%s/pipe 8<&-; "
          "exec $REDLOCK run --ttl 10s --grace 1m a sh -c 'exec 2>/dev/null; "
          "trap \"echo cleaned; exit 0\" TERM; while :; do sleep 0.01; done' 2>&7",
          stage.sandbox.dir, stage.sandbox.dir, stage.sandbox.dir);
    ck_assert_int_eq(command.status, 122);
    ck_assert_str_eq(command.output, "cleaned\n");
}

static bool may_mount(void)
{
    /* LeakSanitizer needs /proc. */
    if (process_is_sanitized)
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    return geteuid() == 0;
}

/* The kernel discards a signal to process 1 of a PID namespace if the process has no handler for
 * it. Without one, a container that waits for a lock could not be stopped. */
TEST_LOOP(a_waiter_that_is_process_1_ends_by_a_signal, 0, 4)
{
    static const char *const signals[] = {"HUP", "TERM"};
    static const char *const commands[] = {"run a echo ran", "lock a"};
    if (!may_mount())
        return;
    /* A background job of a shell ignores INT and QUIT. */
    shell("$REDLOCK lock --ttl 1m a; unshare -pf --mount-proc $REDLOCK %s & "
          "until $REDLOCK locks a | grep -q waiters=1; do sleep 0.01; done; "
          "kill -%s $(cat /proc/$!/task/$!/children); wait $!; echo $?",
          commands[_i / 2], signals[_i % 2]);
    ck_assert_str_eq(strchr(command.output, '\n'), _i % 2 == 0 ? "\n129\n" : "\n143\n");
    ck_assert_str_eq(command.errors, "");
}

/* --- restricted /proc --- */

TEST(nothing_runs_where_proc_hides_other_users)
{
    if (!may_mount())
        return;
    shell("exec unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && "
          "exec setpriv --reuid 65534 --regid 65534 --clear-groups $REDLOCK run a echo ran'");
    ck_assert_int_eq(command.status, 125);
    ck_assert_str_eq(command.output, "");
    ck_assert_ptr_nonnull(strstr(command.errors, "mounted with hidepid"));
}

/* The command exits, but another process of its group works on. Without /proc, `redlock run` cannot
 * check the group, and still has to keep the lock for it. */
TEST(unmounting_proc_keeps_the_lock_until_the_group_has_ended)
{
    if (!may_mount())
        return;
    shell("exec unshare -m $REDLOCK run a sh -c 'umount -l /proc || exit 9;"
          "(sleep 0.5; $REDLOCK status a; touch %s/worked) & exit 5'",
          stage.sandbox.dir);
    ck_assert_int_eq(command.status, 5);
    struct waiting waiting = waiting_for("the job to be done");
    char worked[SANDBOX_FILE];
    while (access(sandbox_path(&stage.sandbox, "worked", worked), F_OK) != 0)
        waiting_pause(&waiting);
    ck_assert_ptr_nonnull(strstr(command.output, "held"));
    client_expect(&stage.client, "FREE", "STATUS a");
    unlink(worked);
}

/* After a loss, everything is killed even without /proc. */
TEST(a_command_that_unmounts_proc_is_killed_with_its_children)
{
    if (!may_mount())
        return;
    shell("exec unshare -m $REDLOCK run a sh -c 'umount -l /proc || exit 9;"
          "sleep 600 & $REDLOCK unlock a; trap \"\" TERM; wait; sleep 600'");
    ck_assert_int_eq(command.status, 122);
}

/* A process of the command becomes root by a setuid program. redlock does not run as root, so it
 * cannot kill this process. The process ends when redlock has said so, or after a minute. */
TEST(an_unkillable_process_is_named)
{
    if (!may_mount())
        return;
    stage_close(&stage);
    stage_open(&stage, __func__, &three_tcp);
    chmod(stage.sandbox.dir, 0755);
    shell("cp $REDLOCK %s/redlock && cd %s && "
          "cp $(command -v setpriv) become && chmod 4755 become && "
          "export REDLOCK_URL=tcp://127.0.0.1:%d && exec setpriv --reuid 65534 --regid 65534 "
          "--clear-groups ./redlock run --grace 0 a sh -c '"
          "./become --reuid 0 --regid 0 --clear-groups timeout 60 sh -c "
          "\"touch ready; until grep -q waiting errors.log; do sleep 0.1; done\" & "
          "while [ ! -e ready ]; do sleep 0.01; done; ./redlock unlock a; wait'",
          stage.sandbox.dir, stage.sandbox.dir, stage.daemon.port);
    ck_assert_int_eq(command.status, 122);
    ck_assert_msg(strstr(command.errors, " of user root; waiting for it to end") != NULL, "%s",
                  command.errors);
}
