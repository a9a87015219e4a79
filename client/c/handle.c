#include "client/c/handle.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol/address.h"
#include "protocol/units.h"

enum {
    READ_BYTES = 16384,
    /* Reads per pass, so that a peer that never stops sending cannot delay timeouts. */
    READS_AT_ONCE = 16,
    /* How long a clean close that releases locks waits for the daemon to close its side. */
    LINGER_MS = 200,
    /* Pause between attempts to connect to a unix socket whose backlog is full. */
    BACKLOG_RETRY_MS = 10,
};

/* QUIT releases LINGER locks; the end of the connection alone does not. A killed process that
 * shared the connection can have left a partial line, which the first LF ends. */
static const char quit[] = "\nQUIT\n";

int64_t handle_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The timeout for poll(2), rounded up; 0 if the time has passed. */
static int wait_ms_until(int64_t until_ns)
{
    int64_t now_ns = handle_clock_ns();
    if (until_ns <= now_ns)
        return 0;
    int64_t ms = (until_ns - now_ns - 1) / NS_PER_MS + 1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void forget_connection(struct redlock *redlock)
{
    wakeup_forget(&redlock->wakeup);
    redlock->fd = -1;
    redlock->output_len = 0;
    redlock->output_failed = false;
}

static void disconnect(struct redlock *redlock)
{
    int fd = redlock->fd;
    forget_connection(redlock);
    close(fd);
}

static void end_connection(struct redlock *redlock, const char *why)
{
    disconnect(redlock);
    proto_end(&redlock->proto, REDLOCK_BROKEN, why, true);
}

void handle_detach_after_fork(struct redlock *redlock)
{
    static const char why[] = "the connection belongs to the parent process";
    if (fork_mark_is_ours(&redlock->owner))
        return;
    fork_mark_set(&redlock->owner);
    wakeup_reopen_after_fork(&redlock->wakeup);
    for (size_t i = 0; i < redlock->parked_count; i++)
        close(redlock->parked[i]);
    redlock->parked_count = 0;
    proto_disown_answers(&redlock->proto, why);
    if (redlock->fd >= 0)
        end_connection(redlock, why);
}

static bool is_unix(int fd)
{
    int domain = 0;
    socklen_t len = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

/* Closes parked sockets that the daemon has closed. */
static void close_ended(struct redlock *redlock)
{
    size_t kept = 0;
    for (size_t i = 0; i < redlock->parked_count; i++) {
        struct pollfd left = {.fd = redlock->parked[i]};
        if (poll(&left, 1, 0) > 0)
            close(left.fd);
        else
            redlock->parked[kept++] = left.fd;
    }
    redlock->parked_count = kept;
}

/* Reserves a place in `parked` before a connection is made, so that parking the connection later
 * cannot fail. */
static bool make_room(struct redlock *redlock)
{
    close_ended(redlock);
    int *parked = reallocarray(redlock->parked, redlock->parked_count + 1, sizeof(*parked));
    if (parked != NULL)
        redlock->parked = parked;
    return parked != NULL;
}

/*
 * Closes the socket after proto_end(), but not cleanly, so that the daemon does not release the
 * HOLDs. The caller can then extend the locks over another connection. A TCP connection is reset. A
 * unix socket cannot be reset, and closing it would release the HOLDs, so it is parked instead.
 */
static void drop(struct redlock *redlock)
{
    const struct linger at_once = {.l_onoff = 1};
    if (redlock->proto.ended_on_holds && is_unix(redlock->fd)) {
        redlock->parked[redlock->parked_count++] = redlock->fd;
        forget_connection(redlock);
    } else {
        setsockopt(redlock->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        disconnect(redlock);
    }
}

void handle_reset(struct redlock *redlock, const char *why)
{
    handle_detach_after_fork(redlock);
    if (redlock->fd < 0)
        return;
    proto_end(&redlock->proto, REDLOCK_BROKEN, why, true);
    drop(redlock);
}

void handle_close_parked(struct redlock *redlock)
{
    for (size_t i = 0; i < redlock->parked_count; i++) {
        (void)!send(redlock->parked[i], quit, sizeof(quit) - 1, MSG_NOSIGNAL);
        /* Ends the connection even if child processes have the socket open too. */
        shutdown(redlock->parked[i], SHUT_WR);
        close(redlock->parked[i]);
    }
    free(redlock->parked);
    redlock->parked = NULL;
    redlock->parked_count = 0;
}

/* --- reading and writing --- */

static void write_out(struct redlock *redlock)
{
    while (!redlock->output_failed) {
        redlock->output_len +=
            proto_write(&redlock->proto, handle_clock_ns(), redlock->output + redlock->output_len,
                        sizeof(redlock->output) - redlock->output_len);
        if (redlock->output_len == 0)
            return;
        ssize_t sent = send(redlock->fd, redlock->output, redlock->output_len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            redlock->output_failed = errno != EAGAIN && errno != EWOULDBLOCK;
            return;
        }
        redlock->output_len -= (size_t)sent;
        memmove(redlock->output, redlock->output + sent, redlock->output_len);
    }
}

/* True: there may be more input. */
static bool read_some(struct redlock *redlock)
{
    char bytes[READ_BYTES];
    char why[128];
    /* Read the clock before the socket: a later time could put a deadline too late. */
    int64_t received_ns = handle_clock_ns();
    ssize_t len = recv(redlock->fd, bytes, sizeof(bytes), 0);
    if (len > 0) {
        if (proto_receive(&redlock->proto, bytes, (size_t)len, received_ns, handle_clock_ns()))
            return true;
        drop(redlock);
    } else if (len == 0) {
        end_connection(redlock, "the connection ended before the answer");
    } else if (errno == EINTR) {
        return true;
    } else if ((errno != EAGAIN && errno != EWOULDBLOCK) || redlock->output_failed) {
        handle_reset(redlock, strerror_r(errno == EAGAIN ? EPIPE : errno, why, sizeof(why)));
    }
    return false;
}

void handle_pump(struct redlock *redlock)
{
    handle_detach_after_fork(redlock);
    if (redlock->fd >= 0)
        write_out(redlock);
    for (unsigned i = 0; i < READS_AT_ONCE && redlock->fd >= 0 && read_some(redlock); i++)
        continue;
    proto_expire(&redlock->proto, handle_clock_ns());
    if (proto_is_dead(&redlock->proto, handle_clock_ns()))
        handle_reset(redlock, "the daemon has stopped answering");
    /* Send the UNLOCKs that proto_expire() has queued. */
    if (redlock->fd >= 0)
        write_out(redlock);
    if (redlock->fd >= 0 && proto_is_spent(&redlock->proto))
        handle_close(redlock);
}

static bool has_output(const struct redlock *redlock)
{
    return !redlock->output_failed &&
           (redlock->output_len > 0 || proto_has_output(&redlock->proto));
}

void handle_arm(struct redlock *redlock)
{
    const struct client_proto *proto = &redlock->proto;
    handle_detach_after_fork(redlock);
    if (redlock->wakeup.epoll < 0)
        return;
    wakeup_arm(&redlock->wakeup, has_output(redlock),
               TAILQ_EMPTY(&proto->notices) ? proto_until_ns(proto) : 0, handle_clock_ns());
}

void handle_wait(struct redlock *redlock)
{
    struct pollfd fd = {.fd = redlock->fd, .events = POLLIN};
    if (has_output(redlock))
        fd.events |= POLLOUT;
    int64_t until_ns = proto_until_ns(&redlock->proto);
    poll(&fd, 1, until_ns == INT64_MAX ? -1 : wait_ms_until(until_ns));
}

/* --- closing --- */

static void send_quit(struct redlock *redlock)
{
    size_t len = sizeof(quit) - 1;
    if (redlock->output_len + len > sizeof(redlock->output))
        return;
    memcpy(redlock->output + redlock->output_len, quit, len);
    redlock->output_len += len;
    write_out(redlock);
}

/*
 * close(2) with unread bytes resets the connection, and after a reset the daemon releases no HOLD.
 * So shut down the sending side first, then read until the daemon closes its side.
 */
void handle_close(struct redlock *redlock)
{
    char bytes[READ_BYTES];
    bool waits = redlock->proto.holds.count > 0 || redlock->proto.lingers;
    int64_t until_ns = handle_clock_ns() + LINGER_MS * NS_PER_MS;
    write_out(redlock);
    if (redlock->proto.lingers)
        send_quit(redlock);
    shutdown(redlock->fd, SHUT_WR);
    for (unsigned i = 0; waits || i < READS_AT_ONCE; i++) {
        int wait_ms = waits ? wait_ms_until(until_ns) : 0;
        ssize_t len = recv(redlock->fd, bytes, sizeof(bytes), 0);
        if (len == 0 || (waits && wait_ms == 0))
            break;
        if (len > 0 || errno == EINTR)
            continue;
        if (!waits || errno != EAGAIN)
            break;
        struct pollfd fd = {.fd = redlock->fd, .events = POLLIN};
        poll(&fd, 1, wait_ms);
    }
    disconnect(redlock);
    proto_end(&redlock->proto, REDLOCK_BROKEN, "the connection was closed", false);
}

/* --- connecting --- */

/* Waits until the socket is connected. Returns 0 or an errno. */
static int await_connection(int fd, int64_t until_ns)
{
    int error = 0;
    socklen_t len = sizeof(error);
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        int wait_ms = wait_ms_until(until_ns);
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
        /* An interrupted connect(2) continues in the background. */
        if (errno == EINPROGRESS || errno == EINTR)
            return await_connection(fd, until_ns);
        if (errno != EAGAIN || where->sa_family != AF_UNIX)
            return errno;
        if (handle_clock_ns() >= until_ns)
            return ETIMEDOUT;
        poll(NULL, 0, BACKLOG_RETRY_MS);
    }
}

/* Returns the socket, or -1 with errno set. */
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

static int fail_connect(struct error *error, const char *what, const char *why)
{
    error_set(error, "%s: %.160s", what, why);
    return -1;
}

static int connect_unix(const struct address *address, int64_t timeout_ns, struct error *error)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    char why[128];
    int64_t until_ns = handle_clock_ns() + timeout_ns;
    memcpy(where.sun_path, address->path, strlen(address->path) + 1);
    int fd = connect_one((const struct sockaddr *)&where, sizeof(where), until_ns);
    return fd >= 0 ? fd
                   : fail_connect(error, "cannot connect", strerror_r(errno, why, sizeof(why)));
}

/* Tries each address of the host. Each gets an equal share of the time left, so that an address
 * that does not answer cannot use up all of it. */
static int connect_tcp(const struct address *address, int64_t timeout_ns, struct error *error)
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
        return fail_connect(error, "the host name does not resolve", gai_strerror(failed));
    int64_t until_ns = handle_clock_ns() + timeout_ns;
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        left++;
    errno = ETIMEDOUT;
    for (const struct addrinfo *it = found; it != NULL && fd < 0; it = it->ai_next, left--) {
        int64_t now_ns = handle_clock_ns();
        int64_t share_ns = until_ns > now_ns ? (until_ns - now_ns) / left : 0;
        fd = connect_one(it->ai_addr, it->ai_addrlen, now_ns + share_ns);
    }
    int reason = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return fail_connect(error, "cannot connect", strerror_r(reason, why, sizeof(why)));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    return fd;
}

/* Returns a socket that is non-blocking and close-on-exec, with TCP_NODELAY. -1: the error says
 * why. The timeout does not include the name lookup. */
static int connect_to(const struct address *address, int64_t timeout_ns, struct error *error)
{
    return address->kind == ADDRESS_UNIX ? connect_unix(address, timeout_ns, error)
                                         : connect_tcp(address, timeout_ns, error);
}

static enum redlock_status connect_anew(struct redlock *redlock)
{
    struct client_proto *proto = &redlock->proto;
    struct address address;
    struct error error;
    handle_detach_after_fork(redlock);
    if (!make_room(redlock))
        return proto_fail(proto, REDLOCK_MEMORY, "no memory is left");
    if (!address_parse(redlock->url, URL_DAEMON, &address, &error))
        return proto_fail(proto, REDLOCK_INVALID, "%s %s", redlock->peer, error.text);
    int64_t timeout_ns =
        redlock->connect_timeout_ns > 0 ? redlock->connect_timeout_ns : proto->timeout_ns;
    redlock->fd = connect_to(&address, timeout_ns, &error);
    if (redlock->fd < 0)
        return proto_fail(proto, REDLOCK_UNREACHABLE, "%s: %s", redlock->peer, error.text);
    if (!wakeup_watch(&redlock->wakeup, redlock->fd)) {
        disconnect(redlock);
        return proto_fail(proto, REDLOCK_MEMORY,
                          "the kernel has no memory to watch the connection");
    }
    proto_begin(proto);
    return REDLOCK_OK;
}

enum redlock_status handle_ask(struct redlock *redlock, const struct client_request *request,
                               void (*line)(void *context, const char *text), void *context,
                               uint64_t *id)
{
    uint64_t unused_id;
    /* Read first: an idle connection may have ended unnoticed. */
    if (redlock->fd >= 0)
        handle_pump(redlock);
    enum redlock_status status = redlock->fd >= 0 ? REDLOCK_OK : connect_anew(redlock);
    if (status == REDLOCK_OK)
        status = proto_ask(&redlock->proto, request, handle_clock_ns(), line, context,
                           id != NULL ? id : &unused_id);
    if (status == REDLOCK_OK)
        write_out(redlock);
    /* Arm after a failure too: an event may have been read. */
    handle_arm(redlock);
    return status;
}
