/*
 * The guard decides whether a node may vote. Pure.
 *
 * Redlock relies on its masters to remember locks. But masters restart without their data, are
 * flushed, fail over to an empty replica, or evict keys. Their clocks are stepped, so that keys end
 * early. (For restarts, the section "Performance, Crash Recovery and fsync" of the paper asks the
 * operator to delay them.) The guard notices such events. It takes away the vote of the node until
 * every lock that the node may have forgotten has ended by itself. This quarantine lasts for
 * max_ttl and its drift.
 *
 * The guard combines three modules:
 *
 *     identity.h       the master's record, shared by all daemons: restarts, losses, failovers,
 *                      evictions; and whether a restart is harmless
 *     clock_trust.h    the master's clock: forward steps, also before this daemon's first sample
 *     name_lease.h     which server other daemons know under the master's name
 *
 * A vote counts only together with the probe after it. Every batch of votes ends with a probe,
 * which reads the record, the time and the role of the node. The votes count only if this sample
 * passes.
 *
 * Each vote carries the epoch that its node had when the daemon wrote the command of the vote. Each
 * event that takes away the vote of the node begins a new epoch, and a vote counts only in its own
 * epoch. So no vote whose command was written before such an event can count after it.
 */
#ifndef ENGINE_GUARD_GUARD_H
#define ENGINE_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/guard/clock_trust.h"
#include "engine/guard/identity.h"
#include "engine/guard/name_lease.h"
#include "engine/guard/rules.h"
#include "protocol/limits.h"
#include "protocol/reason.h"
#include "protocol/units.h"

enum {
    GUARD_DAEMON = 16, /* length of a daemon's id */
    GUARD_NAME_KEY_MAX = sizeof("redlockd:name::") + RECORD_SET_ID + LIMIT_NODE_NAME,
};

enum guard_result {
    GUARD_PASS, /* the votes before the probe count, if they are of the present epoch */
    /* Not decided, because the answer was slow or a heartbeat is missing; probe again. */
    GUARD_WAIT,
    GUARD_FAIL, /* the votes do not count */
    /* For answers that do not complete a sample: */
    GUARD_MORE,  /* the other answers of the sample are still to come */
    GUARD_TAKEN, /* the answer was taken: facts, a heartbeat or a record write */
};

/* What a heartbeat leaves on a node. See heartbeat.lua. */
struct guard_heartbeat {
    /* The clock entry of this host. "" leaves the present entry there. "-" announces a step: all
     * entries and the attestation are void. */
    char entry[GUARD_ENTRY_MAX];
    /* "" leaves the present attestation there. Otherwise "<time>:<hidden>", both in microseconds:
     * see clock_describe(). */
    char attestation[GUARD_ATTESTATION_MAX];
    /* The attestation is left only if this is the last step on the node. */
    char step[GUARD_STEP_MAX];
    char beats[IDENTITY_BEATS]; /* those of the node that were seen last; "": none */
    int64_t attestation_ttl_ms;
    int64_t lease_ms; /* TTL of a name lease */
    int64_t fresh_ms; /* how long a daemon may count votes after it has renewed a name lease */
    uint32_t names;   /* nodes whose names are leased, because their servers are known */
    char servers[LIMIT_NODES][GUARD_SERVER_MAX];
};

/* The facts that the votes of a node rest on. If they change for the worse, a new epoch begins. */
struct guard_basis {
    /* Why the node has no vote according to its own answers; REASON_NONE: no reason. */
    enum reason refused;
    /* The facts, a heartbeat and a quorum of name leases have been answered, and every step of the
     * clock is announced. */
    bool checked;
    bool trusted;            /* the clock is trusted */
    int64_t trusted_from_ns; /* this time changes if the clock was untrusted, even for a moment */
    int64_t stepped_until_ns;
    int64_t quarantine_until_ns;
    int64_t conflict_since_ns;
    int64_t suspect_until_ns;
};

/* With reset_set: has a daemon of the old set left anything on the node since this daemon first
 * looked? UNKNOWN: this daemon has not looked yet. */
enum old_set { OLD_SET_UNKNOWN, OLD_SET_QUIET, OLD_SET_ALIVE };

struct guard_node {
    struct identity identity;
    struct clock_trust clock;
    struct name_lease lease;
    int64_t heartbeat_sent_ns;   /* when the last answered heartbeat was sent; 0: none */
    bool was_silent;             /* the last connection ended before a heartbeat was answered */
    enum reason heartbeat_error; /* why the last heartbeat failed; REASON_NONE: it did not */
    /* Why the node would refuse the SET of a lock; REASON_NONE: it would accept it. */
    enum reason set_error;
    bool duplicate; /* a name that is alphabetically earlier leads to the same server */
    enum old_set old_set;
    /* Time of the last sign of life of the old set, on the node's clock; 0: none. */
    int64_t old_set_us;
    char old_set_daemon[GUARD_DAEMON + 1]; /* id of the daemon that left it; "": not known */
    struct guard_basis basis;              /* as it was after the last event */
    uint32_t epoch; /* incremented when the basis of the votes no longer holds */
};

struct guard {
    struct guard_rules rules;
    char set_id[RECORD_SET_ID + 1];
    struct guard_periods periods;
    /* The daemon's own clock is suspect until then, and no node has a vote. */
    int64_t suspect_until_ns;
    /* All nodes have their votes until then unless an event changes that; 0: not known. */
    int64_t all_vote_until_ns;
    bool override_done; /* the operator override has been carried out, and has no effect any more */
    uint32_t probe;     /* nodes that are to be probed now; the caller clears it */
    /* Nodes that are to get a heartbeat, each as soon as no heartbeat to it is under way. The
     * caller clears it. */
    uint32_t heartbeat;
    struct guard_node nodes[LIMIT_NODES];
};

void guard_init(struct guard *guard, const struct guard_rules *rules);

/* A connection to a node is up, or is lost. run_id: of the server. begun_ns: the latest time at
 * which that run can have begun; INT64_MIN: the server does not say. */
void guard_on_connected(struct guard *guard, unsigned node, const char *run_id, int64_t begun_ns,
                        int64_t now_ns);
void guard_on_lost(struct guard *guard, unsigned node);

/* A heartbeat has tested whether the node would accept the SET of a lock. refused: why not;
 * REASON_NONE: it would. */
void guard_on_set(struct guard *guard, unsigned node, enum reason refused);

/* A probe has been answered. */
enum guard_result guard_on_sample(struct guard *guard, unsigned node,
                                  const struct guard_sample *sample);
/* The facts that are read with every heartbeat have arrived. */
void guard_on_facts(struct guard *guard, unsigned node, const struct guard_facts *facts);

/* The node whose vote stands for this one, because both names lead to the same server; `node`
 * itself if it is not a duplicate. */
unsigned guard_duplicate_of(const struct guard *guard, unsigned node);

/* Why the node may not vote now; REASON_NONE: it may. */
enum reason guard_refuses_vote(const struct guard *guard, unsigned node, int64_t now_ns);

/* May every node vote now? The result is the same as that of guard_refuses_vote() for each node,
 * but is usually cached. This saves 8 % of the daemon's instructions at 16x16 (16 connections with
 * 16 requests in flight on each). */
bool guard_all_vote(struct guard *guard, int64_t now_ns);

/* Why the node may not vote according to its own answers alone; REASON_NONE: they show no
 * reason. */
enum reason guard_own_conflict(const struct guard *guard, unsigned node, int64_t now_ns);

/* May a node without a vote still hold locks of this set, so that this daemon writes to it? Not if
 * other daemons serve it under another set or name, or may do so. */
bool guard_may_hold_locks(const struct guard *guard, unsigned node, int64_t now_ns);

/* Until when the node has no vote, as far as is known. now_ns: it has its vote. INT64_MAX: time
 * alone does not bring the vote back. */
int64_t guard_refuses_until_ns(const struct guard *guard, unsigned node, int64_t now_ns);

/* The present epoch of the node. The caller stores it with each vote when the vote is asked for.
 * When the guard has passed the probe after it, the vote counts only if the epoch is still the
 * same. */
uint32_t guard_epoch(const struct guard *guard, unsigned node);

/* The progress of an operator override. */
enum guard_progress { GUARD_IN_PROGRESS, GUARD_DONE, GUARD_REFUSED };

/* For bootstrap and reset_set. GUARD_REFUSED: *node conflicts with the override. GUARD_IN_PROGRESS:
 * the guard waits for *node. */
enum guard_progress guard_progress(const struct guard *guard, unsigned *node);

/* A daemon counts no votes of a node if the last heartbeat that the node has answered was sent
 * longer ago than this. With a small max_ttl the limit is shorter: guard_periods.fresh_ns. */
#define GUARD_DAEMON_TIMEOUT_NS (5 * NS_PER_S)

/* Is there an operator override that has not been carried out yet? */
bool guard_has_override(const struct guard *guard);

/* How long the quarantine would be if a record were written to the node now, for the reason
 * `why`. */
int64_t guard_quarantine_ms(const struct guard *guard, unsigned node, enum reason why,
                            int64_t now_ns);

/* The name of the key by which each master stores the lease on the name of this node. */
void guard_name_key(const struct guard *guard, unsigned node, char key[GUARD_NAME_KEY_MAX]);

/* Why the node may not vote according to `lease`: the lease on its name, NUL-terminated, that was
 * found on another master whose clock showed time_us. For a daemon that takes no leases itself. */
enum reason guard_lease_conflict(const struct guard *guard, unsigned node, const char *lease,
                                 int64_t time_us);

/* guard_heartbeat(): what to leave with the next heartbeat to the node. guard_on_heartbeat(): the
 * reply of heartbeat.lua, "<digits> <beats> <attestation or -> <step or -> <entry or ->", with one
 * digit (name_lease.h) for each node in heartbeat->names. `heartbeat` is what was left. */
void guard_heartbeat(const struct guard *guard, unsigned node, int64_t now_ns,
                     struct guard_heartbeat *heartbeat);
void guard_on_heartbeat(struct guard *guard, unsigned node, const struct guard_heartbeat *heartbeat,
                        int64_t sent_ns, const char *text, size_t len, int64_t now_ns);

/* A record write was answered. refused: why the node did not write the record; REASON_NONE: it did,
 * unless another daemon wrote one first. */
void guard_on_record_written(struct guard *guard, unsigned node, enum reason refused);

/* The heartbeat was answered by an error, for this reason. */
void guard_on_heartbeat_failed(struct guard *guard, unsigned node, enum reason reason);

#endif
