/* Checks that no waiter sleeps while its lock is free. For each waiting daemon, master and
 * resource, this file records since when the master has not had the key. Time counts only while the
 * master is healthy and votes for the daemon. */
#include <string.h>

#include "tests/sim/sim.h"

#include "protocol/units.h"

#define SAMPLE_NS (20 * NS_PER_MS)

/* How long a message takes at most without faults, including jitter, a slow pass of the receiver's
 * loop and a late timer. */
#define HOP_NS (55 * NS_PER_MS)

/*
 * How long a waiter is allowed to sleep after its lock has become free on a quorum. In the worst
 * case these times add up:
 *
 *     node_timeout     a round that was refused is still in flight
 *     two hops         a key probe is still in flight and keeps the next poll from the master
 *     QUEUE_POLL_NS    the time until the poll after that
 *     two hops         that poll: a key probe and its reply
 *     one hop          the SET
 *
 * The pause after a refused round is at most backoff_max, which is less than QUEUE_POLL_NS.
 */
#define SLEEP_NS (SIM_NODE_TIMEOUT_MS * NS_PER_MS + QUEUE_POLL_NS + 5 * HOP_NS)

/* A master that fails over to older data and back loses keys without any report by tracking. The
 * daemon learns of the loss from the reply to its next heartbeat, at most a second later. */
#define UNREPORTED_LOSS_NS (NS_PER_S + SIM_NODE_TIMEOUT_MS * NS_PER_MS + 2 * HOP_NS)

void sleepers_clear(struct sim *sim)
{
    memset(sim->free_ns, 0, sizeof(sim->free_ns));
    sim->sampled_ns = 0;
}

void sleepers_on_set(struct sim *sim, unsigned master, unsigned resource)
{
    for (unsigned i = 0; i < SIM_DAEMONS; i++)
        sim->free_ns[i][resource][master] = 0;
}

/* Do bytes on this wire arrive late? Bytes that a fault has blocked delay all later bytes of the
 * same wire. */
static bool is_stalled(const struct sim *sim, unsigned wire)
{
    if (wire == SIM_WIRES)
        return false;
    const struct sim_wire *at = &sim->wires[wire];
    return at->to_server.last_ns > sim->now_ns + HOP_NS ||
           at->to_client.last_ns > sim->now_ns + HOP_NS;
}

/* Are the master and the path to it healthy, so that the daemon gets a reply to each command? */
static bool is_healthy(struct sim *sim, unsigned index, unsigned daemon)
{
    const struct sim_master *master = &sim->masters[index];
    return index != sim->repointed && !master->dead && !master->hung && !master->redis.paused &&
           master->redis.refusals[FAKE_SETTING] == NULL &&
           master->redis.refusals[FAKE_KEYS] == NULL && master->latency_ns[daemon] < NS_PER_MS &&
           sim->now_ns - master->data_loss_ns > UNREPORTED_LOSS_NS &&
           master->blocked_ns[daemon][0] <= sim->now_ns &&
           master->blocked_ns[daemon][1] <= sim->now_ns &&
           !is_stalled(sim, sim->daemons[daemon].wires[index][CHANNEL_COMMANDS]) &&
           !is_stalled(sim, sim->daemons[daemon].wires[index][CHANNEL_TRACKING]) &&
           master_refuses_vote(&sim->daemons[daemon].engine.flights.masters[index],
                               daemon_clock_ns(sim, daemon)) == REASON_NONE;
}

/* Waiters are allowed to sleep while their daemon is not working normally. With tight limits they
 * are always allowed to, since a key probe may have to wait for probes of other keys. */
static bool may_sleep(const struct sim_daemon *daemon)
{
    return !daemon->alive || daemon->paused || daemon->draining || bounds_are_in_force();
}

bool sleepers_have_quorum(struct sim *sim, unsigned daemon)
{
    unsigned healthy = 0;
    for (unsigned i = 0; i < sim->node_count; i++)
        healthy += is_healthy(sim, i, daemon);
    return healthy > sim->node_count / 2 && !fault_may(sim, FAULT_JITTER) &&
           !may_sleep(&sim->daemons[daemon]);
}

static void sample(struct sim *sim, unsigned daemon, const struct resource *resource,
                   unsigned number)
{
    unsigned slept = 0;
    /* A daemon that has tried a round meanwhile did not sleep, even if the round failed. */
    bool tried = sim->failures[daemon][number] != resource->queue.failures;
    sim->failures[daemon][number] = resource->queue.failures;
    for (unsigned i = 0; i < sim->node_count; i++) {
        int64_t *free_ns = &sim->free_ns[daemon][number][i];
        if (tried || !is_healthy(sim, i, daemon) ||
            fake_find(&sim->masters[i].redis, resource->key.bytes, resource->key.len,
                      master_wall_us(sim, i)) != NULL)
            *free_ns = 0;
        else if (*free_ns == 0)
            *free_ns = sim->now_ns;
        else
            slept += sim->now_ns - *free_ns > SLEEP_NS;
    }
    if (slept > sim->node_count / 2)
        checker_violation(sim, "daemon %u sleeps while r%u is free on %u masters", daemon, number,
                          slept);
}

/* How many slots the first LOCK with SLOTS and WAIT of this daemon may have; 0: there is no such
 * LOCK. If it may not have a slot, the LOCKs after it do not get that slot either. */
static unsigned slots_wanted(const struct sim *sim, unsigned daemon)
{
    const struct sim_request *first = NULL;
    for (unsigned i = 0; i < SIM_REQUESTS; i++) {
        const struct sim_request *request = &sim->requests[i];
        if (request->state == REQUEST_ARRIVED && request->daemon == daemon &&
            request->verb == VERB_LOCK && request->slots > 0 && request->wait_ms > 0 &&
            !sim->connections[request->connection].engine_client.disconnected &&
            (first == NULL || request->order < first->order))
            first = request;
    }
    return first != NULL ? first->slots : 0;
}

void sleepers_sample(struct sim *sim)
{
    if (sim->now_ns - sim->sampled_ns < SAMPLE_NS)
        return;
    sim->sampled_ns = sim->now_ns;
    for (unsigned i = 0; i < sim->daemon_count; i++) {
        const struct sim_daemon *daemon = &sim->daemons[i];
        bool waited_for[SIM_RESOURCES] = {false};
        const struct resource *resource;
        unsigned slots = sim->semaphores ? slots_wanted(sim, i) : 0;
        if (!may_sleep(daemon))
            TAILQ_FOREACH (resource, &daemon->engine.manager.resources.all, of_all) {
                unsigned number = sim_resource(sim, resource->name, resource->name_len);
                if (number == SIM_RESOURCES ||
                    (resource->waits == 0 && (number == 0 || number > slots)))
                    continue;
                waited_for[number] = true;
                sample(sim, i, resource, number);
            }
        for (unsigned number = 0; number < sim->resource_count; number++)
            if (!waited_for[number])
                memset(sim->free_ns[i][number], 0, sizeof(sim->free_ns[i][number]));
    }
}
