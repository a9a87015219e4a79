#include "client/c/connect.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/c/question.h"
#include "protocol/units.h"

/* A daemon whose backlog is full on a unix socket is asked again; poll(2) cannot wait for that. */
enum { BACKLOG_RETRY_MS = 10 };

int64_t connect_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int connect_wait_ms(int64_t until_ns, int64_t now_ns)
{
    if (until_ns <= now_ns)
        return 0;
    int64_t ms = (until_ns - now_ns - 1) / NS_PER_MS + 1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* 0, or an errno. */
static int await(int fd, int64_t until_ns)
{
    int error = 0;
    socklen_t len = sizeof(error);
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        int wait_ms = connect_wait_ms(until_ns, connect_clock_ns());
        int count = poll(&ready, 1, wait_ms);
        if (count > 0)
            break;
        if (count == 0 && wait_ms == 0)
            return ETIMEDOUT;
        if (count < 0 && errno != EINTR)
            return errno;
    }
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

static int try_connect(int fd, const struct sockaddr *where, socklen_t len, int64_t until_ns)
{
    for (;;) {
        if (connect(fd, where, len) == 0)
            return 0;
        /* One that was interrupted goes on by itself. */
        if (errno == EINPROGRESS || errno == EINTR)
            return await(fd, until_ns);
        if (errno != EAGAIN || where->sa_family != AF_UNIX)
            return errno;
        if (connect_clock_ns() >= until_ns)
            return ETIMEDOUT;
        poll(NULL, 0, BACKLOG_RETRY_MS);
    }
}

/* The socket; -1 with errno. */
static int connect_one(const struct sockaddr *where, socklen_t len, int64_t until_ns)
{
    int fd = socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int failed = try_connect(fd, where, len, until_ns);
    if (failed == 0)
        return fd;
    close(fd);
    errno = failed;
    return -1;
}

static int fail(struct error *error, const char *what, const char *why)
{
    error_set(error, "%s: %.160s", what, why);
    return -1;
}

static int connect_unix(const struct address *address, int64_t until_ns, struct error *error)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    char why[128];
    memcpy(where.sun_path, address->path, strlen(address->path) + 1);
    int fd = connect_one((const struct sockaddr *)&where, sizeof(where), until_ns);
    return fd >= 0 ? fd : fail(error, "cannot connect", strerror_r(errno, why, sizeof(why)));
}

/* Each of its addresses has a share of what is left, so that one that is silent leaves some. */
static int connect_tcp(const struct address *address, int64_t until_ns, struct error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];
    char why[128];
    int on = 1;
    int left = 0;
    int fd = -1;
    snprintf(port, sizeof(port), "%u", address->port);
    int failed = getaddrinfo(address->host, port, &hints, &found);
    if (failed != 0)
        return fail(error, "the name does not resolve", gai_strerror(failed));
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        left++;
    errno = ETIMEDOUT;
    for (const struct addrinfo *it = found; it != NULL && fd < 0; it = it->ai_next, left--) {
        int64_t now_ns = connect_clock_ns();
        int64_t share_ns = until_ns > now_ns ? (until_ns - now_ns) / left : 0;
        fd = connect_one(it->ai_addr, it->ai_addrlen, now_ns + share_ns);
    }
    int reason = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return fail(error, "cannot connect", strerror_r(reason, why, sizeof(why)));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    return fd;
}

int connect_to(const struct address *address, int64_t timeout_ns, struct error *error)
{
    int64_t until_ns = connect_clock_ns() + timeout_ns;
    return address->kind == ADDRESS_UNIX ? connect_unix(address, until_ns, error)
                                         : connect_tcp(address, until_ns, error);
}
