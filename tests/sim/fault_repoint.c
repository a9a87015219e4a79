/* The fault `repoint`: a name leads to another server, and back. With `lost-lease`, the name leads
 * to the other server once, and later another master loses its leases. */
#include "protocol/units.h"
#include "tests/sim/fault_parts.h"

/* After this time every daemon that lost its connection has noticed that. */
#define NOTICED_NS (300 * NS_PER_MS)
#define RETRY_NS   (50 * NS_PER_MS)

/* Any number: it makes the draw for repointed names differ from the others. */
#define REPOINT_SEED UINT64_C(0x71c2e85b3)

/*
 * Some schedules repoint a name. No guard can see this if two daemons reach no other master in
 * common, or if the other masters lose the leases. So such a schedule has one name that is
 * repointed, and all calm faults, but no others. In half of these schedules one daemon does not
 * reach one of the other masters, and no daemon forgets what the masters have reported. Drawn
 * apart, so that the fault changes no other schedule.
 */
void fault_plan_repointing(struct sim *sim, uint64_t allowed, uint64_t calm, uint64_t forgets)
{
    struct prng own = {.state = sim->seed ^ REPOINT_SEED};
    bool repoints =
        fault_may(sim, FAULT_REPOINT) && ((sim->faults & ~calm) == 0 || prng_below(&own, 8) == 0);
    if (!repoints) {
        sim->faults &= ~(UINT64_C(1) << FAULT_REPOINT | UINT64_C(1) << FAULT_LOST_LEASE);
        return;
    }
    sim->faults = allowed & calm;
    if (sim->daemon_count == 1)
        sim->daemon_count = 2;
    /* A server that was not known under the name gets its vote after max_ttl. */
    sim->attack_ns += 2 * sim->max_ttl_ms * NS_PER_MS;
    sim->repointed = prng_below(&own, sim->node_count);
    bool reaches_all = prng_below(&own, 2) == 0;
    if (reaches_all || prng_below(&own, 2) == 0)
        sim->faults &= ~(UINT64_C(1) << FAULT_LOST_LEASE);
    if (reaches_all)
        return;
    sim->unreached = (sim->repointed + 1 + prng_below(&own, sim->node_count - 1)) % sim->node_count;
    sim->faults &= ~forgets;
    sim->attack_ns += 4 * sim->max_ttl_ms * NS_PER_MS;
}

/* Each other daemon may lose its way to the repointed master, for longer than a report of a
 * conflict is valid. Daemon 0 does not reach the master sim->unreached until the name is repointed
 * again. */
static void cut_off(struct sim *sim, int64_t again_ns)
{
    fault_block(sim, sim->unreached, 0, 3, again_ns);
    for (unsigned i = 1; i < sim->daemon_count; i++)
        if (sim_below(sim, 2) == 0)
            fault_block(sim, sim->repointed, i, 3,
                        sim->now_ns + sim_between(sim, 0, 3 * sim->max_ttl_ms * NS_PER_MS));
}

/* Has the master answered every daemon that reaches it about the name? If not, no guard can see a
 * conflict once the master has lost its leases. */
static bool has_told_all(const struct sim *sim, unsigned index)
{
    for (unsigned i = 0; i < sim->daemon_count; i++) {
        const struct guard_node *node = &sim->daemons[i].engine.flights.guard.nodes[sim->repointed];
        uint32_t told = node->lease.held_on | node->lease.conflicts;
        if (sim->masters[index].blocked_ns[i][0] <= sim->now_ns &&
            (!identity_is_sampled(&node->identity) || node->lease.wanted || !(told >> index & 1)))
            return false;
    }
    return true;
}

static void lose_leases(struct sim *sim)
{
    unsigned index = (sim->repointed + 1 + sim_below(sim, sim->node_count - 1)) % sim->node_count;
    if (!has_told_all(sim, index)) {
        event_queue_add(&sim->event_queue, sim->now_ns + RETRY_NS, EVENT_REPOINT, 0, 0);
        return;
    }
    sim_note(sim, "FAULT %c loses its leases\n", 'a' + index);
    fake_flush(&sim->masters[index].redis);
    checker_on_data_loss(sim, index);
    net_send_output(sim, index);
}

void fault_repoint(struct sim *sim)
{
    static struct fake_master before;
    struct sim_master *master = &sim->masters[sim->repointed];
    bool once = fault_may(sim, FAULT_LOST_LEASE);
    if (sim->recovering)
        return;
    if (once && master->server != 0) {
        lose_leases(sim);
        return;
    }
    sim_note(sim, "FAULT the name of %c leads to its server %u\n", 'a' + sim->repointed,
             !master->server);
    before = master->redis;
    master->redis = master->other;
    master->other = before;
    master->server = !master->server;
    /* A daemon that is still connected to the server of before keeps its connection, or loses it
     * and follows the name. */
    for (unsigned i = 0; i < sim->daemon_count; i++)
        if (sim_below(sim, 2) == 0)
            net_cut_all(sim, i, sim->repointed, true);
    int64_t again_ns = sim->now_ns + sim_between(sim, once ? NOTICED_NS : 20 * NS_PER_MS,
                                                 5 * sim->max_ttl_ms * NS_PER_MS);
    if (once)
        fault_block(sim, sim->unreached, 0, 3, sim->now_ns + sim->attack_ns);
    else if (sim->unreached != SIM_MASTERS)
        cut_off(sim, again_ns);
    event_queue_add(&sim->event_queue, again_ns, EVENT_REPOINT, 0, 0);
}

/* The server closes connections that no daemon uses. */
static void close_unused(const struct sim *sim, struct fake_master *server)
{
    for (unsigned i = 0; i < server->session_end; i++) {
        const struct sim_wire *wire = &sim->wires[server->sessions[i].wire];
        if (server->sessions[i].id != 0 && !(wire->connected && wire->open_here))
            server->sessions[i].killed = true;
    }
}

void fault_repoint_end(struct sim *sim)
{
    if (sim->repointed == SIM_MASTERS)
        return;
    for (unsigned i = 0; i < sim->daemon_count; i++)
        net_cut_all(sim, i, sim->repointed, true);
    /* The servers close the connections that their daemons do not know of yet, which are not cut.
     * They also close those that daemons have left: such a daemon may have followed the name to the
     * other server since, and could not tell this one to close it. */
    struct sim_master *master = &sim->masters[sim->repointed];
    close_unused(sim, &master->redis);
    close_unused(sim, &master->other);
    net_send_output(sim, sim->repointed);
    checker_on_old_data(sim, &sim->masters[sim->repointed].redis.data);
}
