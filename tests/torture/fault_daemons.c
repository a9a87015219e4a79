/* Faults of daemons. */
#include <signal.h>
#include <sys/wait.h>

#include "protocol/units.h"
#include "tests/e2e/process.h"
#include "tests/torture/faults.h"

enum {
    PAUSE_MS = 1200,
    DOWN_MS = 300,
    /* An orderly exit takes at most two seconds, except on a busy machine. */
    END_MS = 30000,
};

static struct daemon *daemon_of(struct faults *faults, unsigned index)
{
    return &faults->torture->daemons[index];
}

static void start(struct faults *faults, unsigned index)
{
    ledger_note(&faults->torture->ledger, "daemon %u starts", index);
    daemon_start(daemon_of(faults, index), 0);
}

static void is_down(struct faults *faults, unsigned index)
{
    struct tally *tally = &faults->torture->tally;
    daemon_of(faults, index)->pid = 0;
    tally->handovers_before += tally->handovers[index];
    tally->handovers[index] = 0;
    faults->daemons[index].stopped = false;
    faults->daemons[index].end_by_ns = 0;
    faults_later(faults, faults_below(faults, DOWN_MS), start, index);
}

static void resume(struct faults *faults, unsigned index)
{
    if (!faults->daemons[index].stopped)
        return;
    faults->daemons[index].stopped = false;
    ledger_note(&faults->torture->ledger, "daemon %u continues", index);
    kill(daemon_of(faults, index)->pid, SIGCONT);
}

static bool is_free(struct faults *faults, unsigned index)
{
    return daemon_of(faults, index)->pid != 0 && faults->daemons[index].end_by_ns == 0;
}

void strike_pause(struct faults *faults, unsigned master)
{
    (void)master;
    unsigned index = faults_below(faults, TORTURE_DAEMONS);
    if (!is_free(faults, index) || faults->daemons[index].stopped)
        return;
    faults_note(faults, FAULT_PAUSE, "daemon %u", index);
    kill(daemon_of(faults, index)->pid, SIGSTOP);
    faults->daemons[index].stopped = true;
    faults_later(faults, 20 + faults_below(faults, PAUSE_MS), resume, index);
}

void strike_crash(struct faults *faults, unsigned master)
{
    (void)master;
    unsigned index = faults_below(faults, TORTURE_DAEMONS);
    if (!is_free(faults, index))
        return;
    faults_note(faults, FAULT_CRASH, "daemon %u", index);
    process_kill(daemon_of(faults, index)->pid);
    is_down(faults, index);
}

/* Strike only a daemon that is ready. A signal that comes earlier ends it without a drain. */
void strike_term(struct faults *faults, unsigned master)
{
    (void)master;
    struct client client;
    unsigned index = faults_below(faults, TORTURE_DAEMONS);
    if (!is_free(faults, index) || !client_try_unix(&client, daemon_of(faults, index)->socket))
        return;
    client_close(&client);
    resume(faults, index);
    faults_note(faults, FAULT_TERM, "daemon %u", index);
    kill(daemon_of(faults, index)->pid, SIGTERM);
    faults->daemons[index].end_by_ns = ledger_now_ns() + END_MS * NS_PER_MS;
}

static void check_daemon(struct faults *faults, unsigned index)
{
    struct daemon *daemon = daemon_of(faults, index);
    struct ledger *ledger = &faults->torture->ledger;
    int64_t end_by_ns = faults->daemons[index].end_by_ns;
    int status;
    if (daemon->pid == 0)
        return;
    if (!process_ended(daemon->pid, &status)) {
        if (end_by_ns != 0 && ledger_now_ns() > end_by_ns)
            ledger_violated(ledger, "daemon %u does not exit", index);
        return;
    }
    is_down(faults, index);
    daemon_check_log(daemon);
    if (end_by_ns == 0)
        ledger_violated(ledger, "daemon %u has exited unexpectedly, status %d", index, status);
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        ledger_violated(ledger, "daemon %u has failed to exit cleanly, status %d", index, status);
}

void daemons_update(struct faults *faults)
{
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++)
        check_daemon(faults, i);
}

bool daemons_run(const struct faults *faults)
{
    for (unsigned i = 0; i < TORTURE_DAEMONS; i++)
        if (faults->torture->daemons[i].pid == 0 || faults->daemons[i].end_by_ns != 0)
            return false;
    return true;
}
