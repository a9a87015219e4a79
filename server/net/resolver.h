/*
 * Resolves the names of masters without blocking the event loop, by libevent's evdns.
 *
 * evdns reads /etc/hosts and /etc/resolv.conf only once. This module re-reads them when they have
 * changed since: a renewed lease, a VPN, or a boot in which the network came up after the daemon.
 */
#ifndef SERVER_NET_RESOLVER_H
#define SERVER_NET_RESOLVER_H

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct resolver {
    struct evdns_base *dns;
    struct stat hosts; /* /etc/hosts when it was read; all zero: missing */
    struct stat nameservers;
    unsigned readings; /* number of readings; look-ups from before the last one are stale */
};

/* False if there is not enough memory. Without resolv.conf, numeric addresses and /etc/hosts still
 * work. */
bool resolver_init(struct resolver *resolver, struct event_base *base);
/* Cancelled look-ups must have completed: see resolver_settle(). */
void resolver_deinit(struct resolver *resolver);

/* Call after all look-ups have ended and before resolver_deinit(): evdns completes a cancelled
 * look-up in a later pass of the loop. */
void resolver_settle(struct event_base *base);

/*
 * Repeated look-ups of one name. The user may stop waiting at any time; the query continues. With
 * several nameservers the one that answers may be the second one asked, and the next attempt uses a
 * late answer.
 */
struct name_lookup {
    /* The user sets these fields; the others start as zero. */
    struct resolver *resolver;
    const char *host;
    uint16_t port;
    /* found is valid during the call; NULL: the name does not resolve. */
    void (*on_found)(void *context, const struct evutil_addrinfo *found);
    void *context;

    struct evdns_getaddrinfo_request *question; /* NULL: no query in progress */
    struct evutil_addrinfo *found; /* a result that arrived while the user did not wait */
    unsigned asked;                /* resolver->readings when the query began */
    bool wanted;
};

void name_lookup_deinit(struct name_lookup *lookup);

/* Calls on_found() once, possibly before this returns. */
void name_lookup_begin(struct name_lookup *lookup);
/* Stop waiting: on_found() is not called until the next name_lookup_begin(). */
void name_lookup_leave(struct name_lookup *lookup);

/* Whether another name_lookup_begin() could return more than the last one did. */
bool name_lookup_goes_on(const struct name_lookup *lookup);

/* The address chosen; len 0: none yet. */
struct resolved {
    struct sockaddr_storage address;
    socklen_t len;
};

unsigned resolver_count(const struct evutil_addrinfo *found);

/*
 * Choose the address to connect to; found must not be empty. As long as the name has the last
 * address and it did not fail, keep it, so that all daemons and connections stay with one server.
 * Otherwise take the next one in a fixed order, so that each is tried in turn. Pure.
 */
const struct evutil_addrinfo *resolver_choose(const struct evutil_addrinfo *found,
                                              const struct resolved *last, bool failed);

#endif
