/*
 * A fixed number of objects of one size, allocated once. Taking and giving back cost a few
 * instructions and no malloc; the one given back last is taken first, while it is still in the
 * cache, and what was never taken was never touched.
 */
#ifndef ENGINE_POOL_H
#define ENGINE_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool {
    char *memory;
    void *free; /* given back; each points to the next */
    size_t item_size;
    size_t count;
    size_t touched; /* taken at least once: the first of memory */
    size_t in_use;
};

/* Each item begins on a line of the processor's cache, so that its members can be put where what is
 * needed together is fetched together. */
enum { POOL_LINE = 64 };

/* False if there is not enough memory. */
bool pool_init(struct pool *pool, size_t item_size, size_t count);
void pool_deinit(struct pool *pool);

/* An item, its bytes whatever they were; NULL if all are in use. */
void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *item);

#endif
