#include "server/clients/view.h"

#include <string.h>

void view_client_set_name(struct engine_client *client, const char *name, size_t len)
{
    memcpy(client->label, name, len);
    client->label[len] = '\0';
}

void view_client_unreachable(struct engine_client *client)
{
    client->gone = true;
}

static bool may_lock(const struct permit *permit, const struct resource *resource)
{
    return permit_ask(permit, VERB_LOCK, resource->name, resource->name_len) == PERMIT_YES;
}

bool view_client_is_permitted(const struct engine_client *client, const struct permit *permit)
{
    const struct lock *lock;
    const struct call *call;
    LIST_FOREACH (lock, &client->holds, of_client)
        if (!may_lock(permit, lock->resource))
            return false;
    LIST_FOREACH (call, &client->calls, of_client)
        if (call->resource != NULL && !may_lock(permit, call->resource))
            return false;
    return true;
}

const struct resource *view_first_resource(const struct engine *engine)
{
    return resource_first(&engine->manager.resources);
}
