#include "engine/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* In a build with AddressSanitizer (ASan), an access to an item that was given back is reported as
 * an error. So the tests find pointers to rounds and resources that have ended. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define OPEN(item, size)  ASAN_UNPOISON_MEMORY_REGION(item, size)
#define CLOSE(item, size) ASAN_POISON_MEMORY_REGION(item, size)
#else
#define OPEN(item, size)  ((void)0)
#define CLOSE(item, size) ((void)0)
#endif

bool pool_init(struct pool *pool, size_t item_size, size_t count)
{
    size_t lines = (item_size + POOL_LINE - 1) / POOL_LINE;
    *pool = (struct pool){.item_size = lines * POOL_LINE, .count = count};
    pool->memory = aligned_alloc(POOL_LINE, count * pool->item_size);
    return pool->memory != NULL;
}

void pool_deinit(struct pool *pool)
{
    if (pool->memory != NULL)
        OPEN(pool->memory, pool->count * pool->item_size);
    free(pool->memory);
    pool->memory = NULL;
}

void *pool_take(struct pool *pool)
{
    void *item = pool->free;
    if (item != NULL) {
        OPEN(item, pool->item_size);
        memcpy(&pool->free, item, sizeof(pool->free));
    } else if (pool->touched < pool->count) {
        item = pool->memory + pool->touched++ * pool->item_size;
    }
    if (item != NULL)
        pool->in_use++;
#ifdef POOL_FILL
    /* For tests: POOL_FILL is a byte whose repetition is no valid pointer or bool and no plausible
     * number. So a test fails if the code reads a field that was never set. */
    if (item != NULL)
        memset(item, POOL_FILL, pool->item_size);
#endif
    return item;
}

void pool_give(struct pool *pool, void *item)
{
    assert(pool->in_use > 0);
    memcpy(item, &pool->free, sizeof(pool->free));
    pool->free = item;
    pool->in_use--;
    CLOSE(item, pool->item_size);
}
