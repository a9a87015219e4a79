/*
 * Warnings of libevent itself (log_adopt_libevent() in server/log.h), and lines that are lost or
 * cut.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/log.h"
#include "server/log_throttle.h"
#include "tests/runner.h"

enum { MANY = 10 * LOG_THROTTLE_LINES };

/* libevent warns of a loop inside a loop. */
static void warn(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    event_base_loop(context, EVLOOP_NONBLOCK);
}

static unsigned count(const char *text, const char *what)
{
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        found++;
    return found;
}

/* A remote host can cause warnings of libevent with packets to the resolver's socket. */
TEST(warnings_of_libevent_do_not_fill_the_log)
{
    static char text[1 << 16];
    struct event_base *base = event_base_new();
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const struct log log = {.level = CONFIG_LOG_INFO, .fd = ends[1]};
    log_adopt_libevent(&log);
    for (unsigned i = 0; i < MANY; i++) {
        event_base_once(base, -1, EV_TIMEOUT, warn, base, NULL);
        event_base_loop(base, EVLOOP_ONCE);
    }
    log_adopt_libevent(NULL);
    ssize_t len = read(ends[0], text, sizeof(text) - 1);
    ck_assert_int_gt(len, 0);
    unsigned lines = count(text, " warning libevent_reported ");
    ck_assert_uint_ge(lines, 1);
    /* Twice the limit, since the first second may end meanwhile. */
    ck_assert_uint_le(lines, 2 * LOG_THROTTLE_LINES);
    event_base_free(base);
    close(ends[0]);
    close(ends[1]);
}

TEST(lines_that_a_full_disk_refuses_are_counted)
{
    char text[4096] = "";
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct log log = {.level = CONFIG_LOG_INFO, .fd = open("/dev/full", O_WRONLY | O_CLOEXEC)};
    ck_assert_int_ge(log.fd, 0);
    for (unsigned i = 0; i < 3; i++)
        log_event(&log, CONFIG_LOG_INFO, "refused", NULL);
    close(log.fd);
    log.fd = ends[1];
    log_event(&log, CONFIG_LOG_INFO, "written", NULL);
    ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
    ck_assert_uint_eq(count(text, " warning log_lost lines=3 "), 1);
    ck_assert_uint_eq(count(text, " info written\n"), 1);
    close(ends[0]);
    close(ends[1]);
}

static void limit_files(rlim_t bytes)
{
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
}

/* A full disk takes the beginning of a line. */
TEST(a_cut_line_does_not_spoil_the_next_one)
{
    char text[4096] = "";
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    const struct log log = {.level = CONFIG_LOG_INFO, .fd = fileno(file)};
    signal(SIGXFSZ, SIG_IGN);
    limit_files(10);
    log_event(&log, CONFIG_LOG_INFO, "cut", NULL);
    limit_files(RLIM_INFINITY);
    log_event(&log, CONFIG_LOG_INFO, "written", NULL);
    ck_assert_int_gt(pread(log.fd, text, sizeof(text) - 1, 0), 10);
    ck_assert_int_eq(text[10], '\n');
    ck_assert_uint_eq(count(text, " warning log_lost lines=1 "), 1);
    ck_assert_uint_eq(count(text, "\n"), 3);
    fclose(file);
}
