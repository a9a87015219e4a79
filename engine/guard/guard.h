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
 *     the record on the master (engine/guard/record.h)    restarts, losses, failovers; for all
 * daemons a watch on its clock (engine/guard/clock_monitor.h)         forward steps INFO replicas,
 * eviction what daemons leave for each other (beat.lua)    newcomers, names that point elsewhere
 *
 * A vote is only as good as the guard behind it: every batch of commands that asks for votes ends
 * with a probe (the record, the time, the role), and its votes count only if that sample passes. A
 * vote remembers the epoch of its node when it was written; whatever takes the node's vote begins a
 * new epoch, so nothing written before can count after.
 *
 * A daemon counts a node only if it is settled there: if nothing can have happened to the clock
 * before this daemon looked. It is, once it has watched for a quarantine; or its host has, whose
 * last bounds a daemon left on the master (the clock entry); or a settled daemon has found the
 * clock steady later than our first sample (a vouch, which says how much of the margin may be used
 * up: it is used up for the newcomer as well). Who sees a step leaves word of it on the
 * master: bounds from before are good for nobody then, and who did not look meanwhile begins anew.
 *
 * Two daemons must not come to know different masters by one name. Each leaves on every node the
 * server it knows by each name, as a lease for a quarantine; who finds a name leased to another
 * server gives that name no vote. The lease says who renewed it: another process of the same data
 * gets the name once no other daemon can still count votes of the process before it.
 */
#ifndef ENGINE_GUARD_GUARD_H
#define ENGINE_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/guard/clock_trust.h"
#include "engine/guard/durability.h"
#include "engine/guard/name_lease.h"
#include "engine/guard/record.h"
#include "protocol/limits.h"
#include "protocol/reason.h"
#include "protocol/units.h"

enum {
    GUARD_DAEMON = 16, /* the id of a daemon */
    GUARD_NAME_KEY_MAX = sizeof("redlockd:name::") + RECORD_SET_ID + LIMIT_NODE_NAME,
};

struct guard_rules {
    unsigned node_count;
    unsigned quorum;
    struct drift drift;
    int64_t max_ttl_ns;
    int64_t fence_ttl_ns;
    const char *cluster;
    const char *node_names[LIMIT_NODES];
    unsigned databases[LIMIT_NODES]; /* of the servers that the names lead to */
    /* Nodes that keep on disk whatever they have answered, if their settings say so too. */
    uint32_t durable;
    /* An operator's word that no lock is held: masters without a record are trusted at once, if all
     * of them are there and none has one. */
    bool bootstrap;
    /* An operator's word that the set has changed, and no daemon of the old one runs any more: the
     * records of the set with this id are replaced, once all nodes are there. If one shows all the
     * same that a daemon of the old set runs, none is. NULL without one. */
    const char *reset_set;
    /* Only to look: no master is written to, and none has a vote. */
    bool looks_on;
};

/* What a probe brought back. */
struct guard_sample {
    struct watch_sample clock;
    enum reason failed; /* REASON_NONE, or why an answer was an error; then nothing else is known */
    const char *record; /* NULL without one */
    size_t record_len;
    bool master;        /* INFO replication: role */
    bool replicated;    /* INFO replication: it has replicas, so it may fail over to one */
    bool was_replica;   /* INFO replication: since it started, so its data may be another's */
    const char *replid; /* INFO replication: master_replid, RECORD_ID bytes */
};

/* What INFO says, looked at with every heartbeat. */
struct guard_facts {
    enum reason failed;
    bool may_evict; /* maxmemory is set, and the policy is not noeviction */
    int64_t evicted;
    bool durable; /* its settings keep every command on disk */
};

enum guard_verdict {
    GUARD_PASS, /* the votes asked for before, in the present epoch, count */
    GUARD_WAIT, /* not yet: the answer was slow, or the others have to be heard; probe again */
    GUARD_FAIL, /* they do not count */
};

/* A record to be written, if the one there is still `expected`. */
struct guard_mark {
    char expected[LIMIT_RECORD]; /* "" for none */
    size_t expected_len;
    char text[LIMIT_RECORD]; /* all but the value of join_us */
    size_t text_len;
    int64_t quarantine_us;
    int64_t join_us;    /* join_us is to be at least this */
    const char *run_id; /* whose quarantine, if one is under way, is not to be shortened */
};

/* What a heartbeat leaves on a node. */
struct guard_beat {
    /* "" leaves the one there; "-": there has been a step, all entries and the vouch are void. */
    char entry[GUARD_ENTRY_MAX];
    /* "" leaves the one there; "<the master's clock>:<what may be hidden>", in microseconds. */
    char vouch[GUARD_VOUCH_MAX];
    char step[GUARD_STEP_MAX]; /* where another one is found, the vouch is not left */
    int64_t vouch_ttl_ms;
    int64_t lease_ms;
    int64_t fresh_ms; /* a daemon that renewed a lease may count votes for so long */
    uint32_t names;   /* the nodes that are known */
    /* "<id of the record> <run_id>"; "<database>/" before it where that is not 0. */
    char servers[LIMIT_NODES][GUARD_SERVER_MAX];
};

struct guard_node {
    bool connected;
    char run_id[RECORD_ID + 1]; /* of this connection, or the last one */
    int64_t begun_ns;           /* when that run began, at the latest; INT64_MIN: not known */

    /* The record. */
    bool sampled;        /* on this connection */
    enum reason trouble; /* of the last sample; REASON_NONE: the record is the adopted one */
    char seen[LIMIT_RECORD];
    size_t seen_len;
    bool readable; /* `seen` is a record */
    struct record record;
    char adopted[LIMIT_RECORD];
    size_t adopted_len; /* 0: none yet */
    int64_t known_ns;   /* when the adopted one was last seen there */
    char join_run_id[RECORD_ID + 1];
    int64_t join_us; /* of that run, the highest adopted */
    uint64_t quarantine_mark;
    int64_t quarantine_until_ns;
    enum reason quarantine_why;
    int64_t quarantine_ms; /* how long it is in all */
    char replid[RECORD_ID + 1];

    struct clock_trust clock;
    struct name_lease lease;
    struct durability durability;

    /* Facts, and what other daemons left. */
    bool facts_known;
    bool tainted;   /* it has lost data, or may have, and no record says so yet */
    bool lost_keys; /* it has evicted some since its record was written; the counter may be reset */
    enum reason facts_trouble;
    int64_t evicted;
    int64_t beat_ns; /* when the last heartbeat that was answered was sent */
    enum reason beat_failed;
    enum reason set_refused; /* why it would refuse to set a lock; REASON_NONE: it would not */
    bool doubled;

    /* With reset_set: what daemons of the old set have left there. */
    bool alive_looked;
    bool alive;       /* one has left something since it was looked first: it runs */
    int64_t alive_us; /* the last of it, on the node's clock; 0: nothing */
    char alive_daemon[GUARD_DAEMON + 1]; /* whose that was; "" not known */

    enum reason mark; /* the record to write, and why; REASON_NONE: none */
    bool mark_under_way;
    int64_t marked_ns; /* when the last one was written */
    bool by_word;      /* we wrote its record on an operator's word */
    bool trusted;      /* ... and that is still to settle it */
    uint32_t epoch;
};

struct guard {
    struct guard_rules rules;
    char set_id[RECORD_SET_ID + 1];
    struct guard_periods periods;
    int64_t doubt_until_ns;
    int64_t all_vote_until_ns; /* while no node changes, all may vote before that; 0: not known */
    bool word_done; /* what an operator's word was for: from now on a guard like any other */
    uint32_t probe; /* nodes that are to be probed now; the caller clears it */
    uint32_t beat;  /* nodes that are to get a heartbeat as soon as none is under way; likewise */
    struct guard_node nodes[LIMIT_NODES];
};

void guard_init(struct guard *guard, const struct guard_rules *rules);

/* A connection is up, to a server with this run_id, which began no later than begun_ns (INT64_MIN:
 * it does not say); it is lost. */
void guard_on_connected(struct guard *guard, unsigned node, const char *run_id, int64_t begun_ns);
void guard_on_lost(struct guard *guard, unsigned node);

/* A heartbeat has asked whether a lock may be set there; REASON_NONE: it may. */
void guard_on_set(struct guard *guard, unsigned node, enum reason refused);

enum guard_verdict guard_on_sample(struct guard *guard, unsigned node,
                                   const struct guard_sample *sample);
void guard_on_facts(struct guard *guard, unsigned node, const struct guard_facts *facts);

/* How far the node's clock has stepped back since that was told last, for the log. 0: it has not,
 * or that was only seconds ago: it is told later, with what comes until then. */
int64_t guard_take_step_back(struct guard *guard, unsigned node, int64_t now_ns);

/* The node that is the same server as this one, which is doubled; this one itself if it is not. */
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

/* For reset_set: the last that a daemon of the old set has left on this node, when its clock said
 * time_us (0: nothing), and which daemon, as far as it said ("" if not). */
void guard_on_sign_of_life(struct guard *guard, unsigned node, int64_t time_us, const char *daemon);

/* A daemon without a heartbeat for longer than this counts no votes, whatever its max_ttl. */
#define GUARD_LIFE_NS (5 * NS_PER_S)

/* Is that so fresh that the daemon may still run? Then nothing is written. */
bool guard_shows_life(const struct guard *guard, unsigned node, int64_t now_ns);

/* Is there a record to write? A probe has to follow it. random: 64 bits of it, for a quarantine
 * that begins. */
bool guard_take_mark(struct guard *guard, unsigned node, int64_t now_ns, uint64_t random,
                     struct guard_mark *mark);

/* The key on each master that says which server is known by the name of this node. */
void guard_name_key(const struct guard *guard, unsigned node, char key[GUARD_NAME_KEY_MAX]);

/* What stands against the vote of this node by the lease on its name that another master has, when
 * its clock says time_us; NUL-terminated. For a daemon that takes no leases itself. */
enum reason guard_lease_finds(const struct guard *guard, unsigned node, const char *lease,
                              int64_t time_us);

/* What to leave with a heartbeat, and what it found: "<a digit for each name> <vouch
 * or -> <step or -> <entry or ->", the answer of beat.lua. */
void guard_beat(const struct guard *guard, unsigned node, int64_t now_ns, struct guard_beat *beat);
void guard_on_beat(struct guard *guard, unsigned node, const struct guard_beat *beat,
                   int64_t sent_ns, const char *text, size_t len, int64_t now_ns);

/* The answer was an error, for this reason. */
void guard_on_beat_failed(struct guard *guard, unsigned node, enum reason reason);

#endif
