#include "server/net/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/url.h"
#include "protocol/limits.h"
#include "protocol/text.h"

void sockaddr_text(const struct sockaddr *address, socklen_t len, char text[SOCKADDR_TEXT])
{
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    int failed = getnameinfo(address, len, host, sizeof(host), port, sizeof(port),
                             NI_NUMERICHOST | NI_NUMERICSERV);
    if (failed != 0)
        snprintf(text, SOCKADDR_TEXT, "unknown");
    else
        snprintf(text, SOCKADDR_TEXT,
                 address->sa_family == AF_INET6 ? "[%.48s]:%.6s" : "%.48s:%.6s", host, port);
}

void tcp_limit_buffers(int fd)
{
    const int buffer = LIMIT_SOCKET_BUFFER / 2; /* the kernel doubles the value */
    const int segment = LIMIT_SEGMENT;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
}

/* Choose the first IPv4 address, or the first address if there is none. If `localhost` resolves to
 * both families, people connect to 127.0.0.1. */
static const struct addrinfo *choose(const struct addrinfo *found)
{
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        if (it->ai_family == AF_INET)
            return it;
    return found;
}

/* Bind. With any_port, retry with port 0 if the port is in use. The cast is safe, because the port
 * is at the same offset in IPv4 and IPv6 addresses. */
static bool bind_or_any_port(int fd, const struct addrinfo *where, bool any_port)
{
    if (bind(fd, where->ai_addr, where->ai_addrlen) == 0)
        return true;
    if (errno != EADDRINUSE || !any_port)
        return false;
    ((struct sockaddr_in *)where->ai_addr)->sin_port = 0;
    return bind(fd, where->ai_addr, where->ai_addrlen) == 0;
}

/* Returns the socket, or -1 with errno set. */
static int listen_at(const struct addrinfo *where, bool any_port)
{
    int on = 1;
    int fd = socket(where->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    tcp_limit_buffers(fd);
    if (where->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind_or_any_port(fd, where, any_port) && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

int tcp_resolve(const struct config_address *address, struct addrinfo **found)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char port[8];
    snprintf(port, sizeof(port), "%u", address->port);
    return getaddrinfo(address->host, port, &hints, found);
}

int tcp_listen(const struct config_address *address, bool any_port,
               const struct config_address *rival, struct error *error)
{
    struct addrinfo *found;
    int failed = tcp_resolve(address, &found);
    if (failed != 0) {
        error_set(error, "%.100s: the name does not resolve: %s", address->url,
                  gai_strerror(failed));
        return -1;
    }
    int fd = listen_at(choose(found), any_port);
    if (fd < 0 && errno == EADDRINUSE && rival != NULL)
        error_set(error, "%.80s: %s; this daemon already uses that port for %.80s", address->url,
                  strerror(errno), rival->url);
    else if (fd < 0)
        error_set(error, "%.100s: cannot listen: %s", address->url, strerror(errno));
    freeaddrinfo(found);
    return fd;
}
