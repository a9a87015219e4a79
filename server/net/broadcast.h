/*
 * Output for several masters. The commands of a round are the same for each of them, so this module
 * keeps one shared copy and sends it to all of them at the end of the pass. A write for a different
 * set of nodes ends the sharing: the shared bytes are first copied to the stream of each node, so
 * that each node gets its commands in the order of writing. Compared with a copy of each command
 * for each node, sharing saves 5 % of the daemon's instructions in the benchmark 16x16
 * (docs/design/performance.md).
 */
#ifndef SERVER_NET_BROADCAST_H
#define SERVER_NET_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "server/net/stream.h"

/* Bytes; enough for the commands of several hundred locks, as many as a busy pass writes. */
enum { BROADCAST_ROOM = 64 * 1024 };

struct broadcast {
    struct stream *streams[LIMIT_NODES]; /* one per node; owned by the caller */
    uint32_t nodes;                      /* the nodes that the shared bytes are for */
    size_t len;
    char bytes[BROADCAST_ROOM];
};

/* Write to these nodes, at most REDIS_RELEASES_MAX bytes. */
void broadcast_write(struct broadcast *broadcast, uint32_t nodes, const char *bytes, size_t len);

/* Send the shared bytes and everything written to the streams. */
void broadcast_flush(struct broadcast *broadcast, struct streams *streams);

/* Call this before the stream of this node is closed: the node gets none of the shared bytes. */
void broadcast_drop(struct broadcast *broadcast, unsigned node);

#endif
