/*
 * `redlock run` when its own processes are killed or stopped.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/e2e/process.h"
#include "tests/e2e/run_fixture.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.setup = run_set_up, .teardown = run_tear_down};

TEST(no_process_outlives_a_killed_parent)
{
    pid_t pids[STUBBORN_COUNT];
    int status;
    start(WORDS("--ttl", "20s", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    pid_t supervisor = wrapper_supervisor(&wrapper);
    kill(wrapper.pid, SIGKILL);
    waitpid(wrapper.pid, &status, 0);
    process_wait_gone(supervisor);
    /* The supervisor ended last, after it had released the lock. */
    ck_assert(!run_any_runs(pids));
    client_expect(&stage.client, "FREE", "STATUS a");
}

TEST(killed_supervisor_ends_the_command)
{
    pid_t pids[STUBBORN_COUNT];
    start(WORDS("--ttl", "20s", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    kill(wrapper_supervisor(&wrapper), SIGKILL);
    ck_assert_int_eq(wrapper_wait(&wrapper), 125);
    ck_assert(!run_any_runs(pids));
    ck_assert(wrapper_complained(&wrapper, "redlock: the supervisor process was killed"));
    /* The connection ends with the last process that has it open. */
    struct waiting waiting = waiting_for("the lock to be free");
    while (strcmp(client_ask(&stage.client, "STATUS a"), "FREE") != 0)
        waiting_pause(&waiting);
}

static void expect_name_without_redlock(pid_t pid, const char *file, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    char *text = sandbox_read(path);
    ck_assert_ptr_nonnull(strstr(text, name));
    ck_assert_msg(strstr(text, "redlock") == NULL, "%s: %s", file, text);
    free(text);
}

/* `killall redlock` and `pkill redlock` must kill only the parent, not the supervisor as well. */
TEST(killall_redlock_does_not_match_the_supervisor)
{
    start(WORDS("deploy", SHELL("echo ready; exec sleep 600")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t supervisor = wrapper_supervisor(&wrapper);
    expect_name_without_redlock(supervisor, "comm", "rl-supervisor\n");
    expect_name_without_redlock(supervisor, "cmdline", "rl-supervisor: deploy");
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
}

/* A process that has left the session of the command survives. Nothing extends the lock any more,
 * so the lock stays only until its deadline. */
TEST(killing_parent_and_supervisor_leaves_the_lock_until_its_deadline)
{
    pid_t orphan;
    int status;
    start(WORDS("--ttl", "2s", "a",
                SHELL("setsid sh -c 'echo pid $$; exec sleep 600' & exec sleep 600")));
    wrapper_wait_output(&wrapper, "\n");
    ck_assert_uint_eq(wrapper_printed_pids(&wrapper, &orphan, 1), 1);
    pid_t supervisor = wrapper_supervisor(&wrapper);
    pid_t command = wrapper_command(&wrapper);
    int64_t expiry_ms = run_first_expiry_ms(&stage);
    kill(wrapper.pid, SIGSTOP);
    kill(supervisor, SIGKILL);
    kill(wrapper.pid, SIGKILL);
    waitpid(wrapper.pid, &status, 0);
    process_wait_gone(command);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(run_wall_ms(), expiry_ms);
    ck_assert(process_runs(orphan));
    kill(orphan, SIGKILL);
    process_wait_gone(orphan);
}

TEST(the_parent_kills_a_stopped_supervisor_before_the_deadline)
{
    pid_t pids[STUBBORN_COUNT + 1];
    start(WORDS("--ttl", "10s", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    pid_t supervisor = wrapper_supervisor(&wrapper);
    pids[STUBBORN_COUNT] = supervisor;
    kill(supervisor, SIGSTOP);
    process_wait_state(supervisor, 'T');
    /* No deadline that the supervisor knows is later. */
    int64_t expiry_ms = run_lock_expiry_ms(&stage);
    run_wait_gone_before(pids, STUBBORN_COUNT + 1, expiry_ms);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(wrapper_complained(&wrapper, "redlock itself was stopped for too long"));
}

TEST(a_stopped_parent_costs_no_lock)
{
    start(WORDS("--ttl", "2s", "a", SHELL("echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t command = wrapper_command(&wrapper);
    int64_t before_ms = run_first_expiry_ms(&stage);
    kill(wrapper.pid, SIGSTOP);
    struct waiting waiting = waiting_for("the lock to be kept beyond its deadline");
    while (run_first_expiry_ms(&stage) < before_ms + 2000)
        waiting_pause(&waiting);
    ck_assert(process_runs(command));
    kill(wrapper.pid, SIGCONT);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
}

/* The supervisor tells the parent of each stop of the command. A parent that is stopped itself
 * reads nothing, but the supervisor must not wait for it. */
TEST(a_command_that_stops_all_the_time_ends_with_its_lock)
{
    start(WORDS("--ttl", "10s", "a", SHELL("echo ready; while :; do kill -STOP $$; done")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t command = wrapper_command(&wrapper);
    kill(wrapper.pid, SIGSTOP);
    for (unsigned i = 0; i < 600; i++) {
        process_wait_state(command, 'T');
        kill(command, SIGCONT);
    }
    kill(stage.daemon.pid, SIGSTOP);
    run_wait_gone_before(&command, 1, run_lock_expiry_ms(&stage));
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    kill(stage.daemon.pid, SIGCONT);
}

/* The command exits and the supervisor ends while the parent is stopped. The parent is resumed
 * after the deadline. It must not take the lock for lost, because the supervisor released it in
 * time. */
TEST(a_parent_resumed_after_its_supervisor_ended_returns_the_exit_code)
{
    char end[SANDBOX_FILE];
    sandbox_path(&stage.sandbox, "end", end);
    start(WORDS("--ttl", "2s", "a",
                SHELL("echo ready; while [ ! -e \"$0\" ]; do sleep 0.01; done; exit 5"), end));
    wrapper_wait_output(&wrapper, "ready");
    pid_t supervisor = wrapper_supervisor(&wrapper);
    kill(wrapper.pid, SIGSTOP);
    process_wait_state(wrapper.pid, 'T');
    sandbox_write(end, "");
    process_wait_gone(supervisor);
    int64_t passed_ms = waiting_clock_ms() + 2000;
    struct waiting waiting = waiting_for("the deadline to pass");
    while (waiting_clock_ms() < passed_ms)
        waiting_pause(&waiting);
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 5);
    ck_assert(!wrapper_complained(&wrapper, "lost"));
}

/* The command stops the daemon and exits. Then `redlock run` knows the exit code, but releasing the
 * lock takes longer than the TTL. */
TEST(a_hung_daemon_at_the_release_does_not_change_the_exit_code)
{
    char daemon[32];
    snprintf(daemon, sizeof(daemon), "%d", (int)stage.daemon.pid);
    ck_assert_int_eq(run(WORDS("--ttl", "2s", "a", SHELL("kill -STOP $0; exit 7"), daemon)), 7);
    ck_assert(wrapper_complained(&wrapper, "its release was not confirmed"));
    ck_assert(!wrapper_complained(&wrapper, "lost"));
    kill(stage.daemon.pid, SIGCONT);
}

/* Both processes of `redlock run` are stopped, so neither can kill the command in time. The daemon
 * is stopped too, because otherwise it would extend the lock. When the lock has expired, only the
 * parent is resumed. */
TEST(a_parent_resumed_after_the_deadline_kills_first)
{
    pid_t pids[STUBBORN_COUNT];
    start(WORDS("--ttl", "2s", "--grace", "1m", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    pid_t supervisor = wrapper_supervisor(&wrapper);
    kill(supervisor, SIGSTOP);
    kill(wrapper.pid, SIGSTOP);
    process_wait_state(supervisor, 'T');
    process_wait_state(wrapper.pid, 'T');
    kill(stage.daemon.pid, SIGSTOP);
    struct waiting waiting = waiting_for("the lock to expire");
    while (masters_with(stage.masters, stage.master_count, "redlock:a") > 0)
        waiting_pause(&waiting);
    ck_assert(run_any_runs(pids));
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(!run_any_runs(pids));
    ck_assert(wrapper_complained(&wrapper, "a is lost: redlock itself was stopped for too long"));
    kill(stage.daemon.pid, SIGCONT);
}

/* Both processes of `redlock run` and the daemon are stopped until the lock has expired. Then only
 * the supervisor is resumed. */
TEST(a_supervisor_resumed_after_the_deadline_kills_first)
{
    pid_t pids[STUBBORN_COUNT];
    start(WORDS("--ttl", "2s", "--grace", "1m", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    pid_t supervisor = wrapper_supervisor(&wrapper);
    kill(wrapper.pid, SIGSTOP);
    kill(supervisor, SIGSTOP);
    process_wait_state(supervisor, 'T');
    process_wait_state(wrapper.pid, 'T');
    kill(stage.daemon.pid, SIGSTOP);
    struct waiting waiting = waiting_for("the lock to expire");
    while (masters_with(stage.masters, stage.master_count, "redlock:a") > 0)
        waiting_pause(&waiting);
    kill(supervisor, SIGCONT);
    process_wait_gone(supervisor);
    ck_assert(!run_any_runs(pids));
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(wrapper_complained(&wrapper, "a is lost: redlock itself was stopped for too long"));
    kill(stage.daemon.pid, SIGCONT);
}
