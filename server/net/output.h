/*
 * What is written to one connection and has not left yet.
 *
 *     bytes |  sent  |  unsent  |  room  |
 *           0      begin       end      size
 *
 * A connection at rest has no buffer. The first write of a pass of the loop borrows a block from a
 * pool, which the send at the end of the pass gives back. What does not fit into a block, or what
 * the kernel does not take yet, moves to memory of its own, which is freed once all of it was sent.
 * Bytes that are sent to several connections can be left where they are: then there is no room.
 */
#ifndef SERVER_NET_OUTPUT_H
#define SERVER_NET_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/pool.h"

enum output_memory { OUTPUT_OWN, OUTPUT_BLOCK, OUTPUT_SHARED };

struct output {
    char *bytes; /* NULL: there is no buffer, and the rest is 0 */
    size_t begin;
    size_t end;
    size_t size;
    enum output_memory memory;
};

/* The blocks of all connections of a loop. False if there is not enough memory. */
bool output_init_blocks(struct pool *blocks);

/* False if there is not enough memory; then nothing was written. */
bool output_write(struct output *output, struct pool *blocks, const char *bytes, size_t len);

/* The same without a copy, if nothing is unsent: the bytes stay as they are until they were sent by
 * output_send() or dropped. */
bool output_share(struct output *output, struct pool *blocks, char *bytes, size_t len);

static inline size_t output_unsent(const struct output *output)
{
    return output->end - output->begin;
}

/* Send as much as the kernel takes. False if the connection is lost, or memory is short; errno says
 * which. */
bool output_send(struct output *output, struct pool *blocks, int fd);

/* Forget what was not sent. */
void output_drop(struct output *output, struct pool *blocks);

#endif
