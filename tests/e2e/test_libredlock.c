/*
 * libredlock, as it is installed, with a real daemon over real masters.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/redlock.h"
#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};
static const struct stage_plan three_quick = {
    .masters = 3, .over_unix = true, .daemon = {.node_timeout_ms = 100}};
static const struct stage_plan three_tcp = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};
static const struct redlock_wish hold = {.hold = true};

static struct redlock *handle_of(const struct daemon *daemon)
{
    char url[SANDBOX_FILE + 8];
    snprintf(url, sizeof(url), "unix:%s", daemon->socket);
    struct redlock *redlock = redlock_new(url);
    ck_assert_ptr_nonnull(redlock);
    return redlock;
}

static void expect(const struct redlock *redlock, enum redlock_status status,
                   enum redlock_status expected)
{
    ck_assert_msg(status == expected, "%s, where %s was expected: %s", redlock_status_word(status),
                  redlock_status_word(expected), redlock_error(redlock));
}

static struct redlock_lock acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                   const struct redlock_wish *wish)
{
    struct redlock_lock lock;
    expect(redlock, redlock_acquire(redlock, resource, ttl_ms, wish, &lock, NULL), REDLOCK_OK);
    return lock;
}

static struct redlock_event next_event(struct redlock *redlock)
{
    struct waiting waiting = waiting_for("an event");
    struct redlock_event event;
    while (!redlock_next(redlock, &event)) {
        struct pollfd fd = {.fd = redlock_fd(redlock), .events = redlock_poll_for(redlock)};
        int most_ms = redlock_poll_timeout_ms(redlock);
        int left_ms = waiting_left_ms(&waiting);
        if (left_ms == 0)
            waiting_pause(&waiting);
        poll(&fd, 1, most_ms >= 0 && most_ms < left_ms ? most_ms : left_ms);
    }
    return event;
}

static struct redlock_event expect_answer(struct redlock *redlock, uint64_t id,
                                          enum redlock_status status)
{
    struct redlock_event event = next_event(redlock);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_ANSWER);
    ck_assert_uint_eq(event.id, id);
    expect(redlock, event.status, status);
    return event;
}

static void stop(const struct daemon *daemon)
{
    int status;
    ck_assert_int_eq(kill(daemon->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(daemon->pid, &status, WUNTRACED), daemon->pid);
}

/* --- one lock --- */

START_TEST(a_lock_is_acquired_extended_and_released)
{
    struct stage stage;
    struct redlock_lock other;
    int64_t hint_ms = 0;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    expect(redlock, redlock_query(redlock, "a", &hint_ms), REDLOCK_FREE);
    struct redlock_lock lock = acquire(redlock, "a", 30000, NULL);
    ck_assert_int_gt(redlock_left_ms(&lock), 0);
    ck_assert_int_le(redlock_left_ms(&lock), 30000);
    ck_assert_int_eq(lock.fence, 0);
    ck_assert_str_eq(master_text(&stage.masters[0], "GET redlock:a"), lock.token);

    expect(redlock, redlock_acquire(redlock, "a", 30000, NULL, &other, &hint_ms), REDLOCK_HELD);
    ck_assert_int_eq(other.deadline_ns, 0);
    ck_assert_int_gt(hint_ms, 0);
    ck_assert_int_le(hint_ms, 30000);
    expect(redlock, redlock_query(redlock, "a", &hint_ms), REDLOCK_HELD);

    struct redlock_lock before = lock;
    expect(redlock, redlock_extend(redlock, &lock, 50000), REDLOCK_OK);
    ck_assert_int_gt(lock.deadline_ns, before.deadline_ns);
    before = lock;
    expect(redlock, redlock_extend(redlock, &lock, 1000), REDLOCK_OK);
    ck_assert_int_eq(lock.deadline_ns, before.deadline_ns);

    expect(redlock, redlock_release(redlock, &lock), REDLOCK_OK);
    ck_assert_int_eq(lock.deadline_ns, 0);
    ck_assert_int_eq(redlock_left_ms(&lock), 0);
    lock = before;
    expect(redlock, redlock_release(redlock, &lock), REDLOCK_GONE);
    lock = before;
    expect(redlock, redlock_extend(redlock, &lock, 1000), REDLOCK_GONE);
    ck_assert_int_eq(lock.deadline_ns, 0);

    /* Again, by the name that stands in it. */
    expect(redlock, redlock_acquire(redlock, lock.resource, 30000, NULL, &lock, NULL), REDLOCK_OK);
    ck_assert_str_eq(lock.resource, "a");
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(fences_rise)
{
    struct stage stage;
    const struct redlock_wish fence = {.fence = true};
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct redlock_lock first = acquire(redlock, "a", 30000, &fence);
    struct redlock_lock copy = first;
    ck_assert_int_gt(first.fence, 0);
    expect(redlock, redlock_release(redlock, &copy), REDLOCK_OK);
    struct redlock_lock second = acquire(redlock, "a", 30000, &fence);
    ck_assert_int_gt(second.fence, first.fence);
    int64_t fence_before = second.fence;
    expect(redlock, redlock_extend(redlock, &second, 40000), REDLOCK_OK);
    ck_assert_int_eq(second.fence, fence_before);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(a_lock_goes_from_one_to_the_next)
{
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &three);
    struct redlock *first = handle_of(&stage.daemon);
    struct redlock *second = handle_of(&stage.daemon);
    struct redlock_lock lock = acquire(first, "a", 60000, NULL);
    expect(second,
           redlock_start_acquire(second, "a", 60000, &(struct redlock_wish){.wait_ms = 60000}, &id),
           REDLOCK_OK);
    stage_wait_stats(&stage.client, " waiting=1 ");
    struct redlock_event event;
    ck_assert(!redlock_next(second, &event));
    /* While the one waits, its connection is of use. */
    expect(second, redlock_ping(second), REDLOCK_OK);
    expect(first, redlock_release(first, &lock), REDLOCK_OK);
    event = expect_answer(second, id, REDLOCK_OK);
    ck_assert_int_gt(redlock_left_ms(&event.lock), 0);
    redlock_free(first);
    redlock_free(second);
    stage_close(&stage);
}
END_TEST

/* Who has waited for longer than a hundred times its time to live: by then the drift that is taken
 * off the wait is more than that. The rate is wide here, so that it need not take as long. */
START_TEST(who_has_waited_for_long_gets_the_lock)
{
    static const struct stage_plan drifting = {
        .masters = 3, .over_unix = true, .daemon = {.locks = ", clock_drift_rate: 10%"}};
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &drifting);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct grant grant = client_lock(&stage.client, "a", "30s");
    expect(redlock,
           redlock_start_acquire(redlock, "a", 300, &(struct redlock_wish){.wait_ms = 60000}, &id),
           REDLOCK_OK);
    poll(NULL, 0, 3000);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    expect_answer(redlock, id, REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(a_wait_that_ends_says_held)
{
    struct stage stage;
    struct redlock_lock other;
    int64_t hint_ms = 0;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    acquire(redlock, "a", 60000, NULL);
    expect(redlock,
           redlock_acquire(redlock, "a", 60000, &(struct redlock_wish){.wait_ms = 50}, &other,
                           &hint_ms),
           REDLOCK_HELD);
    ck_assert_int_gt(hint_ms, 0);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(what_the_daemon_refuses_is_told_in_its_words)
{
    struct stage stage;
    struct redlock_lock lock;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    expect(redlock, redlock_acquire(redlock, "a", 999999999, NULL, &lock, NULL), REDLOCK_REFUSED);
    ck_assert_ptr_nonnull(strstr(redlock_error(redlock), "ttl-range"));
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    stage_wait_nodes(&stage, "vote=no", 2);
    expect(redlock, redlock_acquire(redlock, "a", 9999, NULL, &lock, NULL), REDLOCK_NOQUORUM);
    ck_assert_ptr_nonnull(strstr(redlock_error(redlock), "1/3 need=2"));
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

/* --- the daemon --- */

static void count_line(void *context, const char *text)
{
    unsigned *count = context;
    if (strstr(text, "name=tester") != NULL || strstr(text, "VERSION 1 ") == text)
        ++*count;
}

START_TEST(the_connection_has_its_name_in_listings)
{
    struct stage stage;
    unsigned count = 0;
    stage_open(&stage, __func__, &three_tcp);
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = redlock_new(url);
    expect(redlock, redlock_set_label(redlock, "no good"), REDLOCK_INVALID);
    expect(redlock, redlock_set_label(redlock, "tester"), REDLOCK_OK);
    expect(redlock, redlock_list(redlock, "CLIENTS", count_line, &count), REDLOCK_OK);
    ck_assert_uint_eq(count, 1);
    expect(redlock, redlock_list(redlock, "VERSION", count_line, &count), REDLOCK_OK);
    ck_assert_uint_eq(count, 2);
    expect(redlock, redlock_list(redlock, "HELP", count_line, &count), REDLOCK_OK);
    expect(redlock, redlock_list(redlock, "QUIT", count_line, &count), REDLOCK_INVALID);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(a_place_in_line_can_be_asked_for)
{
    struct stage stage;
    uint64_t first;
    uint64_t id;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    acquire(redlock, "a", 60000, NULL);
    expect(redlock, redlock_start_place(redlock, "a", &id), REDLOCK_OK);
    ck_assert_uint_eq(expect_answer(redlock, id, REDLOCK_OK).place, 0);
    const struct redlock_wish wish = {.wait_ms = 60000};
    expect(redlock, redlock_start_acquire(redlock, "a", 60000, &wish, &first), REDLOCK_OK);
    stage_wait_stats(&stage.client, " waiting=1 ");
    expect(redlock, redlock_start_place(redlock, "a", &id), REDLOCK_OK);
    ck_assert_uint_eq(expect_answer(redlock, id, REDLOCK_OK).place, 1);
    expect(redlock, redlock_start_place(redlock, "b", &id), REDLOCK_OK);
    ck_assert_uint_eq(expect_answer(redlock, id, REDLOCK_OK).place, 0);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(many_requests_at_once_are_answered)
{
    enum { REQUESTS = 500 };
    struct stage stage;
    uint64_t ids[REQUESTS];
    bool answered[REQUESTS] = {false};
    char name[16];
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    for (unsigned i = 0; i < REQUESTS; i++) {
        snprintf(name, sizeof(name), "r%u", i);
        if (i % 2 == 0)
            expect(redlock, redlock_start_acquire(redlock, name, 30000, NULL, &ids[i]), REDLOCK_OK);
        else
            expect(redlock, redlock_start_ping(redlock, &ids[i]), REDLOCK_OK);
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct redlock_event event = next_event(redlock);
        expect(redlock, event.status, REDLOCK_OK);
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
END_TEST

/* --- holds --- */

START_TEST(a_hold_lives_as_long_as_its_handle)
{
    struct stage stage;
    struct redlock_event event;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct redlock_lock lock = acquire(redlock, "a", 1000, &hold);
    ck_assert(lock.hold);
    stage_wait_stats(&stage.client, " renewals=3 ");
    ck_assert(!redlock_next(redlock, &event));
    expect(redlock, redlock_extend(redlock, &lock, 2000), REDLOCK_OK);
    ck_assert(lock.hold);
    stage_wait_key(&stage, "redlock:a", 3);
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}
END_TEST

static void wait_for_child(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

START_TEST(a_child_leaves_the_connection_to_its_parent)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct redlock_lock lock = acquire(redlock, "a", 60000, &hold);
    pid_t child = fork();
    if (child == 0) {
        redlock_free(redlock);
        _exit(0);
    }
    wait_for_child(child);
    child = fork();
    if (child == 0) {
        /* Over a connection of its own. */
        bool fine = redlock_fd(redlock) == -1 && redlock_poll_for(redlock) == 0 &&
                    redlock_ping(redlock) == REDLOCK_OK && redlock_fd(redlock) >= 0;
        redlock_free(redlock);
        _exit(!fine);
    }
    wait_for_child(child);
    expect(redlock, redlock_extend(redlock, &lock, 60000), REDLOCK_OK);
    ck_assert(lock.hold);
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}
END_TEST

START_TEST(a_child_can_take_the_connection_over)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = handle_of(&stage.daemon);
    acquire(redlock, "a", 60000, &hold);
    pid_t child = fork();
    if (child == 0) {
        redlock_take_over(redlock);
        redlock_free(redlock);
        _exit(0);
    }
    wait_for_child(child);
    stage_wait_no_keys(&stage);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(a_hold_is_freed_by_its_handle_also_with_warnings_unread)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_tcp);
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = redlock_new(url);
    acquire(redlock, "a", 60000, &hold);
    master_stop(&stage.masters[2]);
    stage_wait_nodes(&stage, "vote=no", 1);
    master_continue(&stage.masters[2]);
    redlock_free(redlock);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}
END_TEST

START_TEST(a_lost_hold_is_told_once)
{
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct redlock_lock lock = acquire(redlock, "a", 3000, &hold);
    master_kill(&stage.masters[0]);
    master_kill(&stage.masters[1]);
    struct redlock_event event;
    do
        event = next_event(redlock);
    while (event.kind == REDLOCK_EVENT_WARN);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.lock.resource, "a");
    ck_assert_str_eq(event.lock.token, lock.token);
    ck_assert_str_eq(event.reason, "noquorum");
    expect(redlock, redlock_start_ping(redlock, &id), REDLOCK_OK);
    expect_answer(redlock, id, REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

/* The daemon stands still for longer than an answer may take. Its client relies on the deadline
 * that it has, whatever it does with its connection. */
START_TEST(a_hold_whose_connection_is_given_up_lives_until_its_deadline)
{
    struct stage stage;
    struct redlock_event event;
    char url[64];
    stage_open(&stage, __func__, &three_tcp);
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", stage.daemon.port);
    struct redlock *redlock = _i == 0 ? handle_of(&stage.daemon) : redlock_new(url);
    ck_assert_ptr_nonnull(redlock);
    struct redlock_lock lock = acquire(redlock, "a", 30000, &hold);
    stop(&stage.daemon);
    redlock_set_timeout(redlock, 50);
    expect(redlock, redlock_extend(redlock, &lock, 30000), REDLOCK_TIMEOUT);
    redlock_abandon(redlock);
    ck_assert(redlock_next(redlock, &event));
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_CLOSED);
    kill(stage.daemon.pid, SIGCONT);
    /* It has seen the end of the connection, if there was one. */
    stage_wait_clients(&stage, _i == 0 ? 2 : 1);
    client_expect_match(&stage.client, "HELD .*", "LOCK a 30s");
    redlock_set_timeout(redlock, 5000);
    expect(redlock, redlock_extend(redlock, &lock, 30000), REDLOCK_OK);
    ck_assert_int_gt(redlock_left_ms(&lock), 0);
    expect(redlock, redlock_release(redlock, &lock), REDLOCK_OK);
    /* What is not given back is, with the handle. */
    lock = acquire(redlock, "b", 30000, &hold);
    redlock_abandon(redlock);
    redlock_free(redlock);
    stage_wait_clients(&stage, 1);
    client_expect_match(&stage.client, _i == 0 ? "FREE" : "HELD .*", "STATUS b");
    stage_close(&stage);
}
END_TEST

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    DIR *open = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(open);
    while (readdir(open) != NULL)
        count++;
    closedir(open);
    return count;
}

START_TEST(connections_that_were_given_up_and_have_ended_take_no_descriptors)
{
    enum { ROUNDS = 3 };
    static const char *const names[ROUNDS] = {"a", "b", "c"};
    unsigned counts[ROUNDS];
    struct stage stage;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    for (unsigned i = 0; i < ROUNDS; i++) {
        acquire(redlock, names[i], 30000, &hold);
        redlock_abandon(redlock);
        counts[i] = count_descriptors();
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
END_TEST

START_TEST(a_hold_that_is_released_elsewhere_is_lost)
{
    struct stage stage;
    stage_open(&stage, __func__, &three_quick);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct redlock *other = handle_of(&stage.daemon);
    struct redlock_lock lock = acquire(redlock, "a", 600, &hold);
    struct redlock_lock copy = lock;
    expect(other, redlock_release(other, &copy), REDLOCK_OK);
    struct redlock_event event = next_event(redlock);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert_str_eq(event.reason, "gone");
    redlock_free(redlock);
    redlock_free(other);
    stage_close(&stage);
}
END_TEST

/* --- the connection --- */

START_TEST(the_end_of_the_daemon_answers_what_is_under_way)
{
    struct stage stage;
    uint64_t id;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    acquire(redlock, "a", 60000, &hold);
    expect(
        redlock,
        redlock_start_acquire(redlock, "a", 60000, &(struct redlock_wish){.wait_ms = 60000}, &id),
        REDLOCK_OK);
    stage_wait_stats(&stage.client, " waiting=1 ");
    process_kill(stage.daemon.pid);
    expect_answer(redlock, id, REDLOCK_BROKEN);
    ck_assert_int_eq(next_event(redlock).kind, REDLOCK_EVENT_CLOSED);
    ck_assert_int_eq(redlock_fd(redlock), -1);
    ck_assert_int_eq(redlock_poll_for(redlock), 0);
    ck_assert_int_eq(redlock_poll_timeout_ms(redlock), -1);
    expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    acquire(redlock, "b", 60000, NULL);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(a_restart_of_the_daemon_is_not_noticed_in_between)
{
    struct stage stage;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct redlock_lock lock = acquire(redlock, "a", 60000, NULL);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    expect(redlock, redlock_release(redlock, &lock), REDLOCK_OK);
    ck_assert(!redlock_next(redlock, &event));
    redlock_free(redlock);
    daemon_connect(&stage.daemon, &stage.client);
    stage_close(&stage);
}
END_TEST

START_TEST(an_address_is_looked_at_by_the_first_request)
{
    struct redlock *redlock = redlock_new("tcp://me:secret@127.0.0.1:7335");
    expect(redlock, redlock_ping(redlock), REDLOCK_INVALID);
    ck_assert_str_eq(redlock_error(redlock), "the address has a user or a password in it; write "
                                             "tcp://127.0.0.1:7335");
    redlock_free(redlock);
    redlock = redlock_new("127.0.0.1:7335");
    expect(redlock, redlock_ping(redlock), REDLOCK_INVALID);
    ck_assert_str_eq(redlock_error(redlock), "127.0.0.1:7335 is no tcp:// address; write "
                                             "tcp://127.0.0.1:7335 or "
                                             "unix:/run/redlockd/redlockd.sock");
    redlock_free(redlock);
    redlock = redlock_new(NULL);
    expect(redlock, redlock_start_ping(redlock, NULL), REDLOCK_INVALID);
    redlock_free(redlock);
    redlock = redlock_new("unix:/nonexistent/socket");
    expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    ck_assert_str_eq(redlock_error(redlock), "unix:/nonexistent/socket: cannot connect: No such "
                                             "file or directory");
    redlock_free(redlock);
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", port_free());
    redlock = redlock_new(url);
    expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    redlock_free(redlock);
    redlock_free(NULL);
}
END_TEST

START_TEST(one_client_too_many_is_told)
{
    struct stage stage;
    stage_open(&stage, __func__,
               &(struct stage_plan){
                   .masters = 3, .over_unix = true, .daemon = {.yaml = "limits: {clients: 2}\n"}});
    struct redlock *first = handle_of(&stage.daemon);
    struct redlock *second = handle_of(&stage.daemon);
    expect(first, redlock_ping(first), REDLOCK_OK);
    expect(second, redlock_ping(second), REDLOCK_LIMIT);
    ck_assert_ptr_nonnull(strstr(redlock_error(second), "clients"));
    redlock_free(first);
    stage_wait_clients(&stage, 1);
    expect(second, redlock_ping(second), REDLOCK_OK);
    redlock_free(second);
    stage_close(&stage);
}
END_TEST

/* --- given up --- */

START_TEST(a_daemon_that_is_stopped_costs_the_timeout_and_leaves_nothing)
{
    struct stage stage;
    struct redlock_lock lock;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    redlock_set_timeout(redlock, 100);
    if (_i == 0)
        expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    stop(&stage.daemon);
    expect(redlock, redlock_acquire(redlock, "a", 60000, _i == 0 ? &hold : NULL, &lock, NULL),
           REDLOCK_TIMEOUT);
    ck_assert_int_eq(lock.deadline_ns, 0);
    ck_assert_int_eq(redlock_fd(redlock), -1);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    stage_wait_clients(&stage, 1);
    stage_wait_no_keys(&stage);
    redlock_set_timeout(redlock, 60000);
    expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

/* Somebody listens, but does not accept, and as many wait for that as may. */
START_TEST(a_connection_is_waited_for_as_long_as_was_said)
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
    /* A request may take longer than this test. */
    redlock_set_timeout(redlock, INT64_C(3600000));
    redlock_set_connect_timeout(redlock, 50);
    expect(redlock, redlock_ping(redlock), REDLOCK_UNREACHABLE);
    redlock_free(redlock);
    for (unsigned i = 0; i < FULL; i++)
        close(fds[i]);
    close(listener);
}
END_TEST

START_TEST(a_late_grant_is_given_back_where_the_connection_must_live)
{
    struct stage stage;
    struct redlock_lock lock;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    struct redlock_lock held = acquire(redlock, "h", 60000, &hold);
    stop(&stage.daemon);
    redlock_set_timeout(redlock, 100);
    expect(redlock, redlock_acquire(redlock, "a", 60000, NULL, &lock, NULL), REDLOCK_TIMEOUT);
    ck_assert_int_ge(redlock_fd(redlock), 0);
    redlock_set_timeout(redlock, 60000);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGCONT), 0);
    struct waiting waiting = waiting_for("the lock to be given back");
    do {
        waiting_pause(&waiting);
        ck_assert(!redlock_next(redlock, &event));
    } while (client_count(&stage.client, "STATS", "subject=unlock ok=1 ") != 1);
    stage_wait_key(&stage, "redlock:a", 0);
    expect(redlock, redlock_extend(redlock, &held, 60000), REDLOCK_OK);
    redlock_free(redlock);
    stage_close(&stage);
}
END_TEST

START_TEST(who_is_cancelled_waits_no_more)
{
    struct stage stage;
    uint64_t id;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *first = handle_of(&stage.daemon);
    struct redlock *second = handle_of(&stage.daemon);
    acquire(first, "a", 60000, NULL);
    redlock_start_acquire(second, "a", 60000, &(struct redlock_wish){.wait_ms = 60000}, &id);
    stage_wait_stats(&stage.client, " waiting=1 ");
    redlock_cancel(second, id);
    stage_wait_stats(&stage.client, " waiting=0 ");
    ck_assert(!redlock_next(second, &event));
    expect(second, redlock_ping(second), REDLOCK_OK);
    redlock_free(first);
    redlock_free(second);
    stage_close(&stage);
}
END_TEST

START_TEST(what_was_granted_and_not_taken_is_given_back_at_the_end)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = handle_of(&stage.daemon);
    expect(redlock, redlock_start_acquire(redlock, "a", 60000, NULL, NULL), REDLOCK_OK);
    struct waiting waiting = waiting_for("the lock to be granted");
    while (client_count(&stage.client, "STATS", "subject=lock ok=1 ") != 1)
        waiting_pause(&waiting);
    /* Also if it has been read. */
    struct redlock_event event;
    if (_i == 1) {
        expect(redlock, redlock_ping(redlock), REDLOCK_OK);
        redlock_free(redlock);
    } else if (_i == 2) {
        ck_assert(redlock_next(redlock, &event));
        expect(redlock, redlock_release(redlock, &event.lock), REDLOCK_OK);
        redlock_free(redlock);
    } else {
        redlock_free(redlock);
    }
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}
END_TEST

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
    struct redlock *redlock = handle_of(worker->daemon);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct redlock_lock lock;
        if (redlock_acquire(redlock, "a", 30000, &(struct redlock_wish){.wait_ms = 60000}, &lock,
                            NULL) != REDLOCK_OK) {
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

START_TEST(threads_with_handles_of_their_own_take_turns)
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
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("libredlock");
    TCase *cases = sandbox_case("libredlock");
    tcase_add_test(cases, a_lock_is_acquired_extended_and_released);
    tcase_add_test(cases, fences_rise);
    tcase_add_test(cases, a_lock_goes_from_one_to_the_next);
    tcase_add_test(cases, who_has_waited_for_long_gets_the_lock);
    tcase_add_test(cases, a_wait_that_ends_says_held);
    tcase_add_test(cases, what_the_daemon_refuses_is_told_in_its_words);
    tcase_add_test(cases, the_connection_has_its_name_in_listings);
    tcase_add_test(cases, a_place_in_line_can_be_asked_for);
    tcase_add_test(cases, many_requests_at_once_are_answered);
    tcase_add_test(cases, a_hold_lives_as_long_as_its_handle);
    tcase_add_test(cases, a_child_leaves_the_connection_to_its_parent);
    tcase_add_test(cases, a_child_can_take_the_connection_over);
    tcase_add_test(cases, a_hold_is_freed_by_its_handle_also_with_warnings_unread);
    tcase_add_test(cases, a_lost_hold_is_told_once);
    tcase_add_loop_test(cases, a_hold_whose_connection_is_given_up_lives_until_its_deadline, 0, 2);
    tcase_add_test(cases, connections_that_were_given_up_and_have_ended_take_no_descriptors);
    tcase_add_test(cases, a_hold_that_is_released_elsewhere_is_lost);
    tcase_add_test(cases, the_end_of_the_daemon_answers_what_is_under_way);
    tcase_add_test(cases, a_restart_of_the_daemon_is_not_noticed_in_between);
    tcase_add_test(cases, an_address_is_looked_at_by_the_first_request);
    tcase_add_test(cases, one_client_too_many_is_told);
    tcase_add_loop_test(cases, a_daemon_that_is_stopped_costs_the_timeout_and_leaves_nothing, 0, 2);
    tcase_add_test(cases, a_connection_is_waited_for_as_long_as_was_said);
    tcase_add_test(cases, a_late_grant_is_given_back_where_the_connection_must_live);
    tcase_add_test(cases, who_is_cancelled_waits_no_more);
    tcase_add_loop_test(cases, what_was_granted_and_not_taken_is_given_back_at_the_end, 0, 3);
    tcase_add_test(cases, threads_with_handles_of_their_own_take_turns);
    suite_add_tcase(suite, cases);
    return suite;
}
