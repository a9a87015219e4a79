#include "engine/locks/extension_limits.h"

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

static struct extended_chain *chain_of_token(const struct extension_limits *limits,
                                             const char *token)
{
    return &limits->chains[XXH3_64bits(token, LIMIT_TOKEN) % CHAINS];
}

bool extension_limits_init(struct extension_limits *limits, const struct engine_rules *rules)
{
    *limits = (struct extension_limits){.rules = rules};
    TAILQ_INIT(&limits->least_recent);
    limits->chains = calloc(CHAINS, sizeof(*limits->chains));
    return pool_init(&limits->pool, sizeof(struct extended), LIMIT_EXTENDED) &&
           limits->chains != NULL;
}

void extension_limits_deinit(struct extension_limits *limits)
{
    free(limits->chains);
    pool_deinit(&limits->pool);
}

static struct extended *find_entry(const struct extension_limits *limits, const char *token)
{
    struct extended *extended;
    /* A short cut: every released token is looked up here, and few tokens were ever extended. */
    if (TAILQ_EMPTY(&limits->least_recent))
        return NULL;
    LIST_FOREACH (extended, chain_of_token(limits, token), of_chain)
        if (memcmp(extended->token, token, LIMIT_TOKEN) == 0)
            return extended;
    return NULL;
}

const char *extension_limits_refuse(const struct extension_limits *limits, const char *token,
                                    int64_t ttl_ns, int64_t now_ns)
{
    const struct extended *extended = find_entry(limits, token);
    int64_t since_ns = extended != NULL ? extended->since_ns : now_ns;
    if (extended != NULL && extended->count >= limits->rules->max_extensions)
        return "extensions";
    return now_ns + ttl_ns - since_ns > limits->rules->max_hold_ns ? "hold" : NULL;
}

static void drop_entry(struct extension_limits *limits, struct extended *extended)
{
    LIST_REMOVE(extended, of_chain);
    TAILQ_REMOVE(&limits->least_recent, extended, recent);
    pool_give(&limits->pool, extended);
}

static struct extended *add_entry(struct extension_limits *limits, const char *token,
                                  int64_t now_ns)
{
    struct extended *extended = pool_take(&limits->pool);
    if (extended == NULL) {
        drop_entry(limits, TAILQ_FIRST(&limits->least_recent));
        extended = pool_take(&limits->pool);
    }
    assert(extended != NULL);
    extended->count = 0;
    extended->since_ns = now_ns;
    extended->ended = false;
    memcpy(extended->token, token, LIMIT_TOKEN);
    LIST_INSERT_HEAD(chain_of_token(limits, token), extended, of_chain);
    TAILQ_INSERT_TAIL(&limits->least_recent, extended, recent);
    return extended;
}

/* The entry of the token, created if there is none. It is moved to the end of the list, so that it
 * is forgotten last. */
static struct extended *touch(struct extension_limits *limits, const char *token, int64_t now_ns)
{
    struct extended *extended = find_entry(limits, token);
    if (extended == NULL)
        return add_entry(limits, token, now_ns);
    TAILQ_REMOVE(&limits->least_recent, extended, recent);
    TAILQ_INSERT_TAIL(&limits->least_recent, extended, recent);
    return extended;
}

void extension_limits_count(struct extension_limits *limits, const char *token, int64_t now_ns)
{
    touch(limits, token, now_ns)->count++;
}

void extension_limits_forget(struct extension_limits *limits, const char *token)
{
    struct extended *extended = find_entry(limits, token);
    if (extended != NULL)
        drop_entry(limits, extended);
}

void extension_limits_end(struct extension_limits *limits, const char *token, int64_t now_ns)
{
    touch(limits, token, now_ns)->ended = true;
}

bool extension_limits_ended(const struct extension_limits *limits, const char *token)
{
    const struct extended *extended = find_entry(limits, token);
    return extended != NULL && extended->ended;
}
