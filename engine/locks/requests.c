#include "engine/locks/requests.h"

#include <assert.h>
#include <string.h>

#include "engine/locks/breaks.h"
#include "engine/locks/grants.h"
#include "engine/locks/intake.h"
#include "engine/locks/survey.h"
#include "engine/locks/waits.h"
#include "protocol/units.h"

static enum round_kind round_kind_of(enum verb verb)
{
    switch (verb) {
    case VERB_LOCK:
        return ROUND_ACQUIRE;
    case VERB_EXTEND:
        return ROUND_EXTEND;
    case VERB_UNLOCK:
        return ROUND_RELEASE;
    default:
        assert(verb == VERB_STATUS || verb == VERB_BREAK);
        return ROUND_STATUS;
    }
}

static void refuse_request(struct lock_manager *manager, struct engine_client *client,
                           const struct request *request, enum outcome outcome, const char *limit)
{
    const struct reply reply = {.outcome = outcome, .limit = limit};
    manager_refuse(manager, client, request, round_kind_of(request->verb), &reply);
}

/* For UNLOCK, EXTEND, STATUS and BREAK: open a round for the request at once. NULL: there is no
 * room for it. */
static struct flight *open_round(struct lock_manager *manager, struct engine_client *client,
                                 const struct request *request, struct resource *resource,
                                 int64_t now_ns)
{
    struct pending_request *pending = pending_open(manager, client, request, now_ns);
    if (pending == NULL)
        return NULL;
    struct flight *flight = flights_open(manager->flights, &resource->key,
                                         round_kind_of(request->verb), request->ttl_ms * NS_PER_MS);
    if (flight == NULL) {
        pending_close(manager, pending);
        return NULL;
    }
    pending_set_flight(pending, flight);
    if (request->token != NULL)
        memcpy(flight->token, request->token, LIMIT_TOKEN);
    return flight;
}

/* Close a round that was opened but not started, together with its request. */
static void close_round(struct lock_manager *manager, struct flight *flight)
{
    struct pending_request *pending = flight->pending;
    pending_leave_flight(pending);
    pending_close(manager, pending);
    flights_drop(manager->flights, flight);
}

/* --- a STATUS that has to wait for its start --- */

static bool may_start(const struct lock_manager *manager)
{
    return manager->start_queue.length == 0 && flights_has_room(manager->flights);
}

static void hold_back(struct lock_manager *manager, struct pending_request *pending, int64_t now_ns)
{
    pending->waiter.wait_deadline = (struct timer){.kind = TIMER_WAIT_DEADLINE};
    manager->impatient++;
    start_queue_join(&manager->start_queue, pending, now_ns);
    waits_set_start_deadline(manager, pending, now_ns);
}

/* The STATUS has left the start queue. */
static void stop_holding_back(struct lock_manager *manager, struct pending_request *pending)
{
    manager->impatient--;
    timers_set(&manager->timers, &pending->waiter.wait_deadline, TIMER_NEVER);
}

/* The STATUS has left the start queue, and its round will not start. Frees the round, and returns
 * the request. */
static struct pending_request *drop_held_back(struct lock_manager *manager,
                                              struct pending_request *pending)
{
    struct flight *flight = pending->flight;
    stop_holding_back(manager, pending);
    pending_leave_flight(pending);
    flights_drop(manager->flights, flight);
    return pending;
}

/* --- requests --- */

/* Each of the two functions below returns NULL if the request was accepted or has been answered.
 * Otherwise it returns the limit that the request exceeds, as the word that follows LIMIT in the
 * reply. */

static const char *start_round(struct lock_manager *manager, struct engine_client *client,
                               const struct request *request, struct resource *resource,
                               int64_t now_ns)
{
    const char *limit = NULL;
    if (request->verb == VERB_EXTEND &&
        extension_limits_ended(&manager->extension_limits, request->token)) {
        refuse_request(manager, client, request, OUTCOME_GONE, NULL);
        return NULL;
    }
    if (request->verb == VERB_EXTEND)
        limit = grants_refuse_extension(manager, client, request, resource, now_ns);
    if (request->verb == VERB_STATUS && manager->impatient >= manager_impatient_max())
        limit = "operations";
    if (limit != NULL)
        return limit;
    struct flight *flight = open_round(manager, client, request, resource, now_ns);
    if (flight == NULL)
        return "operations";
    if (request->verb == VERB_BREAK && !breaks_begin(manager, flight)) {
        close_round(manager, flight);
        return "breaks";
    }
    if (request->verb == VERB_UNLOCK) {
        bool known = grants_end(manager, resource, request->token, client);
        waits_release(manager, resource, request->token, flight, known, now_ns);
    } else if (request->verb == VERB_STATUS && !may_start(manager)) {
        hold_back(manager, flight->pending, now_ns);
    } else {
        flights_start(manager->flights, flight, now_ns);
    }
    return NULL;
}

bool requests_start_next(struct lock_manager *manager, int64_t now_ns)
{
    struct pending_request *pending;
    if (manager->starts_left == 0 || !flights_has_room(manager->flights) ||
        (pending = start_queue_take(&manager->start_queue, now_ns)) == NULL)
        return false;
    manager->starts_left--;
    histogram_add(&manager->stats->held_back, now_ns - pending->joined_starts_ns);
    if (pending->flight != NULL) {
        stop_holding_back(manager, pending);
        flights_start(manager->flights, pending->flight, now_ns);
        return true;
    }
    manager->next_start = pending;
    waits_run(manager, pending_resource(pending), now_ns);
    manager->next_start = NULL;
    return true;
}

void requests_on_deadline(struct lock_manager *manager, struct pending_request *pending,
                          int64_t now_ns)
{
    const struct reply busy = {.outcome = OUTCOME_LIMIT, .limit = "busy"};
    if (pending->resource != NULL) {
        waits_on_deadline(manager, pending, now_ns);
        return;
    }
    manager_note_busy(manager, pending, now_ns);
    start_queue_leave(&manager->start_queue, pending);
    manager_reply(manager, drop_held_back(manager, pending), ROUND_STATUS, &busy);
}

/* Would this LOCK with WAIT spend more than half of its WAIT in the start queue? If so, it would
 * most likely be answered LIMIT busy in the end, but until then it would cost as much as a request
 * that is served. The other half is for the round, and because the pace may change. A LOCK of a
 * resource that this daemon has granted, or that others wait for, is never refused here: hand-overs
 * are not held back. Nor is a LOCK with SLOTS, since any of its slots may be handed over. */
static bool would_start_too_late(struct lock_manager *manager, const struct engine_client *client,
                                 const struct request *request, int64_t now_ns)
{
    if (request->verb != VERB_LOCK || request->wait_ms == 0 || request->slots > 0 ||
        start_queue_delay_ns(&manager->start_queue, client, now_ns) <=
            request->wait_ms * NS_PER_MS / 2)
        return false;
    const struct resource *resource =
        resource_find(&manager->resources, request->resource, request->resource_len);
    return resource == NULL || (resource->queue.length == 0 && resource->lock == NULL);
}

static const char *accept_request(struct lock_manager *manager, struct engine_client *client,
                                  const struct request *request, int64_t now_ns)
{
    if (client->pending_count >= LIMIT_CLIENT_REQUESTS)
        return "requests";
    if (would_start_too_late(manager, client, request, now_ns)) {
        manager->stats->busy++;
        return "busy";
    }
    if (request->verb == VERB_STATUS && request->slots > 0)
        return survey_begin(manager, client, request, now_ns);
    struct resource *resource =
        resource_take(&manager->resources, manager->rules, ++manager->queue_seed, request->resource,
                      request->resource_len);
    if (resource == NULL)
        return "operations";
    const char *limit = request->verb == VERB_LOCK
                            ? intake_lock(manager, client, request, resource, now_ns)
                            : start_round(manager, client, request, resource, now_ns);
    flight_note_idle(&manager->flights->idle_keys, &resource->key);
    return limit;
}

void requests_submit(struct lock_manager *manager, struct engine_client *client,
                     const struct request *request, int64_t now_ns)
{
    if (manager->draining) {
        refuse_request(manager, client, request, OUTCOME_SHUTDOWN, NULL);
        return;
    }
    const char *limit = accept_request(manager, client, request, now_ns);
    if (limit != NULL)
        refuse_request(manager, client, request, OUTCOME_LIMIT, limit);
}

/* --- clients that leave --- */

/* No client waits for the reply to this request any more. */
static void abandon_request(struct lock_manager *manager, struct pending_request *pending,
                            int64_t now_ns)
{
    struct flight *flight = pending->flight;
    struct resource *resource = pending_resource(pending);
    if (pending->survey != NULL) {
        survey_abandon(manager, pending);
        return;
    }
    if (resource == NULL && pending->awaits_start) {
        start_queue_leave(&manager->start_queue, pending);
        pending_close(manager, drop_held_back(manager, pending));
        return;
    }
    if (resource != NULL) {
        manager->stats->undone++;
        waits_leave(manager, pending);
    }
    if (flight != NULL)
        pending_leave_flight(pending);
    pending_close(manager, pending);
    if (flight == NULL) {
        waits_run(manager, resource, now_ns);
        return;
    }
    /* Releases continue. So do extensions: they are harmless, and the client has requested them. A
     * BREAK continues once its freeze was sent; otherwise the frozen keys would block all clients
     * until they expire. */
    if (flight->round.kind == ROUND_ACQUIRE || flight->round.kind == ROUND_STATUS)
        flights_cancel(manager->flights, flight, now_ns);
}

/* Abandon the requests of a client that leaves; locks_only: only its LOCKs. The newest comes first,
 * so those at the end of a queue leave before the first one. Otherwise the place of a LOCK that
 * leaves could go to the next one of the same client. */
static void abandon_requests(struct lock_manager *manager, struct engine_client *client,
                             bool locks_only, bool tell, int64_t now_ns)
{
    struct pending_request *kept = NULL; /* the last request that was not abandoned */
    struct pending_request *pending;
    for (;;) {
        pending = kept != NULL ? LIST_NEXT(kept, of_client) : LIST_FIRST(&client->pending_requests);
        if (pending == NULL)
            return;
        /* Only LOCKs are closed here, so this request stays in the list. */
        if (locks_only && pending->resource == NULL) {
            kept = pending;
            continue;
        }
        if (tell)
            manager->io->undone(manager->io->context, client, pending_tag(pending),
                                pending->tag_len);
        abandon_request(manager, pending, now_ns);
    }
}

/* The client has ended its connection cleanly: release its HOLDs. Those with LINGER are left out
 * unless by_quit. */
static void release_holds(struct lock_manager *manager, struct engine_client *client, bool by_quit,
                          int64_t now_ns)
{
    struct lock *next;
    for (struct lock *lock = LIST_FIRST(&client->holds); lock != NULL; lock = next) {
        struct resource *resource = lock->resource;
        char token[LIMIT_TOKEN];
        next = LIST_NEXT(lock, of_client);
        if (lock->lingers && !by_quit)
            continue;
        memcpy(token, lock->token, LIMIT_TOKEN);
        grants_forget(manager, lock);
        waits_release(manager, resource, token, NULL, true, now_ns);
    }
}

void requests_on_end(struct lock_manager *manager, struct engine_client *client,
                     enum engine_end how, int64_t now_ns)
{
    bool tell = how == ENGINE_ENDING || how == ENGINE_HALF_CLOSED;
    abandon_requests(manager, client, how != ENGINE_GONE, tell, now_ns);
    /* QUIT leaves no HOLD, and after RESET the client may acquire new ones. */
    if (how != ENGINE_QUIT)
        grants_stop_extending(manager, client);
    if (how == ENGINE_GONE)
        grants_abandon(manager, client);
    else if (how != ENGINE_ENDING)
        release_holds(manager, client, how == ENGINE_QUIT, now_ns);
}

/* --- shutdown --- */

/* Reply SHUTDOWN to the request of a round, and cancel the round. */
static void shut_down(struct lock_manager *manager, struct flight *flight, int64_t now_ns)
{
    const struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
    struct pending_request *pending = flight->pending;
    if (pending != NULL) {
        pending_leave_flight(pending);
        if (pending->resource != NULL)
            waits_leave(manager, pending);
        if (flight->breaking != NULL)
            manager_send_reply(manager, pending, &reply);
        else
            manager_reply(manager, pending, flight->round.kind, &reply);
    }
    flights_cancel(manager->flights, flight, now_ns);
}

void requests_abandon_all(struct lock_manager *manager, int64_t now_ns)
{
    const struct reply reply = {.outcome = OUTCOME_SHUTDOWN};
    struct pending_request *pending;
    struct flight *flight;
    /* LOCKs that wait have been answered: see waits_drain(). */
    while ((pending = start_queue_take(&manager->start_queue, now_ns)) != NULL)
        manager_reply(manager, drop_held_back(manager, pending), ROUND_STATUS, &reply);
    survey_abandon_all(manager);
    while ((flight = TAILQ_FIRST(&manager->flights->voting)) != NULL)
        shut_down(manager, flight, now_ns);
}
