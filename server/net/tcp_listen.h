/*
 * A socket that listens by TCP, for clients and for the admin listener.
 */
#ifndef SERVER_NET_TCP_LISTEN_H
#define SERVER_NET_TCP_LISTEN_H

#include <stdbool.h>

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

#endif
