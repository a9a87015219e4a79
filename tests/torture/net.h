/*
 * Two network namespaces, between which packets can be lost: "ours", of the test, the masters and
 * most daemons, and "theirs", of one daemon.
 *
 *     ours:   10.77.0.1 and, for master i, 10.77.0.(10 + i)  <---veth--->  theirs: 10.77.0.2
 *
 * Routing rules in ours drop the packets from one address to another, so each direction can be cut
 * alone. For example, a master executes a command of the daemon, and its reply is lost.
 *
 * The namespaces have no names and end with their processes, so a crash leaves nothing behind.
 */
#ifndef TESTS_TORTURE_NET_H
#define TESTS_TORTURE_NET_H

#include <stdbool.h>

#include "tests/e2e/sandbox.h"

#define NET_MASTERS "10.77.0.1" /* for struct master_plan.network, which appends a digit */
#define NET_OURS    "10.77.0.1"
#define NET_THEIRS  "10.77.0.2"

struct net {
    bool there;        /* the namespaces exist */
    char why_not[128]; /* why they do not exist; "" if they do or were not wanted */
    char theirs[64];   /* path of the namespace: struct daemon_plan.network */
    int theirs_fd;
    char log[SANDBOX_FILE];
};

/* Move this process into a namespace of its own. If that is not possible, set net->why_not and
 * change nothing. The process must have a single thread. If it is not root, it becomes root in a
 * new user namespace. */
void net_open(struct net *net, const struct sandbox *sandbox, unsigned master_count);
void net_close(struct net *net);

enum net_way { NET_FROM_DAEMON, NET_TO_DAEMON, NET_BOTH };

/* The peer of net_cut() that stands for the clients, in place of the number of a master. */
enum { NET_CLIENTS = 9 };

/* Cut the path between the daemon in the other namespace and this master, or the clients. False on
 * failure. */
bool net_cut(const struct net *net, unsigned peer, enum net_way way);
void net_restore(const struct net *net, unsigned peer);

#endif
