/*
 * Network namespaces of our own, so that packets can be lost.
 *
 *     ours:   10.77.0.1 and, for master i, 10.77.0.(10 + i)  <---veth--->  theirs: 10.77.0.2
 *
 * One daemon lives in theirs. Rules in ours drop what goes from one address to another, so that
 * each direction can be cut by itself: a master may do what it is told and its answers be lost.
 *
 * Namespaces have no names and end with their processes; nothing is left of them, whatever happens.
 */
#ifndef TESTS_TORTURE_NET_H
#define TESTS_TORTURE_NET_H

#include <stdbool.h>

#include "tests/e2e/sandbox.h"

#define NET_MASTERS "10.77.0.1" /* and one more digit: struct master_plan.network */
#define NET_OURS    "10.77.0.1"
#define NET_THEIRS  "10.77.0.2"

struct net {
    bool there;
    char why_not[128];
    char theirs[64]; /* a file: struct daemon_plan.network */
    int theirs_fd;
    char log[SANDBOX_FILE];
};

/* Move this process into a namespace of its own, or say why that cannot be and change nothing. It
 * must not have any other thread. Who is not root becomes so in a user namespace. */
void net_open(struct net *net, const struct sandbox *sandbox, unsigned master_count);
void net_close(struct net *net);

enum net_way { NET_FROM_DAEMON, NET_TO_DAEMON, NET_BOTH };

/* Instead of the number of a master: the clients. */
enum { NET_CLIENTS = 9 };

/* Between the daemon in the other namespace and this master, or the clients; false if that did not
 * work. */
bool net_cut(const struct net *net, unsigned peer, enum net_way way);
void net_mend(const struct net *net, unsigned peer);

#endif
