#include "server/clients/peer.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "server/net/tcp.h"

static void find_tcp(struct peer *peer, const struct sockaddr *address, socklen_t len)
{
    *peer = (struct peer){.kind = PEER_TCP};
    sockaddr_text(address, len, peer->name);
    if (address->sa_family == AF_INET6)
        peer->client_address = client_address_of_ipv6(
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    else
        peer->client_address =
            client_address_of_ipv4(&((const struct sockaddr_in *)(const void *)address)->sin_addr);
}

static void find_unix(struct peer *peer, int fd)
{
    struct ucred user = {.uid = (uid_t)-1};
    socklen_t len = sizeof(user);
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &len) == 0;
    bool owner = known && (user.uid == 0 || user.uid == geteuid());
    *peer = (struct peer){.kind = owner ? PEER_OWNER : PEER_UNIX,
                          .client_address = client_address_of_user(user.uid)};
    if (known)
        snprintf(peer->name, sizeof(peer->name), "uid=%u,pid=%d", user.uid, user.pid);
    else
        snprintf(peer->name, sizeof(peer->name), "unix");
}

void peer_find(struct peer *peer, int fd, const struct sockaddr *address, socklen_t len)
{
    if (address->sa_family == AF_UNIX)
        find_unix(peer, fd);
    else
        find_tcp(peer, address, len);
}
