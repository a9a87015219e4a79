/*
 * The other end of a connection: where it comes from and, by a unix socket, which user it is.
 */
#ifndef SERVER_CLIENTS_PEER_H
#define SERVER_CLIENTS_PEER_H

#include <sys/socket.h>

#include "server/clients/client_address.h"

/* "[0000:0000:0000:0000:0000:0000:0000:0000]:65535", "uid=4294967295,pid=4294967295". */
enum { PEER_NAME_MAX = 64 };

enum peer_kind {
    PEER_TCP,
    PEER_UNIX,
    PEER_OWNER, /* by a unix socket, as root or as the user that this daemon runs as */
};

struct peer {
    struct client_address client_address;
    enum peer_kind kind;
    char name[PEER_NAME_MAX];
};

/* Of a connection that was accepted from this address. */
void peer_find(struct peer *peer, int fd, const struct sockaddr *address, socklen_t len);

#endif
