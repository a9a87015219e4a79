/*
 * The descriptor of redlock_fd() when the process has no other descriptor left
 * (client/c/wakeup.h).
 */
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/c/wakeup.h"
#include "tests/runner.h"

enum { DESCRIPTORS = 64 };

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    return poll(&pollfd, 1, timeout_ms) == 1;
}

static struct rlimit limit_before;

/* Take all descriptors. Returns the last one. */
static int take_descriptors(void)
{
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
    const struct rlimit few = {DESCRIPTORS, limit_before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int last = -1;
    for (int fd = dup(STDOUT_FILENO); fd >= 0; fd = dup(STDOUT_FILENO))
        last = fd;
    ck_assert_int_ge(last, 0);
    return last;
}

/* A sanitizer needs descriptors when the test ends. */
static void allow_descriptors(void)
{
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
}

/* Closing the old timer frees one descriptor, but an epoll instance and a timer need two. */
TEST(a_child_at_the_descriptor_limit_keeps_the_number)
{
    struct wakeup wakeup;
    wakeup_init(&wakeup);
    ck_assert(wakeup_open(&wakeup));
    int number = wakeup.epoll;
    take_descriptors();
    wakeup_reopen_after_fork(&wakeup);
    ck_assert_int_eq(wakeup.epoll, number);
    ck_assert(!is_readable(number, 0));
    wakeup_arm(&wakeup, false, 1, 0);
    ck_assert(is_readable(number, 1000));
    wakeup_close(&wakeup);
    allow_descriptors();
}

TEST(open_fails_cleanly_at_the_descriptor_limit)
{
    struct wakeup wakeup;
    wakeup_init(&wakeup);
    int last = take_descriptors();
    ck_assert(!wakeup_open(&wakeup));
    ck_assert_int_eq(wakeup.epoll, -1);
    /* One descriptor is not enough, and is not leaked. */
    close(last);
    ck_assert(!wakeup_open(&wakeup));
    ck_assert_int_eq(dup(STDOUT_FILENO), last);
    wakeup_close(&wakeup);
    allow_descriptors();
}
