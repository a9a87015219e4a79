#include "engine/locks/manager.h"

#include <assert.h>
#include <string.h>

#include "engine/round/validity.h"
#include "protocol/units.h"

const char *const engine_limits[ENGINE_LIMITS] = {
    "requests", "operations", "busy", "waiters", "waiters_per_resource",
    "holds",    "extensions", "hold", "fence",   "breaks",
    "slots",    "surveys",
};

bool manager_init(struct lock_manager *manager, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, struct flights *flights)
{
    /* Each round, pending request, lock, seeker, semaphore and key probe can be for a resource of
     * its own, so there must be enough resources for all of them. */
    size_t pending_requests = LIMIT_ROUNDS + rules->waiters;
    uint64_t seed;
    *manager = (struct lock_manager){
        .rules = rules,
        .io = io,
        .stats = stats,
        .flights = flights,
        .queue_seed = link_random(&io->links),
        .renewals_max = LIMIT_RENEWALS,
        .starts_left = LIMIT_STARTS,
        .timers_left = LIMIT_TIMERS,
    };
    TAILQ_INIT(&manager->held);
    TAILQ_INIT(&manager->unheld);
    timers_init(&manager->hold_timers);
    timers_init(&manager->timers);
    timers_init(&manager->due);
    start_queue_init(&manager->start_queue);
    io->links.random(io->links.context, &seed, sizeof(seed));
    return extension_limits_init(&manager->extension_limits, rules) &&
           tags_init(&manager->tags, seed) &&
           semaphores_init(&manager->semaphores, ~manager->queue_seed) &&
           resources_init(&manager->resources,
                          LIMIT_ROUNDS + pending_requests + LIMIT_LOCKS + LIMIT_FAR_RESOURCES +
                              2 * LIMIT_SEEKERS + LIMIT_NODES * LIMIT_LINK_KEY_PROBES,
                          rules->key_prefix, rules->key_prefix_len, seed) &&
           pool_init(&manager->pending_requests, sizeof(struct pending_request),
                     pending_requests) &&
           pool_init(&manager->locks, sizeof(struct lock), LIMIT_LOCKS);
}

void manager_deinit(struct lock_manager *manager)
{
    extension_limits_deinit(&manager->extension_limits);
    tags_deinit(&manager->tags);
    semaphores_deinit(&manager->semaphores);
    resources_deinit(&manager->resources);
    pool_deinit(&manager->pending_requests);
    pool_deinit(&manager->locks);
    pool_deinit(&manager->breakings);
    pool_deinit(&manager->survey_pool);
}

/* --- requests --- */

struct pending_request *pending_open(struct lock_manager *manager, struct engine_client *client,
                                     const struct request *request, int64_t now_ns)
{
    struct pending_request *pending = pool_take(&manager->pending_requests);
    if (pending == NULL)
        return NULL;
    /* The waiter is left out: it is initialized when it joins a queue. */
    memset(pending, 0, offsetof(struct pending_request, waiter));
    pending->client = client;
    pending->received_ns = now_ns;
    pending->tagged = request->tag != NULL;
    pending->tag_len = (unsigned char)request->tag_len;
    if (pending->tagged) {
        memcpy(pending->tag, request->tag, request->tag_len);
        tags_add(&manager->tags, pending);
    }
    LIST_INSERT_HEAD(&client->pending_requests, pending, of_client);
    client->pending_count++;
    return pending;
}

void pending_close(struct lock_manager *manager, struct pending_request *pending)
{
    if (pending->tagged)
        tags_remove(pending);
    LIST_REMOVE(pending, of_client);
    pending->client->pending_count--;
    pool_give(&manager->pending_requests, pending);
}

void pending_set_flight(struct pending_request *pending, struct flight *flight)
{
    assert(pending->flight == NULL);
    assert(flight->pending == NULL);
    flight->pending = pending;
    pending->flight = flight;
}

void pending_leave_flight(struct pending_request *pending)
{
    assert(pending->flight->pending == pending);
    pending->flight->pending = NULL;
    pending->flight = NULL;
}

const char *pending_tag(const struct pending_request *pending)
{
    return pending->tagged ? pending->tag : NULL;
}

/* --- replies --- */

void manager_explain_votes(const struct lock_manager *manager, const enum reason *reasons,
                           struct reply *reply)
{
    reply->quorum = manager->rules->round.quorum;
    reply->node_count = manager->rules->round.node_count;
    reply->node_names = manager->rules->node_names;
    reply->node_reasons = reasons;
    for (unsigned i = 0; i < reply->node_count; i++)
        reply->voting += reasons[i] == REASON_NONE;
}

void manager_note_busy(struct lock_manager *manager, const struct pending_request *pending,
                       int64_t now_ns)
{
    int64_t since_ns = pending->awaits_start ? pending->joined_starts_ns : pending->received_ns;
    histogram_add(&manager->stats->held_back, now_ns - since_ns);
    manager->stats->busy++;
}

/* noinline: keeps this code out of replies that name no limit. */
static __attribute__((noinline)) void count_limit(struct lock_manager *manager, const char *word)
{
    for (unsigned limit = 0; limit < ENGINE_LIMITS; limit++)
        if (strcmp(engine_limits[limit], word) == 0) {
            manager->stats->limits[limit]++;
            return;
        }
    assert(false && "engine_limits lacks the word");
}

void manager_refuse(struct lock_manager *manager, struct engine_client *client,
                    const struct request *request, enum round_kind kind, const struct reply *reply)
{
    if (request->verb != VERB_BREAK)
        manager->stats->outcomes[kind][reply->outcome]++;
    if (reply->outcome == OUTCOME_LIMIT)
        count_limit(manager, reply->limit);
    manager->io->reply(manager->io->context, client, request->tag, request->tag_len, reply);
}

bool manager_reply(struct lock_manager *manager, struct pending_request *pending,
                   enum round_kind kind, const struct reply *reply)
{
    manager->stats->outcomes[kind][reply->outcome]++;
    return manager_send_reply(manager, pending, reply);
}

bool manager_send_reply(struct lock_manager *manager, struct pending_request *pending,
                        const struct reply *reply)
{
    struct engine_client *client = pending->client;
    assert(pending->flight == NULL);
    if (reply->outcome == OUTCOME_LIMIT)
        count_limit(manager, reply->limit);
    if (!client->disconnected)
        manager->io->reply(manager->io->context, client, pending_tag(pending), pending->tag_len,
                           reply);
    pending_close(manager, pending);
    return !client->disconnected;
}

/* The elapsed time that the reply tells the client: see elapsed_for_client_ms(). */
static int64_t elapsed_ms(const struct lock_manager *manager, const struct flight *flight,
                          int64_t now_ns)
{
    return elapsed_for_client_ms(&manager->rules->round.drift, flight->pending->received_ns,
                                 now_ns);
}

/* Add the details of any outcome but OK. noinline: these outcomes are rare, and their code is most
 * of the code for a reply. */
__attribute__((noinline)) static void explain(const struct lock_manager *manager,
                                              const struct flight *flight, struct reply *reply,
                                              int64_t now_ns)
{
    const struct round *round = &flight->round;
    switch (round->outcome) {
    case OUTCOME_LATE:
        reply->elapsed_ms = elapsed_ms(manager, flight, now_ns);
        break;
    case OUTCOME_HELD:
        reply->hint_ms = round_hint_ms(round, now_ns);
        break;
    case OUTCOME_NOQUORUM:
        manager_explain_votes(manager, round->reasons, reply);
        break;
    case OUTCOME_OK:
    case OUTCOME_GONE:
    case OUTCOME_FREE:
    case OUTCOME_LIMIT:
    case OUTCOME_SHUTDOWN:
    case OUTCOME_OUTBID:
        break;
    }
}

bool manager_reply_round(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    const struct round *round = &flight->round;
    struct pending_request *pending = flight->pending;
    struct reply reply = {.outcome = round->outcome};
    assert(round->phase == ROUND_SETTLED);
    if (round->outcome != OUTCOME_OK) {
        explain(manager, flight, &reply, now_ns);
    } else if (round->kind != ROUND_RELEASE) {
        reply.token = flight->token;
        reply.validity_ms = round_validity_ns(round, now_ns) / NS_PER_MS;
        reply.elapsed_ms = elapsed_ms(manager, flight, now_ns);
        reply.fence = round->kind == ROUND_ACQUIRE ? flight->ballot : -1;
        if (pending->slots > 0) {
            reply.slot = resource_of(flight->key)->name;
            reply.slot_len = (uint16_t)resource_of(flight->key)->name_len;
        }
    }
    pending_leave_flight(pending);
    return manager_reply(manager, pending, round->kind, &reply);
}
