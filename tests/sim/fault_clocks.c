/* Faults: steps of the masters' clocks, and wrong wall clocks of daemons. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/sim/fault_parts.h"

static int64_t some_distance_ns(struct sim *sim)
{
    static const int64_t distances_ms[] = {3, 8, 15, 50, 200, 1000, 10000, 100000};
    return distances_ms[sim_below(sim, 8)] * NS_PER_MS;
}

static void step_forward(struct sim *sim, struct sim_fault_run *run, int64_t distance_ns)
{
    struct sim_master *master = &sim->masters[run->master];
    sim_note(sim, "FAULT the clock of %c steps by %.0f ms\n", 'a' + run->master,
             (double)distance_ns / 1e6);
    master->clock.shown_ns += distance_ns;
    master->ends_early_ns = sim->now_ns;
    foreign_give_up(sim);
    if (sim->foreign_doubt_ns < sim->now_ns + 2 * sim->max_ttl_ms * NS_PER_MS)
        sim->foreign_doubt_ns = sim->now_ns + 2 * sim->max_ttl_ms * NS_PER_MS;
    /* The margin of the validity covers a small step. If clocks run at different rates, a step may
     * be up to 80 ms larger and still be harmless: it only makes up for what a slow clock fell
     * behind between two samples. */
    int64_t unseen_ns = (SIM_MARGIN_MS + (fault_may(sim, FAULT_RATES) ? 80 : 0)) * NS_PER_MS;
    if (distance_ns > unseen_ns)
        checker_on_data_loss(sim, run->master);
}

static void step_back(struct sim *sim, struct sim_fault_run *run, int64_t distance_ns)
{
    sim_note(sim, "FAULT the clock of %c steps back by %.0f ms\n", 'a' + run->master,
             (double)distance_ns / 1e6);
    sim->masters[run->master].clock.shown_ns -= distance_ns;
}

static bool may_step(struct sim_master *master, enum sim_steps steps)
{
    if (master->steps == STEPS_UNDECIDED)
        master->steps = steps;
    return master->steps == steps;
}

static bool is_slow(const struct sim *sim, unsigned master)
{
    bool slow = false;
    for (unsigned i = 0; i < SIM_OWNERS; i++)
        slow = slow || sim->masters[master].latency_ns[i] >= 2 * NS_PER_MS;
    return slow;
}

/* Prefer a slow master, whose late replies partly hide the step. */
static struct sim_master *master_to_step(struct sim *sim, struct sim_fault_run *run)
{
    fault_some_master(sim, run);
    for (unsigned i = 0; i < sim->node_count && !is_slow(sim, run->master); i++)
        fault_some_master(sim, run);
    return &sim->masters[run->master];
}

bool fault_step_forward_begin(struct sim *sim, struct sim_fault_run *run)
{
    if (!may_step(master_to_step(sim, run), STEPS_FORWARD))
        return false;
    step_forward(sim, run, some_distance_ns(sim));
    return true;
}

/* In half of the cases a second step follows. */
void fault_step_forward_end(struct sim *sim, struct sim_fault_run *run)
{
    if (!sim->recovering && sim_below(sim, 2) == 0)
        step_forward(sim, run, some_distance_ns(sim));
}

static void step_all(struct sim *sim, struct sim_fault_run *run)
{
    for (run->master = 0; run->master < sim->node_count; run->master++)
        step_forward(sim, run, run->distance_ns);
}

/* All clocks step by a distance that the margin of the validity covers once but not twice, and
 * later step again. Between the steps a daemon starts on another host, to which the other daemons
 * attest that all clocks are steady. */
bool fault_step_twice_begin(struct sim *sim, struct sim_fault_run *run)
{
    for (unsigned i = 0; i < sim->node_count; i++)
        if (sim->masters[i].steps != STEPS_UNDECIDED)
            return false;
    for (unsigned i = 0; i < sim->node_count; i++)
        sim->masters[i].steps = STEPS_SMALL;
    run->begun_ns = sim->now_ns;
    run->distance_ns = sim_between(sim, 6500 * 1000, 7200 * 1000);
    step_all(sim, run);
    run->owner = sim_below(sim, sim->daemon_count);
    if (!sim->daemons[run->owner].alive || fault_needs_daemons(sim))
        return true;
    daemon_die(sim, run->owner, false);
    fault_start_elsewhere(sim, run->owner);
    return true;
}

/* After this time, a key that has lost lost_ns is safe again: daemons allow for so much drift of
 * 1000 ppm (clock_monitor.h), and validities cover that. */
static int64_t drift_covers_after_ns(const struct sim *sim, int64_t lost_ns)
{
    return (lost_ns - sim->drift.margin_ns) * 1000;
}

void fault_step_twice_end(struct sim *sim, struct sim_fault_run *run)
{
    if (sim->recovering)
        return;
    step_all(sim, run);
    /* A key that was set before the first step has lost more time than the margin covers, unless
     * the clocks fell behind meanwhile. So no master is fit to vote until drift covers the rest.
     * is_fit() takes a master for unfit for max_ttl after it has lost its data. */
    if (fault_may(sim, FAULT_RATES))
        return;
    int64_t unfit_until_ns = run->begun_ns + drift_covers_after_ns(sim, 2 * run->distance_ns);
    int64_t lost_ns = min(run->begun_ns, unfit_until_ns - sim->max_ttl_ms * NS_PER_MS);
    for (unsigned i = 0; i < sim->node_count; i++)
        sim->masters[i].data_loss_ns = max(sim->masters[i].data_loss_ns, lost_ns);
}

bool fault_step_back_begin(struct sim *sim, struct sim_fault_run *run)
{
    if (!may_step(fault_some_master(sim, run), STEPS_BACK))
        return false;
    step_back(sim, run, some_distance_ns(sim));
    return true;
}

/* The last step that daemons have announced on this master. */
static const struct fake_key *last_step(struct sim *sim, unsigned index)
{
    struct sim_master *master = &sim->masters[index];
    char key[FAKE_KEY];
    int len =
        snprintf(key, sizeof(key), "redlockd:step:%s", sim->daemons[0].engine.flights.guard.set_id);
    return fake_find(&master->redis, key, (size_t)len,
                     clock_at(&master->clock, sim->now_ns) / 1000);
}

static void step(struct sim *sim, struct sim_fault_run *run, int64_t distance_ns)
{
    if (distance_ns >= 0)
        step_forward(sim, run, distance_ns);
    else
        step_back(sim, run, -distance_ns);
}

/* A slow reply may hide a step smaller than this from one daemon, while another daemon sees it. */
enum { SEEN_MS = 150 };

bool fault_step_and_back_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->steps != STEPS_UNDECIDED)
        return false;
    const struct fake_key *announced = last_step(sim, run->master);
    snprintf(run->announced, sizeof(run->announced), "%.31s",
             announced != NULL ? announced->value : "");
    run->begun_ns = sim->now_ns;
    run->distance_ns = SEEN_MS * NS_PER_MS + some_distance_ns(sim);
    if (sim_below(sim, 2) == 0)
        run->distance_ns = -run->distance_ns;
    step(sim, run, run->distance_ns);
    master->steps = STEPS_AND_BACK;
    return true;
}

/* Undo the first step if a daemon has announced it and two heartbeats have passed. After a first
 * step forward, the clock sometimes steps back by more than the first step. Every daemon has
 * sampled the clock by then, or will read the announcement. Without an announcement no daemon could
 * know of the first step, so the clock does not step a second time. */
void fault_step_and_back_end(struct sim *sim, struct sim_fault_run *run)
{
    const struct fake_key *announced = last_step(sim, run->master);
    bool seen = announced != NULL && strcmp(announced->value, run->announced) != 0;
    bool further = run->distance_ns > 0 && sim_below(sim, 3) == 0;
    if (seen && !sim->masters[run->master].dead &&
        sim->now_ns - run->begun_ns > 2 * sim->daemons[0].engine.flights.guard.periods.heartbeat_ns)
        step(sim, run,
             -run->distance_ns - (further ? sim_between(sim, 0, 2 * run->distance_ns) : 0));
}

/* Set the wall clock of a daemon. The wall clocks of the daemons have to agree to within max_ttl,
 * less the length of a round and the drift of these clocks. So each may differ from the true time
 * by at most 40 % of max_ttl. */
bool fault_daemon_wall_begin(struct sim *sim, struct sim_fault_run *run)
{
    run->owner = sim_below(sim, sim->daemon_count);
    struct sim_daemon *daemon = &sim->daemons[run->owner];
    int64_t room_ns = sim->max_ttl_ms * NS_PER_MS * 8 / 10;
    int64_t true_wall_ns = INT64_C(1700000000) * NS_PER_S + sim->now_ns;
    daemon->wall_ahead_ns = true_wall_ns - daemon_clock_ns(sim, run->owner) +
                            sim_between(sim, 0, room_ns) - room_ns / 2;
    return true;
}
