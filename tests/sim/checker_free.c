/*
 * HELD as a reply to a LOCK or a STATUS: was the lock free all the time, and did no round try to
 * get it?
 */
#include <string.h>

#include "protocol/units.h"
#include "tests/sim/sim.h"

/* How long after a grant the daemon may take the lock for held without asking the masters: while it
 * sends no key probes, and until the next one is answered. */
#define TRUSTED_NS (QUEUE_QUIET_NS + SIM_ANSWER_MS * NS_PER_MS)

void checker_touch(struct sim *sim, unsigned resource)
{
    for (unsigned i = 0; i < SIM_REQUESTS; i++)
        sim->requests[i].untouched &= ~(1U << resource);
}

static bool is_on_a_master(struct sim *sim, const struct sim_name *name)
{
    for (unsigned i = 0; i < sim->node_count; i++)
        if (fake_find(&sim->masters[i].redis, name->text, name->len, master_wall_us(sim, i)) !=
            NULL)
            return true;
    return false;
}

/* The slots that this LOCK may have and that are free, as all masters and its daemon see them; 0 if
 * a LOCK with WAIT waits for a slot, which those without WAIT do not overtake. */
static uint32_t free_slots(struct sim *sim, const struct sim_request *request)
{
    uint32_t slots = 0;
    const struct resources *resources = &sim->daemons[request->daemon].engine.manager.resources;
    const struct resource *semaphore = resource_find(resources, "r", 1);
    if (semaphore != NULL && semaphore->waits > 0)
        return 0;
    for (unsigned number = 1; number <= request->slots; number++) {
        const struct sim_name name = sim_name(sim, number);
        if (!is_on_a_master(sim, &name) && resource_find(resources, name.text, name.len) == NULL)
            slots |= 1U << number;
    }
    return slots;
}

/* No try begins later than node_timeout after the arrival of the LOCK. */
static bool tries_have_ended(const struct sim *sim, const struct sim_request *request)
{
    return daemon_clock_ns(sim, request->daemon) - request->arrived_ns >=
           SIM_NODE_TIMEOUT_MS * NS_PER_MS;
}

static bool was_granted_lately(const struct sim *sim, const struct sim_request *request)
{
    for (unsigned i = sim->token_count; i > 0; i--) {
        const struct sim_token *token = &sim->tokens[i - 1];
        if (token->granted && token->daemon == request->daemon &&
            token->resource == request->resource)
            return sim->now_ns - token->granted_ns < TRUSTED_NS;
    }
    return false;
}

/* Must the daemon see that this lock is free? No other LOCK comes before this one, the queue does
 * not pause, and a quorum answers. */
static bool must_see(struct sim *sim, const struct sim_request *request)
{
    const struct sim_name name = sim_name(sim, request->resource);
    const struct resource *resource =
        resource_find(&sim->daemons[request->daemon].engine.manager.resources, name.text, name.len);
    return sim->repointed == SIM_MASTERS && sleepers_have_quorum(sim, request->daemon) &&
           !was_granted_lately(sim, request) &&
           (resource == NULL ||
            (resource->queue.length == 0 && resource->queue.phase != QUEUE_PAUSING)) &&
           !is_on_a_master(sim, &name);
}

/* A wait may be too short for the daemon to ask the masters. */
static bool is_too_short(const struct sim_request *request)
{
    return request->wait_ms > 0 && request->wait_ms < SIM_ANSWER_MS;
}

void checker_on_lock(struct sim *sim, struct sim_request *request)
{
    if (request->slots == 0 && !is_too_short(request) && must_see(sim, request))
        request->untouched = 1U << request->resource;
    else if (request->slots > 0 && request->verb == VERB_LOCK && request->wait_ms == 0)
        request->untouched = free_slots(sim, request);
}

/* The reply has no hint if the votes were split. */
void checker_on_held(struct sim *sim, const struct sim_request *request, const char *line)
{
    if (request->untouched == 0)
        return;
    if (request->slots == 0 && strcmp(line, "HELD -1") != 0 &&
        sim->daemons[request->daemon].paused_at_ns < request->sent_ns &&
        sleepers_have_quorum(sim, request->daemon))
        checker_violation(sim, "client %u got HELD for r%u, which is free", request->client,
                          request->resource);
    if (request->slots > 0 && !tries_have_ended(sim, request) &&
        (request->untouched & free_slots(sim, request)) != 0)
        checker_violation(sim, "client %u got no slot, but a free one was never tried",
                          request->client);
}
