/*
 * Connections that are not those of clients yet: their TLS handshake is under way.
 *
 * They are few, and each has to be through in time; while all places are taken, nobody more is
 * accepted, and the oldest has to leave sooner. So whoever is slow, or only wants to take places,
 * costs a known amount of memory.
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
    struct event *timer;        /* when the oldest has to leave */
    unsigned count;
    uint64_t failed;
};

/* False if there is not enough memory. */
bool handshakes_init(struct handshakes *handshakes, struct clients *clients);
void handshakes_deinit(struct handshakes *handshakes);

/* Are all places taken? */
bool handshakes_full(const struct handshakes *handshakes);

/* Begin one for a connection that was accepted, when there is a place; owns fd from now on. At its
 * end it becomes a session. */
void handshake_start(struct handshakes *handshakes, const struct tls *tls, int fd,
                     const struct peer *peer);

#endif
