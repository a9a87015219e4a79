#include "engine/locks/manager.h"

#include <assert.h>
#include <string.h>

#include "engine/round/validity.h"
#include "protocol/units.h"

bool manager_init(struct lock_manager *manager, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, struct flights *flights)
{
    /* Rounds, requests, those that wait and locks each may be about a resource of its own. */
    size_t calls = LIMIT_OPERATIONS + rules->waiters;
    uint64_t seed;
    *manager = (struct lock_manager){
        .rules = rules,
        .io = io,
        .stats = stats,
        .flights = flights,
        .queue_seed = flights_random(flights),
        .renewals_max = LIMIT_RENEWALS,
    };
    TAILQ_INIT(&manager->held);
    TAILQ_INIT(&manager->unheld);
    alarms_init(&manager->alarms);
    alarms_init(&manager->due);
    io->entropy(io->context, &seed, sizeof(seed));
    return extensions_init(&manager->extensions, rules) &&
           resources_init(&manager->resources,
                          LIMIT_OPERATIONS + calls + LIMIT_LOCKS + LIMIT_SOUGHT, rules->key_prefix,
                          rules->key_prefix_len, seed) &&
           pool_init(&manager->calls, sizeof(struct call), calls) &&
           pool_init(&manager->locks, sizeof(struct lock), LIMIT_LOCKS);
}

void manager_deinit(struct lock_manager *manager)
{
    extensions_deinit(&manager->extensions);
    resources_deinit(&manager->resources);
    pool_deinit(&manager->calls);
    pool_deinit(&manager->locks);
    pool_deinit(&manager->breakings);
}

/* --- requests --- */

struct call *call_open(struct pool *calls, struct engine_client *client,
                       const struct request *request, int64_t now_ns)
{
    struct call *call = pool_take(calls);
    if (call == NULL)
        return NULL;
    /* Its place in a queue is set where it joins one. */
    memset(call, 0, offsetof(struct call, waiter));
    call->client = client;
    call->received_ns = now_ns;
    call->tagged = request->tag != NULL;
    call->tag_len = (unsigned char)request->tag_len;
    if (call->tagged)
        memcpy(call->tag, request->tag, request->tag_len);
    LIST_INSERT_HEAD(&client->calls, call, of_client);
    client->call_count++;
    return call;
}

void call_close(struct pool *calls, struct call *call)
{
    LIST_REMOVE(call, of_client);
    call->client->call_count--;
    pool_give(calls, call);
}

void call_set_flight(struct call *call, struct flight *flight)
{
    assert(call->flight == NULL);
    assert(flight->call == NULL);
    flight->call = call;
    call->flight = flight;
}

void call_leave_flight(struct call *call)
{
    assert(call->flight->call == call);
    call->flight->call = NULL;
    call->flight = NULL;
}

const char *call_tag(const struct call *call)
{
    return call->tagged ? call->tag : NULL;
}

/* --- answers --- */

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

void manager_refuse(struct lock_manager *manager, struct engine_client *client,
                    const struct request *request, enum round_kind kind, const struct reply *reply)
{
    if (request->verb != VERB_BREAK)
        manager->stats->outcomes[kind][reply->outcome]++;
    manager->io->reply(manager->io->context, client, request->tag, request->tag_len, reply);
}

bool manager_reply(struct lock_manager *manager, struct call *call, enum round_kind kind,
                   const struct reply *reply)
{
    manager->stats->outcomes[kind][reply->outcome]++;
    return manager_say(manager, call, reply);
}

bool manager_say(struct lock_manager *manager, struct call *call, const struct reply *reply)
{
    struct engine_client *client = call->client;
    assert(call->flight == NULL);
    if (!client->gone)
        manager->io->reply(manager->io->context, client, call_tag(call), call->tag_len, reply);
    call_close(&manager->calls, call);
    return !client->gone;
}

/* How long the client has waited for it, as its own clock may have it. */
static int64_t elapsed_ms(const struct lock_manager *manager, const struct flight *flight,
                          int64_t now_ns)
{
    return elapsed_for_client_ms(&manager->rules->round.drift, flight->call->received_ns, now_ns);
}

/* What belongs to any outcome but OK. Not inlined: it is rare, and the larger part of all that an
 * answer may have. */
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

bool manager_answer(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    const struct round *round = &flight->round;
    struct call *call = flight->call;
    struct reply reply = {.outcome = round->outcome};
    assert(round->phase == ROUND_SETTLED);
    if (round->outcome != OUTCOME_OK) {
        explain(manager, flight, &reply, now_ns);
    } else if (round->kind != ROUND_RELEASE) {
        reply.token = flight->token;
        reply.validity_ms = round_validity_ns(round, now_ns) / NS_PER_MS;
        reply.elapsed_ms = elapsed_ms(manager, flight, now_ns);
        reply.fence = round->kind == ROUND_ACQUIRE ? flight->ballot : -1;
    }
    call_leave_flight(call);
    return manager_reply(manager, call, round->kind, &reply);
}
