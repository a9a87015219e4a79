/*
 * `redlock run --also`: several locks for one command.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/e2e/process.h"
#include "tests/e2e/run_fixture.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const char *const names[] = {"a", "b", "c"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void set_up(void)
{
    unsetenv("REDLOCK_HELD");
    run_set_up();
}

const struct runner_settings runner_settings = {.setup = set_up, .teardown = run_tear_down};

static void expect_held(const char *name, bool held)
{
    client_expect_match(&stage.client, held ? "HELD .*" : "FREE", "STATUS %s", name);
}

static void expect_all_free(void)
{
    for (unsigned i = 0; i < NAMES; i++)
        expect_held(names[i], false);
}

/* The `redlock run` of the second lock. */
static pid_t nested_parent(void)
{
    return wrapper_command(&wrapper);
}

static void wait_for_waiter(const char *name)
{
    char listing[32];
    snprintf(listing, sizeof(listing), "LOCKS %s", name);
    client_wait_count(&stage.client, listing, " waiters=1 ", 1);
}

/* --- acquisition --- */

TEST(the_command_runs_while_all_locks_are_held)
{
    char path[64];
    start(WORDS("--also", "c", "--also", "a", "b",
                SHELL("trap 'echo signalled; exit 7' TERM;"
                      "echo held: $REDLOCK_HELD, last: $REDLOCK_RESOURCE; echo ready;"
                      "while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "held: a b c, last: c\n"), 1);
    for (unsigned i = 0; i < NAMES; i++)
        expect_held(names[i], true);
    /* `killall redlock` must reach only the first process, as without --also. */
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)nested_parent());
    char *comm = sandbox_read(path);
    ck_assert_ptr_null(strstr(comm, "redlock"));
    free(comm);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 7);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "signalled"), 1);
    expect_all_free();
}

/* Lock number _i is held elsewhere: those before it are locked, and those after it are not. */
TEST_LOOP(names_are_locked_in_byte_order, 0, NAMES)
{
    struct grant grant = client_lock(&stage.client, names[_i], "60s");
    start(WORDS("--also", "b", "--also", "a", "c", "echo", "ran"));
    wait_for_waiter(names[_i]);
    for (int i = 0; i < NAMES; i++) {
        char line[32];
        snprintf(line, sizeof(line), "resource=%s ", names[i]);
        ck_assert_uint_eq(client_count(&stage.client, "LOCKS", line), i <= _i);
        expect_held(names[i], i <= _i);
    }
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
    client_expect(&stage.client, "OK", "UNLOCK %s %s", names[_i], grant.token);
    ck_assert_int_eq(wrapper_wait(&wrapper), 0);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 1);
    expect_all_free();
}

/* Two shells lock the same names, given in different orders. Only one command at a time can make
 * the folder. */
TEST(commands_with_the_same_names_exclude_each_other_without_deadlock)
{
    static const char *const orders[][2] = {{"x", "y"}, {"y", "x"}};
    char url[SANDBOX_FILE + 8], folder[SANDBOX_FILE], errors[SANDBOX_FILE], *text;
    pid_t pids[2];
    snprintf(url, sizeof(url), "unix:%s", stage.daemon.socket);
    setenv("REDLOCK", wrapper_program(), 1);
    setenv("REDLOCK_URL", url, 1);
    setenv("FOLDER", sandbox_path(&stage.sandbox, "folder", folder), 1);
    sandbox_path(&stage.sandbox, "shells", errors);
    for (unsigned i = 0; i < 2; i++)
        pids[i] = process_start(&(struct process_plan){
            .argv = WORDS("sh", "-ec",
                          "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do\n"
                          "    $REDLOCK run --also $0 $1 -- sh -ec 'mkdir $FOLDER; rmdir $FOLDER'\n"
                          "done",
                          orders[i][0], orders[i][1]),
            .errors = errors});
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(process_wait(pids[i], "a shell"), 0);
    text = sandbox_read(errors);
    ck_assert_str_eq(text, "");
    free(text);
}

/* --- exit codes and the wait --- */

/* Lock number _i is held elsewhere. */
TEST_LOOP(any_lock_held_elsewhere_has_the_exit_codes_of_one_lock, 0, NAMES)
{
    char json[64];
    client_lock(&stage.client, names[_i], "60s");
    ck_assert_int_eq(
        run(WORDS("-q", "-w", "50ms", "-E", "0", "--also", "c", "--also", "b", "a", "echo", "ran")),
        0);
    ck_assert(!wrapper_complained(&wrapper, "another client"));
    ck_assert_int_eq(run(WORDS("-n", "--also", "c", "--also", "b", "a", "echo", "ran")), 1);
    ck_assert_int_eq(run(WORDS("-n", "-E", "9", "--also", "c", "--also", "b", "a", "echo", "ran")),
                     9);
    ck_assert_int_eq(
        run(WORDS("--json", "-w", "50ms", "--also", "c", "--also", "b", "a", "echo", "ran")), 124);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
    ck_assert(wrapper_complained(&wrapper, "another client"));
    snprintf(json, sizeof(json), "{\"status\":\"held\",\"resource\":\"%s\"", names[_i]);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, json), 1);
    for (int i = 0; i < NAMES; i++)
        expect_held(names[i], i == _i);
}

TEST(the_wait_is_one_time_limit_for_all_locks)
{
    enum { WAIT_MS = 4000, RELEASED_MS = 3000 };
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_lock(&stage.client, "b", "60s");
    int64_t started_ms = waiting_clock_ms();
    start(WORDS("--wait", "4s", "--also", "b", "a", "echo", "ran"));
    wait_for_waiter("a");
    struct waiting waiting = waiting_for("most of the wait to pass");
    while (waiting_clock_ms() < started_ms + RELEASED_MS)
        waiting_pause(&waiting);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    int64_t released_ms = waiting_clock_ms();
    ck_assert_int_eq(wrapper_wait(&wrapper), 124);
    /* With a wait of its own for b, it would take at least WAIT_MS. */
    ck_assert_int_lt(waiting_clock_ms() - released_ms, WAIT_MS);
    ck_assert(wrapper_complained(&wrapper, "redlock: b: "));
    expect_held("a", false);
}

/* While it is stopped, the run is granted the first lock, and its wait ends. */
TEST(a_wait_that_is_used_up_by_the_first_lock_is_still_a_wait)
{
    enum { WAIT_MS = 1000 };
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_lock(&stage.client, "b", "60s");
    int64_t started_ms = waiting_clock_ms();
    start(WORDS("--wait", "1s", "--also", "b", "a", "echo", "ran"));
    wait_for_waiter("a");
    process_stop(wrapper.pid);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    struct waiting waiting = waiting_for("the wait to be over");
    while (waiting_clock_ms() < started_ms + 2 * WAIT_MS)
        waiting_pause(&waiting);
    kill(wrapper.pid, SIGCONT);
    ck_assert_int_eq(wrapper_wait(&wrapper), 124);
}

TEST(a_name_given_twice_is_an_error)
{
    ck_assert_int_eq(run(WORDS("--also", "b", "--also", "a", "a", "echo", "ran")), 125);
    ck_assert(wrapper_complained(&wrapper, "redlock: --also: the name \"a\" is given twice"));
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
}

/* Each lock reads the secret. A second reader of a FIFO would wait forever. */
TEST(a_secret_that_can_be_read_only_once_is_an_error)
{
    char fifo[SANDBOX_FILE];
    ck_assert_int_eq(mkfifo(sandbox_path(&stage.sandbox, "fifo", fifo), 0600), 0);
    ck_assert_int_eq(run(WORDS("--secret-file", fifo, "--also", "b", "a", "echo", "ran")), 125);
    ck_assert(wrapper_complained(&wrapper, "--secret-file must be a regular file"));
}

/* --- losses --- */

/* Lock number _i is lost, so another client may hold it. */
TEST_LOOP(the_loss_of_any_lock_ends_the_command, 0, NAMES)
{
    char lost[64];
    pid_t pids[STUBBORN_COUNT];
    start(
        WORDS("--ttl", "6s", "--grace", "1m", "--also", "b", "--also", "c", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    client_expect(&stage.client, "OK", "BREAK %s", names[_i]);
    ck_assert_int_eq(wrapper_wait(&wrapper), 122);
    ck_assert(!run_any_runs(pids));
    for (int i = 0; i < NAMES; i++) {
        snprintf(lost, sizeof(lost), "redlock: %s is lost: ", names[i]);
        ck_assert_int_eq(wrapper_complained(&wrapper, lost), i == _i);
    }
    /* The daemon reports the loss, or an EXTEND of that moment is answered with GONE. Either way,
     * the command does not run on until the deadline. */
    snprintf(lost, sizeof(lost), "redlock: %s is lost: it was released or broken", names[_i]);
    ck_assert(wrapper_complained(&wrapper, lost));
    /* The locks after the lost one expire, because their processes were killed. */
    stage_wait_no_keys(&stage);
}

/* The first supervisor sends the signal of --on-lost to the process group of the nested run. */
TEST(the_signal_of_the_first_lock_reaches_the_command)
{
    start(WORDS("--on-lost", "ALRM", "--also", "b", "a",
                SHELL("trap 'echo signalled; exit 7' ALRM; echo ready;"
                      "while :; do sleep 0.01; done")));
    wrapper_wait_output(&wrapper, "ready");
    kill(-nested_parent(), SIGALRM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 7);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "signalled"), 1);
    expect_all_free();
}

/* --- killed processes --- */

TEST(no_process_outlives_a_killed_parent_and_all_locks_end)
{
    pid_t pids[STUBBORN_COUNT], supervisor, nested_supervisor;
    int status;
    start(WORDS("--ttl", "6s", "--also", "b", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    supervisor = wrapper_supervisor(&wrapper);
    ck_assert_uint_eq(process_children(nested_parent(), &nested_supervisor, 1), 1);
    kill(wrapper.pid, SIGKILL);
    waitpid(wrapper.pid, &status, 0);
    process_wait_gone(supervisor);
    /* The first supervisor ended last, after it had released its lock. */
    ck_assert(!run_any_runs(pids));
    ck_assert(!process_runs(nested_supervisor));
    expect_held("a", false);
    stage_wait_no_keys(&stage);
}

/* The killed process is the parent (loop index 0) or the supervisor (1) of the second lock. */
TEST_LOOP(no_process_outlives_a_killed_nested_process, 0, 2)
{
    pid_t pids[STUBBORN_COUNT], nested_supervisor;
    start(WORDS("--ttl", "6s", "--also", "b", "a", SHELL(STUBBORN)));
    run_wait_stubborn(&wrapper, pids);
    pid_t nested = nested_parent();
    ck_assert_uint_eq(process_children(nested, &nested_supervisor, 1), 1);
    kill(_i == 0 ? nested : nested_supervisor, SIGKILL);
    ck_assert_int_eq(wrapper_wait(&wrapper), _i == 0 ? 128 + SIGKILL : 125);
    ck_assert(!run_any_runs(pids));
    expect_held("a", false);
    stage_wait_no_keys(&stage);
}
