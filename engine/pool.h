/*
 * A fixed number of objects of one size, allocated once. To take an object or give it back costs a
 * few instructions and no malloc. The object given back last is taken first, because it is likely
 * to be still in the cache. Memory that was never taken is never touched.
 */
#ifndef ENGINE_POOL_H
#define ENGINE_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool {
    char *memory;
    void *free; /* list of items given back */
    size_t item_size;
    size_t count;
    size_t touched; /* items at the start of memory that were taken at least once */
    size_t in_use;
};

/* Each item begins on a cache line, so that fields used together can share a line. */
enum { POOL_LINE = 64 };

/* Returns false if there is not enough memory. */
bool pool_init(struct pool *pool, size_t item_size, size_t count);
void pool_deinit(struct pool *pool);

/* Take an item, with undefined content; NULL if all are in use. */
void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *item);

#endif
