#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/units.h"

#include "tests/sim/fault_parts.h"

/* --- faults of masters --- */

struct sim_master *fault_some_master(struct sim *sim, struct sim_fault_run *run)
{
    run->master = sim_below(sim, sim->node_count);
    return &sim->masters[run->master];
}

/* May the master be killed? A durable master is not killed while it does not save its data or may
 * evict keys, nor after it has evicted keys or has been a replica, since no guard can see this
 * after a restart. */
static bool may_be_killed(const struct sim_master *master)
{
    const struct fake_master *redis = &master->redis;
    return !master->dead && (!master->durable || (redis->fsync != NULL && !redis->may_evict &&
                                                  redis->evicted == 0 && !redis->was_replica));
}

static void kill_master(struct sim *sim, unsigned index)
{
    struct sim_master *master = &sim->masters[index];
    master->dead = true;
    master->hung = false;
    net_kill_master(sim, index);
    if (master->redis.fsync == NULL)
        checker_on_data_loss(sim, index);
}

static void start_master(struct sim *sim, unsigned index, const struct fake_data *data)
{
    struct sim_master *master = &sim->masters[index];
    unsigned saved = master->redis.fsync != NULL ? master->redis.data.count : 0;
    sim->ids += 2;
    fake_start(&master->redis, sim->ids);
    master->redis.data.count = saved;
    if (data != NULL)
        memcpy(&master->redis.data, data, sizeof(*data));
    master->dead = false;
}

static bool restart_begin(struct sim *sim, struct sim_fault_run *run)
{
    if (!may_be_killed(fault_some_master(sim, run)))
        return false;
    sim_note(sim, "FAULT %c is killed\n", 'a' + run->master);
    kill_master(sim, run->master);
    return true;
}

static void restart_end(struct sim *sim, struct sim_fault_run *run)
{
    sim_note(sim, "FAULT %c starts again, %s\n", 'a' + run->master,
             sim->masters[run->master].redis.fsync != NULL ? "with its data" : "empty");
    start_master(sim, run->master, NULL);
}

/* Copy the data of the master now, for snapshot_end(), failback_end() or rewind_end().
 * snapshot_end() kills the master and starts it again with the copied data. It leaves a durable
 * master alone, since the daemons trust that such a master always starts with its last data. */
static bool snapshot_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->redis.refusals[FAKE_LOADING] != NULL)
        return false;
    memcpy(&master->snapshot, &master->redis.data, sizeof(master->snapshot));
    return true;
}

static void snapshot_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = &sim->masters[run->master];
    if (master->dead || master->durable)
        return;
    sim_note(sim, "FAULT %c is killed and starts with older data\n", 'a' + run->master);
    kill_master(sim, run->master);
    start_master(sim, run->master, &master->snapshot);
    checker_on_old_data(sim, &master->snapshot);
}

static bool loading_begin(struct sim *sim, struct sim_fault_run *run)
{
    if (!may_be_killed(fault_some_master(sim, run)))
        return false;
    sim_note(sim, "FAULT %c is killed and starts again, loading\n", 'a' + run->master);
    kill_master(sim, run->master);
    start_master(sim, run->master, NULL);
    sim->masters[run->master].redis.refusals[FAKE_LOADING] =
        "LOADING Redis is loading the dataset in memory";
    return true;
}

static void loading_end(struct sim *sim, struct sim_fault_run *run)
{
    sim->masters[run->master].redis.refusals[FAKE_LOADING] = NULL;
}

static bool flush_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->hung)
        return false;
    sim_note(sim, "FAULT %c is flushed\n", 'a' + run->master);
    fake_flush(&master->redis);
    checker_on_data_loss(sim, run->master);
    net_send_output(sim, run->master);
    return true;
}

/* Another server with older data takes over, and the master gets the role back with that data. The
 * master's process stays the same, and even its connections survive. */
static void failback_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = &sim->masters[run->master];
    if (master->dead)
        return;
    sim_note(sim, "FAULT %c fails over to older data, and back\n", 'a' + run->master);
    memcpy(&master->redis.data, &master->snapshot, sizeof(master->snapshot));
    sim->ids += 2;
    fake_new_replid(&master->redis, sim->ids);
    checker_on_data_loss(sim, run->master);
    checker_on_old_data(sim, &master->snapshot);
}

/* The value that the key with this name, or the first one with this beginning, has in the snapshot
 * of the master; "" without one. */
static const char *snapshot_value(const struct sim *sim, unsigned index, const char *name)
{
    const struct fake_data *data = &sim->masters[index].snapshot;
    for (unsigned i = 0; i < data->count; i++)
        if (strncmp(data->keys[i].name, name, strlen(name)) == 0)
            return data->keys[i].value;
    return "";
}

/* Are the first beats (protocol/heartbeat.lua) later than the second ones? */
static bool is_later(const char *seen, const char *beats)
{
    const char *number = strrchr(beats, '.');
    size_t head_len = number != NULL ? (size_t)(number - beats) + 1 : 0;
    return number != NULL && strncmp(seen, beats, head_len) == 0 &&
           strtoll(seen + head_len, NULL, 10) > strtoll(number + 1, NULL, 10);
}

/* Does every daemon know the record in the snapshot, and later beats? */
static bool all_have_seen_more(const struct sim *sim, unsigned index)
{
    const char *record = snapshot_value(sim, index, RECORD_KEY);
    const char *beats = snapshot_value(sim, index, "redlockd:beats:");
    for (unsigned i = 0; i < sim->daemon_count; i++) {
        const struct sim_daemon *daemon = &sim->daemons[i];
        const struct identity *seen = &daemon->engine.flights.guard.nodes[index].identity;
        if (!daemon->alive || daemon->draining || strcmp(seen->adopted_text.text, record) != 0 ||
            !is_later(seen->beats, beats))
            return false;
    }
    return true;
}

/* The machine of the master is reset to a snapshot: the process is the same, and all connections
 * are lost. A daemon that starts later cannot see this. So all daemons live until one of them has
 * written a new record (fault_needs_daemons()). */
static void rewind_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = &sim->masters[run->master];
    if (master->dead || sim->recovering || !all_have_seen_more(sim, run->master))
        return;
    sim_note(sim, "FAULT %c is reset to a snapshot of itself\n", 'a' + run->master);
    net_kill_master(sim, run->master);
    memcpy(&master->redis.data, &master->snapshot, sizeof(master->snapshot));
    master->rewound = true;
    checker_on_data_loss(sim, run->master);
    checker_on_old_data(sim, &master->snapshot);
}

bool fault_needs_daemons(const struct sim *sim)
{
    bool needs = false;
    for (unsigned i = 0; i < sim->node_count; i++)
        needs = needs || sim->masters[i].rewound;
    return needs;
}

static bool replica_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->redis.replica)
        return false;
    sim_note(sim, "FAULT %c becomes a replica\n", 'a' + run->master);
    fake_flush(&master->redis);
    sim->ids += 2;
    fake_new_replid(&master->redis, sim->ids);
    master->redis.replica = true;
    checker_on_data_loss(sim, run->master);
    net_send_output(sim, run->master);
    return true;
}

static void replica_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = &sim->masters[run->master];
    sim_note(sim, "FAULT %c is a master again\n", 'a' + run->master);
    master->redis.replica = false;
    sim->ids += 2;
    fake_new_replid(&master->redis, sim->ids);
    checker_on_data_loss(sim, run->master);
}

static bool evict_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->redis.may_evict)
        return false;
    sim_note(sim, "FAULT %c may evict\n", 'a' + run->master);
    master->redis.may_evict = true;
    return true;
}

static void evict_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = &sim->masters[run->master];
    /* A daemon that has just started cannot see an eviction before its first sample. At the end of
     * all faults daemons start, so nothing is evicted then. */
    unsigned evictions = master->dead || sim->recovering ? 0 : 1 + sim_below(sim, 6);
    sim_note(sim, "FAULT %c evicts %u keys\n", 'a' + run->master, evictions);
    for (unsigned i = 0; i < evictions; i++)
        if (fake_evict(&master->redis, sim_below(sim, 1000)))
            checker_on_data_loss(sim, run->master);
    net_send_output(sim, run->master);
    master->redis.may_evict = false;
}

/* A durable master loses its durable settings for a while. A restart could lose the data written
 * meanwhile. */
static bool unsaved_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->redis.fsync == NULL)
        return false;
    sim_note(sim, "FAULT %c does not save\n", 'a' + run->master);
    master->redis.fsync = NULL;
    return true;
}

static void unsaved_end(struct sim *sim, struct sim_fault_run *run)
{
    sim_note(sim, "FAULT %c saves again\n", 'a' + run->master);
    sim->masters[run->master].redis.fsync = "always";
}

static bool hang_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->hung)
        return false;
    sim_note(sim, "FAULT %c hangs\n", 'a' + run->master);
    master->hung = true;
    return true;
}

static void hang_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = &sim->masters[run->master];
    if (!master->hung)
        return;
    sim_note(sim, "FAULT %c continues\n", 'a' + run->master);
    master->hung = false;
    net_serve_all(sim, run->master);
}

/* As by CLIENT PAUSE WRITE: the greeting is answered, but no heartbeat. */
static bool pause_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->redis.paused)
        return false;
    sim_note(sim, "FAULT %c pauses writes\n", 'a' + run->master);
    master->redis.paused = true;
    return true;
}

static void pause_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = &sim->masters[run->master];
    if (!master->redis.paused)
        return;
    sim_note(sim, "FAULT %c takes writes again\n", 'a' + run->master);
    master->redis.paused = false;
    net_serve_all(sim, run->master);
}

static bool errors_begin(struct sim *sim, struct sim_fault_run *run)
{
    static const char *const errors[] = {
        "OOM command not allowed when used memory > 'max",
        "MISCONF Redis is configured to save RDB",
        "READONLY You can't write against a read only",
        "BUSY Redis is busy running a script.",
        "NOREPLICAS Not enough good replicas to write.",
        "NOPERM this user has no permissions",
        "ERR an error unknown to the daemon",
    };
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->redis.refusals[FAKE_KEYS] != NULL)
        return false;
    master->redis.refusals[FAKE_KEYS] = errors[sim_below(sim, 7)];
    sim_note(sim, "FAULT %c replies %s\n", 'a' + run->master, master->redis.refusals[FAKE_KEYS]);
    return true;
}

static void errors_end(struct sim *sim, struct sim_fault_run *run)
{
    sim->masters[run->master].redis.refusals[FAKE_KEYS] = NULL;
}

static bool full_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    if (master->dead || master->redis.refusals[FAKE_SETTING] != NULL)
        return false;
    sim_note(sim, "FAULT %c is full\n", 'a' + run->master);
    master->redis.refusals[FAKE_SETTING] =
        "OOM command not allowed when used memory > 'maxmemory'.";
    return true;
}

static void full_end(struct sim *sim, struct sim_fault_run *run)
{
    sim_note(sim, "FAULT %c has room again\n", 'a' + run->master);
    sim->masters[run->master].redis.refusals[FAKE_SETTING] = NULL;
}

static bool scripts_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    sim_note(sim, "FAULT %c loses its scripts\n", 'a' + run->master);
    fake_flush_scripts(&master->redis);
    master->redis.scripts_flushed = sim_below(sim, 2) == 0;
    return true;
}

static void scripts_end(struct sim *sim, struct sim_fault_run *run)
{
    sim->masters[run->master].redis.scripts_flushed = false;
}

/* The master refuses a class of commands for a while. The column `refusal` of the table of faults
 * names the class. */
static bool refusal_begin(struct sim *sim, struct sim_fault_run *run);
static void refusal_end(struct sim *sim, struct sim_fault_run *run);

/* --- the network --- */

static bool slow_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_master *master = fault_some_master(sim, run);
    int64_t latency_ns = (2 + sim_below(sim, 60)) * NS_PER_MS;
    run->owner = sim_below(sim, SIM_OWNERS);
    sim_note(sim, "FAULT %c is slow for %u: %.0f ms\n", 'a' + run->master, run->owner,
             (double)latency_ns / 1e6);
    master->latency_ns[run->owner] = latency_ns;
    return true;
}

static void slow_end(struct sim *sim, struct sim_fault_run *run)
{
    sim->masters[run->master].latency_ns[run->owner] = 20000 + sim_below(sim, 500000);
}

static bool cut_begin(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_wire *wire;
    unsigned first = sim_below(sim, 64);
    for (unsigned i = 0; i < 64; i++) {
        wire = &sim->wires[(first + i) % 64];
        if (wire->used && wire->open_here && wire->connected)
            break;
    }
    if (!wire->used || !wire->open_here || !wire->connected)
        return false;
    run->master = wire->master;
    sim_note(sim, "FAULT %s connection of %u to %c is cut\n",
             wire->channel == CHANNEL_COMMANDS ? "the" : "the tracking", wire->owner,
             'a' + wire->master);
    net_cut(sim, (unsigned)(wire - sim->wires));
    return true;
}

void fault_block(struct sim *sim, unsigned master, unsigned owner, unsigned directions,
                 int64_t until_ns)
{
    for (unsigned direction = 0; direction < 2; direction++)
        if (directions & 1U << direction)
            sim->masters[master].blocked_ns[owner][direction] = until_ns;
}

static bool clog_begin(struct sim *sim, struct sim_fault_run *run)
{
    int64_t until_ns = sim->now_ns + sim_between(sim, 5 * NS_PER_MS, 400 * NS_PER_MS);
    fault_some_master(sim, run);
    run->owner = sim_below(sim, SIM_OWNERS);
    unsigned directions = 1 + sim_below(sim, 3);
    sim_note(sim, "FAULT %c and %u are clogged (%u) until %.3f\n", 'a' + run->master, run->owner,
             directions, (double)until_ns / 1e9);
    fault_block(sim, run->master, run->owner, directions, until_ns);
    return true;
}

static bool partition_begin(struct sim *sim, struct sim_fault_run *run)
{
    int64_t until_ns = sim->now_ns + sim_between(sim, 50 * NS_PER_MS, 4 * NS_PER_S);
    unsigned directions = 1 + sim_below(sim, 3);
    run->owner = sim_below(sim, SIM_OWNERS);
    unsigned cut_off = 0;
    for (unsigned i = 0; i < sim->node_count; i++)
        if (sim_below(sim, 2) == 0) {
            cut_off++;
            fault_block(sim, i, run->owner, directions, until_ns);
        }
    sim_note(sim, "FAULT %u is cut off from %u masters (%u) until %.3f\n", run->owner, cut_off,
             directions, (double)until_ns / 1e9);
    return cut_off > 0;
}

/* --- daemons --- */

static bool daemon_kill_begin(struct sim *sim, struct sim_fault_run *run)
{
    run->owner = sim_below(sim, sim->daemon_count);
    if (!sim->daemons[run->owner].alive || fault_needs_daemons(sim))
        return false;
    daemon_die(sim, run->owner, false);
    return true;
}

/* Start on another host, that is with another clock. */
void fault_start_elsewhere(struct sim *sim, unsigned index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    daemon->host += SIM_DAEMONS;
    int64_t ahead_ns = sim_between(sim, 0, 1000 * NS_PER_S);
    daemon->clock.shown_ns += ahead_ns;
    daemon->wall_ahead_ns -= ahead_ns;
    sim_note(sim, "FAULT daemon %u starts on host %u\n", index, daemon->host);
    daemon_start(sim, index, false);
}

static void daemon_kill_end(struct sim *sim, struct sim_fault_run *run)
{
    struct sim_daemon *daemon = &sim->daemons[run->owner];
    if (daemon->alive && !daemon->draining)
        return;
    if (daemon->alive)
        daemon_die(sim, run->owner, true);
    if (sim_below(sim, 2) == 0) {
        fault_start_elsewhere(sim, run->owner);
        return;
    }
    sim_note(sim, "FAULT daemon %u starts again\n", run->owner);
    daemon_start(sim, run->owner, false);
}

static bool daemon_end_begin(struct sim *sim, struct sim_fault_run *run)
{
    run->owner = sim_below(sim, sim->daemon_count);
    struct sim_daemon *daemon = &sim->daemons[run->owner];
    if (!daemon->alive || daemon->paused || daemon->draining || fault_needs_daemons(sim))
        return false;
    daemon_drain(sim, run->owner);
    return true;
}

static bool daemon_pause_begin(struct sim *sim, struct sim_fault_run *run)
{
    run->owner = sim_below(sim, sim->daemon_count);
    struct sim_daemon *daemon = &sim->daemons[run->owner];
    if (!daemon->alive || daemon->paused)
        return false;
    sim_note(sim, "FAULT daemon %u stops\n", run->owner);
    daemon_pause(sim, run->owner);
    return true;
}

static void daemon_pause_end(struct sim *sim, struct sim_fault_run *run)
{
    if (!sim->daemons[run->owner].alive || !sim->daemons[run->owner].paused)
        return;
    sim_note(sim, "FAULT daemon %u continues\n", run->owner);
    daemon_resume(sim, run->owner);
}

/* The daemon reads a changed configuration. */
static bool reload_begin(struct sim *sim, struct sim_fault_run *run)
{
    run->owner = sim_below(sim, sim->daemon_count);
    if (!sim->daemons[run->owner].alive || sim->daemons[run->owner].paused)
        return false;
    sim_note(sim, "FAULT daemon %u reloads\n", run->owner);
    daemon_reload(sim, run->owner);
    return true;
}

/* --- the table of faults --- */

static const struct {
    const char *name;
    bool (*begin)(struct sim *, struct sim_fault_run *);
    void (*end)(struct sim *, struct sim_fault_run *); /* NULL: the fault has no duration */
    int64_t least_ms;                                  /* range of the duration */
    int64_t most_ms;
    unsigned refusal;  /* for refusal_begin(): the refused class of commands */
    const char *error; /* for refusal_begin(): the error with which the master refuses them */
    bool calm;         /* may happen in a schedule in which a name is repointed */
    /* Makes a daemon forget what masters have reported, or miss it. No guard can see that a name is
     * repointed if such a daemon asks the masters that it has in common with another one later than
     * the others. */
    bool forgets;
} faults[] = {
    [FAULT_CLIENTS] = {"clients", NULL, NULL, 0, 0, .calm = true},
    [FAULT_BREAKS] = {"breaks", NULL, NULL, 0, 0, .calm = true},
    [FAULT_FOREIGN] = {"foreign", NULL, NULL, 0, 0},
    [FAULT_RATES] = {"rates", NULL, NULL, 0, 0, .calm = true},
    [FAULT_JITTER] = {"jitter", NULL, NULL, 0, 0, .calm = true},
    [FAULT_REPOINT] = {"repoint", NULL, NULL, 0, 0, .calm = true},
    [FAULT_LOST_LEASE] = {"lost-lease", NULL, NULL, 0, 0, .calm = true},
    {"restart", restart_begin, restart_end, 1, 1500},
    {"snapshot", snapshot_begin, snapshot_end, 10, 3000},
    {"loading", loading_begin, loading_end, 1, 1500},
    {"flush", flush_begin, NULL, 0, 0},
    {"failback", snapshot_begin, failback_end, 10, 3000},
    {"rewind", snapshot_begin, rewind_end, 10, 4000},
    {"replica", replica_begin, replica_end, 10, 2000},
    {"evict", evict_begin, evict_end, 2500, 4000},
    {"unsaved", unsaved_begin, unsaved_end, 5, 3000},
    {"hang", hang_begin, hang_end, 5, 2000},
    {"pause", pause_begin, pause_end, 5, 5000},
    {"step-twice", fault_step_twice_begin, fault_step_twice_end, 300, 2500},
    {"step-forward", fault_step_forward_begin, fault_step_forward_end, 1, 200},
    {"step-back", fault_step_back_begin, NULL, 0, 0},
    {"step-and-back", fault_step_and_back_begin, fault_step_and_back_end, 10, 4000},
    {"errors", errors_begin, errors_end, 5, 2000},
    {"full", full_begin, full_end, 5, 2000},
    {"scripts", scripts_begin, scripts_end, 1, 1000, .calm = true},
    {"untracked", refusal_begin, refusal_end, 10, 3000, FAKE_TRACKING,
     "ERR Unknown subcommand or wrong number of arguments for 'TRACKING'"},
    {"unbatched", refusal_begin, refusal_end, 10, 3000, REDIS_SCRIPT_RELEASES,
     "ERR The user executing the script can't run this command or subcommand"},
    {"denied", refusal_begin, refusal_end, 10, 3000, FAKE_NATIVE,
     "NOPERM User redlockd has no permissions to run this command"},
    {"unfreezable", refusal_begin, refusal_end, 10, 3000, REDIS_SCRIPT_FREEZE,
     "BUSY Redis is busy running a script."},
    {"undeletable", refusal_begin, refusal_end, 10, 3000, FAKE_DELETING,
     "NOPERM User redlockd has no permissions to run this command"},
    {"slow", slow_begin, slow_end, 10, 2000},
    {"cut", cut_begin, NULL, 0, 0},
    {"clog", clog_begin, NULL, 0, 0},
    {"partition", partition_begin, NULL, 0, 0},
    {"daemon-kill", daemon_kill_begin, daemon_kill_end, 1, 2000, .calm = true, .forgets = true},
    {"daemon-end", daemon_end_begin, daemon_kill_end, 2100, 4000, .calm = true, .forgets = true},
    {"daemon-stop", daemon_pause_begin, daemon_pause_end, 5, 5000, .calm = true, .forgets = true},
    {"daemon-wall", fault_daemon_wall_begin, NULL, 0, 0, .calm = true},
    {"reload", reload_begin, NULL, 0, 0, .calm = true},
    {"leftover", foreign_leave_keys, foreign_remove_key, 10, 3000},
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

static bool refusal_begin(struct sim *sim, struct sim_fault_run *run)
{
    fault_some_master(sim, run)->redis.refusals[faults[run->kind].refusal] =
        faults[run->kind].error;
    return true;
}

static void refusal_end(struct sim *sim, struct sim_fault_run *run)
{
    sim->masters[run->master].redis.refusals[faults[run->kind].refusal] = NULL;
}

const char *fault_name(unsigned fault)
{
    return fault < FAULTS ? faults[fault].name : NULL;
}

uint64_t fault_all(void)
{
    return (UINT64_C(1) << FAULTS) - 1;
}

bool fault_may(const struct sim *sim, unsigned fault)
{
    return sim->faults & UINT64_C(1) << fault;
}

/* Each run allows only some faults, because a rare combination is more frequent if fewer other
 * faults interfere. */
void fault_plan(struct sim *sim)
{
    static const unsigned shares[] = {1, 2, 4, 8};
    unsigned share = shares[sim_below(sim, 4)];
    uint64_t allowed = sim->faults;
    uint64_t calm = 0, forgets = 0;
    for (unsigned i = 0; i < FAULTS; i++) {
        calm |= (uint64_t)faults[i].calm << i;
        forgets |= (uint64_t)faults[i].forgets << i;
        if (i != FAULT_REPOINT && i != FAULT_LOST_LEASE && sim_below(sim, share) != 0)
            sim->faults &= ~(UINT64_C(1) << i);
    }
    fault_plan_repointing(sim, allowed, calm, forgets);
    for (unsigned i = 0; i < SIM_ACTIVE_FAULTS; i++)
        sim->fault_runs[i].active = false;
    for (unsigned i = 0; i < FAULT_STRUCK; i++)
        sim->tally->faults[i] += fault_may(sim, i);
    static const int64_t periods_ms[] = {40, 150, 400, 1000, 2500};
    sim->strike_every_ns = periods_ms[sim_below(sim, 5)] * NS_PER_MS;
}

static unsigned some_fault(struct sim *sim)
{
    unsigned first = FAULT_STRUCK + sim_below(sim, FAULTS - FAULT_STRUCK);
    for (unsigned i = 0; i < FAULTS - FAULT_STRUCK; i++) {
        unsigned fault = FAULT_STRUCK + (first - FAULT_STRUCK + i) % (FAULTS - FAULT_STRUCK);
        if (fault_may(sim, fault))
            return fault;
    }
    return FAULTS;
}

static void begin(struct sim *sim, unsigned fault)
{
    unsigned slot = 0;
    while (slot < SIM_ACTIVE_FAULTS && sim->fault_runs[slot].active)
        slot++;
    if (slot == SIM_ACTIVE_FAULTS)
        return;
    struct sim_fault_run *run = &sim->fault_runs[slot];
    run->kind = fault;
    run->generation++;
    if (!faults[fault].begin(sim, run))
        return;
    sim->tally->faults[fault]++;
    sim->tally->counts[COUNT_FAULTS]++;
    if (faults[fault].end == NULL)
        return;
    run->active = true;
    event_queue_add(&sim->event_queue,
                    sim->now_ns + sim_between(sim, faults[fault].least_ms * NS_PER_MS,
                                              faults[fault].most_ms * NS_PER_MS),
                    EVENT_FAULT_END, slot, run->generation);
}

void fault_strike(struct sim *sim)
{
    unsigned fault = some_fault(sim);
    if (sim->recovering || fault == FAULTS)
        return;
    /* Now and then the same fault strikes up to three times at once, usually different targets. */
    unsigned times = sim_below(sim, 4) == 0 ? 1 + sim_below(sim, 3) : 1;
    for (unsigned i = 0; i < times; i++)
        begin(sim, fault);
    event_queue_add(&sim->event_queue, sim->now_ns + sim_between(sim, 0, 2 * sim->strike_every_ns),
                    EVENT_STRIKE, 0, 0);
}

static void end(struct sim *sim, struct sim_fault_run *run)
{
    run->active = false;
    faults[run->kind].end(sim, run);
}

void fault_end(struct sim *sim, const struct event *event)
{
    struct sim_fault_run *run = &sim->fault_runs[event->subject];
    if (run->active && run->generation == event->generation)
        end(sim, run);
}

void fault_end_all(struct sim *sim)
{
    fault_repoint_end(sim);
    for (unsigned i = 0; i < SIM_ACTIVE_FAULTS; i++)
        if (sim->fault_runs[i].active)
            end(sim, &sim->fault_runs[i]);
    for (unsigned master = 0; master < sim->node_count; master++)
        for (unsigned owner = 0; owner < SIM_OWNERS; owner++)
            for (unsigned direction = 0; direction < 2; direction++)
                sim->masters[master].blocked_ns[owner][direction] = 0;
}
