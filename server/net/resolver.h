/*
 * Resolves the names of masters without blocking the event loop, by libevent's evdns.
 *
 * evdns reads /etc/hosts and /etc/resolv.conf only once. This module re-reads them when they have
 * changed. Reasons are a renewed DHCP lease, a VPN, or a network that came up after the daemon.
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
    struct stat hosts;       /* /etc/hosts when it was read; all zero: missing */
    struct stat nameservers; /* /etc/resolv.conf when it was read; all zero: missing */
    unsigned readings; /* number of readings; look-ups that began before the last one are stale */
};

/* False if there is not enough memory. Without resolv.conf, numeric addresses and /etc/hosts still
 * work. */
bool resolver_init(struct resolver *resolver, struct event_base *base);
/* Call resolver_settle() first. */
void resolver_deinit(struct resolver *resolver);

/* Run the event loop until all cancelled look-ups have completed, because evdns completes them only
 * in a later pass. Call this after name_lookup_deinit() of all look-ups. */
void resolver_settle(struct event_base *base);

/*
 * Repeated look-ups of one name. The user may stop waiting at any time. The query continues, and
 * the next attempt uses its late result. That matters with several nameservers, if only the second
 * one answers.
 */
struct name_lookup {
    /* The user sets these fields; the others start as zero. */
    struct resolver *resolver;
    const char *host;
    uint16_t port;
    /* found is valid during the call; NULL: the name does not resolve. */
    void (*on_found)(void *context, const struct evutil_addrinfo *found);
    void *context;

    struct evdns_getaddrinfo_request *query; /* NULL: no query in progress */
    struct evutil_addrinfo *found;           /* a result that arrived while the user did not wait */
    unsigned query_readings;                 /* resolver->readings when the query began */
    bool wanted;                             /* the user waits for on_found() */
};

void name_lookup_deinit(struct name_lookup *lookup);

/* Start to wait for the addresses. Calls on_found() once, possibly before name_lookup_begin()
 * returns. */
void name_lookup_begin(struct name_lookup *lookup);
/* Stop waiting: on_found() is not called until the next name_lookup_begin(). */
void name_lookup_leave(struct name_lookup *lookup);

/* Whether another attempt can succeed where the last one failed: its query is still in progress, or
 * the result arrived late. */
bool name_lookup_has_more(const struct name_lookup *lookup);

/* The address chosen; len 0: none yet. */
struct resolved {
    struct sockaddr_storage address;
    socklen_t len;
};

unsigned resolver_count(const struct evutil_addrinfo *found);

/*
 * Choose the address to connect to; found must not be empty. The last address is kept while the
 * name still has it and it has not failed, so that all connections of all daemons stay with one
 * server. Otherwise the next address in a fixed order is chosen, so that each is tried in turn.
 * Pure.
 */
const struct evutil_addrinfo *resolver_choose(const struct evutil_addrinfo *found,
                                              const struct resolved *last, bool failed);

#endif
