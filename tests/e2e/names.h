/*
 * Private name resolution for this test and its children: /etc/hosts, /etc/resolv.conf and
 * nameservers.
 */
#ifndef TESTS_E2E_NAMES_H
#define TESTS_E2E_NAMES_H

#include <sys/types.h>

#include "tests/e2e/sandbox.h"

struct names {
    char hosts[SANDBOX_FILE];
    char servers[SANDBOX_FILE];
};

/* Mounts private files over those of the host, for this process and for children started later. */
void names_open(struct names *names, const struct sandbox *sandbox);

/* Replaces the content of /etc/hosts. */
void names_write_hosts(const struct names *names, const char *text);

/* Sets the only nameserver of /etc/resolv.conf: this port of 127.0.0.1, with a timeout. */
void names_write_server(const struct names *names, int port, int timeout_s);

/* Opens the socket of a nameserver that never answers, and returns its port. The socket stays open
 * until the test ends. */
int names_silent_server(void);

/* Starts a nameserver that resolves every name to 127.0.0.1, until it is killed. Returns its
 * port. */
int names_serve(pid_t *pid);

#endif
