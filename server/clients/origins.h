/*
 * How many connections there are from each origin. As many origins as connections at most, from a
 * table that is allocated once.
 */
#ifndef SERVER_CLIENTS_ORIGINS_H
#define SERVER_CLIENTS_ORIGINS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/pool.h"
#include "server/clients/origin.h"

struct counted_origin;

struct origins {
    struct pool pool;
    struct counted_origin *sentinel; /* keeps the hash from ever being empty, as in resource.h */
    struct counted_origin *by_origin;
};

/* For so many connections. False if there is not enough memory. */
bool origins_init(struct origins *origins, size_t connections);
void origins_deinit(struct origins *origins);

/* One more connection; false, and none is counted, if that is more than `most` (0: no bound). */
bool origins_enter(struct origins *origins, const struct origin *origin, unsigned most);

/* One that had been let in is over. */
void origins_leave(struct origins *origins, const struct origin *origin);

#endif
