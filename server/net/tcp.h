/*
 * Sockets that listen by TCP, for clients and for the admin listener; and addresses of sockets as
 * people write them.
 */
#ifndef SERVER_NET_TCP_H
#define SERVER_NET_TCP_H

#include <stdbool.h>
#include <sys/socket.h>

struct addrinfo;
struct config_address;
struct error;

/* Where a queue is full, the kernel lets new connections wait for seconds. It may allow less. */
enum { LISTEN_BACKLOG = 4096 };

/*
 * Bind and listen there; the socket is the caller's. any_port: where the port is taken, another
 * one will do. -1 on failure: then the error says why.
 *
 * rival: an address of this daemon that has the same port, NULL if there is none. The error names
 * it if the address is in use.
 */
int tcp_listen(const struct config_address *address, bool any_port,
               const struct config_address *rival, struct error *error);

/* Bound the kernel's buffers of a listening socket; those that are accepted have the same. */
void tcp_bound_buffers(int fd);

/* Addresses to listen at, to be freed by freeaddrinfo(); or the error of getaddrinfo(). */
int tcp_find(const struct config_address *address, struct addrinfo **found);

/* "255.255.255.255:65535", "[0000:0000:0000:0000:0000:0000:0000:0000]:65535". */
enum { SOCKADDR_TEXT = 64 };

/* Of IPv4 or IPv6: "127.0.0.1:5555", "[::1]:5555"; "unknown" for what cannot be said. */
void sockaddr_text(const struct sockaddr *address, socklen_t len, char text[SOCKADDR_TEXT]);

#endif
