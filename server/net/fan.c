#include "server/net/fan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/redis.h"

/* What a pass writes to a busy master fits: several hundred locks. */
#define ROOM ((size_t)64 * 1024)
static_assert(ROOM >= REDIS_RELEASES_MAX, "the longest command does");

bool fan_init(struct fan *fan)
{
    *fan = (struct fan){.bytes = malloc(ROOM)};
    return fan->bytes != NULL;
}

void fan_deinit(struct fan *fan)
{
    free(fan->bytes);
    fan->bytes = NULL;
}

static void hand_out(struct fan *fan, void (*to)(struct stream *, const char *, size_t))
{
    if (fan->len > 0)
        for (uint32_t rest = fan->nodes; rest != 0; rest = nodes_behind_first(rest))
            to(fan->streams[nodes_first(rest)], fan->bytes, fan->len);
    fan->nodes = 0;
    fan->len = 0;
}

void fan_write(struct fan *fan, uint32_t nodes, const char *bytes, size_t len)
{
    assert(len <= ROOM);
    if (nodes == 0)
        return;
    bool alone = nodes_behind_first(nodes) == 0;
    if (alone || nodes != fan->nodes || len > ROOM - fan->len)
        hand_out(fan, stream_write);
    if (alone) {
        stream_write(fan->streams[nodes_first(nodes)], bytes, len);
        return;
    }
    fan->nodes = nodes;
    memcpy(fan->bytes + fan->len, bytes, len);
    fan->len += len;
}

void fan_drop(struct fan *fan, unsigned node)
{
    fan->nodes &= ~nodes_only(node);
}

void fan_flush(struct fan *fan)
{
    hand_out(fan, stream_send);
}
