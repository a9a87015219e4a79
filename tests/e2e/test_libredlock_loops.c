/*
 * libredlock in programs with an event loop, which watch one descriptor for input and nothing else.
 */
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/c/redlock.h"
#include "tests/e2e/hostile_server.h"
#include "tests/e2e/library.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};
static const struct redlock_lock_options patient = {.wait_ms = 600000};
static const struct redlock_lock_options hold = {.hold = true};

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    return poll(&watched, 1, timeout_ms) == 1;
}

/* --- a reconnect --- */

struct program {
    struct redlock *redlock;
    struct event_base *base;
    struct event *event;
    int epoll;
    struct redlock_event answer;
    bool is_answered;
};

static void take_events(struct program *program)
{
    struct redlock_event event;
    while (redlock_next(program->redlock, &event)) {
        if (event.kind != REDLOCK_EVENT_ANSWER)
            continue;
        program->answer = event;
        program->is_answered = true;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    take_events(context);
}

static void program_start(struct program *program, struct redlock *redlock, bool with_libevent)
{
    *program = (struct program){.redlock = redlock, .epoll = -1};
    if (with_libevent) {
        program->base = event_base_new();
        program->event = event_new(program->base, redlock_fd(redlock), EV_READ | EV_PERSIST,
                                   on_readable, program);
        ck_assert_int_eq(event_add(program->event, NULL), 0);
    } else {
        struct epoll_event event = {.events = EPOLLIN};
        program->epoll = epoll_create1(EPOLL_CLOEXEC);
        ck_assert_int_eq(epoll_ctl(program->epoll, EPOLL_CTL_ADD, redlock_fd(redlock), &event), 0);
    }
}

static void program_wait(struct program *program)
{
    struct waiting waiting = waiting_for("an answer in a program with an event loop");
    while (!program->is_answered) {
        int left_ms = waiting_left_ms(&waiting);
        struct timeval left = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
        struct epoll_event event;
        if (left_ms == 0)
            waiting_pause(&waiting);
        if (program->base == NULL) {
            if (epoll_wait(program->epoll, &event, 1, left_ms) == 1)
                take_events(program);
        } else {
            event_base_loopexit(program->base, &left);
            event_base_loop(program->base, EVLOOP_ONCE);
        }
    }
}

static void program_end(struct program *program)
{
    if (program->base != NULL) {
        event_free(program->event);
        event_base_free(program->base);
    } else {
        close(program->epoll);
    }
}

/* The program uses libevent (loop index 0) or epoll (1). The socket of the new connection gets the
 * descriptor number of the old socket, so a program that had registered the old socket with epoll
 * would not notice that it has to register the new one. */
TEST_LOOP(a_grant_after_a_reconnect_wakes_the_loop, 0, 2)
{
    struct stage stage;
    struct program program;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    program_start(&program, redlock, _i == 0);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    library_expect(redlock, redlock_start_acquire(redlock, "a", 60000, &patient, NULL), REDLOCK_OK);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    program_wait(&program);
    library_expect(redlock, program.answer.status, REDLOCK_OK);
    program_end(&program);
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(the_descriptor_outlives_connections)
{
    struct stage stage;
    struct program program;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    int fd = redlock_fd(redlock);
    ck_assert_int_ge(fd, 0);
    ck_assert(!redlock_is_connected(redlock));
    ck_assert(!is_readable(fd, 0));
    program_start(&program, redlock, true);
    library_expect(redlock, redlock_start_ping(redlock, NULL), REDLOCK_OK);
    program_wait(&program);
    ck_assert_int_eq(redlock_fd(redlock), fd);
    ck_assert_int_ge(redlock_socket(redlock), 0);
    redlock_abandon(redlock);
    ck_assert_int_eq(redlock_socket(redlock), -1);
    ck_assert_int_eq(redlock_fd(redlock), fd);
    take_events(&program);
    program.is_answered = false;
    library_expect(redlock, redlock_start_acquire(redlock, "a", 60000, NULL, NULL), REDLOCK_OK);
    program_wait(&program);
    ck_assert_int_eq(redlock_fd(redlock), fd);
    ck_assert(!is_readable(fd, 0));
    program_end(&program);
    redlock_free(redlock);
    stage_close(&stage);
}

/* The requests do not all fit into the socket. The library sends the remaining ones when there is
 * room. */
TEST(pending_output_wakes_the_loop)
{
    enum { REQUESTS = 1000 };
    struct stage stage;
    struct redlock_event event;
    char name[REDLOCK_RESOURCE_MAX + 1];
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    int fd = redlock_fd(redlock);
    process_stop(stage.daemon.pid);
    for (unsigned i = 0; i < REQUESTS; i++) {
        snprintf(name, sizeof(name), "%0250u", i);
        library_expect(redlock, redlock_start_query(redlock, name, NULL), REDLOCK_OK);
    }
    ck_assert(!is_readable(fd, 0));
    kill(stage.daemon.pid, SIGCONT);
    for (unsigned answers = 0; answers < REQUESTS;) {
        ck_assert(is_readable(fd, WAITING_DEADLINE_MS));
        while (redlock_next(redlock, &event)) {
            library_expect(redlock, event.status, REDLOCK_FREE);
            answers++;
        }
    }
    redlock_free(redlock);
    stage_close(&stage);
}

TEST(a_new_label_wakes_the_loop)
{
    struct stage stage;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    int fd = redlock_fd(redlock);
    ck_assert(!is_readable(fd, 0));
    library_expect(redlock, redlock_set_label(redlock, "changed"), REDLOCK_OK);
    ck_assert(is_readable(fd, WAITING_DEADLINE_MS));
    ck_assert(!redlock_next(redlock, &event));
    client_wait_count(&stage.client, "CLIENTS", " name=changed ", 1);
    redlock_free(redlock);
    stage_close(&stage);
}

/* The request finds that the connection has ended, and fails to open another one. */
TEST(an_event_read_by_a_failed_request_wakes_the_loop)
{
    struct stage stage;
    struct redlock_event event;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    library_acquire(redlock, "a", 60000, &hold);
    int fd = redlock_fd(redlock); /* created now, so that no earlier timer is set */
    process_kill(stage.daemon.pid);
    library_expect(redlock, redlock_start_ping(redlock, NULL), REDLOCK_UNREACHABLE);
    ck_assert(is_readable(fd, WAITING_DEADLINE_MS));
    ck_assert(redlock_next(redlock, &event));
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_CLOSED);
    ck_assert(!redlock_next(redlock, &event));
    ck_assert(!is_readable(fd, 0));
    redlock_free(redlock);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    stage_close(&stage);
}

/* --- a hostile server --- */

static struct sandbox sandbox;
static struct hostile_server *server;

static struct redlock *open_hostile(const char *test, int64_t timeout_ms)
{
    static char path[SANDBOX_FILE];
    char url[SANDBOX_FILE + 8];
    sandbox_open(&sandbox, test);
    server = malloc(sizeof(*server));
    ck_assert_ptr_nonnull(server);
    hostile_start(server, sandbox_path(&sandbox, "hostile.sock", path));
    hostile_set(server, &(struct hostile_plan){0});
    snprintf(url, sizeof(url), "unix:%s", path);
    struct redlock *redlock = redlock_new(url);
    redlock_set_timeout(redlock, timeout_ms);
    return redlock;
}

static void close_hostile(struct redlock *redlock)
{
    redlock_free(redlock);
    hostile_stop(server);
    free(server);
    sandbox_close(&sandbox);
}

TEST(an_event_read_by_a_blocking_call_wakes_the_loop)
{
    struct redlock_event event;
    char lost[128];
    struct redlock *redlock = open_hostile(__func__, WAITING_DEADLINE_MS);
    int fd = redlock_fd(redlock);
    struct redlock_lock lock = library_acquire(redlock, "a", 10000, &hold);
    ck_assert(!is_readable(fd, 0));
    snprintf(lost, sizeof(lost), "! LOST a %s noquorum\n", lock.token);
    hostile_set(server, &(struct hostile_plan){.before = lost});
    library_expect(redlock, redlock_ping(redlock), REDLOCK_OK);
    ck_assert(is_readable(fd, WAITING_DEADLINE_MS));
    ck_assert(redlock_next(redlock, &event));
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_LOST);
    ck_assert(!redlock_next(redlock, &event));
    ck_assert(!is_readable(fd, 0));
    close_hostile(redlock);
}

TEST(a_request_that_times_out_wakes_the_loop)
{
    struct redlock_event event;
    uint64_t id;
    struct redlock *redlock = open_hostile(__func__, 50);
    int fd = redlock_fd(redlock);
    hostile_set(server, &(struct hostile_plan){.kind = HOSTILE_SILENT});
    for (unsigned i = 0; i < 3; i++) {
        library_expect(redlock, redlock_start_ping(redlock, &id), REDLOCK_OK);
        do
            ck_assert(is_readable(fd, WAITING_DEADLINE_MS));
        while (!redlock_next(redlock, &event));
        ck_assert_uint_eq(event.id, id);
        library_expect(redlock, event.status, REDLOCK_TIMEOUT);
        while (redlock_next(redlock, &event))
            continue;
        ck_assert(!is_readable(fd, 0));
    }
    close_hostile(redlock);
}

/* --- fork --- */

static bool child_is_fine(struct redlock *redlock, int fd)
{
    struct redlock_event event;
    /* Replies for the parent must not reach the child. */
    bool fine = redlock_fd(redlock) == fd && !redlock_is_connected(redlock);
    while (redlock_next(redlock, &event))
        fine = fine && (event.kind == REDLOCK_EVENT_CLOSED || event.status == REDLOCK_BROKEN);
    fine = fine && !is_readable(fd, 0) && redlock_start_ping(redlock, NULL) == REDLOCK_OK &&
           is_readable(fd, WAITING_DEADLINE_MS) && redlock_next(redlock, &event) &&
           event.status == REDLOCK_OK;
    redlock_free(redlock);
    return fine;
}

TEST(a_forked_child_has_its_own_descriptor)
{
    struct stage stage;
    uint64_t id;
    int status;
    stage_open(&stage, __func__, &three);
    struct redlock *redlock = library_open(&stage.daemon);
    int fd = redlock_fd(redlock);
    library_expect(redlock, redlock_start_acquire(redlock, "a", 60000, NULL, &id), REDLOCK_OK);
    ck_assert(is_readable(fd, WAITING_DEADLINE_MS));
    pid_t child = fork();
    if (child == 0)
        _exit(!child_is_fine(redlock, fd));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert(is_readable(fd, 0));
    library_answer(redlock, id, REDLOCK_OK);
    ck_assert(!is_readable(fd, 0));
    redlock_free(redlock);
    stage_close(&stage);
}
