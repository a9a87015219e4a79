/*
 * The listings of the line protocol: NODES, STATS, LOCKS, CLIENTS, HELP. One subject a line in
 * key=value words. The session takes them one by one, and ends them.
 */
#ifndef SERVER_CLIENTS_LISTING_H
#define SERVER_CLIENTS_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/request.h"
#include "protocol/text.h"
#include "server/admin/status.h"

struct clients;
struct session;

/* One that is being written; nothing else happens meanwhile. */
struct listing {
    const struct session *session; /* that asks, and is not told of what it may not use */
    const struct request *request;
    int64_t now_ns;
    struct status status; /* NODES, STATS */
    unsigned index;       /* of the next line */
    const struct engine *engine;
    bool more; /* LOCKS: there is a next, which is this */
    const struct resource *place;
    struct resource_view resource;
    const struct session *client; /* CLIENTS: the next; NULL: no more */
};

void listing_begin(struct listing *listing, const struct clients *clients,
                   const struct session *session, const struct request *request, int64_t now_ns);

/* Write the next line; text: NULL to pass over it. False: there was none. */
bool listing_next(struct listing *listing, struct text *text);

#endif
