/* Faults of masters. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/torture/faults.h"

#include "protocol/units.h"

enum {
    STOP_MS = 1500,
    LIMIT_MS = 1200,
    EVICT_MS = 300,
    /* After this time every daemon has sampled the state of the master again. */
    SEEN_BY_ALL_MS = 1500,
    COPY_MS = 3000,
    STEP_MS = 3000,
    SMALL_STEP_MS = 100,
    AGAIN_MS = 50,
};

static struct master *master_of(struct faults *faults, unsigned index)
{
    return &faults->torture->stage.masters[index];
}

static bool answers(const struct faults *faults, unsigned index)
{
    return !faults->masters[index].stopped;
}

static void run(struct faults *faults, unsigned index, const char *command)
{
    ledger_note(&faults->torture->ledger, "master %u: %s", index, command);
    masters_run(master_of(faults, index), 1, command);
}

/* --- hanging --- */

static void resume(struct faults *faults, unsigned index)
{
    if (!faults->masters[index].stopped)
        return;
    faults->masters[index].stopped = false;
    ledger_note(&faults->torture->ledger, "master %u continues", index);
    master_continue(master_of(faults, index));
}

void strike_stop(struct faults *faults, unsigned index)
{
    stop_for(faults, index, 20 + faults_below(faults, STOP_MS));
}

void stop_for(struct faults *faults, unsigned index, unsigned ms)
{
    if (!answers(faults, index))
        return;
    faults_note(faults, FAULT_STOP, "master %u", index);
    master_stop(master_of(faults, index));
    faults->masters[index].stopped = true;
    faults_later(faults, ms, resume, index);
}

/* --- restarts --- */

static void remove_snapshot(struct faults *faults, unsigned index)
{
    char name[32];
    char path[SANDBOX_FILE];
    snprintf(name, sizeof(name), "master-%u.rdb", index);
    unlink(sandbox_path(&faults->torture->stage.sandbox, name, path));
    faults->masters[index].saved = false;
}

/* Restart the master. The offset of its clock is kept. */
static void start_again(struct faults *faults, unsigned index)
{
    faults->masters[index].stopped = false;
    faults->masters[index].limited = false;
    master_restart(master_of(faults, index));
    ledger_note(&faults->torture->ledger, "master %u is back", index);
}

void strike_kill(struct faults *faults, unsigned index)
{
    faults_note(faults, FAULT_KILL, "master %u", index);
    master_kill(master_of(faults, index));
    remove_snapshot(faults, index);
    start_again(faults, index);
}

void strike_snapshot(struct faults *faults, unsigned index)
{
    if (!answers(faults, index))
        return;
    if (!faults->masters[index].saved || faults_below(faults, 3) == 0) {
        run(faults, index, "SAVE");
        faults->masters[index].saved = true;
        return;
    }
    faults_note(faults, FAULT_SNAPSHOT, "master %u", index);
    start_again(faults, index);
}

/* --- loss of data while running --- */

void strike_flush(struct faults *faults, unsigned index)
{
    if (!answers(faults, index))
        return;
    faults_note(faults, FAULT_FLUSH, "master %u", index);
    masters_run(master_of(faults, index), 1, "FLUSHALL");
}

/* Make the follower a replica of the leader until the two are in sync, and then a master again.
 * False if the follower was not in sync after COPY_MS, which sometimes happens. */
static bool copy_from(struct faults *faults, struct master *follower, const struct master *leader)
{
    int64_t end_ns = ledger_now_ns() + COPY_MS * NS_PER_MS;
    bool in_sync = false;
    master_text(follower, "REPLICAOF %s %d", leader->host, leader->port);
    while (!in_sync && ledger_now_ns() < end_ns) {
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        in_sync =
            strstr(master_text(follower, "INFO replication"), "master_link_status:up") != NULL;
    }
    masters_run(follower, 1, "REPLICAOF NO ONE");
    ledger_note(&faults->torture->ledger, "master %u is a master again%s", follower->index,
                in_sync ? "" : ", before the copy was complete");
    return in_sync;
}

/* The master keeps its process, its address and its connections. Its data is replaced by that of
 * the spare. */
static void fail_over(struct faults *faults, unsigned index)
{
    if (faults->spare_copy >= 0)
        faults_note(faults, FAULT_FAILOVER, "master %u to a copy of %d", index, faults->spare_copy);
    else
        faults_note(faults, FAULT_FAILOVER, "master %u to a spare without a copy", index);
    copy_from(faults, master_of(faults, index), &faults->torture->spare);
}

static void make_copy(struct faults *faults, unsigned index)
{
    ledger_note(&faults->torture->ledger, "the spare copies master %u", index);
    bool copied = copy_from(faults, &faults->torture->spare, master_of(faults, index));
    faults->spare_copy = copied ? (int)index : -1;
}

/* If the spare has an old copy of this master, fail over to that copy, which has the guard's record
 * but lacks the recent locks. Otherwise the spare usually makes such a copy for a later failover.
 * Sometimes the master fails over to a copy of another master or to an empty spare. */
void strike_failover(struct faults *faults, unsigned index)
{
    if (!answers(faults, index) || faults->masters[index].limited)
        return;
    if (faults->spare_copy == (int)index || faults_below(faults, 4) == 0) {
        fail_over(faults, index);
    } else if (faults_below(faults, 3) != 0) {
        make_copy(faults, index);
    } else {
        masters_run(&faults->torture->spare, 1, "FLUSHALL");
        faults->spare_copy = -1;
        fail_over(faults, index);
    }
}

/* --- memory and connections --- */

/* May the action, which changes the limits of this master, run now? While the master is stopped,
 * the action is deferred again. A master that has restarted meanwhile has no limits, so the action
 * is dropped. */
static bool may_limit(struct faults *faults, unsigned index, faults_action *action)
{
    if (!faults->masters[index].limited)
        return false;
    if (answers(faults, index))
        return true;
    if (faults->ending)
        resume(faults, index);
    faults_later(faults, AGAIN_MS, action, index);
    return false;
}

static void stop_evicting(struct faults *faults, unsigned index)
{
    if (!may_limit(faults, index, stop_evicting))
        return;
    run(faults, index, "CONFIG SET maxmemory 0");
    run(faults, index, "CONFIG SET maxmemory-policy noeviction");
    faults->masters[index].limited = false;
}

static void evict(struct faults *faults, unsigned index)
{
    /* When the torture ends, deferred actions are executed early. Some daemons may not have seen
     * yet that the master may evict, so it must not evict. */
    if (faults->ending) {
        stop_evicting(faults, index);
        return;
    }
    if (!may_limit(faults, index, evict))
        return;
    run(faults, index, "CONFIG SET maxmemory 1");
    faults_later(faults, EVICT_MS, stop_evicting, index);
}

/* No guard can see an eviction if, between two samples, it is allowed, happens and is forbidden
 * again. So eviction is allowed some time before keys are evicted. */
void strike_evict(struct faults *faults, unsigned index)
{
    static const char *const policies[] = {
        "CONFIG SET maxmemory-policy allkeys-random",
        "CONFIG SET maxmemory-policy volatile-ttl",
    };
    if (!answers(faults, index) || faults->masters[index].limited)
        return;
    faults_note(faults, FAULT_EVICT, "master %u", index);
    faults->masters[index].limited = true;
    run(faults, index, policies[faults_below(faults, 2)]);
    run(faults, index, "CONFIG SET maxmemory 1gb");
    faults_later(faults, SEEN_BY_ALL_MS, evict, index);
}

static void allow_connections(struct faults *faults, unsigned index)
{
    if (!may_limit(faults, index, allow_connections))
        return;
    run(faults, index, "CONFIG SET maxclients 500");
    faults->masters[index].limited = false;
}

void strike_full(struct faults *faults, unsigned index)
{
    if (!answers(faults, index) || faults->masters[index].limited)
        return;
    faults_note(faults, FAULT_FULL, "master %u", index);
    faults->masters[index].limited = true;
    run(faults, index, "CONFIG SET maxclients 1");
    run(faults, index, "CLIENT KILL TYPE normal SKIPME yes");
    faults_later(faults, LIMIT_MS, allow_connections, index);
}

void strike_cut(struct faults *faults, unsigned index)
{
    static const char *const commands[] = {
        "CLIENT KILL TYPE normal SKIPME yes",
        "CLIENT KILL TYPE pubsub",
    };
    if (!answers(faults, index))
        return;
    unsigned which = faults_below(faults, 2);
    faults_note(faults, FAULT_CUT, "master %u: %s", index, commands[which]);
    masters_run(master_of(faults, index), 1, commands[which]);
}

void strike_scripts(struct faults *faults, unsigned index)
{
    if (!answers(faults, index))
        return;
    faults_note(faults, FAULT_SCRIPTS, "master %u", index);
    masters_run(master_of(faults, index), 1, "SCRIPT FLUSH");
}

/* --- clocks --- */

/* No guard can see that a clock stepped forward and back between two samples. So each clock steps
 * in one direction only. */
void strike_step(struct faults *faults, unsigned index)
{
    int64_t ms = 1 + faults_below(faults, faults_below(faults, 3) == 0 ? SMALL_STEP_MS : STEP_MS);
    if (faults->masters[index].back)
        ms = -ms;
    faults_note(faults, FAULT_STEP, "master %u by %lld ms", index, (long long)ms);
    master_step_ms(master_of(faults, index), ms);
}
