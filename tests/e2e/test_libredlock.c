/*
 * libredlock with a real daemon over real masters.
 */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/c/redlock.h"
#include "tests/e2e/library.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};
static const struct stage_plan three_tcp = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};
static const struct redlock_lock_options hold = {.hold = true};

/* --- one lock --- */

TEST(a_lock_is_acquired_extended_and_released)
{
    struct stage stage;
    struct redlock_lock other;
    int64_t hint_ms = 0;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    library_expect(redlock, redlock_query(redlock, "a", &hint_ms), REDLOCK_FREE);
    struct redlock_lock lock = library_acquire(redlock, "a", 30000, NULL);
    ck_assert_int_gt(redlock_left_ms(&lock), 0);
    ck_assert_int_le(redlock_left_ms(&lock), 30000);
    ck_assert_int_eq(lock.fence, 0);
    ck_assert_str_eq(master_text(&stage.masters[0], "GET redlock:a"), lock.token);

    library_expect(redlock, redlock_acquire(redlock, "a", 30000, NULL, &other, &hint_ms),
                   REDLOCK_HELD);
    ck_assert_int_eq(other.deadline_ns, 0);
    ck_assert_int_gt(hint_ms, 0);
    ck_assert_int_le(hint_ms, 30000);
    library_expect(redlock, redlock_query(redlock, "a", &hint_ms), REDLOCK_HELD);

    struct redlock_lock before = lock;
    library_expect(redlock, redlock_extend(redlock, &lock, 50000), REDLOCK_OK);
    ck_assert_int_gt(lock.deadline_ns, before.deadline_ns);
    before = lock;
    library_expect(redlock, redlock_extend(redlock, &lock, 1000), REDLOCK_OK);
    ck_assert_int_eq(lock.deadline_ns, before.deadline_ns);

    library_expect(redlock, redlock_release(redlock, &lock), REDLOCK_OK);
    ck_assert_int_eq(lock.deadline_ns, 0);
    ck_assert_int_eq(redlock_left_ms(&lock), 0);
    lock = before;
    library_expect(redlock, redlock_release(redlock, &lock), REDLOCK_GONE);
    lock = before;
    library_expect(redlock, redlock_extend(redlock, &lock, 1000), REDLOCK_GONE);
    ck_assert_int_eq(lock.deadline_ns, 0);

    /* Acquiring again with the name stored in the lock itself. */
    library_expect(redlock, redlock_acquire(redlock, lock.resource, 30000, NULL, &lock, NULL),
                   REDLOCK_OK);
    ck_assert_str_eq(lock.resource, "a");
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(fences_rise)
{
    struct stage stage;
    const struct redlock_lock_options fence = {.fence = true};
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock_lock first = library_acquire(redlock, "a", 30000, &fence);
    struct redlock_lock copy = first;
    ck_assert_int_gt(first.fence, 0);
    library_expect(redlock, redlock_release(redlock, &copy), REDLOCK_OK);
    struct redlock_lock second = library_acquire(redlock, "a", 30000, &fence);
    ck_assert_int_gt(second.fence, first.fence);
    int64_t fence_before = second.fence;
    library_expect(redlock, redlock_extend(redlock, &second, 40000), REDLOCK_OK);
    ck_assert_int_eq(second.fence, fence_before);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_released_lock_goes_to_the_waiting_handle)
{
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &three);
    struct redlock *first = library_open(&stage.daemon);
    struct redlock *second = library_open(&stage.daemon);
    struct redlock_lock lock = library_acquire(first, "a", 60000, NULL);
    library_expect(second,
                   redlock_start_acquire(second, "a", 60000,
                                         &(struct redlock_lock_options){.wait_ms = 60000}, &id),
                   REDLOCK_OK);
    stage_wait_stats(&stage.client, " waiting=1 ");
    struct redlock_event event;
    ck_assert(!redlock_next(second, &event));
    /* A pending acquire does not block the connection. */
    library_expect(second, redlock_ping(second), REDLOCK_OK);
    library_expect(first, redlock_release(first, &lock), REDLOCK_OK);
    event = library_answer(second, id, REDLOCK_OK);
    ck_assert_int_gt(redlock_left_ms(&event.lock), 0);
    redlock_free(first);
    redlock_free(second);
    stage_close(&stage);
}

/* At the default rate of 1 %, the drift during a wait of a hundred TTLs is as long as the TTL.
 * The lock must be granted even so, because the TTL begins with the grant. With the rate of 10 %
 * here, a wait of ten TTLs is enough. */
TEST(a_long_waiter_gets_the_lock)
{
    static const struct stage_plan drifting = {
        .masters = 3, .over_unix = true, .daemon = {.locks = ", clock_drift_rate: 10%"}};
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &drifting);
    struct redlock *redlock = library_open(&stage.daemon);
    struct grant grant = client_lock(&stage.client, "a", "30s");
    library_expect(redlock,
                   redlock_start_acquire(redlock, "a", 300,
                                         &(struct redlock_lock_options){.wait_ms = 60000}, &id),
                   REDLOCK_OK);
    poll(NULL, 0, 3000);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    library_answer(redlock, id, REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_wait_that_times_out_returns_held)
{
    struct stage stage;
    struct redlock_lock other;
    int64_t hint_ms = 0;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_acquire(redlock, "a", 60000, NULL);
    library_expect(redlock,
                   redlock_acquire(redlock, "a", 60000,
                                   &(struct redlock_lock_options){.wait_ms = 50}, &other, &hint_ms),
                   REDLOCK_HELD);
    ck_assert_int_gt(hint_ms, 0);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_refusal_quotes_the_error_of_the_daemon)
{
    struct stage stage;
    struct redlock_lock lock;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_expect(redlock, redlock_acquire(redlock, "a", 999999999, NULL, &lock, NULL),
                   REDLOCK_REFUSED);
    ck_assert_ptr_nonnull(strstr(redlock_error(redlock), "ttl-range"));
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    stage_wait_nodes(&stage, "vote=no", 2);
    library_expect(redlock, redlock_acquire(redlock, "a", 9999, NULL, &lock, NULL),
                   REDLOCK_NOQUORUM);
    ck_assert_ptr_nonnull(strstr(redlock_error(redlock), "1/3 need=2"));
    redlock_free(redlock);
    stage_close(&stage);
}

/* --- the daemon --- */

static void count_line(void *context, const char *text)
{
    unsigned *count = context;
    if (strstr(text, "name=tester") != NULL || strstr(text, "VERSION 1 ") == text)
        ++*count;
}

TEST(the_label_of_a_handle_is_shown_in_listings)
{
    struct stage stage;
    unsigned count = 0;
    stage_open(&stage, __func__, &three_tcp);
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = redlock_new(url);
    library_expect(redlock, redlock_set_label(redlock, "no good"), REDLOCK_INVALID);
    library_expect(redlock, redlock_set_label(redlock, "tester"), REDLOCK_OK);
    library_expect(redlock, redlock_list(redlock, "CLIENTS", count_line, &count), REDLOCK_OK);
    ck_assert_uint_eq(count, 1);
    library_expect(redlock, redlock_list(redlock, "VERSION", count_line, &count), REDLOCK_OK);
    ck_assert_uint_eq(count, 2);
    library_expect(redlock, redlock_list(redlock, "HELP", count_line, &count), REDLOCK_OK);
    library_expect(redlock, redlock_list(redlock, "QUIT", count_line, &count), REDLOCK_INVALID);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_new_url_applies_to_the_next_connection)
{
    struct stage stage;
    char url[64];
    stage_open(&stage, __func__, &three_tcp);
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = redlock_new("unix:/nowhere");
    library_expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(redlock_error(redlock), "unix:/nowhere: "));
    library_expect(redlock, redlock_set_url(redlock, url), REDLOCK_OK);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    library_expect(redlock, redlock_set_url(redlock, "unix:/no"), REDLOCK_OK);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    redlock_abandon(redlock);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(redlock_error(redlock), "unix:/no: "));
    library_expect(redlock, redlock_set_url(redlock, NULL), REDLOCK_OK);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_INVALID);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(the_place_in_the_queue_can_be_requested)
{
    struct stage stage;
    uint64_t first;
    uint64_t id;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_acquire(redlock, "a", 60000, NULL);
    library_expect(redlock, redlock_start_place(redlock, "a", &id), REDLOCK_OK);
    ck_assert_uint_eq(library_answer(redlock, id, REDLOCK_OK).place, 0);
    const struct redlock_lock_options options = {.wait_ms = 60000};
    library_expect(redlock, redlock_start_acquire(redlock, "a", 60000, &options, &first),
                   REDLOCK_OK);
    stage_wait_stats(&stage.client, " waiting=1 ");
    library_expect(redlock, redlock_start_place(redlock, "a", &id), REDLOCK_OK);
    ck_assert_uint_eq(library_answer(redlock, id, REDLOCK_OK).place, 1);
    library_expect(redlock, redlock_start_place(redlock, "b", &id), REDLOCK_OK);
    ck_assert_uint_eq(library_answer(redlock, id, REDLOCK_OK).place, 0);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(pipelined_requests_are_each_answered_once)
{
    enum { REQUESTS = 500 };
    struct stage stage;
    uint64_t ids[REQUESTS];
    bool answered[REQUESTS] = {false};
    char name[16];
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    for (unsigned i = 0; i < REQUESTS; i++) {
        snprintf(name, sizeof(name), "r%u", i);
        if (i % 2 == 0)
            library_expect(redlock, redlock_start_acquire(redlock, name, 30000, NULL, &ids[i]),
                           REDLOCK_OK);
        else
            library_expect(redlock, redlock_start_ping(redlock, &ids[i]), REDLOCK_OK);
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct redlock_event event = library_next(redlock);
        library_expect(redlock, event.status, REDLOCK_OK);
        unsigned at = 0;
        while (at < REQUESTS && ids[at] != event.id)
            at++;
        ck_assert_uint_lt(at, REQUESTS);
        ck_assert(!answered[at]);
        answered[at] = true;
    }
    redlock_free(redlock);
    stage_close(&stage);
}

/* --- the connection --- */

TEST(requests_in_flight_break_when_the_daemon_is_killed)
{
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_acquire(redlock, "a", 60000, &hold);
    library_expect(redlock,
                   redlock_start_acquire(redlock, "a", 60000,
                                         &(struct redlock_lock_options){.wait_ms = 60000}, &id),
                   REDLOCK_OK);
    stage_wait_stats(&stage.client, " waiting=1 ");
    process_kill(stage.daemon.pid);
    library_answer(redlock, id, REDLOCK_BROKEN);
    ck_assert_int_eq(library_next(redlock).kind, REDLOCK_EVENT_CLOSED);
    ck_assert(!redlock_is_connected(redlock));
    library_expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    library_acquire(redlock, "b", 60000, NULL);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_daemon_restart_between_requests_goes_unnoticed)
{
    struct stage stage;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock_lock lock = library_acquire(redlock, "a", 60000, NULL);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    library_expect(redlock, redlock_release(redlock, &lock), REDLOCK_OK);
    ck_assert(!redlock_next(redlock, &event));
    redlock_free(redlock);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}

TEST(the_first_request_checks_the_url)
{
    struct redlock *redlock = redlock_new("tcp://me:secret@127.0.0.1:7335");
    library_expect(redlock, redlock_ping(redlock), REDLOCK_INVALID);
    ck_assert_str_eq(redlock_error(redlock),
                     "the address contains a user name or a password; write "
                     "tcp://127.0.0.1:7335");
    redlock_free(redlock);
    redlock = redlock_new("127.0.0.1:7335");
    library_expect(redlock, redlock_ping(redlock), REDLOCK_INVALID);
    ck_assert_str_eq(redlock_error(redlock), "127.0.0.1:7335 is not a tcp:// address; write "
                                             "tcp://127.0.0.1:7335 or "
                                             "unix:/run/redlockd/redlockd.sock");
    redlock_free(redlock);
    redlock = redlock_new(NULL);
    library_expect(redlock, redlock_start_ping(redlock, NULL), REDLOCK_INVALID);
    redlock_free(redlock);
    redlock = redlock_new("unix:/nonexistent/socket");
    library_expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    ck_assert_str_eq(redlock_error(redlock), "unix:/nonexistent/socket: cannot connect: No such "
                                             "file or directory");
    redlock_free(redlock);
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", port_free());
    redlock = redlock_new(url);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    redlock_free(redlock);
    redlock_free(NULL);
}

TEST(a_handle_over_the_client_limit_returns_limit)
{
    struct stage stage;
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = 3, .over_unix = true, .daemon = {.yaml = "limits: {clients: 2}\n"}});
    struct redlock *first = library_open(&stage.daemon);
    struct redlock *second = library_open(&stage.daemon);
    library_expect(first, redlock_ping(first), REDLOCK_OK);
    library_expect(second, redlock_ping(second), REDLOCK_LIMIT);
    ck_assert_ptr_nonnull(strstr(redlock_error(second), "clients"));
    redlock_free(first);
    stage_wait_clients(&stage, 1);
    library_expect(second, redlock_ping(second), REDLOCK_OK);
    redlock_free(second);
    stage_close(&stage);
}

/* --- timeouts --- */

/* At loop index 0, the handle is connected and requests a HOLD; at 1, it is not connected yet. */
TEST_LOOP(a_stopped_daemon_costs_the_timeout_and_leaves_no_lock, 0, 2)
{
    struct stage stage;
    struct redlock_lock lock;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    if (_i == 0)
        library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    redlock_set_timeout(redlock, 100);
    process_stop(stage.daemon.pid);
    library_expect(redlock,
                   redlock_acquire(redlock, "a", 60000, _i == 0 ? &hold : NULL, &lock, NULL),
                   REDLOCK_TIMEOUT);
    ck_assert_int_eq(lock.deadline_ns, 0);
    ck_assert(!redlock_is_connected(redlock));
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    stage_wait_clients(&stage, 1);
    stage_wait_no_keys(&stage);
    redlock_set_timeout(redlock, 60000);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}

/* The listener does not accept, and its backlog is full. */
TEST(connecting_ends_after_the_connect_timeout)
{
    enum { FULL = 4 };
    struct sockaddr_in where = {.sin_family = AF_INET};
    socklen_t len = sizeof(where);
    char url[64];
    int fds[FULL];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&where, sizeof(where)), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&where, &len), 0);
    for (unsigned i = 0; i < FULL; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fds[i], (struct sockaddr *)&where, sizeof(where));
    }
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", ntohs(where.sin_port));
    struct redlock *redlock = redlock_new(url);
    /* The request timeout is longer than this test, so that only the connect timeout ends it. */
    redlock_set_timeout(redlock, INT64_C(3600000));
    redlock_set_connect_timeout(redlock, 50);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    redlock_free(redlock);
    for (unsigned i = 0; i < FULL; i++)
        close(fds[i]);
    close(listener);
}

/* A LOCK without HOLD times out on a connection that also has a HOLD. The handle must not close
 * this connection, so it releases the lock when the late OK arrives. */
TEST(a_late_grant_is_released_and_the_connection_kept)
{
    struct stage stage;
    struct redlock_lock lock;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    struct redlock_lock held = library_acquire(redlock, "h", 60000, &hold);
    process_stop(stage.daemon.pid);
    redlock_set_timeout(redlock, 100);
    library_expect(redlock, redlock_acquire(redlock, "a", 60000, NULL, &lock, NULL),
                   REDLOCK_TIMEOUT);
    ck_assert(redlock_is_connected(redlock));
    redlock_set_timeout(redlock, 60000);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    struct waiting waiting = waiting_for("the lock to be released");
    do {
        waiting_pause(&waiting);
        ck_assert(!redlock_next(redlock, &event));
    } while (client_count(&stage.client, "STATS", "subject=unlock ok=1 ") != 1);
    stage_wait_key(&stage, "redlock:a", 0);
    library_expect(redlock, redlock_extend(redlock, &held, 60000), REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_cancelled_request_leaves_the_queue)
{
    struct stage stage;
    uint64_t id;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *first = library_open(&stage.daemon);
    struct redlock *second = library_open(&stage.daemon);
    library_acquire(first, "a", 60000, NULL);
    redlock_start_acquire(second, "a", 60000, &(struct redlock_lock_options){.wait_ms = 60000},
                          &id);
    stage_wait_stats(&stage.client, " waiting=1 ");
    redlock_cancel(second, id);
    stage_wait_stats(&stage.client, " waiting=0 ");
    ck_assert(!redlock_next(second, &event));
    library_expect(second, redlock_ping(second), REDLOCK_OK);
    redlock_free(first);
    redlock_free(second);
    stage_close(&stage);
}

TEST_LOOP(freeing_a_handle_releases_untaken_grants, 0, 3)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_expect(redlock, redlock_start_acquire(redlock, "a", 60000, NULL, NULL), REDLOCK_OK);
    client_wait_count(&stage.client, "STATS", "subject=lock ok=1 ", 1);
    /* Depending on the loop index, the handle has not read the grant yet (0), it has read the grant
     * (1), or the program has taken the grant and released the lock (2). */
    struct redlock_event event;
    if (_i == 1) {
        library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
        redlock_free(redlock);
    } else if (_i == 2) {
        ck_assert(redlock_next(redlock, &event));
        library_expect(redlock, redlock_release(redlock, &event.lock), REDLOCK_OK);
        redlock_free(redlock);
    } else {
        redlock_free(redlock);
    }
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 20 };

struct worker {
    const struct daemon *daemon;
    atomic_int *inside;
    int most;
    int failures;
};

static void *work(void *context)
{
    struct worker *worker = context;
    struct redlock *redlock = library_open(worker->daemon);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct redlock_lock lock;
        if (redlock_acquire(redlock, "a", 30000, &(struct redlock_lock_options){.wait_ms = 60000},
                            &lock, NULL) != REDLOCK_OK) {
            worker->failures++;
            continue;
        }
        int inside = atomic_fetch_add(worker->inside, 1) + 1;
        if (inside > worker->most)
            worker->most = inside;
        atomic_fetch_sub(worker->inside, 1);
        if (redlock_release(redlock, &lock) != REDLOCK_OK)
            worker->failures++;
    }
    redlock_free(redlock);
    return NULL;
}

TEST(threads_with_separate_handles_exclude_each_other)
{
    struct stage stage;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    atomic_int inside = 0;
    stage_open(&stage, __func__, &three);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.daemon = &stage.daemon, .inside = &inside};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(workers[i].most, 1);
        ck_assert_int_eq(workers[i].failures, 0);
    }
    stage_close(&stage);
}
