#include "tests/sim/bounds.h"

#include <string.h>

#include "engine/internal.h"
#include "tests/prng.h"

struct sim_bounds sim_bounds;

/* Out of reach for any schedule. */
enum { ROOMY = 1024 };

static unsigned between(struct prng *prng, unsigned least, unsigned most)
{
    return least + prng_below(prng, most - least + 1);
}

static unsigned tight_or_roomy(struct prng *prng, unsigned least, unsigned most)
{
    return prng_below(prng, 3) == 0 ? ROOMY : between(prng, least, most);
}

/* For limits that refuse most requests if they are tight. A refused request reaches no other
 * limit. */
static unsigned rarely_tight(struct prng *prng, unsigned least, unsigned most)
{
    return prng_below(prng, 4) != 0 ? ROOMY : between(prng, least, most);
}

void bounds_draw(uint64_t seed)
{
    struct prng prng = {.state = ~seed};
    bool tight_releases = prng_below(&prng, 2) == 0;
    sim_bounds = (struct sim_bounds){
        /* In the final check two clients wait at once. */
        .waiters = rarely_tight(&prng, 2, 4),
        .extensions = tight_or_roomy(&prng, 1, 4),
        .hold_ttls = between(&prng, 1, 4),
        .client_requests = rarely_tight(&prng, 1, 3),
        /* A hand-over takes two rounds, and earlier rounds may still have replies outstanding. */
        .rounds = tight_or_roomy(&prng, 4, 10),
        .holds = tight_or_roomy(&prng, 1, 3),
        .renewals = tight_or_roomy(&prng, 1, 2),
        .breaks = tight_or_roomy(&prng, 1, 1),
        .extended = tight_or_roomy(&prng, 1, 3),
        .link_key_probes = tight_or_roomy(&prng, 1, 2),
        .link_votes = tight_or_roomy(&prng, 4, 16),
        .link_kept = tight_or_roomy(&prng, 1, 3),
        .link_pending_releases = tight_releases ? between(&prng, 10, 14) : ROOMY,
        .link_releases_under_way = tight_or_roomy(&prng, 1, 3),
        .crowded = prng_below(&prng, 2) == 0,
    };
    sim_bounds.locks = sim_bounds.holds + between(&prng, 1, 2);
    sim_bounds.link_releases = sim_bounds.link_votes + between(&prng, 1, 12);
    /* What the guard can send in one pass to a link that takes no more releases: the probe after
     * votes (3 commands), a record write with its probe (4) and a heartbeat (10). The ring has room
     * for one command less than its length. */
    sim_bounds.link_commands = sim_bounds.link_releases + 3 + 4 + 10 + 1;
    sim_bounds.timers = tight_or_roomy(&prng, 1, 2);
    sim_bounds.admission_min = rarely_tight(&prng, 1, 2);
    sim_bounds.admission_start = sim_bounds.admission_min + between(&prng, 0, 2);
    sim_bounds.starts = tight_or_roomy(&prng, 1, 2);
    sim_bounds.seekers = tight_or_roomy(&prng, 1, 4);
    sim_bounds.surveys = tight_or_roomy(&prng, 1, 2);
}

bool bounds_are_in_force(void)
{
    return LIMIT_LINK_RELEASES == sim_bounds.link_releases;
}

bool bounds_are_crowded(void)
{
    return sim_bounds.crowded && bounds_are_in_force();
}

const char *bound_word(enum bound bound)
{
    static const char *const words[] = {
#define X(name) #name,
        BOUND_TABLE(X)
#undef X
    };
    return words[bound];
}

static bool is_full(const struct pool *pool)
{
    return pool->in_use == pool->count;
}

static bool has_full_batch(const struct link *link)
{
    for (unsigned i = 0; i < link->outstanding_count; i++) {
        const struct outstanding *outstanding =
            &link->outstanding[(link->first + i) % LIMIT_LINK_COMMANDS];
        if (outstanding->kind == OUTSTANDING_RELEASES && outstanding->count == LIMIT_BATCH)
            return true;
    }
    return false;
}

void bounds_note(const struct engine *engine, uint64_t *met)
{
    met[BOUND_waiters] += engine->manager.waiting >= engine->rules.waiters;
    met[BOUND_pending_requests] += is_full(&engine->manager.pending_requests);
    met[BOUND_rounds] += is_full(&engine->flights.pool);
    met[BOUND_admission] += engine->manager.start_queue.length > 0;
    met[BOUND_timers] += engine->manager.timers_left == 0;
    met[BOUND_locks] += is_full(&engine->manager.locks);
    met[BOUND_holds] += engine->manager.holding >= LIMIT_HOLDS;
    met[BOUND_renewals] += engine->manager.renewing >= LIMIT_RENEWALS;
    met[BOUND_breaks] += is_full(&engine->manager.breakings);
    met[BOUND_seekers] += engine->manager.semaphores.reserved >= LIMIT_SEEKERS;
    met[BOUND_surveys] += is_full(&engine->manager.survey_pool);
    met[BOUND_extended] += is_full(&engine->manager.extension_limits.pool);
    for (unsigned i = 0; i < engine->flights.node_count; i++) {
        const struct link *link = &engine->flights.masters[i].link;
        met[BOUND_link_key_probes] +=
            engine->flights.masters[i].key_probes >= LIMIT_LINK_KEY_PROBES;
        met[BOUND_link_releases] += link->load >= LIMIT_LINK_RELEASES;
        met[BOUND_link_votes] += link->load >= LIMIT_LINK_VOTES;
        met[BOUND_link_kept] += engine->flights.vote_count[i] >= LIMIT_LINK_KEPT;
        met[BOUND_link_pending_releases] += link->pending_releases.dropped > 0;
        met[BOUND_link_releases_under_way] +=
            link->releases_under_way >= LIMIT_LINK_RELEASES_UNDER_WAY;
        met[BOUND_batch] += has_full_batch(link);
    }
}

const char *bounds_passed(const struct engine *engine)
{
    if (engine->manager.waiting > engine->rules.waiters)
        return "waiters";
    if (engine->manager.holding > LIMIT_HOLDS)
        return "holds";
    if (engine->manager.renewing > LIMIT_RENEWALS)
        return "renewals";
    if (engine->manager.semaphores.reserved > LIMIT_SEEKERS)
        return "seekers";
    for (unsigned i = 0; i < engine->flights.node_count; i++) {
        const struct link *link = &engine->flights.masters[i].link;
        if (engine->flights.masters[i].key_probes > LIMIT_LINK_KEY_PROBES)
            return "link_key_probes";
        if (engine->flights.vote_count[i] > LIMIT_LINK_KEPT)
            return "link_kept";
        if (link->releases_under_way > LIMIT_LINK_RELEASES_UNDER_WAY)
            return "link_releases_under_way";
    }
    return NULL;
}

static const char *const limited_words[LIMITED] = {
#define X(name) #name,
    LIMITED_TABLE(X)
#undef X
};

const char *limited_word(enum limited limited)
{
    return limited_words[limited];
}

enum limited limited_of(const char *word)
{
    unsigned limited = 0;
    while (limited < LIMITED && strcmp(limited_words[limited], word) != 0)
        limited++;
    return (enum limited)limited;
}

bool bounds_hold_back(const struct engine *engine)
{
    return engine->manager.start_queue.length > 0 && flights_has_room(&engine->flights);
}

bool bounds_leave_no_round(const struct engine *engine)
{
    return is_full(&engine->flights.pool) || is_full(&engine->manager.pending_requests) ||
           is_full(&engine->manager.resources.pool) ||
           engine->manager.impatient >= manager_impatient_max();
}
