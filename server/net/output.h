/*
 * The unsent bytes of one connection.
 *
 *     bytes |  sent  |  unsent  |  room  |
 *           0      begin       end      size
 *
 * An idle connection has no buffer. The first write in a pass of the event loop borrows a block
 * from a pool, and the send at the end of the pass returns the block. The bytes are in allocated
 * memory instead if they do not fit into a block, if no block is free, or if the kernel does not
 * accept all of them at once. That memory is freed once all of them are sent. Bytes that go to
 * several connections can be sent from the caller's memory; such a buffer has no room for other
 * bytes.
 */
#ifndef SERVER_NET_OUTPUT_H
#define SERVER_NET_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/pool.h"

enum output_memory { OUTPUT_OWN, OUTPUT_BLOCK, OUTPUT_SHARED };

struct output {
    char *bytes; /* NULL: no buffer; the other fields are 0 */
    size_t begin;
    size_t end;
    size_t size;
    enum output_memory memory;
};

/* The blocks shared by all connections of a loop. False if there is not enough memory. */
bool output_init_blocks(struct pool *blocks);

/* False if there is not enough memory; then no bytes were written. */
bool output_write(struct output *output, struct pool *blocks, const char *bytes, size_t len);

/* Like output_write(), but if no bytes are unsent, the output refers to these bytes instead of
 * copying them. So the caller keeps them unchanged until the next output_send() or output_drop()
 * returns. */
bool output_share(struct output *output, struct pool *blocks, char *bytes, size_t len);

static inline size_t output_unsent(const struct output *output)
{
    return output->end - output->begin;
}

/* Send as much as the kernel accepts. False if the connection is lost or memory is short; errno
 * says which. */
bool output_send(struct output *output, struct pool *blocks, int fd);

/* Discard the unsent bytes. */
void output_drop(struct output *output, struct pool *blocks);

#endif
