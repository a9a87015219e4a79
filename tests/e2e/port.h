/*
 * TCP ports for the servers of a test.
 */
#ifndef TESTS_E2E_PORT_H
#define TESTS_E2E_PORT_H

#include <stdbool.h>

/*
 * A port of 127.0.0.1 that is free, and that no other test is given while this process lives.
 * Whoever is no test of ours may still take it first.
 */
int port_free(void);

/* Listen on a port of a loopback address (AF_INET, AF_INET6): the descriptor, or -1. Port 0: any.
 */
int port_listen(int family, int port);

#endif
