/*
 * `redlock run` while it waits in the queue: suspension, and locks that an enclosing run holds.
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

/* --- suspension --- */

/* A suspended waiter that stays queued would get the lock and hold it while it is stopped. */
TEST(a_suspended_waiter_leaves_the_queue_and_joins_it_again)
{
    struct grant grant = client_lock(&stage.client, "a", "60s");
    start(WORDS("a", SHELL("echo ran; exec sleep 600")));
    for (unsigned i = 0; i < 5; i++) {
        stage_wait_stats(&stage.client, " waiting=1 ");
        kill(wrapper.pid, SIGTSTP);
        process_wait_state(wrapper.pid, 'T');
        stage_wait_stats(&stage.client, " waiting=0 ");
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
        client_expect(&stage.client, "FREE", "STATUS a");
        grant = client_lock(&stage.client, "a", "60s");
        kill(wrapper.pid, SIGCONT);
    }
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    wrapper_wait_output(&wrapper, "ran");
    /* Now that the command runs, it gets the signals that are sent to `redlock run`. */
    kill(wrapper.pid, SIGTSTP);
    process_wait_state(wrapper_command(&wrapper), 'T');
    kill(wrapper.pid, SIGCONT);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
}

/* Starts one run of several, each with files of its own. */
static void start_numbered(unsigned run, const char *const *words)
{
    char name[16];
    snprintf(name, sizeof(name), "run%u", run);
    wrapper_start(&wrapper, &stage.sandbox, name, stage.daemon.socket, words);
}

/* The grant and the suspension race. Whichever comes first, the lock must not be held for a run
 * that is stopped before its command has begun. */
TEST(a_grant_during_a_suspension_leaves_no_idle_lock)
{
    for (unsigned i = 0; i < 20; i++) {
        struct grant grant = client_lock(&stage.client, "a", "60s");
        start_numbered(i, WORDS("a", SHELL("echo ran; exec sleep 600")));
        stage_wait_stats(&stage.client, " waiting=1 ");
        client_send(&stage.client, "UNLOCK a ");
        client_send(&stage.client, grant.token);
        client_send(&stage.client, "\n");
        usleep(50 * i);
        kill(wrapper.pid, SIGTSTP);
        ck_assert_str_eq(client_read(&stage.client), "OK");
        process_wait_state(wrapper.pid, 'T');
        struct waiting waiting = waiting_for("the lock to be free, or the command to begin");
        while (strcmp(client_ask(&stage.client, "STATUS a"), "FREE") != 0 &&
               process_children(wrapper.pid, &(pid_t){0}, 1) == 0)
            waiting_pause(&waiting);
        kill(wrapper.pid, SIGCONT);
        wrapper_wait_output(&wrapper, "ran");
        kill(wrapper.pid, SIGTERM);
        ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    }
}

/* SIGCONT comes only once. It may arrive before the waiter leaves the queue to stop, meanwhile, or
 * after the stop. The waiter must never stop after it. */
TEST(a_waiter_continued_at_any_moment_keeps_running)
{
    for (unsigned i = 0; i < 100; i++) {
        struct grant grant = client_lock(&stage.client, "a", "60s");
        start_numbered(i, WORDS("a", SHELL("echo ran")));
        stage_wait_stats(&stage.client, " waiting=1 ");
        kill(wrapper.pid, SIGTSTP);
        usleep(5 * i);
        kill(wrapper.pid, SIGCONT);
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
        ck_assert_int_eq(wrapper_wait(&wrapper), 0);
        ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 1);
    }
}

TEST(a_waiter_that_ignores_suspension_stays_in_the_queue)
{
    char url[SANDBOX_FILE + 8], errors[SANDBOX_FILE];
    struct grant grant = client_lock(&stage.client, "a", "60s");
    snprintf(url, sizeof(url), "unix:%s", stage.daemon.socket);
    pid_t pid = process_start(&(struct process_plan){
        .argv = WORDS("sh", "-c", "trap '' TSTP; exec \"$0\" run --url \"$1\" a true",
                      wrapper_program(), url),
        .errors = sandbox_path(&stage.sandbox, "run.log", errors)});
    stage_wait_stats(&stage.client, " waiting=1 ");
    kill(pid, SIGTSTP);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    ck_assert_int_eq(process_wait(pid, "redlock run"), 0);
}

/* --- nested runs --- */

#define AROUND "redlock: an enclosing redlock run locked a ($REDLOCK_HELD) and may still hold it"

TEST(a_run_that_waits_for_its_own_lock_says_so)
{
    setenv("REDLOCK", wrapper_program(), 1);
    unsetenv("REDLOCK_HELD");
    start(WORDS("a", SHELL("exec $REDLOCK run a echo ran")));
    wrapper_wait_errors(&wrapper, AROUND);
    kill(wrapper.pid, SIGTERM);
    ck_assert_int_eq(wrapper_wait(&wrapper), 128 + SIGTERM);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "ran"), 0);
}

/* REDLOCK_HELD lists all enclosing locks. The warning about them is also shown for a request that
 * does not wait. */
TEST(redlock_held_lists_each_enclosing_lock)
{
    setenv("REDLOCK", wrapper_program(), 1);
    unsetenv("REDLOCK_HELD");
    start(WORDS("a", SHELL("$REDLOCK run b -- $REDLOCK run c -- sh -c 'echo held: $REDLOCK_HELD;"
                           "$REDLOCK run d true && exec $REDLOCK run -n a true'")));
    ck_assert_int_eq(wrapper_wait(&wrapper), 1);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "held: a b c\n"), 1);
    ck_assert(wrapper_complained(&wrapper, AROUND));
    ck_assert(!wrapper_complained(&wrapper, "locked d"));
}

TEST(nested_commands_use_the_same_daemon_and_secret)
{
    char secret[SANDBOX_FILE], relative[SANDBOX_FILE + 64], cwd[256], expected[1024];
    setenv("REDLOCK", wrapper_program(), 1);
    setenv("REDLOCK_URL", "unix:/nowhere", 1);
    sandbox_write(sandbox_path(&stage.sandbox, "secret", secret), "s-0123456789abcdef\n");
    snprintf(relative, sizeof(relative), "../../../../../../../../../../..%s", secret);
    start(WORDS("--secret-file", relative, "a",
                SHELL("$REDLOCK status a && $REDLOCK run b true && echo $REDLOCK_SECRET_FILE.")));
    ck_assert_int_eq(wrapper_wait(&wrapper), 0);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, "held "), 1);
    /* The path is absolute, so that it is valid in any folder. */
    ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
    snprintf(expected, sizeof(expected), "%s/%s.\n", cwd, relative);
    ck_assert_uint_eq(wrapper_count_output(&wrapper, expected), 1);
}
