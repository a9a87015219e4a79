/*
 * HOLDs of libredlock with a real daemon: how they end with their handle, process or connection,
 * and how a loss is reported.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/c/redlock.h"
#include "tests/e2e/library.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};
static const struct stage_plan three_quick = {
    .masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 500}};
static const struct stage_plan three_tcp = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};
static const struct redlock_lock_options hold = {.hold = true};
static const struct redlock_lock_options hold_linger = {.hold = true, .linger = true};

static bool no_memory;

/* Replaces the function of the C library for libredlock, so that a test can make it fail. */
void *reallocarray(void *block, size_t count, size_t size)
{
    errno = ENOMEM;
    return no_memory ? NULL : realloc(block, count * size);
}

TEST(a_hold_lives_as_long_as_its_handle)
{
    struct stage stage;
    struct redlock_event event;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock_lock lock = library_acquire(redlock, "a", 2000, &hold);
    ck_assert(lock.hold);
    stage_wait_count(&stage.client, "renewals", 3);
    ck_assert(!redlock_next(redlock, &event));
    library_expect(redlock, redlock_extend(redlock, &lock, 2000), REDLOCK_OK);
    ck_assert(lock.hold);
    stage_wait_key(&stage, "redlock:a", 3);
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(a_lingering_hold_is_released_by_its_handle)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = library_open(&stage.daemon);
    library_acquire(redlock, "a", 60000, &hold_linger);
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

/* When the process is killed, the kernel closes its unix socket, which is a clean end of the
 * connection. A HOLD with LINGER must outlive even a clean end. */
TEST(a_lingering_hold_outlives_a_killed_process_until_its_deadline)
{
    struct stage stage;
    int pipe_fds[2];
    int64_t deadline_ns;
    stage_open(&stage, __func__, &three_quick);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        struct redlock *redlock = library_open(&stage.daemon);
        struct redlock_lock lock = library_acquire(redlock, "a", 2000, &hold_linger);
        (void)!write(pipe_fds[1], &lock.deadline_ns, sizeof(lock.deadline_ns));
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(pipe_fds[0], &deadline_ns, sizeof(deadline_ns)), sizeof(deadline_ns));
    process_kill(child);
    stage_wait_stats(&stage.client, " holding=0 ");
    stage_wait_no_keys(&stage);
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    ck_assert_int_ge((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, deadline_ns);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    stage_close(&stage);
}

/* Closing a TCP socket with unread bytes resets the connection, and after a reset a HOLD lives
 * until its deadline. The handle must therefore read the warnings before it closes the socket. */
TEST(a_hold_with_unread_warnings_is_freed_with_its_handle)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_tcp);
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = redlock_new(url);
    library_acquire(redlock, "a", 60000, &hold);
    master_stop(&stage.masters[2]);
    stage_wait_nodes(&stage, "vote=no", 1);
    master_continue(&stage.masters[2]);
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(a_lost_hold_is_reported_once)
{
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock_lock lock = library_acquire(redlock, "a", 3000, &hold);
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    struct redlock_event event;
    do
        event = library_next(redlock);
    while (event.kind == REDLOCK_EVENT_WARN);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.resource, "a");
    ck_assert_str_eq(event.lock.token, lock.token);
    ck_assert_str_eq(event.reason, "noquorum");
    library_expect(redlock, redlock_start_ping(redlock, &id), REDLOCK_OK);
    library_answer(redlock, id, REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}

/* The daemon is stopped until a request has timed out, and the program abandons the connection: a
 * unix socket at loop index 0, TCP at 1. The program still relies on the deadline of its lock. */
TEST_LOOP(a_hold_on_an_abandoned_connection_lives_until_its_deadline, 0, 2)
{
    struct stage stage;
    struct redlock_event event;
    char url[64];
    stage_open(&stage, __func__, &three_tcp);
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = _i == 0 ? library_open(&stage.daemon) : redlock_new(url);
    ck_assert_ptr_nonnull(redlock);
    struct redlock_lock lock = library_acquire(redlock, "a", 30000, &hold);
    process_stop(stage.daemon.pid);
    redlock_set_timeout(redlock, 50);
    library_expect(redlock, redlock_extend(redlock, &lock, 30000), REDLOCK_TIMEOUT);
    redlock_abandon(redlock);
    ck_assert(redlock_next(redlock, &event));
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_CLOSED);
    kill(stage.daemon.pid, SIGCONT);
    /* Over TCP, the library has closed the connection, and the test waits until the daemon notices.
     * The library keeps an abandoned unix socket open. */
    stage_wait_clients(&stage, _i == 0 ? 2 : 1);
    client_expect_match(&stage.client, "HELD .*", "LOCK a 30s");
    redlock_set_timeout(redlock, 5000);
    library_expect(redlock, redlock_extend(redlock, &lock, 30000), REDLOCK_OK);
    ck_assert_int_gt(redlock_left_ms(&lock), 0);
    library_expect(redlock, redlock_release(redlock, &lock), REDLOCK_OK);
    /* Freeing the handle closes the abandoned unix socket, which releases the hold. Over TCP, the
     * hold lives until its deadline. */
    lock = library_acquire(redlock, "b", 30000, &hold);
    redlock_abandon(redlock);
    redlock_free(redlock);
    stage_wait_clients(&stage, 1);
    client_expect_match(&stage.client, _i == 0 ? "FREE" : "HELD .*", "STATUS b");
    stage_close(&stage);
}

/* Closing the unix socket would be a clean end, which releases the lock. The library must not close
 * the socket, even if it has no memory to remember it. */
TEST(a_connection_is_abandoned_without_memory)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock_lock lock = library_acquire(redlock, "a", 30000, &hold);
    no_memory = true;
    redlock_abandon(redlock);
    no_memory = false;
    ck_assert_int_gt(redlock_left_ms(&lock), 0);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    stage_wait_clients(&stage, 3);
    library_expect(redlock, redlock_extend(redlock, &lock, 30000), REDLOCK_OK);
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

/* Each restart of the daemon ends the connection that was abandoned before the restart. The handle
 * must then close its socket of this connection. */
TEST(abandoned_connections_that_ended_use_no_descriptors)
{
    enum { ROUNDS = 3 };
    static const char *const names[ROUNDS] = {"a", "b", "c"};
    unsigned counts[ROUNDS];
    struct stage stage;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    for (unsigned i = 0; i < ROUNDS; i++) {
        library_acquire(redlock, names[i], 30000, &hold);
        redlock_abandon(redlock);
        counts[i] = process_open_files(getpid());
        client_close(&stage.client);
        daemon_stop(&stage.daemon);
        daemon_start(&stage.daemon, 0);
        daemon_wait_up(&stage.daemon, 3);
        daemon_connect(&stage.daemon, &stage.client);
    }
    ck_assert_uint_eq(counts[1], counts[0]);
    ck_assert_uint_eq(counts[2], counts[0]);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_hold_released_by_another_handle_is_lost)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock *other = library_open(&stage.daemon);
    struct redlock_lock lock = library_acquire(redlock, "a", 2000, &hold);
    struct redlock_lock copy = lock;
    library_expect(other, redlock_release(other, &copy), REDLOCK_OK);
    struct redlock_event event = library_next(redlock);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.reason, "gone");
    redlock_free(redlock);
    redlock_free(other);
    stage_close(&stage);
}
