/*
 * The guard decides whether a node may vote. Pure.
 *
 * Redlock trusts its masters to remember. They do not always: they restart without their data, are
 * flushed, fail over to an empty replica, or evict keys; and their clocks are stepped, so that keys
 * end early. (The paper, "Performance, Crash Recovery and fsync", leaves delayed restarts to the
 * operator.) The guard notices this and takes the node's vote until every lock that it may have
 * forgotten has ended by itself. This quarantine lasts for max_ttl and its drift.
 *
 * The guard has three sources:
 *
 *     identity.h       the master's record, shared by all daemons: restarts, losses, failovers,
 *                      evictions; and whether a restart is harmless
 *     clock_trust.h    the master's clock: forward steps, also before this daemon's first sample
 *     name_lease.h     which server other daemons know under the master's name
 *
 * A vote is only as good as the probe after it. Every batch of commands that asks for votes ends
 * with a probe (the record, the time, the role), and its votes count only if that sample passes. A
 * vote carries the epoch that its node had when the vote was written. Whatever takes the node's
 * vote begins a new epoch, so nothing written before can count after.
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
    GUARD_PASS, /* votes asked for before, in the present epoch, count */
    GUARD_WAIT, /* undecided, after a slow answer or for lack of a heartbeat; probe again */
    GUARD_FAIL, /* the votes do not count */
    /* For answers that are not a sample by themselves: */
    GUARD_MORE,  /* the other answers of the sample are still to come */
    GUARD_TAKEN, /* facts, a heartbeat or a record write were taken */
};

/* What a heartbeat leaves on a node. */
struct guard_heartbeat {
    /* "" leaves the present one there; "-": there was a step, all entries and the attestation
     * are void. */
    char entry[GUARD_ENTRY_MAX];
    /* "" leaves the present one there; "<the master's clock>:<what may be hidden>", in
     * microseconds. */
    char attestation[GUARD_ATTESTATION_MAX];
    char step[GUARD_STEP_MAX]; /* the attestation is left only where this step is found */
    int64_t attestation_ttl_ms;
    int64_t lease_ms;
    int64_t fresh_ms; /* how long a daemon that renewed a lease may count votes */
    uint32_t names;   /* nodes whose servers are known */
    char servers[LIMIT_NODES][GUARD_SERVER_MAX];
};

/* The facts that the votes of a node rest on. */
struct guard_basis {
    enum reason refused; /* according to the node's own answers */
    bool checked;
    bool trusted;
    int64_t trusted_from_ns; /* changes if the clock was untrusted, even for a moment */
    int64_t stepped_until_ns;
    int64_t quarantine_until_ns;
    int64_t conflict_since_ns;
    int64_t suspect_until_ns;
};

/* With reset_set: has a daemon of the old set left anything on the node since the first look? */
enum old_set { OLD_SET_UNKNOWN, OLD_SET_QUIET, OLD_SET_ALIVE };

struct guard_node {
    struct identity identity;
    struct clock_trust clock;
    struct name_lease lease;
    int64_t heartbeat_sent_ns; /* when the last answered heartbeat was sent; 0: none */
    enum reason heartbeat_error;
    /* Why the node would refuse the SET of a lock; REASON_NONE: it would not. */
    enum reason set_error;
    bool duplicate; /* an alphabetically earlier name leads to the same server */
    enum old_set old_set;
    int64_t old_set_us; /* last sign of life of the old set, on the node's clock; 0: none */
    char old_set_daemon[GUARD_DAEMON + 1]; /* the daemon that left it; "": not known */
    struct guard_basis basis;              /* after the last event */
    uint32_t epoch;                        /* incremented when the basis no longer holds */
};

struct guard {
    struct guard_rules rules;
    char set_id[RECORD_SET_ID + 1];
    struct guard_periods periods;
    int64_t suspect_until_ns;  /* the daemon's own clock is at fault until then */
    int64_t all_vote_until_ns; /* all nodes vote until then unless a node changes; 0: not known */
    bool override_done; /* the operator override is carried out; the guard acts as without one */
    uint32_t probe;     /* nodes to be probed now; the caller clears it */
    /* Nodes that get a heartbeat as soon as none is under way. The caller clears it. */
    uint32_t heartbeat;
    struct guard_node nodes[LIMIT_NODES];
};

void guard_init(struct guard *guard, const struct guard_rules *rules);

/* A connection is up or lost. run_id: of the server. begun_ns: when that run began at the
 * latest; INT64_MIN: the server does not say. */
void guard_on_connected(struct guard *guard, unsigned node, const char *run_id, int64_t begun_ns);
void guard_on_lost(struct guard *guard, unsigned node);

/* A heartbeat has asked whether the node would accept the SET of a lock; REASON_NONE: it would. */
void guard_on_set(struct guard *guard, unsigned node, enum reason refused);

enum guard_result guard_on_sample(struct guard *guard, unsigned node,
                                  const struct guard_sample *sample);
void guard_on_facts(struct guard *guard, unsigned node, const struct guard_facts *facts);

/* The node that is the same server as this duplicate; `node` itself if it is not a duplicate. */
unsigned guard_duplicate_of(const struct guard *guard, unsigned node);

/* Why the node may not vote now; REASON_NONE if it may. */
enum reason guard_refuses_vote(const struct guard *guard, unsigned node, int64_t now_ns);

/* May every node vote now? Equivalent to asking for each node, but usually cached. Saves 8 % of
 * the daemon's instructions at 16x16. */
bool guard_all_vote(struct guard *guard, int64_t now_ns);

/* Why the node may not vote according to its own answers; REASON_NONE: they show no reason. */
enum reason guard_own_conflict(const struct guard *guard, unsigned node, int64_t now_ns);

/* Does a node without a vote still carry locks? Not a node that other daemons serve, or may
 * serve: this daemon must not write to it. */
bool guard_carries(const struct guard *guard, unsigned node, int64_t now_ns);

/* Until when the node has no vote, as far as known: INT64_MAX if time alone does not bring it back.
 */
int64_t guard_refuses_until_ns(const struct guard *guard, unsigned node, int64_t now_ns);

/* Store it with each vote that is asked for, and compare it when the guard has passed. */
uint32_t guard_epoch(const struct guard *guard, unsigned node);

/* The progress of an operator override. */
enum guard_progress { GUARD_IN_PROGRESS, GUARD_DONE, GUARD_REFUSED };

/* For bootstrap and reset_set. REFUSED: *node conflicts with the override. UNDER_WAY: the guard
 * waits for *node. */
enum guard_progress guard_progress(const struct guard *guard, unsigned *node);

/* A daemon whose last heartbeat is older than this counts no votes, whatever its max_ttl. */
#define GUARD_DAEMON_TIMEOUT_NS (5 * NS_PER_S)

/* Is an operator override still to be carried out? */
bool guard_has_override(const struct guard *guard);

/* The length of the quarantine if the node's record were written now, for this reason. */
int64_t guard_quarantine_ms(const struct guard *guard, unsigned node, enum reason why,
                            int64_t now_ns);

/* The key on each master that says which server is known by the name of this node. */
void guard_name_key(const struct guard *guard, unsigned node, char key[GUARD_NAME_KEY_MAX]);

/* Why the node may not vote according to the NUL-terminated lease on its name that another
 * master has, when that master's clock shows time_us. For a daemon that takes no leases itself. */
enum reason guard_lease_conflict(const struct guard *guard, unsigned node, const char *lease,
                                 int64_t time_us);

/* What to leave with a heartbeat; and the answer of heartbeat.lua to it: "<a digit for each
 * name> <attestation or -> <step or -> <entry or ->". */
void guard_heartbeat(const struct guard *guard, unsigned node, int64_t now_ns,
                     struct guard_heartbeat *heartbeat);
void guard_on_heartbeat(struct guard *guard, unsigned node, const struct guard_heartbeat *heartbeat,
                        int64_t sent_ns, const char *text, size_t len, int64_t now_ns);

/* The heartbeat was answered by an error, for this reason. */
void guard_on_heartbeat_failed(struct guard *guard, unsigned node, enum reason reason);

#endif
