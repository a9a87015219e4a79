#include "server/clients/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/address.h"
#include "config/listens.h"
#include "protocol/text.h"
#include "server/systemd.h"

union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_storage room;
};

static bool is_listening(int fd)
{
    int type = 0;
    int listens = 0;
    socklen_t len = sizeof(int);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens != 0;
}

bool sockets_init(struct sockets *sockets, struct error *error)
{
    *sockets = (struct sockets){0};
    int count = systemd_sockets(&sockets->first);
    if (count < 0) {
        error_set(error, "the sockets of systemd cannot be had");
        return false;
    }
    sockets->count = (unsigned)count;
    for (unsigned i = 0; i < sockets->count; i++) {
        int fd = sockets->first + (int)i;
        int flags = fcntl(fd, F_GETFL);
        const char *wrong = NULL;
        if (sockets->count > LISTENS_MAX)
            wrong = "are more than `listen` may name";
        else if (!is_listening(fd))
            wrong = "are not all listening stream sockets; write ListenStream= and Accept=no";
        else if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
            wrong = "cannot be made non-blocking";
        if (wrong == NULL)
            continue;
        error_set(error, "the sockets of systemd %s", wrong);
        sockets_deinit(sockets);
        return false;
    }
    return true;
}

static bool is_at(int fd, const struct sockaddr *address)
{
    union name bound = {.room = {0}};
    socklen_t len = sizeof(bound);
    if (getsockname(fd, &bound.any, &len) != 0 || bound.any.sa_family != address->sa_family)
        return false;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        return v4->sin_port == bound.v4.sin_port && v4->sin_addr.s_addr == bound.v4.sin_addr.s_addr;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    return address->sa_family == AF_INET6 && v6->sin6_port == bound.v6.sin6_port &&
           IN6_ARE_ADDR_EQUAL(&v6->sin6_addr, &bound.v6.sin6_addr) &&
           v6->sin6_scope_id == bound.v6.sin6_scope_id;
}

static bool is_at_path(int fd, const char *path)
{
    union name bound = {.room = {0}};
    socklen_t len = sizeof(bound);
    return getsockname(fd, &bound.any, &len) == 0 && bound.any.sa_family == AF_UNIX &&
           strncmp(bound.local.sun_path, path, sizeof(bound.local.sun_path)) == 0;
}

static int take(struct sockets *sockets, const struct sockaddr *address, const char *path)
{
    for (unsigned i = 0; i < sockets->count; i++) {
        int fd = sockets->first + (int)i;
        if (sockets->taken & UINT32_C(1) << i ||
            !(path != NULL ? is_at_path(fd, path) : is_at(fd, address)))
            continue;
        sockets->taken |= UINT32_C(1) << i;
        return fd;
    }
    return -1;
}

int sockets_take(struct sockets *sockets, const struct config_address *address)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[8];
    int fd = -1;
    if (sockets->count == 0)
        return -1;
    if (address->kind == ADDRESS_UNIX)
        return take(sockets, NULL, address->path);
    snprintf(port, sizeof(port), "%u", address->port);
    if (getaddrinfo(address->host, port, &hints, &found) != 0)
        return -1;
    for (const struct addrinfo *it = found; it != NULL && fd < 0; it = it->ai_next)
        fd = take(sockets, it->ai_addr, NULL);
    freeaddrinfo(found);
    return fd;
}

/* "127.0.0.1 port 7335", or a path. */
static void describe(int fd, char *text, size_t size)
{
    union name bound = {.room = {0}};
    socklen_t len = sizeof(bound);
    char host[64];
    char port[8];
    if (getsockname(fd, &bound.any, &len) != 0)
        snprintf(text, size, "an unknown address");
    else if (bound.any.sa_family == AF_UNIX)
        snprintf(text, size, "%.*s", (int)sizeof(bound.local.sun_path), bound.local.sun_path);
    else if (getnameinfo(&bound.any, len, host, sizeof(host), port, sizeof(port),
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(text, size, "%s port %s", host, port);
    else
        snprintf(text, size, "an unknown address");
}

bool sockets_all_taken(const struct sockets *sockets, struct error *error)
{
    for (unsigned i = 0; i < sockets->count; i++) {
        char address[128];
        if (sockets->taken & UINT32_C(1) << i)
            continue;
        describe(sockets->first + (int)i, address, sizeof(address));
        error_set(error, "systemd hands over a socket for %s, which `listen` does not name",
                  address);
        return false;
    }
    return true;
}

void sockets_deinit(struct sockets *sockets)
{
    /* Of more than may be none was taken. */
    for (unsigned i = 0; i < sockets->count; i++)
        if (i >= LISTENS_MAX || !(sockets->taken & UINT32_C(1) << i))
            close(sockets->first + (int)i);
    *sockets = (struct sockets){0};
}
