/*
 * TCP ports for the servers of a test.
 */
#ifndef TESTS_E2E_PORT_H
#define TESTS_E2E_PORT_H

#include <stdbool.h>

/*
 * Returns a free port of 127.0.0.1 that no other test gets while this process lives. A program that
 * is not one of these tests can still take the port first.
 */
int port_free(void);

/* Listens on a port of the loopback address (AF_INET or AF_INET6) and returns the descriptor, or
 * -1. Port 0: any. */
int port_listen(int family, int port);

#endif
