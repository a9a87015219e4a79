#include "server/clients/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/listens.h"
#include "config/url.h"
#include "protocol/text.h"
#include "server/net/tcp.h"
#include "server/systemd.h"

enum { NAME_MAX_LEN = 128 };

/* The address of a socket from systemd: a path, "127.0.0.1:7335", or "unknown". */
static void bound_name(int fd, char name[NAME_MAX_LEN])
{
    struct sockaddr_storage bound = {0};
    const struct sockaddr_un *local = (const struct sockaddr_un *)&bound;
    socklen_t len = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &len) == 0 && bound.ss_family == AF_UNIX)
        snprintf(name, NAME_MAX_LEN, "%.*s", (int)sizeof(local->sun_path), local->sun_path);
    else
        sockaddr_text((struct sockaddr *)&bound, len, name);
}

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
    if (count < 0)
        return error_set(error,
                         "cannot use the sockets passed by systemd; restart redlockd.socket");
    sockets->count = (unsigned)count;
    for (unsigned i = 0; i < sockets->count; i++) {
        int fd = sockets->first + (int)i;
        int flags = fcntl(fd, F_GETFL);
        const char *wrong = NULL;
        if (sockets->count > LISTENS_MAX)
            wrong = "exceed the number of entries allowed under `listen`";
        else if (!is_listening(fd))
            wrong = "must all be listening stream sockets; use ListenStream= and Accept=no";
        else if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
            wrong = "cannot be made non-blocking";
        if (wrong == NULL)
            continue;
        sockets_deinit(sockets);
        return error_set(error, "the sockets passed by systemd %s", wrong);
    }
    return true;
}

static int take(struct sockets *sockets, const char *wanted)
{
    char name[NAME_MAX_LEN];
    for (unsigned i = 0; i < sockets->count; i++) {
        int fd = sockets->first + (int)i;
        bound_name(fd, name);
        if (sockets->taken & UINT32_C(1) << i || strcmp(name, wanted) != 0)
            continue;
        sockets->taken |= UINT32_C(1) << i;
        return fd;
    }
    return -1;
}

int sockets_take(struct sockets *sockets, const struct config_address *address)
{
    struct addrinfo *found;
    char name[SOCKADDR_TEXT];
    int fd = -1;
    if (sockets->count == 0)
        return -1;
    if (address->kind == ADDRESS_UNIX)
        return take(sockets, address->path);
    if (tcp_resolve(address, &found) != 0)
        return -1;
    for (const struct addrinfo *it = found; it != NULL && fd < 0; it = it->ai_next) {
        sockaddr_text(it->ai_addr, it->ai_addrlen, name);
        fd = take(sockets, name);
    }
    freeaddrinfo(found);
    return fd;
}

bool sockets_all_taken(const struct sockets *sockets, struct error *error)
{
    for (unsigned i = 0; i < sockets->count; i++) {
        char name[NAME_MAX_LEN];
        if (sockets->taken & UINT32_C(1) << i)
            continue;
        bound_name(sockets->first + (int)i, name);
        return error_set(error,
                         "systemd passes a socket for %s, which is not under `listen`; add it "
                         "there or remove it from redlockd.socket",
                         name);
    }
    return true;
}

void sockets_deinit(struct sockets *sockets)
{
    /* Sockets beyond LISTENS_MAX have no bit and were not taken. */
    for (unsigned i = 0; i < sockets->count; i++)
        if (i >= LISTENS_MAX || !(sockets->taken & UINT32_C(1) << i))
            close(sockets->first + (int)i);
    *sockets = (struct sockets){0};
}
