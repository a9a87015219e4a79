/*
 * BREAK: release a lock by force, in three rounds.
 *
 *     status    which token has a quorum? The BREAK applies to the lock with this token only, so no
 *               other lock can be affected
 *
 *     freeze    a frozen token, drawn for this BREAK, replaces the token (protocol/token.h). If
 *               less than a quorum is frozen, the BREAK ends here and has deleted nothing. The
 *               frozen keys exclude every client until the last promised deadline, as keys with
 *               the token would have
 *
 *     release   the lock can no longer be extended, and the frozen token is deleted
 *
 * The frozen token is deleted only on nodes that have answered the freeze. On any other node the
 * freeze may arrive late, after that node has voted for an extension of the lock. The key then has
 * to stay there, because the holder relies on that vote.
 */
#include "engine/locks/breaks.h"

#include <assert.h>
#include <string.h>

#include "engine/locks/grants.h"
#include "engine/round/node_set.h"
#include "protocol/token.h"

struct breaking {
    /* The request, between two rounds. NULL: a round is under way, or the client has left. */
    struct pending_request *pending;
    bool frozen; /* a quorum is frozen: the release is next */
    /* What the status round has found; it is frozen if another BREAK has frozen it. */
    char token[LIMIT_TOKEN];
    char frozen_token[LIMIT_TOKEN];
    struct flight_notes notes; /* the answers of the masters to the rounds of this BREAK */
    /* For each node, why the release leaves it out; REASON_NONE: it does not. */
    enum reason skipped[LIMIT_NODES];
};

bool breaks_init(struct lock_manager *manager)
{
    return pool_init(&manager->breakings, sizeof(struct breaking), LIMIT_BREAKS);
}

/* A reply to BREAK is not counted, because the outcomes that are counted are those of lock
 * requests. */
static void answer_break(struct lock_manager *manager, struct pending_request *pending,
                         const struct reply *reply)
{
    if (pending != NULL)
        manager_send_reply(manager, pending, reply);
}

static void answer_round(struct lock_manager *manager, struct pending_request *pending,
                         const struct round *round, enum outcome outcome, int64_t now_ns)
{
    struct reply reply = {
        .outcome = outcome,
        .hint_ms = outcome == OUTCOME_HELD ? round_hint_ms(round, now_ns) : -1,
    };
    manager_explain_votes(manager, round->reasons, &reply);
    answer_break(manager, pending, &reply);
}

bool breaks_begin(struct lock_manager *manager, struct flight *status)
{
    assert(status->round.kind == ROUND_STATUS);
    status->breaking = pool_take(&manager->breakings);
    if (status->breaking == NULL)
        return false;
    memset(status->breaking, 0, sizeof(*status->breaking));
    status->notes = &status->breaking->notes;
    return true;
}

/* The lock that a quorum of the counted nodes holds. Returns its token, or a frozen form if no node
 * has shown the token itself; NULL: there is no such lock. */
static const char *find_token(const struct breaking *breaking, const struct round *round)
{
    for (unsigned i = 0; i < round->rules->node_count; i++) {
        const char *token = breaking->notes.seen[i];
        unsigned same = 0;
        if (token[0] == '\0')
            continue;
        for (unsigned j = 0; j < round->rules->node_count; j++) {
            const char *other = breaking->notes.seen[j];
            if (!(round->held & nodes_only(j)) || other[0] == '\0' ||
                !token_same_lock(breaking->notes.seen[i], other))
                continue;
            same++;
            if (token_is(other, LIMIT_TOKEN))
                token = other;
        }
        if (same >= round->rules->quorum)
            return token;
    }
    return NULL;
}

/* Is this the token of a round that may still be granted, or whose client has not been told yet?
 * Such a lock is not broken: a reply that is about to be sent would then be untrue. */
static bool is_being_granted(const struct resource *resource, const char *token)
{
    const struct flight *flight;
    LIST_FOREACH (flight, &resource->key.flights, of_key)
        if (flight->round.kind == ROUND_ACQUIRE &&
            (flight->round.phase != ROUND_SETTLED || flight->settled) &&
            token_same_lock(flight->token, token))
            return true;
    return false;
}

/* --- results of the rounds --- */

/* Each function below returns whether the BREAK continues. If it does not, the function has replied
 * to the request. */

static bool on_status(struct lock_manager *manager, struct flight *status,
                      struct pending_request *pending, int64_t now_ns)
{
    const struct round *round = &status->round;
    struct breaking *breaking = status->breaking;
    const char *token = round->outcome == OUTCOME_HELD ? find_token(breaking, round) : NULL;
    /* If the client has left by now, the lock is not broken. */
    if (pending == NULL || token == NULL || is_being_granted(resource_of(status->key), token)) {
        answer_round(manager, pending, round, round->outcome, now_ns);
        return false;
    }
    memcpy(breaking->token, token, LIMIT_TOKEN);
    return true;
}

/* The release leaves out each node that has not answered the freeze. */
static void skip_unfrozen(struct breaking *breaking, const struct round *round)
{
    for (unsigned i = 0; i < round->rules->node_count; i++) {
        bool frozen = (breaking->notes.frozen_on & nodes_only(i)) != 0;
        breaking->skipped[i] = frozen ? REASON_NONE : round->reasons[i];
        assert(frozen || breaking->skipped[i] != REASON_NONE);
    }
}

static bool on_frozen(struct lock_manager *manager, struct flight *freeze,
                      struct pending_request *pending, int64_t now_ns)
{
    const struct round *round = &freeze->round;
    struct breaking *breaking = freeze->breaking;
    enum outcome outcome = round->outcome;
    if (outcome == OUTCOME_OK) {
        skip_unfrozen(breaking, round);
        breaking->frozen = true;
        return true;
    }
    /* The lock was gone: it is free, or another client holds it, perhaps on silent nodes too. */
    if (outcome == OUTCOME_GONE) {
        unsigned quorum = round->rules->quorum;
        outcome = OUTCOME_FREE;
        if (nodes_count(round->held | round->failed) >= quorum)
            outcome = nodes_count(round->held) >= quorum ? OUTCOME_HELD : OUTCOME_NOQUORUM;
    }
    answer_round(manager, pending, round, outcome, now_ns);
    return false;
}

/* Can a quorum still have the lock? It can on nodes that have not answered, and on nodes where
 * another BREAK has put its own frozen token. */
static bool may_be_there(const struct round *round, const char *token)
{
    const struct round_rules *rules = round->rules;
    unsigned count = nodes_count(round->failed | round->pending);
    for (unsigned i = 0; i < rules->node_count; i++)
        count += (round->held & nodes_only(i)) != 0 &&
                 round->held_by[i] == redis_holder(token, LIMIT_TOKEN);
    return count > rules->node_count - rules->quorum;
}

static bool on_released(struct lock_manager *manager, struct flight *release,
                        struct pending_request *pending, int64_t now_ns)
{
    const struct round *round = &release->round;
    enum outcome outcome = round->outcome;
    /* A quorum was frozen. If a key is missing now, its TTL has ended since then. */
    if (outcome == OUTCOME_GONE)
        outcome = may_be_there(round, release->token) ? OUTCOME_NOQUORUM : OUTCOME_OK;
    answer_round(manager, pending, round, outcome, now_ns);
    return false;
}

struct breaking *breaks_on_settled(struct lock_manager *manager, struct flight *flight,
                                   int64_t now_ns)
{
    struct breaking *breaking = flight->breaking;
    struct pending_request *pending = flight->pending;
    bool goes_on = false;
    if (pending != NULL)
        pending_leave_flight(pending);
    switch (flight->round.kind) {
    case ROUND_STATUS:
        goes_on = on_status(manager, flight, pending, now_ns);
        break;
    case ROUND_FREEZE:
        goes_on = on_frozen(manager, flight, pending, now_ns);
        break;
    case ROUND_RELEASE:
        goes_on = on_released(manager, flight, pending, now_ns);
        break;
    case ROUND_ACQUIRE:
    case ROUND_EXTEND:
        assert(false && "no round of a BREAK");
    }
    flight->breaking = NULL;
    flight->notes = NULL;
    flight->skipped = NULL;
    if (!goes_on) {
        pool_give(&manager->breakings, breaking);
        return NULL;
    }
    breaking->pending = pending;
    return breaking;
}

/* --- the second and third round --- */

/* Open the next round of the BREAK. NULL: there is no room for it. */
static struct flight *open_next_round(struct lock_manager *manager, struct resource *resource,
                                      struct breaking *breaking, enum round_kind kind)
{
    struct flight *flight = flights_open(manager->flights, &resource->key, kind, 0);
    if (flight == NULL)
        return NULL;
    memcpy(flight->token, breaking->frozen_token, LIMIT_TOKEN);
    flight->breaking = breaking;
    if (kind == ROUND_FREEZE)
        flight->notes = &breaking->notes;
    else
        flight->skipped = breaking->skipped;
    if (breaking->pending != NULL)
        pending_set_flight(breaking->pending, flight);
    breaking->pending = NULL;
    return flight;
}

static void refuse_break(struct lock_manager *manager, struct breaking *breaking)
{
    answer_break(manager, breaking->pending,
                 &(struct reply){.outcome = OUTCOME_LIMIT, .limit = "operations"});
    pool_give(&manager->breakings, breaking);
}

static struct engine_broken describe_broken(const struct resource *resource, const char *token)
{
    const struct lock *lock = resource->lock;
    /* Another lock was granted through this daemon, or none. This token may be a frozen form. */
    if (lock != NULL && !token_same_lock(lock->token, token))
        lock = NULL;
    return (struct engine_broken){
        .resource = resource->name,
        .resource_len = resource->name_len,
        .token = lock != NULL ? lock->token : token,
        .owner_id = lock != NULL ? lock->client_id : 0,
        .owner_label = lock != NULL ? lock->client_label : "",
    };
}

static void freeze(struct lock_manager *manager, struct resource *resource,
                   struct breaking *breaking, int64_t now_ns)
{
    flights_freeze_token(manager->flights, breaking->token, breaking->frozen_token);
    struct flight *flight = open_next_round(manager, resource, breaking, ROUND_FREEZE);
    if (flight == NULL) {
        refuse_break(manager, breaking);
        return;
    }
    const struct engine_broken broken = describe_broken(resource, breaking->token);
    manager->io->breaking(manager->io->context, flight->pending->client, &broken);
    flights_start(manager->flights, flight, now_ns);
}

static void release(struct lock_manager *manager, struct resource *resource,
                    struct breaking *breaking, int64_t now_ns)
{
    char token[LIMIT_TOKEN];
    const struct engine_broken broken = describe_broken(resource, breaking->token);
    manager->stats->broken++;
    if (manager->io->broken != NULL)
        manager->io->broken(manager->io->context, &broken);
    memcpy(token, broken.token, LIMIT_TOKEN);
    flights_forbid_backfill(manager->flights, &resource->key, token, now_ns);
    /* If a connection holds the lock, its client is told LOST, even if it has sent the BREAK
     * itself. */
    grants_end(manager, resource, token, NULL);
    struct flight *flight = open_next_round(manager, resource, breaking, ROUND_RELEASE);
    if (flight != NULL) {
        flights_start(manager->flights, flight, now_ns);
        return;
    }
    flights_defer_release(manager->flights, &resource->key, breaking->frozen_token,
                          breaking->notes.frozen_on, now_ns);
    refuse_break(manager, breaking);
}

void breaks_continue(struct lock_manager *manager, struct resource *resource,
                     struct breaking *breaking, int64_t now_ns)
{
    if (breaking->frozen)
        release(manager, resource, breaking, now_ns);
    else
        freeze(manager, resource, breaking, now_ns);
}
