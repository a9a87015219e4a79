/*
 * `redlock run` when its lock is lost: no process that it started outlives the lock.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/run_fixture.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

const struct runner_settings runner_settings = {.setup = run_set_up, .teardown = run_tear_down};

static int64_t last_expiry_ms(void)
{
    int64_t last_ms = INT64_MIN;
    for (unsigned i = 0; i < stage.master_count; i++) {
        int64_t at_ms = run_expiry_ms_on(&stage, i);
        last_ms = at_ms > last_ms ? at_ms : last_ms;
    }
    return last_ms;
}

/* Stops all masters directly after an extension, which is then the last one. If stopping takes so
 * long that the next extension may already be in flight, tries again. Returns the time at which the
 * first key expires. */
static int64_t stop_masters_after_an_extension(void)
{
    enum { AT_ONCE_MS = 1000 };
    struct waiting waiting = waiting_for("an extension");
    for (;;) {
        int64_t before_ms = last_expiry_ms(), after_ms = before_ms, looked_ms = 0;
        while (after_ms <= before_ms) {
            waiting_pause(&waiting);
            looked_ms = waiting_clock_ms();
            after_ms = run_first_expiry_ms(&stage);
        }
        stage_stop_masters(&stage, 0, stage.master_count - 1);
        if (waiting_clock_ms() - looked_ms < AT_ONCE_MS)
            return after_ms;
        stage_continue_masters(&stage, 0, stage.master_count - 1);
    }
}

TEST(without_masters_every_process_is_killed_before_the_deadline)
{
    pid_t pids[STUBBORN_COUNT];
    /* With a TTL of 10 s, the kill comes 1 s before the deadline, which is the longest possible
     * margin. A busy machine may need it. */
    start(WORDS("--ttl", "10s", "--grace", "1m", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    int64_t expiry_ms = stop_masters_after_an_extension();
    run_wait_gone_before(pids, STUBBORN_COUNT, expiry_ms);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(wrapper_complained(&wrapper, "redlock: a is lost: too few masters could vote"));
    stage_continue_masters(&stage, 0, 2);
}

/* A chain of processes: each is a child of the previous one, in its own session. Each writes its
 * line with one call: with PYTHONUNBUFFERED, print() makes several, and lines would mix. */
#define DEEP                                                                                       \
    "import os, signal, sys, time\n"                                                               \
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"                                              \
    "for i in range(int(sys.argv[1]) - 1):\n"                                                      \
    "    if os.fork() != 0: break\n"                                                               \
    "    os.setsid()\n"                                                                            \
    "os.write(1, b'pid %d\\n' % os.getpid())\n"                                                    \
    "time.sleep(600)\n"
enum { DEPTH = 100 };

TEST(a_deep_process_tree_is_killed_before_the_deadline)
{
    static pid_t pids[DEPTH];
    char depth[16];
    snprintf(depth, sizeof(depth), "%d", DEPTH);
    start(WORDS("--ttl", "10s", "--grace", "1m", "a", "python3", "-c", DEEP, depth));
    struct waiting waiting = waiting_for("all processes of the command");
    while (wrapper_printed_pids(&wrapper, pids, DEPTH) < DEPTH)
        waiting_pause(&waiting);
    int64_t expiry_ms = stop_masters_after_an_extension();
    run_wait_gone_before(pids, DEPTH, expiry_ms);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    stage_continue_masters(&stage, 0, 2);
}

TEST(the_command_is_signalled_before_it_is_killed)
{
    /* A third of the TTL, less the margin of 1 s, is the time for the trap. */
    start(WORDS(
        "--ttl", "12s", "--on-lost", "USR1", "a",
        SHELL("trap 'echo signalled; exit 0' USR1; echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    stage_stop_masters(&stage, 0, 1);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "signalled"), 1);
    stage_continue_masters(&stage, 0, 1);
}

/* Another client may already hold the lock, so `redlock run` sends KILL without a grace period. */
TEST(a_lock_that_is_gone_allows_no_grace)
{
    pid_t pids[STUBBORN_COUNT];
    start(WORDS("--ttl", "1m", "--grace", "1m", "a", SHELL("echo token $REDLOCK_TOKEN;" STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    char *output = sandbox_read(wrapper.output);
    const char *token = strstr(output, "token ") + strlen("token ");
    int64_t before_ms = waiting_clock_ms();
    client_expect(&stage.client, "OK", "UNLOCK a %.40s", token);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    int64_t took_ms = waiting_clock_ms() - before_ms;
    fprintf(stderr, "gone after %lld ms\n", (long long)took_ms);
    /* With a grace period, it would take most of the minute, and from the reply to its next EXTEND
     * `redlock run` would learn of the release after 20 s. */
    ck_assert_int_lt(took_ms, 20000);
    ck_assert(!run_any_runs(pids));
    ck_assert(wrapper_complained(&wrapper, "it was released or broken"));
    free(output);
}

/* The key is gone from the masters, and the daemon would notice that only at its next extension,
 * after 20 s. */
TEST(a_lock_that_was_gone_when_the_command_ended_is_lost)
{
    start(WORDS("--ttl", "1m", "a",
                SHELL("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    masters_run(stage.masters, stage.master_count, "DEL redlock:a");
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(wrapper_complained(&wrapper, "a: was no longer held when the command ended"));
}

/* The command exits when it is signalled, but a process that it started in another session does not
 * learn of the loss. */
TEST(no_process_outlives_a_command_that_exits_after_a_loss)
{
    pid_t left;
    start(WORDS("--ttl", "3s", "--grace", "1m", "a",
                SHELL("trap 'exit 0' TERM; setsid sh -c 'echo pid $$; exec sleep 600' &"
                      "while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "\n");
    ck_assert_uint_eq(wrapper_printed_pids(&wrapper, &left, 1), 1);
    stage_stop_masters(&stage, 0, 1);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    bool runs = process_runs(left);
    kill(left, SIGKILL);
    ck_assert(!runs);
    stage_continue_masters(&stage, 0, 1);
}

/* A program whose main thread ends: the process looks like a zombie in /proc/PID/stat while another
 * thread still works. */
#define HEADLESS                                                                                   \
    "import ctypes, os, threading, time\n"                                                         \
    "def work():\n"                                                                                \
    "    while open('/proc/self/stat').read().split()[2] != 'Z': time.sleep(0.01)\n"               \
    "    print('pid', os.getpid(), flush=True)\n"                                                  \
    "    time.sleep(600)\n"                                                                        \
    "threading.Thread(target=work).start()\n"                                                      \
    "ctypes.CDLL(None).pthread_exit(None)\n"

/* The process is in the group of the command (loop index 0) or in a session of its own (1). The
 * lock is lost because the supervisor is stopped, and the parent kills the process. */
TEST_LOOP(a_process_without_a_main_thread_keeps_the_lock_and_is_killed, 0, 2)
{
    static const char *const scripts[] = {"python3 -c \"$0\" & exit 0",
                                          "setsid python3 -c \"$0\" & exec sleep 600"};
    char path[64];
    pid_t pid;
    start(WORDS("--ttl", "2s", "a", SHELL(scripts[_i]), HEADLESS));
    wrapper_wait_output(&wrapper, "\n");
    ck_assert_uint_eq(wrapper_printed_pids(&wrapper, &pid, 1), 1);
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    kill(wrapper_supervisor(&wrapper), SIGSTOP);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    ck_assert_int_ne(access(path, F_OK), 0);
}
