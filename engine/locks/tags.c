#include "engine/locks/tags.h"

#include <stdlib.h>
#include <string.h>

#include "engine/locks/manager.h"

/* xxhash.h contains the whole implementation, so no library is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Enough to keep the chains short with the usual limits. */
enum { CHAINS = 65536 };

bool tags_init(struct tags *tags, uint64_t seed)
{
    *tags = (struct tags){.seed = seed, .chains = calloc(CHAINS, sizeof(*tags->chains))};
    return tags->chains != NULL;
}

void tags_deinit(struct tags *tags)
{
    free(tags->chains);
}

static struct tag_chain *chain_of(const struct tags *tags, const struct engine_client *client,
                                  const char *tag, size_t tag_len)
{
    return &tags->chains[XXH3_64bits_withSeed(tag, tag_len, tags->seed ^ client->id) % CHAINS];
}

void tags_add(struct tags *tags, struct pending_request *pending)
{
    struct tag_chain *chain = chain_of(tags, pending->client, pending->tag, pending->tag_len);
    LIST_INSERT_HEAD(chain, pending, of_tags);
}

void tags_remove(struct pending_request *pending)
{
    LIST_REMOVE(pending, of_tags);
}

bool tags_find(const struct tags *tags, const struct engine_client *client, const char *tag,
               size_t tag_len)
{
    const struct pending_request *pending;
    LIST_FOREACH (pending, chain_of(tags, client, tag, tag_len), of_tags)
        if (pending->client == client && pending->tag_len == tag_len &&
            memcmp(pending->tag, tag, tag_len) == 0)
            return true;
    return false;
}
