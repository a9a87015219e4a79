#include "tests/e2e/library.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>

#include "tests/e2e/waiting.h"

struct redlock *library_open(const struct daemon *daemon)
{
    char url[SANDBOX_FILE + 8];
    snprintf(url, sizeof(url), "unix:%s", daemon->socket);
    struct redlock *redlock = redlock_new(url);
    ck_assert_ptr_nonnull(redlock);
    return redlock;
}

void library_expect(const struct redlock *redlock, enum redlock_status status,
                    enum redlock_status expected)
{
    ck_assert_msg(status == expected, "%s instead of %s: %s", redlock_status_word(status),
                  redlock_status_word(expected), redlock_error(redlock));
}

struct redlock_lock library_acquire(struct redlock *redlock, const char *resource, int64_t ttl_ms,
                                    const struct redlock_lock_options *options)
{
    struct redlock_lock lock;
    library_expect(redlock, redlock_acquire(redlock, resource, ttl_ms, options, &lock, NULL),
                   REDLOCK_OK);
    return lock;
}

struct redlock_event library_next(struct redlock *redlock)
{
    struct waiting waiting = waiting_for("an event");
    struct redlock_event event;
    while (!redlock_next(redlock, &event)) {
        struct pollfd fd = {.fd = redlock_fd(redlock), .events = POLLIN};
        int left_ms = waiting_left_ms(&waiting);
        if (left_ms == 0)
            waiting_pause(&waiting);
        poll(&fd, 1, left_ms);
    }
    return event;
}

struct redlock_event library_answer(struct redlock *redlock, uint64_t id,
                                    enum redlock_status status)
{
    struct redlock_event event = library_next(redlock);
    ck_assert_int_eq(event.kind, REDLOCK_EVENT_ANSWER);
    ck_assert_uint_eq(event.id, id);
    library_expect(redlock, event.status, status);
    return event;
}
