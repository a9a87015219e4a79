/*
 * Draws the faults of a torture, their times and their durations.
 *
 * Most faults strike one minority of the masters; every second or two it is another minority. So
 * locks are still granted, and a lock granted by one majority competes with requests to the next
 * majority. One fault in eight strikes any master, and in some phases no fault strikes. Often a
 * phase is an ambush: two masters hang while the other three grant locks, and when the two come
 * back, one of the three loses its data. (The article "How to do distributed locking" describes
 * this with a clock that jumps.)
 *
 * The torture avoids the faults that no guard can see (README.md). Each clock jumps in one
 * direction only. A master gets an eviction policy 1.5 s before it has to evict keys, so that every
 * daemon sees the policy first. No proxy stands between clients and daemons, since it could close
 * the connection of a HOLD whose client lives.
 */
#ifndef TESTS_TORTURE_FAULTS_H
#define TESTS_TORTURE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/prng.h"
#include "tests/torture/torture.h"

/* Name, word, weight, whether masters lose data, description. */
#define FAULTS(X)                                                                                  \
    X(KILL, "kill", 2, true, "a master is killed and starts again, empty")                         \
    X(SNAPSHOT, "snapshot", 2, true, "a master starts again with what it once saved")              \
    X(FLUSH, "flush", 2, true, "FLUSHALL")                                                         \
    X(FAILOVER, "failover", 2, true, "a master follows another one and becomes a master again")    \
    X(EVICT, "evict", 1, true, "a master evicts keys for want of memory")                          \
    X(STEP, "step", 3, true, "the clock of a master jumps")                                        \
    X(STOP, "stop", 5, false, "a master hangs (SIGSTOP)")                                          \
    X(CUT, "cut", 2, false, "a master drops its connections (CLIENT KILL)")                        \
    X(SCRIPTS, "scripts", 1, false, "SCRIPT FLUSH")                                                \
    X(FULL, "full", 1, false, "a master takes no new connections (maxclients)")                    \
    X(PROXY, "proxy", 4, false, "connections are slow, stall or are reset")                        \
    X(PARTITION, "partition", 4, false, "packets are lost between a daemon and masters")           \
    X(CRASH, "crash", 2, false, "a daemon is killed and starts again")                             \
    X(PAUSE, "pause", 3, false, "a daemon hangs (SIGSTOP)")                                        \
    X(TERM, "term", 1, false, "a daemon is told to stop, and starts again")

enum fault {
#define FAULT_ENUM(name, word, weight, loses_data, text) FAULT_##name,
    FAULTS(FAULT_ENUM)
#undef FAULT_ENUM
        FAULT_COUNT
};

enum { FAULTS_LATER = 64 };

struct faults;
typedef void faults_action(struct faults *faults, unsigned victim);

struct faults {
    struct torture *torture;
    struct prng prng;
    unsigned counts[FAULT_COUNT];
    bool ending; /* every deferred action runs now */

    int64_t strike_ns;      /* time of the next fault */
    int64_t phase_until_ns; /* end of the present phase */
    unsigned first_victim;  /* the first master of the minority that has faults in this phase */
    bool calm;              /* no fault is drawn in this phase */

    struct {
        bool stopped;
        bool limited; /* in memory, or in connections */
        bool saved;   /* has a snapshot */
        bool back;    /* its clock jumps back, not forward */
    } masters[STAGE_MASTERS];
    uint32_t cut_off; /* bit set of the masters that DAEMON_ROUTED is cut off from, in one
                         direction or both; bit NET_CLIENTS: it is cut off from the clients */
    int spare_copy;   /* the master that torture->spare has a copy of; -1: no copy */
    struct {
        bool stopped;
        int64_t end_by_ns; /* deadline of an orderly exit; 0: none requested */
    } daemons[TORTURE_DAEMONS];

    /* Deferred actions, unordered. */
    struct {
        int64_t at_ns;
        faults_action *action;
        unsigned victim;
    } later[FAULTS_LATER];
    unsigned later_count;
};

/* Parse words such as "all", "kill,step", "all,-partition", "-partition" or "none" into bits of
 * enum fault. False for an unknown word, which is copied to `wrong`. */
bool faults_parse(const char *words, uint32_t *faults, char wrong[32]);

const char *fault_word(enum fault fault);

/* Does any of these faults make masters lose data? If they are durable, to be killed does not. */
bool faults_lose_data(uint32_t faults, bool durable);

void faults_init(struct faults *faults, struct torture *torture);

/* Run the deferred actions that are due, and strike the next fault if it is due. Call this
 * often. */
void faults_update(struct faults *faults);

/* End all faults, and wait until all daemons run. */
void faults_end(struct faults *faults);

/* --- for the files fault_*.c --- */

unsigned faults_below(struct faults *faults, unsigned count);

/* Record the fault in the ledger. */
void faults_note(struct faults *faults, enum fault fault, const char *form, ...)
    __attribute__((format(printf, 3, 4)));

/* Defer an action on the victim. */
void faults_later(struct faults *faults, unsigned in_ms, faults_action *action, unsigned victim);

/* Stop a master, and let it continue after ms milliseconds. */
void stop_for(struct faults *faults, unsigned master, unsigned ms);

/* Each of these strikes a master once, or does nothing if the master's state does not allow the
 * fault. A snapshot or failover sometimes only saves the data that a later one needs. The faults of
 * daemons (crash, pause, term) ignore the master and draw a daemon. */
void strike_kill(struct faults *faults, unsigned master);
void strike_snapshot(struct faults *faults, unsigned master);
void strike_flush(struct faults *faults, unsigned master);
void strike_failover(struct faults *faults, unsigned master);
void strike_evict(struct faults *faults, unsigned master);
void strike_step(struct faults *faults, unsigned master);
void strike_stop(struct faults *faults, unsigned master);
void strike_cut(struct faults *faults, unsigned master);
void strike_scripts(struct faults *faults, unsigned master);
void strike_full(struct faults *faults, unsigned master);
void strike_proxy(struct faults *faults, unsigned master);
void strike_partition(struct faults *faults, unsigned master);
void strike_crash(struct faults *faults, unsigned master);
void strike_pause(struct faults *faults, unsigned master);
void strike_term(struct faults *faults, unsigned master);

/* Report daemons that exit unexpectedly, too late or with an error. A deferred action restarts each
 * daemon that has exited. */
void daemons_update(struct faults *faults);
bool daemons_run(const struct faults *faults);

#endif
