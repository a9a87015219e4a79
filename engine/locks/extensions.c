#include "engine/locks/extensions.h"

#include <assert.h>
#include <string.h>
#include <uthash.h>

#include "protocol/eight.h"
#include "protocol/limits.h"

struct extended {
    UT_hash_handle hh;
    TAILQ_ENTRY(extended) recent;
    int64_t count;
    int64_t since_ns;
    bool ended;
    char token[LIMIT_TOKEN];
};

/* Eight digits at a time, stirred: a tenth of what uthash's own hash takes for forty. A product
 * has its best bits on top, and uthash takes the lowest. */
static unsigned hash_of(const char *token)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = 0;
    for (size_t i = 0; i < LIMIT_TOKEN; i += 8) {
        hash = (hash ^ eight_load(token + i)) * odd;
        hash ^= hash >> 32;
    }
    return (unsigned)(hash * odd >> 32);
}

bool extensions_init(struct extensions *extensions, int64_t max_extensions, int64_t max_hold_ns)
{
    *extensions = (struct extensions){
        .max_extensions = max_extensions,
        .max_hold_ns = max_hold_ns,
    };
    TAILQ_INIT(&extensions->least_recent);
    if (!pool_init(&extensions->pool, sizeof(struct extended), LIMIT_EXTENDED + 1))
        return false;
    /* No token is all zero bytes. */
    extensions->sentinel = pool_take(&extensions->pool);
    memset(extensions->sentinel, 0, sizeof(*extensions->sentinel));
    HASH_ADD_BYHASHVALUE(hh, extensions->by_token, token, LIMIT_TOKEN,
                         hash_of(extensions->sentinel->token), extensions->sentinel);
    return true;
}

void extensions_deinit(struct extensions *extensions)
{
    HASH_CLEAR(hh, extensions->by_token);
    pool_deinit(&extensions->pool);
}

static struct extended *find(const struct extensions *extensions, const char *token)
{
    struct extended *extended;
    /* Every token that is released is looked for, and mostly none has been extended. */
    if (TAILQ_EMPTY(&extensions->least_recent))
        return NULL;
    HASH_FIND_BYHASHVALUE(hh, extensions->by_token, token, LIMIT_TOKEN, hash_of(token), extended);
    return extended;
}

const char *extensions_refuse(const struct extensions *extensions, const char *token,
                              int64_t ttl_ns, int64_t now_ns)
{
    const struct extended *extended = find(extensions, token);
    int64_t since_ns = extended != NULL ? extended->since_ns : now_ns;
    if (extended != NULL && extended->count >= extensions->max_extensions)
        return "extensions";
    return now_ns + ttl_ns - since_ns > extensions->max_hold_ns ? "hold" : NULL;
}

static void drop(struct extensions *extensions, struct extended *extended)
{
    HASH_DELETE(hh, extensions->by_token, extended);
    TAILQ_REMOVE(&extensions->least_recent, extended, recent);
    pool_give(&extensions->pool, extended);
}

static struct extended *add(struct extensions *extensions, const char *token, int64_t now_ns)
{
    struct extended *extended = pool_take(&extensions->pool);
    if (extended == NULL) {
        drop(extensions, TAILQ_FIRST(&extensions->least_recent));
        extended = pool_take(&extensions->pool);
    }
    assert(extended != NULL);
    extended->count = 0;
    extended->since_ns = now_ns;
    extended->ended = false;
    memcpy(extended->token, token, LIMIT_TOKEN);
    HASH_ADD_BYHASHVALUE(hh, extensions->by_token, token, LIMIT_TOKEN, hash_of(token), extended);
    TAILQ_INSERT_TAIL(&extensions->least_recent, extended, recent);
    return extended;
}

/* The one there is, or a new one; the last that will be forgotten. */
static struct extended *recent_one(struct extensions *extensions, const char *token, int64_t now_ns)
{
    struct extended *extended = find(extensions, token);
    if (extended == NULL)
        return add(extensions, token, now_ns);
    TAILQ_REMOVE(&extensions->least_recent, extended, recent);
    TAILQ_INSERT_TAIL(&extensions->least_recent, extended, recent);
    return extended;
}

void extensions_count(struct extensions *extensions, const char *token, int64_t now_ns)
{
    recent_one(extensions, token, now_ns)->count++;
}

void extensions_forget(struct extensions *extensions, const char *token)
{
    struct extended *extended = find(extensions, token);
    if (extended != NULL)
        drop(extensions, extended);
}

void extensions_end(struct extensions *extensions, const char *token, int64_t now_ns)
{
    recent_one(extensions, token, now_ns)->ended = true;
}

bool extensions_ended(const struct extensions *extensions, const char *token)
{
    const struct extended *extended = find(extensions, token);
    return extended != NULL && extended->ended;
}
