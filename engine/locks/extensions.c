#include "engine/locks/extensions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "protocol/limits.h"

enum { CHAINS = 8192 };

struct extended {
    LIST_ENTRY(extended) of_chain;
    TAILQ_ENTRY(extended) recent;
    int64_t count;
    int64_t since_ns;
    bool ended;
    char token[LIMIT_TOKEN];
};

static struct extended_chain *chain_of_token(const struct extensions *extensions, const char *token)
{
    return &extensions->chains[XXH3_64bits(token, LIMIT_TOKEN) % CHAINS];
}

bool extensions_init(struct extensions *extensions, const struct engine_rules *rules)
{
    *extensions = (struct extensions){.rules = rules};
    TAILQ_INIT(&extensions->least_recent);
    extensions->chains = calloc(CHAINS, sizeof(*extensions->chains));
    return pool_init(&extensions->pool, sizeof(struct extended), LIMIT_EXTENDED) &&
           extensions->chains != NULL;
}

void extensions_deinit(struct extensions *extensions)
{
    free(extensions->chains);
    pool_deinit(&extensions->pool);
}

static struct extended *find_entry(const struct extensions *extensions, const char *token)
{
    struct extended *extended;
    /* A short cut: every released token is looked up here, and few tokens were ever extended. */
    if (TAILQ_EMPTY(&extensions->least_recent))
        return NULL;
    LIST_FOREACH (extended, chain_of_token(extensions, token), of_chain)
        if (memcmp(extended->token, token, LIMIT_TOKEN) == 0)
            return extended;
    return NULL;
}

const char *extensions_refuse(const struct extensions *extensions, const char *token,
                              int64_t ttl_ns, int64_t now_ns)
{
    const struct extended *extended = find_entry(extensions, token);
    int64_t since_ns = extended != NULL ? extended->since_ns : now_ns;
    if (extended != NULL && extended->count >= extensions->rules->max_extensions)
        return "extensions";
    return now_ns + ttl_ns - since_ns > extensions->rules->max_hold_ns ? "hold" : NULL;
}

static void drop_entry(struct extensions *extensions, struct extended *extended)
{
    LIST_REMOVE(extended, of_chain);
    TAILQ_REMOVE(&extensions->least_recent, extended, recent);
    pool_give(&extensions->pool, extended);
}

static struct extended *add_entry(struct extensions *extensions, const char *token, int64_t now_ns)
{
    struct extended *extended = pool_take(&extensions->pool);
    if (extended == NULL) {
        drop_entry(extensions, TAILQ_FIRST(&extensions->least_recent));
        extended = pool_take(&extensions->pool);
    }
    assert(extended != NULL);
    extended->count = 0;
    extended->since_ns = now_ns;
    extended->ended = false;
    memcpy(extended->token, token, LIMIT_TOKEN);
    LIST_INSERT_HEAD(chain_of_token(extensions, token), extended, of_chain);
    TAILQ_INSERT_TAIL(&extensions->least_recent, extended, recent);
    return extended;
}

/* The entry of the token, created if there is none. It is moved to the end of the list, so that it
 * is forgotten last. */
static struct extended *touch(struct extensions *extensions, const char *token, int64_t now_ns)
{
    struct extended *extended = find_entry(extensions, token);
    if (extended == NULL)
        return add_entry(extensions, token, now_ns);
    TAILQ_REMOVE(&extensions->least_recent, extended, recent);
    TAILQ_INSERT_TAIL(&extensions->least_recent, extended, recent);
    return extended;
}

void extensions_count(struct extensions *extensions, const char *token, int64_t now_ns)
{
    touch(extensions, token, now_ns)->count++;
}

void extensions_forget(struct extensions *extensions, const char *token)
{
    struct extended *extended = find_entry(extensions, token);
    if (extended != NULL)
        drop_entry(extensions, extended);
}

void extensions_end(struct extensions *extensions, const char *token, int64_t now_ns)
{
    touch(extensions, token, now_ns)->ended = true;
}

bool extensions_ended(const struct extensions *extensions, const char *token)
{
    const struct extended *extended = find_entry(extensions, token);
    return extended != NULL && extended->ended;
}
