/*
 * Names of masters -> addresses, off the loop, by libevent's evdns.
 *
 * evdns reads /etc/hosts and /etc/resolv.conf once. A host may have others by the time a master is
 * looked for again: a lease that was renewed, a VPN, a boot that was faster than the network.
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
    struct stat hosts; /* as they were when they were read; all zero: not there */
    struct stat nameservers;
    unsigned readings; /* so often; what was asked before the last one is out of date */
};

/* False if there is not enough memory. Without a resolv.conf there are still addresses and
 * /etc/hosts. */
bool resolver_init(struct resolver *resolver, struct event_base *base);
/* What is cancelled by then has to be over: see resolver_settle(). */
void resolver_deinit(struct resolver *resolver);

/* After all look-ups have ended, and before resolver_deinit(): a question that was cancelled is
 * still answered, in a later pass of the loop. */
void resolver_settle(struct event_base *base);

/*
 * The look-up of one name, over and over. Who wants it waits for so long as he likes; the question
 * goes on without him, since of several nameservers the first to answer may be the second one
 * asked, and a slow answer is for who comes next.
 */
struct name_lookup {
    /* The user sets these; all else is zero to begin with. */
    struct resolver *resolver;
    const char *host;
    uint16_t port;
    /* What is wanted: valid during the call; NULL: the name does not resolve. */
    void (*on_found)(void *context, const struct evutil_addrinfo *found);
    void *context;

    struct evdns_getaddrinfo_request *question; /* NULL: none is under way */
    struct evutil_addrinfo *found;              /* came while nobody wanted it */
    unsigned asked;                             /* by which reading of the files */
    bool wanted;
};

void name_lookup_deinit(struct name_lookup *lookup);

/* Calls on_found() once, maybe before this returns. */
void name_lookup_begin(struct name_lookup *lookup);
/* Not any more, until the next name_lookup_begin(). */
void name_lookup_leave(struct name_lookup *lookup);

/* Would another name_lookup_begin() know more than the last one did? */
bool name_lookup_goes_on(const struct name_lookup *lookup);

/* An address that was chosen; len 0: none yet. */
struct resolved {
    struct sockaddr_storage address;
    socklen_t len;
};

unsigned resolver_count(const struct evutil_addrinfo *found);

/*
 * Which of those found, of which there is one at least, to connect to. The last one, while the name
 * has it, if it did not fail: where a name has several, daemons and their connections do not go to
 * and fro. Else the one behind it in a fixed order, so that each has its turn. Pure.
 */
const struct evutil_addrinfo *resolver_choose(const struct evutil_addrinfo *found,
                                              const struct resolved *last, bool failed);

#endif
