/*
 * Names of masters -> addresses, off the loop, by libevent's evdns.
 *
 * evdns reads /etc/hosts and /etc/resolv.conf once. A host may have others by the time a master is
 * looked for again: a lease that was renewed, a VPN, a boot that was faster than the network.
 */
#ifndef SERVER_RESOLVER_H
#define SERVER_RESOLVER_H

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct resolver {
    struct evdns_base *dns;
    struct stat hosts; /* as they were when they were read; all zero: not there */
    struct stat nameservers;
};

/* False if there is not enough memory. Without a resolv.conf there are still addresses and
 * /etc/hosts. */
bool resolver_init(struct resolver *resolver, struct event_base *base);
void resolver_deinit(struct resolver *resolver);

/* Have they changed? Then they are read again, and what was asked of the old nameservers is asked
 * of the new ones. */
bool resolver_refresh(struct resolver *resolver);

/*
 * The answer may come before this returns; then it returns NULL, and else what to cancel it by. A
 * request that was cancelled is still answered, by EVUTIL_EAI_CANCEL.
 */
struct evdns_getaddrinfo_request *resolver_ask(struct resolver *resolver, const char *host,
                                               uint16_t port, evdns_getaddrinfo_cb answer,
                                               void *context);

/* An address that was chosen; len 0: none yet. */
struct resolved {
    struct sockaddr_storage address;
    socklen_t len;
};

/*
 * Which of those found, of which there is one at least, to connect to. The last one, while the name
 * has it, if it did not fail: where a name has several, daemons and their connections do not go to
 * and fro. Else the one behind it in a fixed order, so that each has its turn. Pure.
 */
const struct evutil_addrinfo *resolver_choose(const struct evutil_addrinfo *found,
                                              const struct resolved *last, bool failed);

#endif
