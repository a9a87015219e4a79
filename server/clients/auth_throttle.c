#include "server/clients/auth_throttle.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(LIMIT_AUTH_THROTTLES % AUTH_THROTTLE_WAYS == 0, "the table is made of whole sets");

/* How far budget_full_ns may be in the future for one more guess to be allowed. */
#define HORIZON_NS ((AUTH_THROTTLE_BURST - 1) * AUTH_THROTTLE_EVERY_NS)

void auth_throttle_init(struct auth_throttle *auth_throttle, uint64_t seed)
{
    memset(auth_throttle, 0, sizeof(*auth_throttle));
    auth_throttle->seed = seed;
    for (unsigned i = 0; i < LIMIT_AUTH_THROTTLES; i++)
        auth_throttle->clients[i].budget_full_ns = INT64_MIN;
}

/* The index of the first entry in the set of this client address. */
static unsigned set_of(const struct auth_throttle *auth_throttle,
                       const struct client_address *client_address)
{
    uint64_t hash =
        XXH3_64bits_withSeed(client_address, sizeof(*client_address), auth_throttle->seed);
    return (unsigned)(hash % (LIMIT_AUTH_THROTTLES / AUTH_THROTTLE_WAYS)) * AUTH_THROTTLE_WAYS;
}

static const struct auth_failures *find(const struct auth_throttle *auth_throttle,
                                        const struct client_address *client_address)
{
    unsigned first = set_of(auth_throttle, client_address);
    for (unsigned i = first; i < first + AUTH_THROTTLE_WAYS; i++)
        if (memcmp(&auth_throttle->clients[i].client_address, client_address,
                   sizeof(*client_address)) == 0)
            return &auth_throttle->clients[i];
    return NULL;
}

/* Take an entry for a new address: evict the one in its set with the earliest budget_full_ns. */
static struct auth_failures *take(struct auth_throttle *auth_throttle,
                                  const struct client_address *client_address)
{
    unsigned first = set_of(auth_throttle, client_address);
    struct auth_failures *taken = &auth_throttle->clients[first];
    for (unsigned i = first; i < first + AUTH_THROTTLE_WAYS; i++)
        if (auth_throttle->clients[i].budget_full_ns < taken->budget_full_ns)
            taken = &auth_throttle->clients[i];
    *taken = (struct auth_failures){.client_address = *client_address, .budget_full_ns = INT64_MIN};
    return taken;
}

static int64_t wait_ns(const struct auth_failures *auth_failures, int64_t now_ns)
{
    int64_t ahead_ns =
        auth_failures->budget_full_ns > now_ns ? auth_failures->budget_full_ns - now_ns : 0;
    return ahead_ns > HORIZON_NS ? ahead_ns - HORIZON_NS : 0;
}

int64_t auth_throttle_wait_ns(const struct auth_throttle *auth_throttle,
                              const struct client_address *client_address, int64_t now_ns)
{
    const struct auth_failures *auth_failures = find(auth_throttle, client_address);
    return auth_failures != NULL ? wait_ns(auth_failures, now_ns) : 0;
}

static bool is_repeated(const struct auth_failures *auth_failures, uint64_t fingerprint)
{
    for (unsigned i = 0; i < AUTH_THROTTLE_SEEN; i++)
        if (auth_failures->seen[i] == fingerprint)
            return true;
    return false;
}

enum auth_throttle_news auth_throttle_note(struct auth_throttle *auth_throttle,
                                           const struct client_address *client_address,
                                           uint64_t fingerprint, int64_t now_ns)
{
    struct auth_failures *auth_failures =
        (struct auth_failures *)find(auth_throttle, client_address);
    assert(fingerprint != 0); /* 0 marks an empty slot */
    if (auth_failures == NULL)
        auth_failures = take(auth_throttle, client_address);
    if (is_repeated(auth_failures, fingerprint))
        return AUTH_THROTTLE_NOTHING;
    auth_failures->seen[auth_failures->next_seen++ % AUTH_THROTTLE_SEEN] = fingerprint;
    bool first = auth_failures->budget_full_ns <= now_ns;
    bool was_spent = wait_ns(auth_failures, now_ns) > 0;
    auth_failures->budget_full_ns =
        (first ? now_ns : auth_failures->budget_full_ns) + AUTH_THROTTLE_EVERY_NS;
    if (wait_ns(auth_failures, now_ns) > 0)
        return was_spent ? AUTH_THROTTLE_NOTHING : AUTH_THROTTLE_SPENT;
    return first ? AUTH_THROTTLE_FIRST : AUTH_THROTTLE_NOTHING;
}
