#include "engine/locks/call.h"

#include <assert.h>
#include <string.h>

#include "engine/flight/flight.h"

struct call *call_open(struct pool *calls, struct engine_client *client,
                       const struct request *request, int64_t now_ns)
{
    struct call *call = pool_take(calls);
    if (call == NULL)
        return NULL;
    /* Its place in a queue is set where it joins one. */
    memset(call, 0, offsetof(struct call, waiter));
    call->client = client;
    call->received_ns = now_ns;
    call->tagged = request->tag != NULL;
    call->tag_len = (unsigned char)request->tag_len;
    if (call->tagged)
        memcpy(call->tag, request->tag, request->tag_len);
    LIST_INSERT_HEAD(&client->calls, call, of_client);
    client->call_count++;
    return call;
}

void call_close(struct pool *calls, struct call *call)
{
    LIST_REMOVE(call, of_client);
    call->client->call_count--;
    pool_give(calls, call);
}

void call_set_flight(struct call *call, struct flight *flight)
{
    assert(call->flight == NULL);
    assert(flight->call == NULL);
    flight->call = call;
    call->flight = flight;
}

void call_leave_flight(struct call *call)
{
    assert(call->flight->call == call);
    call->flight->call = NULL;
    call->flight = NULL;
}

const char *call_tag(const struct call *call)
{
    return call->tagged ? call->tag : NULL;
}
