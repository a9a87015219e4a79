#include "server/net/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* BLOCK: bytes of a block, enough for the commands of several hundred locks to one master. Most
 * blocks only ever use their first page. BLOCKS: the number of blocks. */
enum { BLOCK = 64 * 1024, BLOCKS = 1024 };

bool output_init_blocks(struct pool *blocks)
{
    return pool_init(blocks, BLOCK, BLOCKS);
}

void output_drop(struct output *output, struct pool *blocks)
{
    if (output->memory == OUTPUT_BLOCK)
        pool_give(blocks, output->bytes);
    else if (output->memory == OUTPUT_OWN)
        free(output->bytes);
    *output = (struct output){0};
}

/* Move the unsent bytes to allocated memory with room for `more` bytes. noinline: keeps this cold
 * path out of its callers. */
__attribute__((noinline)) static bool move(struct output *output, struct pool *blocks, size_t more)
{
    size_t unsent = output_unsent(output);
    size_t size = 2 * (unsent + more);
    char *bytes = malloc(size);
    if (bytes == NULL)
        return false;
    if (unsent > 0)
        memcpy(bytes, output->bytes + output->begin, unsent);
    output_drop(output, blocks);
    *output = (struct output){.bytes = bytes, .end = unsent, .size = size};
    return true;
}

static bool make_room(struct output *output, struct pool *blocks, size_t len)
{
    char *block = output->bytes == NULL && len <= BLOCK ? pool_take(blocks) : NULL;
    if (block == NULL)
        return move(output, blocks, len);
    *output = (struct output){.bytes = block, .size = BLOCK, .memory = OUTPUT_BLOCK};
    return true;
}

bool output_write(struct output *output, struct pool *blocks, const char *bytes, size_t len)
{
    if (len > output->size - output->end && !make_room(output, blocks, len))
        return false;
    memcpy(output->bytes + output->end, bytes, len);
    output->end += len;
    return true;
}

bool output_share(struct output *output, struct pool *blocks, char *bytes, size_t len)
{
    if (output->bytes != NULL)
        return output_write(output, blocks, bytes, len);
    *output = (struct output){.bytes = bytes, .end = len, .size = len, .memory = OUTPUT_SHARED};
    return true;
}

bool output_send(struct output *output, struct pool *blocks, int fd)
{
    ssize_t sent =
        send(fd, output->bytes + output->begin, output_unsent(output), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    output->begin += sent > 0 ? (size_t)sent : 0;
    if (output_unsent(output) > 0)
        return output->memory == OUTPUT_OWN || move(output, blocks, 0);
    output_drop(output, blocks);
    return true;
}
