/*
 * What masters are sent, which is alike for nearly all of them: commands of a round are the same
 * for each. It is kept once for all, until the pass is flushed, and sent to each from there.
 *
 *     fan_write(nodes) --> bytes, as long as the nodes are the same --fan_flush--> send() to each
 *                            |
 *                            +-- before what is for others, or for one alone: to their streams,
 *                                so that each gets all in the order of its being written
 */
#ifndef SERVER_NET_FAN_H
#define SERVER_NET_FAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "server/net/stream.h"

struct fan {
    struct stream *streams[LIMIT_NODES]; /* of the nodes; the caller's */
    uint32_t nodes;                      /* whom the bytes are for */
    size_t len;
    char *bytes;
};

/* False if there is not enough memory. The caller sets the streams. */
bool fan_init(struct fan *fan);
void fan_deinit(struct fan *fan);

/* To these nodes, with the next fan_flush(). At most REDIS_RELEASES_MAX bytes. */
void fan_write(struct fan *fan, uint32_t nodes, const char *bytes, size_t len);

/* The stream of this node is about to be closed: what has not left yet never will. */
void fan_drop(struct fan *fan, unsigned node);

/* Before streams_flush(), which has the rest. */
void fan_flush(struct fan *fan);

#endif
