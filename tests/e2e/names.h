/*
 * Names of hosts that only this test and its children know: /etc/hosts and /etc/resolv.conf of
 * their own, and nameservers.
 */
#ifndef TESTS_E2E_NAMES_H
#define TESTS_E2E_NAMES_H

#include <sys/types.h>

#include "tests/e2e/sandbox.h"

struct names {
    char hosts[SANDBOX_FILE];
    char servers[SANDBOX_FILE];
};

/* In place of the files of this host, for this process and those it starts. Before them. */
void names_open(struct names *names, const struct sandbox *sandbox);

/* What /etc/hosts has from now on. */
void names_write_hosts(const struct names *names, const char *text);

/* Whom /etc/resolv.conf names from now on: the one nameserver at this port of 127.0.0.1, who has so
 * long to answer. */
void names_write_server(const struct names *names, int port, int timeout_s);

/* A nameserver that never answers: its port. The descriptor is open until the test ends. */
int names_silent_server(void);

/* A nameserver for which every name is 127.0.0.1, until it is killed: its port. */
int names_serve(pid_t *pid);

#endif
