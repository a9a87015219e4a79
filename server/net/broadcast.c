#include "server/net/broadcast.h"

#include <assert.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/redis.h"

static_assert((size_t)BROADCAST_ROOM >= REDIS_RELEASES_MAX, "the longest command fits");

static void clear(struct broadcast *broadcast)
{
    broadcast->nodes = 0;
    broadcast->len = 0;
}

/* Copy the shared bytes to the streams, to make room for other shared bytes. */
static void copy_to_streams(struct broadcast *broadcast)
{
    for (uint32_t rest = broadcast->nodes; rest != 0; rest = nodes_after_first(rest))
        stream_write(broadcast->streams[nodes_first(rest)], broadcast->bytes, broadcast->len);
    clear(broadcast);
}

void broadcast_write(struct broadcast *broadcast, uint32_t nodes, const char *bytes, size_t len)
{
    if (nodes != broadcast->nodes || len > BROADCAST_ROOM - broadcast->len)
        copy_to_streams(broadcast);
    broadcast->nodes = nodes;
    memcpy(broadcast->bytes + broadcast->len, bytes, len);
    broadcast->len += len;
}

void broadcast_drop(struct broadcast *broadcast, unsigned node)
{
    broadcast->nodes &= ~nodes_only(node);
}

void broadcast_flush(struct broadcast *broadcast, struct streams *streams)
{
    for (uint32_t rest = broadcast->nodes; rest != 0; rest = nodes_after_first(rest))
        stream_share(broadcast->streams[nodes_first(rest)], broadcast->bytes, broadcast->len);
    clear(broadcast);
    streams_flush(streams);
}
