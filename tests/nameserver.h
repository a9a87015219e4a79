/*
 * A nameserver that resolves every name to 127.0.0.1.
 */
#ifndef TESTS_NAMESERVER_H
#define TESTS_NAMESERVER_H

#include <event2/dns.h>
#include <event2/event.h>

/* Opens a UDP socket at a port of 127.0.0.1. Queries wait until nameserver_start(). */
int nameserver_open(int *port);

/* Answers queries in the event loop. evdns_close_server_port() ends this and closes the socket. */
struct evdns_server_port *nameserver_start(struct event_base *base, int fd);

#endif
