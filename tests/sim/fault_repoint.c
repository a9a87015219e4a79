/* The fault `repoint`: a name leads to another server, and back. */
#include "protocol/units.h"
#include "tests/sim/fault_parts.h"

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

void fault_repoint(struct sim *sim)
{
    static struct fake_master before;
    struct sim_master *master = &sim->masters[sim->repointed];
    if (sim->recovering)
        return;
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
    int64_t again_ns =
        sim->now_ns + sim_between(sim, 20 * NS_PER_MS, 5 * sim->max_ttl_ms * NS_PER_MS);
    if (sim->unreached != SIM_MASTERS)
        cut_off(sim, again_ns);
    event_queue_add(&sim->event_queue, again_ns, EVENT_REPOINT, 0, 0);
}

void fault_repoint_end(struct sim *sim)
{
    if (sim->repointed == SIM_MASTERS)
        return;
    for (unsigned i = 0; i < sim->daemon_count; i++)
        net_cut_all(sim, i, sim->repointed, true);
    /* A connection that its daemon does not know of yet is not cut, so the server closes it. */
    struct fake_master *other = &sim->masters[sim->repointed].other;
    for (unsigned i = 0; i < other->session_end; i++)
        if (other->sessions[i].id != 0 && !sim->wires[other->sessions[i].wire].connected)
            other->sessions[i].killed = true;
    net_send_output(sim, sim->repointed);
    checker_on_old_data(sim, &sim->masters[sim->repointed].redis.data);
}
