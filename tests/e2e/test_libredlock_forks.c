/*
 * libredlock across fork(2): a connection belongs to the process that opened it, even if another
 * process has the same PID.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/c/redlock.h"
#include "tests/e2e/library.h"
#include "tests/e2e/namespace.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three_quick = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};
static const struct redlock_lock_options hold = {.hold = true};
static const struct redlock_lock_options hold_linger = {.hold = true, .linger = true};

static struct stage stage;

static void setup(void)
{
    stage_open(&stage, runner_test_name, &three_quick);
}

static void teardown(void)
{
    stage_close(&stage);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

/* Simulates a kernel before Linux 4.14, which has no MADV_WIPEONFORK. */
static bool kernel_is_old;

int madvise(void *address, size_t len, int advice)
{
    if (kernel_is_old && advice == MADV_WIPEONFORK) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, address, len, advice);
}

static bool ended_well(pid_t child)
{
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* Depending on the loop index, the first child is made by fork() (0), by fork() on an old kernel
 * (1), or by a bare clone() (2). */
TEST_LOOP(a_child_leaves_the_connection_to_its_parent, 0, 3)
{
    kernel_is_old = _i == 1;
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock_lock lock = library_acquire(redlock, "a", 60000, &hold);
    /* A bare clone() does not run the handlers of pthread_atfork(). */
    pid_t child = _i == 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
        redlock_free(redlock);
        _exit(0);
    }
    ck_assert(ended_well(child));
    child = fork();
    if (child == 0) {
        /* The child opens its own connection. */
        bool fine = redlock_ping(redlock) == REDLOCK_OK;
        redlock_free(redlock);
        _exit(!fine);
    }
    ck_assert(ended_well(child));
    library_expect(redlock, redlock_extend(redlock, &lock, 60000), REDLOCK_OK);
    ck_assert(lock.hold);
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
}

/* The child lives on after its parent was killed. It has freed its copy of the handle, so the
 * parent's connection ends. */
TEST_LOOP(a_child_without_its_copy_does_not_keep_the_locks_of_a_killed_parent, 0, 2)
{
    int lifetime[2];
    int freed[2];
    char byte;
    kernel_is_old = _i == 1;
    ck_assert_int_eq(pipe(lifetime), 0);
    ck_assert_int_eq(pipe(freed), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct redlock *redlock = library_open(&stage.daemon);
        library_acquire(redlock, "a", 60000, &hold);
        if (fork() == 0) {
            close(lifetime[1]);
            redlock_free(redlock);
            _exit(write(freed[1], "", 1) != 1 || read(lifetime[0], &byte, 1) != 0);
        }
        pause();
    }
    ck_assert_int_eq(read(freed[0], &byte, 1), 1);
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    process_kill(parent);
    stage_wait_no_keys(&stage);
    close(lifetime[1]);
}

TEST_LOOP(a_child_can_take_over_the_connection, 0, 2)
{
    kernel_is_old = _i == 1;
    struct redlock *redlock = library_open(&stage.daemon);
    library_acquire(redlock, "a", 60000, &hold);
    pid_t child = fork();
    if (child == 0) {
        redlock_take_over(redlock);
        redlock_free(redlock);
        _exit(0);
    }
    ck_assert(ended_well(child));
    stage_wait_no_keys(&stage);
    redlock_free(redlock);
}

/* The child takes over the connection and ends before it has read the answer to its request. The
 * answer must not keep the parent from a clean close, which is the only end that releases a lock
 * with LINGER. A unix socket is closed cleanly in any case, so the connection is TCP. */
TEST(an_answer_to_a_killed_child_does_not_keep_the_lock)
{
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = redlock_new(url);
    library_acquire(redlock, "a", 60000, &hold_linger);
    pid_t child = fork();
    if (child == 0) {
        redlock_take_over(redlock);
        _exit(redlock_start_ping(redlock, NULL) == REDLOCK_OK ? 0 : 1);
    }
    ck_assert(ended_well(child));
    struct pollfd answer = {.fd = redlock_socket(redlock), .events = POLLIN};
    ck_assert_int_eq(poll(&answer, 1, WAITING_DEADLINE_MS), 1);
    redlock_free(redlock);
    client_expect_match(&stage.client, "OK .*", "LOCK a 60s WAIT 30s");
}

/* The library reads the grant before the fork. After the fork, the parent takes the event with the
 * grant. At loop index 1, the child also takes the events of its copy of the handle, and must not
 * get the grant. */
TEST_LOOP(a_child_does_not_release_the_grants_of_its_parent, 0, 2)
{
    struct redlock_event event;
    uint64_t id;
    struct redlock *redlock = library_open(&stage.daemon);
    library_expect(redlock, redlock_start_acquire(redlock, "a", 60000, NULL, &id), REDLOCK_OK);
    client_wait_count(&stage.client, "STATS", "subject=lock ok=1 ", 1);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    pid_t child = fork();
    if (child == 0) {
        bool fine = redlock_ping(redlock) == REDLOCK_OK;
        if (_i == 1)
            fine = fine && redlock_next(redlock, &event) && event.id == id &&
                   event.status == REDLOCK_BROKEN && event.lock.token[0] == '\0';
        redlock_free(redlock);
        _exit(!fine);
    }
    ck_assert(ended_well(child));
    event = library_answer(redlock, id, REDLOCK_OK);
    library_expect(redlock, redlock_extend(redlock, &event.lock, 60000), REDLOCK_OK);
    redlock_free(redlock);
}

/* --- in a PID namespace --- */

enum failure { NONE, NO_NAMESPACE, NOT_PID_1, NOT_LOCKED, CHILD_FAILED, HOLD_LOST };

/* Forks a process that is PID 1 of a new PID namespace. */
static pid_t fork_pid_1(void)
{
    return unshare(CLONE_NEWPID) == 0 ? fork() : -1;
}

static enum failure hold_as_pid_1(const struct daemon *daemon)
{
    struct redlock *redlock = library_open(daemon);
    struct redlock_lock lock;
    if (getpid() != 1)
        return NOT_PID_1;
    if (redlock_acquire(redlock, "a", 60000, &hold, &lock, NULL) != REDLOCK_OK)
        return NOT_LOCKED;
    pid_t child = fork_pid_1();
    if (child == 0) {
        redlock_free(redlock);
        _exit(getpid() != 1);
    }
    if (!ended_well(child))
        return CHILD_FAILED;
    if (redlock_extend(redlock, &lock, 60000) != REDLOCK_OK || !lock.hold)
        return HOLD_LOST;
    redlock_free(redlock);
    return NONE;
}

TEST_LOOP(a_child_with_its_parents_pid_leaves_the_connection_alone, 0, 2)
{
    int status;
    kernel_is_old = _i == 1;
    /* unshare() applies to all later children, hence an intermediate process. */
    pid_t between = fork();
    if (between == 0) {
        pid_t parent = namespace_become_root() ? fork_pid_1() : -1;
        if (parent == 0)
            _exit(hold_as_pid_1(&stage.daemon));
        _exit(parent > 0 && waitpid(parent, &status, 0) == parent && WIFEXITED(status)
                  ? WEXITSTATUS(status)
                  : NO_NAMESPACE);
    }
    ck_assert_int_eq(waitpid(between, &status, 0), between);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), NONE);
    stage_wait_no_keys(&stage);
}
