/*
 * What is broken during a torture, when, and for how long.
 *
 * Most of the time only a minority of the masters suffers, another one every few seconds: so locks
 * go on being granted, and what was granted by one majority is up against the next. Sometimes
 * all suffer, and sometimes nobody does. Often it is an ambush: two masters hang while locks are
 * granted by the other three, and as they come back, one of those three forgets. ("How to do
 * distributed locking" has it with a clock that jumps.)
 *
 * What is not here is what no guard can see (README.md): each clock jumps in one direction only,
 * eviction is allowed for a while before anything is evicted, and no proxy stands between clients
 * and daemons.
 */
#ifndef TESTS_TORTURE_FAULTS_H
#define TESTS_TORTURE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/prng.h"
#include "tests/torture/torture.h"

/* Name, how often against the others, whether masters forget by it, what it is. */
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
#define FAULT_ENUM(name, word, weight, forgets, text) FAULT_##name,
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
    bool ending; /* nothing is put off any more */

    /* When the next is due, and who suffers until when. */
    int64_t strike_ns;
    int64_t phase_until_ns;
    unsigned first_victim;
    bool calm;

    struct {
        bool stopped;
        bool limited; /* in memory, or in connections */
        bool saved;   /* it has a snapshot */
        bool back;    /* which way its clock jumps */
    } masters[STAGE_MASTERS];
    uint32_t cut_off; /* bits of those whom DAEMON_ROUTED cannot reach, or the other way */
    int spare_copy;   /* the master that the spare has a copy of; -1: it is empty */
    struct {
        bool stopped;
        int64_t end_by_ns; /* it was told to stop; 0: it was not */
    } daemons[TORTURE_DAEMONS];

    /* What is to be done at some time, in no order. */
    struct {
        int64_t at_ns;
        faults_action *action;
        unsigned victim;
    } later[FAULTS_LATER];
    unsigned later_count;
};

/* "all", "kill,step", "all,-partition", "-partition", "none" -> bits of enum fault. False if a word
 * names none, which is then *wrong. */
bool faults_parse(const char *words, uint32_t *faults, char wrong[32]);

const char *fault_word(enum fault fault);

/* Does any of these make masters forget? */
bool faults_forget(uint32_t faults);

void faults_init(struct faults *faults, struct torture *torture);

/* Do what is due. */
void faults_tend(struct faults *faults);

/* Mend everything, and wait until all daemons run. */
void faults_end(struct faults *faults);

/* --- for those who strike --- */

unsigned faults_below(struct faults *faults, unsigned count);

/* Write down that this happens. */
void faults_note(struct faults *faults, enum fault fault, const char *form, ...)
    __attribute__((format(printf, 3, 4)));

void faults_later(struct faults *faults, unsigned in_ms, faults_action *action, unsigned victim);

/* A master hangs for so long. */
void stop_for(struct faults *faults, unsigned master, unsigned ms);

/* Each strikes a victim once; it does nothing where that cannot be now. */
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

/* Has a daemon ended that should not have? Start those again that should. */
void daemons_tend(struct faults *faults);
bool daemons_run(const struct faults *faults);

#endif
