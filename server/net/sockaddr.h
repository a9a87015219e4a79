/*
 * Addresses of sockets as people write them.
 */
#ifndef SERVER_NET_SOCKADDR_H
#define SERVER_NET_SOCKADDR_H

#include <sys/socket.h>

/* "255.255.255.255:65535", "[0000:0000:0000:0000:0000:0000:0000:0000]:65535". */
enum { SOCKADDR_TEXT = 64 };

/* Of IPv4 or IPv6: "127.0.0.1:5555", "[::1]:5555"; "unknown" for what cannot be said. */
void sockaddr_text(const struct sockaddr *address, socklen_t len, char text[SOCKADDR_TEXT]);

#endif
