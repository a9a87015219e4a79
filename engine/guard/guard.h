/*
 * The guard: may this node vote? Pure.
 *
 * Redlock trusts its masters to remember. They do not always: they restart without their data, are
 * flushed, fail over to an empty replica, evict keys; and their clocks are stepped, so that keys
 * end early. (The paper, "Performance, Crash Recovery and fsync", leaves delayed restarts to the
 * operator.) The guard notices, and takes the node's vote until every lock that it may have
 * forgotten has ended by itself: for the quarantine, max_ttl and its drift.
 *
 * What it goes by:
 *
 *     identity.h       its record: restarts, losses, failovers, evictions; for all daemons. Whether
 *                      a restart is harmless
 *     clock_trust.h    its clock: forward steps; before this daemon looked, too
 *     name_lease.h     which server other daemons know by its name
 *
 * A vote is only as good as the guard behind it: every batch of commands that asks for votes ends
 * with a probe (the record, the time, the role), and its votes count only if that sample passes. A
 * vote remembers the epoch of its node when it was written; whatever takes the node's vote begins a
 * new epoch, so nothing written before can count after.
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
    GUARD_DAEMON = 16, /* the id of a daemon */
    GUARD_NAME_KEY_MAX = sizeof("redlockd:name::") + RECORD_SET_ID + LIMIT_NODE_NAME,
};

enum guard_result {
    GUARD_PASS, /* the votes asked for before, in the present epoch, count */
    GUARD_WAIT, /* not yet: the answer was slow, or the others have to be heard; probe again */
    GUARD_FAIL, /* they do not count */
    /* Of a master's answers which alone are no sample: */
    GUARD_MORE,   /* the others are still to come */
    GUARD_LOOKED, /* facts, a heartbeat or a mark have been taken */
};

/* What a heartbeat leaves on a node. */
struct guard_heartbeat {
    /* "" leaves the one there; "-": there has been a step, all entries and the attestation are
     * void. */
    char entry[GUARD_ENTRY_MAX];
    /* "" leaves the one there; "<the master's clock>:<what may be hidden>", in microseconds. */
    char attestation[GUARD_ATTESTATION_MAX];
    char step[GUARD_STEP_MAX]; /* where another one is found, the attestation is not left */
    int64_t attestation_ttl_ms;
    int64_t lease_ms;
    int64_t fresh_ms; /* a daemon that renewed a lease may count votes for so long */
    uint32_t names;   /* the nodes that are known */
    char servers[LIMIT_NODES][GUARD_SERVER_MAX];
};

/* What the votes of a node rest on. */
struct guard_basis {
    enum reason refused; /* by the node's own answers */
    bool checked;
    bool trusted;
    int64_t trusted_from_ns; /* another one where the clock was untrusted, even for a moment */
    int64_t stepped_until_ns;
    int64_t quarantine_until_ns;
    int64_t conflict_since_ns;
    int64_t suspect_until_ns;
};

/* With reset_set: has a daemon of the old set left something since that was looked at first? */
enum old_set { OLD_SET_UNKNOWN, OLD_SET_QUIET, OLD_SET_ALIVE };

struct guard_node {
    struct identity identity;
    struct clock_trust clock;
    struct name_lease lease;
    int64_t heard_ns; /* when the last heartbeat that was answered was sent; 0: none */
    enum reason heartbeat_error;
    enum reason set_error; /* why it would refuse to set a lock; REASON_NONE: it would not */
    bool duplicate;        /* another name leads to the same server, and comes first */
    enum old_set old_set;
    int64_t old_set_us; /* the last thing left, on the node's clock; 0: nothing */
    char old_set_daemon[GUARD_DAEMON + 1]; /* whose that was; "" not known */
    struct guard_basis basis;              /* after the last event */
    uint32_t epoch;                        /* begins anew where that does not hold any more */
};

struct guard {
    struct guard_rules rules;
    char set_id[RECORD_SET_ID + 1];
    struct guard_periods periods;
    int64_t suspect_until_ns;  /* our own clock is at fault */
    int64_t all_vote_until_ns; /* while no node changes, all may vote before that; 0: not known */
    bool override_done;        /* of an operator; from now on a guard like any other */
    uint32_t probe;            /* nodes that are to be probed now; the caller clears it */
    uint32_t
        heartbeat; /* nodes that are to get a heartbeat as soon as none is under way; likewise */
    struct guard_node nodes[LIMIT_NODES];
};

void guard_init(struct guard *guard, const struct guard_rules *rules);

/* A connection is up, to a server with this run_id, which began no later than begun_ns (INT64_MIN:
 * it does not say); it is lost. */
void guard_on_connected(struct guard *guard, unsigned node, const char *run_id, int64_t begun_ns);
void guard_on_lost(struct guard *guard, unsigned node);

/* A heartbeat has asked whether a lock may be set there; REASON_NONE: it may. */
void guard_on_set(struct guard *guard, unsigned node, enum reason refused);

enum guard_result guard_on_sample(struct guard *guard, unsigned node,
                                  const struct guard_sample *sample);
void guard_on_facts(struct guard *guard, unsigned node, const struct guard_facts *facts);

/* The node that is the same server as this one, which is duplicate; this one itself if it is not.
 */
unsigned guard_twin(const struct guard *guard, unsigned node);

/* Why the node may not vote now; REASON_NONE if it may. */
enum reason guard_refuses_vote(const struct guard *guard, unsigned node, int64_t now_ns);

/* May every node vote now? The same as to ask of each, and mostly known already.
 * Saves 8 % of the daemon's instructions at 16x16. */
bool guard_all_vote(struct guard *guard, int64_t now_ns);

/* What stands against it by what the node itself has shown; REASON_NONE: nothing. */
enum reason guard_finds(const struct guard *guard, unsigned node, int64_t now_ns);

/*
 * Does the node, which has no vote, carry locks all the same? Not one that other daemons serve, or
 * may: nothing is to be written there.
 */
bool guard_carries(const struct guard *guard, unsigned node, int64_t now_ns);

/* Until when, as far as that is known: INT64_MAX if it depends on somebody else. */
int64_t guard_refuses_until_ns(const struct guard *guard, unsigned node, int64_t now_ns);

/* To be kept with each vote that is asked for, and compared when its guard has passed. */
uint32_t guard_epoch(const struct guard *guard, unsigned node);

/* How far an operator's word has been carried out. */
enum guard_progress { GUARD_UNDER_WAY, GUARD_DONE, GUARD_REFUSED };

/* For bootstrap and reset_set. REFUSED: *node is one that stands against it. UNDER_WAY: *node is
 * one that is waited for. */
enum guard_progress guard_progress(const struct guard *guard, unsigned *node);

/* A daemon without a heartbeat for longer than this counts no votes, whatever its max_ttl. */
#define GUARD_LIFE_NS (5 * NS_PER_S)

/* Is there an operator's override still to be carried out? */
bool guard_has_override(const struct guard *guard);

/* How long the quarantine would be that is written to the node's record now, for this reason. */
int64_t guard_quarantine_ms(const struct guard *guard, unsigned node, enum reason why,
                            int64_t now_ns);

/* The key on each master that says which server is known by the name of this node. */
void guard_name_key(const struct guard *guard, unsigned node, char key[GUARD_NAME_KEY_MAX]);

/* What stands against the vote of this node by the lease on its name that another master has, when
 * its clock says time_us; NUL-terminated. For a daemon that takes no leases itself. */
enum reason guard_lease_finds(const struct guard *guard, unsigned node, const char *lease,
                              int64_t time_us);

/* What to leave with a heartbeat, and what it found: "<a digit for each name> <attestation
 * or -> <step or -> <entry or ->", the answer of heartbeat.lua. */
void guard_heartbeat(const struct guard *guard, unsigned node, int64_t now_ns,
                     struct guard_heartbeat *heartbeat);
void guard_on_heartbeat(struct guard *guard, unsigned node, const struct guard_heartbeat *heartbeat,
                        int64_t sent_ns, const char *text, size_t len, int64_t now_ns);

/* The answer was an error, for this reason. */
void guard_on_heartbeat_failed(struct guard *guard, unsigned node, enum reason reason);

#endif
