/*
 * Listening TCP sockets, for clients and for HTTP, and socket addresses as text.
 */
#ifndef SERVER_NET_TCP_H
#define SERVER_NET_TCP_H

#include <stdbool.h>
#include <sys/socket.h>

struct addrinfo;
struct config_address;
struct error;

/* The length of the accept queue; the kernel may limit it further (net.core.somaxconn). While the
 * queue is full, new connections are delayed by seconds. */
enum { LISTEN_BACKLOG = 4096 };

/*
 * Bind and listen. Returns the socket, which the caller owns, or -1 with the reason in error.
 *
 * any_port: if the port is in use, take any other one.
 * rival: an address with the same port on which this daemon already listens, or NULL. If the
 * address is in use, the error names the rival.
 */
int tcp_listen(const struct config_address *address, bool any_port,
               const struct config_address *rival, struct error *error);

/* Limit the kernel's buffers of a listening socket; accepted sockets inherit the limit. */
void tcp_limit_buffers(int fd);

/* Resolve the addresses to listen on. The caller frees them with freeaddrinfo(). Returns 0 or the
 * error of getaddrinfo(). */
int tcp_resolve(const struct config_address *address, struct addrinfo **found);

/* Fits "[0000:0000:0000:0000:0000:0000:0000:0000]:65535". */
enum { SOCKADDR_TEXT = 64 };

/* IPv4 or IPv6: "127.0.0.1:5555", "[::1]:5555". "unknown" for any other family. */
void sockaddr_text(const struct sockaddr *address, socklen_t len, char text[SOCKADDR_TEXT]);

#endif
