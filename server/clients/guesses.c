#include "server/clients/guesses.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(LIMIT_GUESSERS % GUESSES_WAYS == 0, "the table is made of whole sets");

/* How far ahead forgiven_ns may be for one more guess. */
#define PATIENCE_NS ((GUESSES_BURST - 1) * GUESSES_EVERY_NS)

void guesses_init(struct guesses *guesses, uint64_t seed)
{
    memset(guesses, 0, sizeof(*guesses));
    guesses->seed = seed;
    for (unsigned i = 0; i < LIMIT_GUESSERS; i++)
        guesses->guessers[i].forgiven_ns = INT64_MIN;
}

/* The index of the first of the few places where this origin can be. */
static unsigned set_of(const struct guesses *guesses, const struct origin *origin)
{
    uint64_t hash = XXH3_64bits_withSeed(origin, sizeof(*origin), guesses->seed);
    return (unsigned)(hash % (LIMIT_GUESSERS / GUESSES_WAYS)) * GUESSES_WAYS;
}

static const struct guesser *find(const struct guesses *guesses, const struct origin *origin)
{
    unsigned first = set_of(guesses, origin);
    for (unsigned i = first; i < first + GUESSES_WAYS; i++)
        if (memcmp(&guesses->guessers[i].origin, origin, sizeof(*origin)) == 0)
            return &guesses->guessers[i];
    return NULL;
}

/* A place for a new one: whoever has the least to be forgiven leaves it. */
static struct guesser *take(struct guesses *guesses, const struct origin *origin)
{
    unsigned first = set_of(guesses, origin);
    struct guesser *taken = &guesses->guessers[first];
    for (unsigned i = first; i < first + GUESSES_WAYS; i++)
        if (guesses->guessers[i].forgiven_ns < taken->forgiven_ns)
            taken = &guesses->guessers[i];
    *taken = (struct guesser){.origin = *origin, .forgiven_ns = INT64_MIN};
    return taken;
}

static int64_t wait_ns(const struct guesser *guesser, int64_t now_ns)
{
    int64_t ahead_ns = guesser->forgiven_ns > now_ns ? guesser->forgiven_ns - now_ns : 0;
    return ahead_ns > PATIENCE_NS ? ahead_ns - PATIENCE_NS : 0;
}

int64_t guesses_wait_ns(const struct guesses *guesses, const struct origin *origin, int64_t now_ns)
{
    const struct guesser *guesser = find(guesses, origin);
    return guesser != NULL ? wait_ns(guesser, now_ns) : 0;
}

static bool was_seen(const struct guesser *guesser, uint64_t fingerprint)
{
    for (unsigned i = 0; i < GUESSES_SEEN; i++)
        if (guesser->seen[i] == fingerprint)
            return true;
    return false;
}

enum guesses_news guesses_note(struct guesses *guesses, const struct origin *origin,
                               uint64_t fingerprint, int64_t now_ns)
{
    struct guesser *guesser = (struct guesser *)find(guesses, origin);
    assert(fingerprint != 0); /* that is a place where none was seen */
    if (guesser == NULL)
        guesser = take(guesses, origin);
    if (was_seen(guesser, fingerprint))
        return GUESSES_NOTHING;
    guesser->seen[guesser->next_seen++ % GUESSES_SEEN] = fingerprint;
    bool first = guesser->forgiven_ns <= now_ns;
    bool was_spent = wait_ns(guesser, now_ns) > 0;
    guesser->forgiven_ns = (first ? now_ns : guesser->forgiven_ns) + GUESSES_EVERY_NS;
    if (wait_ns(guesser, now_ns) > 0)
        return was_spent ? GUESSES_NOTHING : GUESSES_SPENT;
    return first ? GUESSES_FIRST : GUESSES_NOTHING;
}
