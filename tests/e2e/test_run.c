/*
 * `redlock run`: exit codes, signals, and that nothing it started outlives the lock.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/e2e/wrapper.h"
#include "tests/runner.h"

static const struct stage_plan three = {
    .masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 100}};

#define WORDS(...)    ((const char *const[]){__VA_ARGS__, NULL})
#define SHELL(script) "--", "sh", "-c", script

/* Run to the end; what is printed goes to run.out and run.err of the sandbox. */
static int run(const struct stage *stage, struct wrapper *wrapper, const char *const *words)
{
    return wrapper_run(wrapper, &stage->sandbox, stage->daemon.socket, words);
}

static void start(const struct stage *stage, struct wrapper *wrapper, const char *const *words)
{
    wrapper_start(wrapper, &stage->sandbox, "run", stage->daemon.socket, words);
}

static void wait_gone(pid_t pid)
{
    struct waiting waiting = waiting_for("a process to be gone");
    while (process_runs(pid))
        waiting_pause(&waiting);
}

/* The processes whose numbers the command has printed, one in each line "pid N". */
static unsigned printed_pids(const struct wrapper *wrapper, pid_t *pids, unsigned max)
{
    unsigned count = 0;
    char *text = sandbox_read(wrapper->output);
    for (const char *at = text; count < max && (at = strstr(at, "pid ")) != NULL; at++)
        pids[count++] = (pid_t)strtol(at + 4, NULL, 10);
    free(text);
    return count;
}

/* --- exit codes --- */

START_TEST(the_exit_code_is_that_of_the_command)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("a", "true")), 0);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("a", "--", "false")), 1);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("a", SHELL("exit 77"))), 77);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("a", SHELL("kill -TERM $$"))), 128 + SIGTERM);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("a", SHELL("kill -KILL $$"))), 128 + SIGKILL);
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}
END_TEST

START_TEST(what_cannot_be_run_is_told_as_env_tells_it)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    /* A folder that may not be looked into would be another reason, as it is to env(1). */
    setenv("PATH", "/usr/bin:/bin", 1);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("a", "no-such-command")), 127);
    wrapper_wait_errors(&wrapper, "redlock: cannot run no-such-command: No such file");
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("a", "/etc/passwd")), 126);
    wrapper_wait_errors(&wrapper, "redlock: cannot run /etc/passwd: Permission denied");
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}
END_TEST

START_TEST(a_lock_held_elsewhere_has_codes_of_its_own)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    client_expect_match(&stage.client, "OK .*", "LOCK a 60s");
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("--nonblock", "a", "echo", "ran")), 1);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("-n", "-E", "9", "a", "echo", "ran")), 9);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("--wait", "50ms", "a", "echo", "ran")), 124);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
    stage_close(&stage);
}
END_TEST

START_TEST(without_quorum_or_daemon_nothing_is_run)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    ck_assert_int_eq(
        wrapper_run(&wrapper, &stage.sandbox, "/nowhere/redlockd.sock", WORDS("a", "echo", "ran")),
        125);
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    stage_wait_nodes(&stage, "state=down", 2);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("-n", "a", "echo", "ran")), 123);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("-w", "50ms", "a", "echo", "ran")), 123);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("--ttl", "9h", "a", "echo", "ran")), 125);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
    stage_close(&stage);
}
END_TEST

START_TEST(the_command_learns_of_its_lock)
{
    struct stage stage;
    struct wrapper wrapper;
    char expected[128], token[41] = "";
    long long deadline_ms = 0, fence = 0;
    struct timespec now;
    stage_open(&stage, __func__, &three);
    ck_assert_int_eq(
        run(&stage, &wrapper,
            WORDS(
                "--ttl", "20s", "--fence", "deploy",
                SHELL(
                    "echo $REDLOCK_RESOURCE $REDLOCK_TOKEN $REDLOCK_DEADLINE_MS $REDLOCK_FENCE"))),
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
    /* Without --fence there is none, not even one of a redlock run around this one. */
    setenv("REDLOCK_FENCE", "1", 1);
    ck_assert_int_eq(run(&stage, &wrapper, WORDS("deploy", SHELL("test -z \"$REDLOCK_FENCE\""))),
                     0);
    stage_close(&stage);
}
END_TEST

/* --- signals --- */

/* Told once, and only once. */
START_TEST(signals_reach_the_command_once)
{
    static const struct {
        int signal;
        const char *name;
    } forwarded[] = {{SIGINT, "INT"},   {SIGTERM, "TERM"}, {SIGHUP, "HUP"},    {SIGQUIT, "QUIT"},
                     {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGWINCH, "WINCH"}};
    struct stage stage;
    struct wrapper wrapper;
    char text[32];
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("a", SHELL("for s in INT TERM HUP QUIT USR1 USR2 WINCH; do"
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
    stage_close(&stage);
}
END_TEST

static void wait_state(pid_t pid, char state)
{
    char path[64], what[64], stat[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    snprintf(what, sizeof(what), "process %d to be in state %c", (int)pid, state);
    struct waiting waiting = waiting_for(what);
    for (;;) {
        FILE *file = fopen(path, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_ptr_nonnull(fgets(stat, sizeof(stat), file));
        fclose(file);
        if (strrchr(stat, ')')[2] == state)
            return;
        waiting_pause(&waiting);
    }
}

/* A shell without job control sees one process: it stops and goes on as the command does. */
START_TEST(it_stops_and_goes_on_along_with_the_command)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          /* One process: a shell that is about to start another is not stopped before that is. */
          WORDS("a", SHELL("echo ready; exec sleep 600")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t command = wrapper_command(&wrapper);
    for (unsigned i = 0; i < 20; i++) {
        kill(wrapper.pid, SIGTSTP);
        wait_state(command, 'T');
        wait_state(wrapper.pid, 'T');
        kill(wrapper.pid, SIGCONT);
        wait_state(command, 'S');
        /* At once: the word to go on must not come twice, and undo this. */
        kill(command, SIGSTOP);
        wait_state(wrapper.pid, 'T');
        kill(command, SIGCONT);
        wait_state(wrapper.pid, 'S');
    }
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    stage_close(&stage);
}
END_TEST

/* Nobody else would continue it. */
START_TEST(a_front_that_stopped_with_the_command_goes_on_when_that_is_killed)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("a", "sleep", "600"));
    pid_t command = wrapper_command(&wrapper);
    kill(command, SIGSTOP);
    wait_state(wrapper.pid, 'T');
    kill(command, SIGKILL);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGKILL);
    stage_close(&stage);
}
END_TEST

START_TEST(a_front_never_stays_stopped_without_the_command)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("a", "sleep", "600"));
    pid_t command = wrapper_command(&wrapper);
    for (unsigned i = 0; i < 500; i++) {
        kill(command, SIGSTOP);
        usleep(i);
        kill(command, SIGCONT);
        usleep(i);
    }
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    stage_close(&stage);
}
END_TEST

/* --- the end of everything --- */

/* A tree of processes that ignore TERM, in two groups and two sessions; each prints its number. */
#define STUBBORN                                                                                   \
    "trap '' TERM; sh -c 'echo pid $$; while :; do sleep 0.02; done' &"                            \
    "setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 0.02; done' &"                   \
    "(setsid sh -c 'trap \"\" TERM; sh -c \"echo pid \\$\\$; exec sleep 600\" & wait' &) ;"        \
    "echo pid $$; while :; do sleep 0.02; done"
enum { STUBBORN_COUNT = 4 };

static void wait_stubborn(const struct wrapper *wrapper, pid_t *pids)
{
    struct waiting waiting = waiting_for("all processes of the command");
    while (printed_pids(wrapper, pids, STUBBORN_COUNT) < STUBBORN_COUNT)
        waiting_pause(&waiting);
}

static bool any_of(const pid_t *pids, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (process_runs(pids[i]))
            return true;
    return false;
}

static bool any_runs(const pid_t *pids)
{
    return any_of(pids, STUBBORN_COUNT);
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* When this master's key expires, by its clock, which is ours. */
static int64_t expiry_ms_on(struct stage *stage, unsigned master)
{
    return master_integer(&stage->masters[master], "PEXPIRETIME redlock:a");
}

static int64_t first_expiry_ms(struct stage *stage)
{
    int64_t first_ms = INT64_MAX;
    for (unsigned i = 0; i < stage->master_count; i++) {
        int64_t at_ms = expiry_ms_on(stage, i);
        first_ms = at_ms < first_ms ? at_ms : first_ms;
    }
    return first_ms;
}

static int64_t last_expiry_ms(struct stage *stage)
{
    int64_t last_ms = INT64_MIN;
    for (unsigned i = 0; i < stage->master_count; i++) {
        int64_t at_ms = expiry_ms_on(stage, i);
        last_ms = at_ms > last_ms ? at_ms : last_ms;
    }
    return last_ms;
}

/* The last extension there will be: directly behind it, once all masters have it, they are cut off.
 */
static int64_t stop_masters_behind_an_extension(struct stage *stage)
{
    int64_t before_ms = last_expiry_ms(stage), after_ms = before_ms;
    struct waiting waiting = waiting_for("an extension");
    while (after_ms <= before_ms) {
        waiting_pause(&waiting);
        after_ms = first_expiry_ms(stage);
    }
    stage_stop_masters(stage, 0, stage->master_count - 1);
    return after_ms;
}

START_TEST(cut_off_from_the_masters_everything_is_gone_before_the_deadline)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t pids[STUBBORN_COUNT];
    stage_open(&stage, __func__, &three);
    /* The longest margin there is: a machine may stand still for a while. */
    start(&stage, &wrapper, WORDS("--ttl", "10s", "--grace", "1m", "a", SHELL(STUBBORN)));
    wait_stubborn(&wrapper, pids);
    int64_t expiry_ms = stop_masters_behind_an_extension(&stage);
    struct waiting waiting = waiting_for("all of them to be gone");
    while (any_runs(pids))
        waiting_pause(&waiting);
    int64_t left_ms = expiry_ms - wall_ms();
    fprintf(stderr, "gone %lld ms before the first key expires\n", (long long)left_ms);
    ck_assert_int_gt(left_ms, 0);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    /* It and the daemon give up within the same two milliseconds: either may be first. */
    ck_assert(
        wrapper_complained(&wrapper, "redlock: a is lost: too few masters could vote") ||
        wrapper_complained(&wrapper, "redlock: a is lost: the daemon could not keep it: noquorum"));
    stage_continue_masters(&stage, 0, 2);
    stage_close(&stage);
}
END_TEST

/* Each in a session of its own, and the child of the one before it. */
#define DEEP                                                                                       \
    "import os, signal, sys, time\n"                                                               \
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"                                              \
    "for i in range(int(sys.argv[1]) - 1):\n"                                                      \
    "    if os.fork() != 0: break\n"                                                               \
    "    os.setsid()\n"                                                                            \
    "print('pid', os.getpid(), flush=True)\n"                                                      \
    "time.sleep(600)\n"
enum { DEPTH = 100 };

START_TEST(a_deep_tree_is_gone_before_the_deadline)
{
    struct stage stage;
    struct wrapper wrapper;
    static pid_t pids[DEPTH];
    char depth[16];
    stage_open(&stage, __func__, &three);
    snprintf(depth, sizeof(depth), "%d", DEPTH);
    start(&stage, &wrapper,
          WORDS("--ttl", "10s", "--grace", "1m", "a", "python3", "-c", DEEP, depth));
    struct waiting waiting = waiting_for("all processes of the command");
    while (printed_pids(&wrapper, pids, DEPTH) < DEPTH)
        waiting_pause(&waiting);
    int64_t expiry_ms = stop_masters_behind_an_extension(&stage);
    waiting = waiting_for("all of them to be gone");
    while (any_of(pids, DEPTH))
        waiting_pause(&waiting);
    int64_t left_ms = expiry_ms - wall_ms();
    fprintf(stderr, "%d nested sessions gone %lld ms before the first key expires\n", DEPTH,
            (long long)left_ms);
    ck_assert_int_gt(left_ms, 0);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    stage_continue_masters(&stage, 0, 2);
    stage_close(&stage);
}
END_TEST

START_TEST(a_lost_command_is_told_first)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("--ttl", "3s", "--on-lost", "USR1", "a",
                SHELL("trap 'echo told; exit 0' USR1; echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    stage_stop_masters(&stage, 0, 1);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "told"), 1);
    stage_continue_masters(&stage, 0, 1);
    stage_close(&stage);
}
END_TEST

/* Released by somebody else: it is lost at once, and not only at the next third. */
START_TEST(a_lock_that_was_released_ends_the_command)
{
    struct stage stage;
    struct wrapper wrapper;
    char *token;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("--ttl", "20s", "a", SHELL("echo $REDLOCK_TOKEN; exec sleep 600")));
    wrapper_wait_output(&wrapper, "\n");
    token = sandbox_read(wrapper.output);
    token[40] = '\0';
    client_expect(&stage.client, "OK", "UNLOCK a %s", token);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(wrapper_complained(&wrapper, "gone"));
    free(token);
    stage_close(&stage);
}
END_TEST

/* Another client may hold it now: no grace comes before KILL. */
START_TEST(a_lock_that_is_gone_leaves_no_grace)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t pids[STUBBORN_COUNT];
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("--ttl", "1m", "--grace", "1m", "a", SHELL("echo token $REDLOCK_TOKEN;" STUBBORN)));
    wait_stubborn(&wrapper, pids);
    char *output = sandbox_read(wrapper.output);
    const char *token = strstr(output, "token ") + strlen("token ");
    int64_t before_ms = waiting_clock_ms();
    client_expect(&stage.client, "OK", "UNLOCK a %.40s", token);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    int64_t took_ms = waiting_clock_ms() - before_ms;
    fprintf(stderr, "gone after %lld ms\n", (long long)took_ms);
    /* With a grace it would take most of the minute. */
    ck_assert_int_lt(took_ms, 20000);
    ck_assert(!any_runs(pids));
    ck_assert(wrapper_complained(&wrapper, "gone"));
    free(output);
    stage_close(&stage);
}
END_TEST

/* It may end in good order, and what it has started elsewhere knows nothing of the loss. */
START_TEST(nothing_outlives_a_command_that_ends_by_itself_after_a_loss)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t left;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("--ttl", "3s", "--grace", "1m", "a",
                SHELL("trap 'exit 0' TERM; setsid sh -c 'echo pid $$; exec sleep 600' &"
                      "while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "\n");
    ck_assert_uint_eq(printed_pids(&wrapper, &left, 1), 1);
    stage_stop_masters(&stage, 0, 1);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    bool runs = process_runs(left);
    kill(left, SIGKILL);
    ck_assert(!runs);
    stage_continue_masters(&stage, 0, 1);
    stage_close(&stage);
}
END_TEST

/* Its first thread has ended, so it looks like a zombie; another one works on. */
#define HEADLESS                                                                                   \
    "import ctypes, os, threading, time\n"                                                         \
    "def work():\n"                                                                                \
    "    while open('/proc/self/stat').read().split()[2] != 'Z': time.sleep(0.01)\n"               \
    "    print('pid', os.getpid(), flush=True)\n"                                                  \
    "    time.sleep(600)\n"                                                                        \
    "threading.Thread(target=work).start()\n"                                                      \
    "ctypes.CDLL(None).pthread_exit(None)\n"

START_TEST(a_process_without_its_first_thread_holds_the_lock_and_is_killed)
{
    static const char *const scripts[] = {"python3 -c \"$0\" & exit 0",
                                          "setsid python3 -c \"$0\" & exec sleep 600"};
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct stage stage;
        struct wrapper wrapper;
        char path[64];
        pid_t pid;
        stage_open(&stage, __func__, &three);
        start(&stage, &wrapper, WORDS("--ttl", "2s", "a", SHELL(scripts[i]), HEADLESS));
        wrapper_wait_output(&wrapper, "\n");
        ck_assert_uint_eq(printed_pids(&wrapper, &pid, 1), 1);
        client_expect_match(&stage.client, "HELD .*", "STATUS a");
        kill(wrapper_keeper(&wrapper), SIGSTOP);
        ck_assert_int_eq(wrapper_wait(&wrapper), 122);
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        ck_assert_int_ne(access(path, F_OK), 0);
        stage_close(&stage);
    }
}
END_TEST

START_TEST(nothing_outlives_a_killed_front)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t pids[STUBBORN_COUNT];
    int status;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("--ttl", "20s", "a", SHELL(STUBBORN)));
    wait_stubborn(&wrapper, pids);
    pid_t keeper = wrapper_keeper(&wrapper);
    kill(wrapper.pid, SIGKILL);
    waitpid(wrapper.pid, &status, 0);
    wait_gone(keeper);
    /* The keeper was the last of them, and has given the lock back. */
    ck_assert(!any_runs(pids));
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}
END_TEST

START_TEST(nothing_outlives_a_killed_keeper)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t pids[STUBBORN_COUNT];
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("--ttl", "20s", "a", SHELL(STUBBORN)));
    wait_stubborn(&wrapper, pids);
    kill(wrapper_keeper(&wrapper), SIGKILL);
    ck_assert_int_eq(wrapper_wait(&wrapper), 125);
    ck_assert(!any_runs(pids));
    ck_assert(wrapper_complained(&wrapper, "redlock: its keeper was killed"));
    /* The connection has ended with the last process that had it. */
    struct waiting waiting = waiting_for("the lock to be free");
    while (strcmp(client_ask(&stage.client, "STATUS a"), "FREE") != 0)
        waiting_pause(&waiting);
    stage_close(&stage);
}
END_TEST

static void expect_other_name(pid_t pid, const char *file, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    char *text = sandbox_read(path);
    ck_assert_ptr_nonnull(strstr(text, name));
    ck_assert_msg(strstr(text, "redlock") == NULL, "%s: %s", file, text);
    free(text);
}

/* Or killall and pkill would kill both processes at once. */
START_TEST(the_keeper_is_not_found_by_the_name_of_redlock)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("deploy", SHELL("echo ready; exec sleep 600")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t keeper = wrapper_keeper(&wrapper);
    expect_other_name(keeper, "comm", "rl-supervisor\n");
    expect_other_name(keeper, "cmdline", "rl-supervisor: deploy");
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    stage_close(&stage);
}
END_TEST

/* What has left the session of the command runs on: until the deadline, the lock does as well. */
START_TEST(the_lock_outlives_both_processes_killed_at_once_until_its_deadline)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t orphan;
    int status;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("--ttl", "2s", "a",
                SHELL("setsid sh -c 'echo pid $$; exec sleep 600' & exec sleep 600")));
    wrapper_wait_output(&wrapper, "\n");
    ck_assert_uint_eq(printed_pids(&wrapper, &orphan, 1), 1);
    pid_t keeper = wrapper_keeper(&wrapper);
    pid_t command = wrapper_command(&wrapper);
    int64_t expiry_ms = first_expiry_ms(&stage);
    kill(wrapper.pid, SIGSTOP);
    kill(keeper, SIGKILL);
    kill(wrapper.pid, SIGKILL);
    waitpid(wrapper.pid, &status, 0);
    wait_gone(command);
    stage_wait_key(&stage, "redlock:a", 0);
    ck_assert_int_ge(wall_ms(), expiry_ms);
    ck_assert(process_runs(orphan));
    kill(orphan, SIGKILL);
    wait_gone(orphan);
    stage_close(&stage);
}
END_TEST

START_TEST(a_stopped_keeper_is_ended_by_the_front_before_the_deadline)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t pids[STUBBORN_COUNT];
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("--ttl", "2s", "a", SHELL(STUBBORN)));
    wait_stubborn(&wrapper, pids);
    pid_t keeper = wrapper_keeper(&wrapper);
    kill(keeper, SIGSTOP);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(!any_runs(pids));
    ck_assert(!process_runs(keeper));
    ck_assert(wrapper_complained(&wrapper, "redlock itself was stopped for too long"));
    stage_close(&stage);
}
END_TEST

START_TEST(a_stopped_front_costs_no_lock)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("--ttl", "2s", "a", SHELL("echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t command = wrapper_command(&wrapper);
    int64_t before_ms = first_expiry_ms(&stage);
    kill(wrapper.pid, SIGSTOP);
    struct waiting waiting = waiting_for("the lock to be kept beyond its deadline");
    while (first_expiry_ms(&stage) < before_ms + 2000)
        waiting_pause(&waiting);
    ck_assert(process_runs(command));
    kill(wrapper.pid, SIGCONT);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    stage_close(&stage);
}
END_TEST

START_TEST(a_front_that_was_stopped_past_the_deadline_still_tells_how_the_command_ended)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("--ttl", "2s", "a", SHELL("echo ready; sleep 0.3; exit 5")));
    wrapper_wait_output(&wrapper, "ready");
    pid_t keeper = wrapper_keeper(&wrapper);
    kill(wrapper.pid, SIGSTOP);
    wait_gone(keeper);
    usleep(600000);
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 5);
    ck_assert(!wrapper_complained(&wrapper, "lost"));
    stage_close(&stage);
}
END_TEST

/* What it ends with is known before the lock is given back, which takes longer than its ttl. */
START_TEST(a_daemon_that_does_not_answer_at_the_end_changes_no_exit_code)
{
    struct stage stage;
    struct wrapper wrapper;
    char daemon[32];
    stage_open(&stage, __func__, &three);
    snprintf(daemon, sizeof(daemon), "%d", (int)stage.daemon.pid);
    ck_assert_int_eq(
        run(&stage, &wrapper, WORDS("--ttl", "800ms", "a", SHELL("kill -STOP $0; exit 7"), daemon)),
        7);
    ck_assert(wrapper_complained(&wrapper, "could not be released, and ends by itself"));
    ck_assert(!wrapper_complained(&wrapper, "lost"));
    kill(stage.daemon.pid, SIGCONT);
    stage_close(&stage);
}
END_TEST

/* Both of them, so that nobody is left to kill in time: the daemon is stopped as well, or it would
 * keep the lock. */
START_TEST(whoever_was_stopped_past_the_deadline_kills_first)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t pids[STUBBORN_COUNT];
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("--ttl", "2s", "--grace", "1m", "a", SHELL(STUBBORN)));
    wait_stubborn(&wrapper, pids);
    pid_t keeper = wrapper_keeper(&wrapper);
    kill(keeper, SIGSTOP);
    kill(wrapper.pid, SIGSTOP);
    wait_state(keeper, 'T');
    wait_state(wrapper.pid, 'T');
    kill(stage.daemon.pid, SIGSTOP);
    struct waiting waiting = waiting_for("the lock to expire");
    while (masters_with(stage.masters, stage.master_count, "redlock:a") > 0)
        waiting_pause(&waiting);
    ck_assert(any_runs(pids));
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(!any_runs(pids));
    ck_assert(wrapper_complained(&wrapper, "a is lost: redlock itself was stopped for too long"));
    kill(stage.daemon.pid, SIGCONT);
    stage_close(&stage);
}
END_TEST

/* The keeper alone goes on: it has to do the same. */
START_TEST(a_keeper_that_was_stopped_past_the_deadline_kills_first)
{
    struct stage stage;
    struct wrapper wrapper;
    pid_t pids[STUBBORN_COUNT];
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("--ttl", "2s", "--grace", "1m", "a", SHELL(STUBBORN)));
    wait_stubborn(&wrapper, pids);
    pid_t keeper = wrapper_keeper(&wrapper);
    kill(wrapper.pid, SIGSTOP);
    kill(keeper, SIGSTOP);
    wait_state(keeper, 'T');
    wait_state(wrapper.pid, 'T');
    kill(stage.daemon.pid, SIGSTOP);
    struct waiting waiting = waiting_for("the lock to expire");
    while (masters_with(stage.masters, stage.master_count, "redlock:a") > 0)
        waiting_pause(&waiting);
    kill(keeper, SIGCONT);
    wait_gone(keeper);
    ck_assert(!any_runs(pids));
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(wrapper_complained(&wrapper, "a is lost: redlock itself was stopped for too long"));
    kill(stage.daemon.pid, SIGCONT);
    stage_close(&stage);
}
END_TEST

START_TEST(the_lock_outlives_the_command_until_its_group_has_ended)
{
    struct stage stage;
    struct wrapper wrapper;
    char file[SANDBOX_FILE];
    stage_open(&stage, __func__, &three);
    sandbox_path(&stage.sandbox, "end", file);
    start(&stage, &wrapper,
          WORDS("a", SHELL("(while [ ! -e \"$0\" ]; do sleep 0.01; done) & echo pid $$; exit 5"),
                file));
    wrapper_wait_output(&wrapper, "pid ");
    pid_t command;
    ck_assert_uint_eq(printed_pids(&wrapper, &command, 1), 1);
    wait_gone(command);
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    sandbox_write(file, "");
    ck_assert_int_eq(wrapper_wait(&wrapper), 5);
    client_expect(&stage.client, "FREE", "STATUS a");
    unlink(file);
    stage_close(&stage);
}
END_TEST

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

/* To look takes reading a file of each process: once a second at last, and not twenty times. */
START_TEST(a_group_that_outlives_its_command_is_looked_at_ever_less_often)
{
    struct stage stage;
    struct wrapper wrapper;
    struct sysinfo machine;
    pid_t command;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper, WORDS("a", SHELL("sleep 600 & echo pid $$; exit 5")));
    wrapper_wait_output(&wrapper, "pid ");
    ck_assert_uint_eq(printed_pids(&wrapper, &command, 1), 1);
    wait_gone(command);
    pid_t keeper = wrapper_keeper(&wrapper);
    sleep(2);
    long before = reads_of(keeper);
    int64_t began_ms = wall_ms();
    sleep(2);
    ck_assert_int_eq(sysinfo(&machine), 0);
    int64_t looks = (reads_of(keeper) - before) / machine.procs;
    ck_assert_int_le(looks, 2 + 2 * (wall_ms() - began_ms) / 1000);
    kill(-command, SIGKILL);
    ck_assert_int_eq(wrapper_wait(&wrapper), 5);
    stage_close(&stage);
}
END_TEST

/* Those whose parents have ended are the keeper's children; the remains of the command, which stay,
 * must not hide theirs. */
START_TEST(who_ends_in_a_group_that_outlives_its_command_is_reaped)
{
    enum { ORPHANS = 3 };
    struct stage stage;
    struct wrapper wrapper;
    char go[SANDBOX_FILE];
    char end[SANDBOX_FILE];
    pid_t pids[1 + ORPHANS]; /* the command's first */
    stage_open(&stage, __func__, &three);
    sandbox_path(&stage.sandbox, "go", go);
    sandbox_path(&stage.sandbox, "end", end);
    start(
        &stage, &wrapper,
        WORDS("a",
              SHELL("echo pid $$;"
                    "(for i in 1 2 3; do"
                    "   (sh -c 'echo pid $$; while [ ! -e \"$0\" ]; do sleep 0.01; done' \"$0\" &);"
                    " done; while [ ! -e \"$1\" ]; do sleep 0.01; done) & exit 0"),
              go, end));
    struct waiting waiting = waiting_for("the orphans to be there");
    while (printed_pids(&wrapper, pids, 1 + ORPHANS) < 1 + ORPHANS)
        waiting_pause(&waiting);
    wait_gone(pids[0]);
    sandbox_write(go, "");
    waiting = waiting_for("the orphans to be reaped");
    for (unsigned i = 1; i <= ORPHANS; i++)
        while (kill(pids[i], 0) == 0)
            waiting_pause(&waiting);
    sandbox_write(end, "");
    ck_assert_int_eq(wrapper_wait(&wrapper), 0);
    unlink(go);
    unlink(end);
    stage_close(&stage);
}
END_TEST

/* Each goes on in a child and ends, so whenever they are counted there are one that is not there
 * any more and one that is not there yet. */
START_TEST(who_hands_on_to_a_child_while_the_group_is_counted_keeps_the_lock)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    ck_assert_int_eq(run(&stage, &wrapper,
                         WORDS("a", SHELL("f() { [ $1 -gt 0 ] || { echo last; exit; }; "
                                          "f $(($1 - 1)) & exit 0; }; f 300"))),
                     0);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "last"), 1);
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}
END_TEST

/* What has left the group lives on: a daemon was started, and that was the whole point. */
START_TEST(a_daemon_that_it_has_started_is_left_in_peace)
{
    struct stage stage;
    struct wrapper wrapper;
    char file[SANDBOX_FILE];
    pid_t daemon;
    stage_open(&stage, __func__, &three);
    ck_assert_int_eq(
        run(&stage, &wrapper,
            WORDS("a",
                  SHELL("setsid sh -c 'echo pid $$; exec sleep 600' & while [ ! -s \"$0\" ]; do"
                        "  sleep 0.01; done"),
                  sandbox_path(&stage.sandbox, "run.out", file))),
        0);
    ck_assert_uint_eq(printed_pids(&wrapper, &daemon, 1), 1);
    ck_assert(process_runs(daemon));
    client_expect(&stage.client, "FREE", "STATUS a");
    kill(daemon, SIGKILL);
    wait_gone(daemon);
    stage_close(&stage);
}
END_TEST

/* --- daemons that go away --- */

START_TEST(a_restart_of_the_daemon_costs_no_lock)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    start(&stage, &wrapper,
          WORDS("--ttl", "4s", "a", SHELL("echo ready; while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    int64_t before_ms = first_expiry_ms(&stage);
    struct waiting waiting = waiting_for("an extension through the new daemon");
    while (first_expiry_ms(&stage) == before_ms)
        waiting_pause(&waiting);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    client_expect(&stage.client, "FREE", "STATUS a");
    stage_close(&stage);
}
END_TEST

START_TEST(who_waits_in_line_looks_for_a_daemon_that_went_away)
{
    struct stage stage;
    struct wrapper wrapper;
    stage_open(&stage, __func__, &three);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    start(&stage, &wrapper, WORDS("a", "echo", "ran"));
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
    stage_close(&stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("run");
    TCase *codes = sandbox_case("exit codes");
    tcase_add_test(codes, the_exit_code_is_that_of_the_command);
    tcase_add_test(codes, what_cannot_be_run_is_told_as_env_tells_it);
    tcase_add_test(codes, a_lock_held_elsewhere_has_codes_of_its_own);
    tcase_add_test(codes, without_quorum_or_daemon_nothing_is_run);
    tcase_add_test(codes, the_command_learns_of_its_lock);
    suite_add_tcase(suite, codes);
    TCase *signals = sandbox_case("signals");
    tcase_add_test(signals, signals_reach_the_command_once);
    tcase_add_test(signals, it_stops_and_goes_on_along_with_the_command);
    tcase_add_test(signals, a_front_that_stopped_with_the_command_goes_on_when_that_is_killed);
    tcase_add_test(signals, a_front_never_stays_stopped_without_the_command);
    suite_add_tcase(suite, signals);
    TCase *ends = sandbox_case("ends");
    tcase_add_test(ends, cut_off_from_the_masters_everything_is_gone_before_the_deadline);
    tcase_add_test(ends, a_deep_tree_is_gone_before_the_deadline);
    tcase_add_test(ends, a_lost_command_is_told_first);
    tcase_add_test(ends, a_lock_that_was_released_ends_the_command);
    tcase_add_test(ends, a_lock_that_is_gone_leaves_no_grace);
    tcase_add_test(ends, nothing_outlives_a_command_that_ends_by_itself_after_a_loss);
    tcase_add_test(ends, a_process_without_its_first_thread_holds_the_lock_and_is_killed);
    tcase_add_test(ends, nothing_outlives_a_killed_front);
    tcase_add_test(ends, nothing_outlives_a_killed_keeper);
    tcase_add_test(ends, the_keeper_is_not_found_by_the_name_of_redlock);
    tcase_add_test(ends, the_lock_outlives_both_processes_killed_at_once_until_its_deadline);
    tcase_add_test(ends, a_stopped_keeper_is_ended_by_the_front_before_the_deadline);
    tcase_add_test(ends, a_stopped_front_costs_no_lock);
    tcase_add_test(ends,
                   a_front_that_was_stopped_past_the_deadline_still_tells_how_the_command_ended);
    tcase_add_test(ends, a_daemon_that_does_not_answer_at_the_end_changes_no_exit_code);
    tcase_add_test(ends, whoever_was_stopped_past_the_deadline_kills_first);
    tcase_add_test(ends, a_keeper_that_was_stopped_past_the_deadline_kills_first);
    tcase_add_test(ends, the_lock_outlives_the_command_until_its_group_has_ended);
    tcase_add_test(ends, a_group_that_outlives_its_command_is_looked_at_ever_less_often);
    tcase_add_test(ends, who_ends_in_a_group_that_outlives_its_command_is_reaped);
    tcase_add_test(ends, who_hands_on_to_a_child_while_the_group_is_counted_keeps_the_lock);
    tcase_add_test(ends, a_daemon_that_it_has_started_is_left_in_peace);
    suite_add_tcase(suite, ends);
    TCase *daemons = sandbox_case("daemons");
    tcase_add_test(daemons, a_restart_of_the_daemon_costs_no_lock);
    tcase_add_test(daemons, who_waits_in_line_looks_for_a_daemon_that_went_away);
    suite_add_tcase(suite, daemons);
    return suite;
}
