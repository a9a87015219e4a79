/*
 * The peer of a connection: its client address and, for a unix socket, its user.
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
    PEER_OWNER, /* unix socket; root, or the user that this daemon runs as */
};

struct peer {
    struct client_address client_address;
    enum peer_kind kind;
    char name[PEER_NAME_MAX];
};

/* Describe the peer of an accepted connection, from the address that accept() returned. */
void peer_find(struct peer *peer, int fd, const struct sockaddr *address, socklen_t len);

#endif
