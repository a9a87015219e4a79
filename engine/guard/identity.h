/*
 * Is this master the one whose votes were counted, with all its data? Pure.
 *
 * A master bears a record (record.h) of its data, its process, its replication history and its
 * evicted keys. Each sample compares the master with its record, and that with the record which was
 * adopted last. Where they differ, the master may have lost data: it has no vote, and wants a new
 * record, which begins a quarantine for all daemons.
 *
 *     presence    AWAY -> CONNECTED -> SAMPLED -> AWAY
 *     error       what the last sample showed; REASON_NONE: the record there is the adopted one.
 *                 The vote comes back when the quarantine of the record has ended
 *     write_why   the record that is to be written, and why
 *     durability  does it keep on disk whatever it has answered? Only what was recorded before a
 *                 restart, and is seen after it, makes that harmless
 */
#ifndef ENGINE_GUARD_IDENTITY_H
#define ENGINE_GUARD_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/guard/clock_monitor.h"
#include "engine/guard/record.h"
#include "engine/guard/rules.h"
#include "protocol/limits.h"
#include "protocol/reason.h"

/* What a probe brought back. */
struct guard_sample {
    struct monitor_sample clock;
    enum reason failed; /* REASON_NONE, or why an answer was an error; then nothing else is known */
    const char *record; /* NULL without one */
    size_t record_len;
    bool master;        /* INFO replication: role */
    bool replicated;    /* INFO replication: it has replicas, so it may fail over to one */
    bool was_replica;   /* INFO replication: since it started, so its data may be another's */
    const char *replid; /* INFO replication: master_replid, RECORD_ID bytes */
};

enum durability { DURABILITY_NOT_WANTED, DURABILITY_MISSING, DURABILITY_SEEN };

/* What INFO and CONFIG say, looked at with every heartbeat. */
struct guard_facts {
    enum reason failed;
    bool may_evict; /* maxmemory is set, and the policy is not noeviction */
    int64_t evicted;
    enum durability durability; /* as its settings show it, if the configuration wants it */
};

struct record_text {
    char text[LIMIT_RECORD]; /* with a final NUL */
    size_t len;              /* 0: none */
};

enum presence { PRESENCE_AWAY, PRESENCE_CONNECTED, PRESENCE_SAMPLED };

/* We wrote its record on an operator's word: CLOCK while that is still to make its clock trusted.
 */
enum override { OVERRIDE_NONE, OVERRIDE_CLOCK, OVERRIDE_DONE };

struct identity {
    enum presence presence;
    char run_id[RECORD_ID + 1]; /* of this connection, or the last one */
    int64_t begun_ns;           /* when that run began, at the latest; INT64_MIN: not known */
    char replid[RECORD_ID + 1];

    enum reason error;
    struct record_text seen;
    bool readable;        /* `seen` is a record */
    struct record record; /* which says this */
    struct record_text adopted_text;
    struct record adopted;
    int64_t adopted_ns;
    int64_t known_ns; /* when the adopted one was last seen there */
    int64_t quarantine_until_ns;

    enum reason facts_error;
    enum durability durability; /* as last seen */
    int64_t evicted;            /* keys; -1: not known on this connection */
    bool lost_keys;    /* some were since its record was written; the counter may be reset */
    bool data_suspect; /* it has lost data, or may have, and no record says so yet */

    enum reason write_why; /* REASON_NONE: no record is to be written */
    bool write_under_way;
    int64_t written_ns; /* when the last one was written */
    enum override override;
};

/* What else decides about a sample. */
struct identity_context {
    const char *set_id;
    const char *reset_set; /* records of the set with this id are to be replaced; NULL: of none */
    bool clock_stepped;    /* lately: no restart is harmless */
    bool has_override;     /* an operator's, which is under way */
};

void identity_on_connected(struct identity *identity, const char *run_id, int64_t begun_ns);
void identity_on_lost(struct identity *identity);
void identity_on_facts(struct identity *identity, const struct guard_facts *facts);

/* True if another record was adopted. */
bool identity_on_sample(struct identity *identity, const struct guard_periods *periods,
                        const struct identity_context *context, const struct guard_sample *sample);

/* Is the record right, but to be replaced by one that says otherwise whether it is durable? */
bool identity_wants_durability(const struct identity *identity, const struct guard_periods *periods,
                               int64_t now_ns);

/* The record that it wants is written; overridden: as an operator's override says. */
void identity_on_written(struct identity *identity, bool overridden, int64_t now_ns);

/* REASON_NONE, or what it has told against itself; first what an operator can do something about.
 */
enum reason identity_refuses(const struct identity *identity);

/* REASON_NONE, or is there nothing to be done about it but to write its record and to wait? */
bool identity_heals(enum reason error);

static inline bool identity_is_sampled(const struct identity *identity)
{
    return identity->presence == PRESENCE_SAMPLED;
}

static inline bool identity_facts_known(const struct identity *identity)
{
    return identity->evicted >= 0;
}

#endif
