/*
 * Accepted connections whose TLS handshake is in progress.
 *
 * Their number is limited, and each has a deadline. If all places are taken, a new connection gets
 * the place of the oldest handshake. To keep out a client, a flood has to open as many connections
 * as there are places within the time that the client needs for its handshake. If connections were
 * not accepted meanwhile, those of the flood would keep their places until the deadline.
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

/* Close the oldest handshake. False if there is none. */
bool handshakes_make_room(struct handshakes *handshakes);

/* Start the handshake of an accepted connection. Takes over fd. After the handshake the connection
 * becomes a session. */
void handshake_start(struct handshakes *handshakes, const struct tls *tls, int fd,
                     const struct peer *peer);

#endif
