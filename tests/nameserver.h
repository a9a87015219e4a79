/*
 * A nameserver for which every name is 127.0.0.1.
 */
#ifndef TESTS_NAMESERVER_H
#define TESTS_NAMESERVER_H

#include <event2/dns.h>
#include <event2/event.h>

/* A socket at a port of 127.0.0.1; nobody answers there yet. */
int nameserver_open(int *port);

/* From now on the loop does, until evdns_close_server_port(), which closes the socket. */
struct evdns_server_port *nameserver_start(struct event_base *base, int fd);

#endif
