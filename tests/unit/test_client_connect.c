/*
 * Connecting to a daemon by host name (client/c/handle.h). The program replaces functions of the C
 * library: a name lookup takes an hour, which passes only on the clock of the library, and no
 * connection is ready at once.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/c/redlock.h"
#include "tests/runner.h"

enum { LOOKUP_S = 3600, CONNECT_MS = 60000, ANSWER_MS = 50 };

static time_t passed_s;
static int first_wait_ms = -1; /* how long the library waited for the connection, at most */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long failed = syscall(SYS_clock_gettime, clock, now);
    now->tv_sec += clock == CLOCK_BOOTTIME ? passed_s : 0;
    return (int)failed;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*lookup)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&lookup = dlsym(RTLD_NEXT, "getaddrinfo");
    ck_assert_str_eq(name, "locks.example");
    passed_s += LOOKUP_S;
    return lookup("127.0.0.1", service, hints, found);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    if (first_wait_ms < 0)
        first_wait_ms = timeout_ms;
    return timeout_ms == 0 ? 0 : ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);
}

/* A server that never answers. The kernel accepts the connection for it. */
static int listen_silently(char url[64])
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(where);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, len), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&where, &len), 0);
    snprintf(url, 64, "tcp://locks.example:%u", (unsigned)ntohs(where.sin_port));
    return fd;
}

TEST(connect_timeout_does_not_include_the_name_lookup)
{
    char url[64];
    int fd = listen_silently(url);
    struct redlock *redlock = redlock_new(url);
    redlock_set_timeout(redlock, ANSWER_MS);
    redlock_set_connect_timeout(redlock, CONNECT_MS);
    enum redlock_status status = redlock_ping(redlock);
    ck_assert_msg(status == REDLOCK_TIMEOUT, "%s", redlock_error(redlock));
    ck_assert_int_eq(passed_s, LOOKUP_S);
    ck_assert_int_gt(first_wait_ms, CONNECT_MS / 2);
    ck_assert_int_le(first_wait_ms, CONNECT_MS);
    redlock_free(redlock);
    close(fd);
}
