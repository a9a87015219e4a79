/*
 * Accepted connections whose TLS handshake is in progress.
 *
 * Their number is limited, and each has a deadline. While all places are taken, no connection is
 * accepted, and the oldest handshake gets an earlier deadline. So slow or hostile peers cost a
 * known amount of memory, and a flood of silent connections delays other clients only if it is
 * faster than the places become free. A new connection does not get the place of the oldest
 * handshake: when thousands of clients connect at once, most handshakes would be displaced.
 */
#ifndef SERVER_CLIENTS_HANDSHAKE_H
#define SERVER_CLIENTS_HANDSHAKE_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/net/tls.h"

struct clients;
struct peer;
struct handshake;

TAILQ_HEAD(handshake_list, handshake);

struct handshakes {
    struct clients *clients;    /* the owner */
    struct handshake_list list; /* the oldest first */
    struct event *timer;        /* deadline of the oldest */
    unsigned count;
    uint64_t failed;
};

/* False if there is not enough memory. */
bool handshakes_init(struct handshakes *handshakes, struct clients *clients);
void handshakes_deinit(struct handshakes *handshakes);

/* Whether all places are taken. */
bool handshakes_full(const struct handshakes *handshakes);

/* limits.clients is reached: close the oldest handshake, unless it began less than a second ago.
 * Otherwise, while many clients try to connect, they would displace each other, and none would
 * complete its handshake. False if no handshake was closed. */
bool handshakes_make_room(struct handshakes *handshakes);

/* Start the handshake of an accepted connection; there must be a free place. Takes over fd. After
 * the handshake the connection becomes a session. */
void handshake_start(struct handshakes *handshakes, const struct tls *tls, int fd,
                     const struct peer *peer);

#endif
