/*
 * What the files about clients read of the engine, in one place: no other file of this folder knows
 * a field of its structs.
 */
#ifndef SERVER_CLIENTS_VIEW_H
#define SERVER_CLIENTS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/permit.h"
#include "engine/engine.h"

static inline uint64_t view_client_id(const struct engine_client *client)
{
    return client->id;
}

/* By NAME; "" without one. */
static inline const char *view_client_name(const struct engine_client *client)
{
    return client->label;
}

/* Requests that are not answered yet, and locks that are held for the connection. */
static inline unsigned view_client_requests(const struct engine_client *client)
{
    return client->call_count;
}

static inline unsigned view_client_holds(const struct engine_client *client)
{
    return client->hold_count;
}

void view_client_set_name(struct engine_client *client, const char *name, size_t len);

/* No answer can reach it any more. */
void view_client_unreachable(struct engine_client *client);

/* Does this permit all that it holds and waits for? */
bool view_client_is_permitted(const struct engine_client *client, const struct permit *permit);

/* The first of those that are known; resource_next() has the others. NULL: there is none. */
const struct resource *view_first_resource(const struct engine *engine);

#endif
