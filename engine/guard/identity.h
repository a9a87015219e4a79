/*
 * Is this master the one whose votes were counted, with all its data? Pure.
 *
 * A master has a record (record.h) of its data, its process, its replication history and its
 * evicted keys. Each sample compares the master with its record, and the record with the one that
 * was adopted last. Where they differ, the master may have lost data: it has no vote, and needs a
 * new record, which begins a quarantine for all daemons.
 *
 *     presence    AWAY -> CONNECTED -> SAMPLED -> AWAY
 *     error       what the last sample showed; REASON_NONE: the record there is the adopted one.
 *                 The vote comes back when the quarantine of the record has ended
 *     write_why   the reason for which a record has to be written
 *     durability  does the master write every command to disk before it answers? A restart is
 *                 harmless only if this was recorded before the restart and is seen after it
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

/* The result of a probe. */
struct guard_sample {
    struct monitor_sample clock;
    /* REASON_NONE, or why an answer was an error; then the other fields are not set. */
    enum reason failed;
    const char *record; /* NULL without a record */
    size_t record_len;
    bool master;        /* INFO replication: role */
    bool replicated;    /* INFO replication: it has replicas, so it may fail over to one */
    bool was_replica;   /* INFO replication: since its start; the data may be another server's */
    const char *replid; /* INFO replication: master_replid, RECORD_ID bytes */
};

enum durability { DURABILITY_NOT_WANTED, DURABILITY_MISSING, DURABILITY_SEEN };

/* From INFO and CONFIG, read with every heartbeat. */
struct guard_facts {
    enum reason failed;
    bool may_evict; /* maxmemory is set, and the policy is not noeviction */
    int64_t evicted;
    enum durability durability; /* according to its settings, if the configuration wants it */
};

struct record_text {
    char text[LIMIT_RECORD]; /* NUL-terminated */
    size_t len;              /* 0: no record */
};

enum presence { PRESENCE_AWAY, PRESENCE_CONNECTED, PRESENCE_SAMPLED };

/* This daemon wrote the master's record on an operator's override. CLOCK: the override still has
 * to make the clock trusted. */
enum override { OVERRIDE_NONE, OVERRIDE_CLOCK, OVERRIDE_DONE };

struct identity {
    enum presence presence;
    char run_id[RECORD_ID + 1]; /* of this connection, or the last one */
    int64_t begun_ns;           /* when that run began, at the latest; INT64_MIN: not known */
    char replid[RECORD_ID + 1];

    enum reason error;
    struct record_text seen;
    bool readable;        /* `seen` is a record */
    struct record record; /* parsed from `seen`, if readable */
    struct record_text adopted_text;
    struct record adopted;
    int64_t adopted_ns;
    int64_t known_ns; /* when the adopted record was last seen there */
    int64_t quarantine_until_ns;

    enum reason facts_error;
    enum durability durability; /* as last seen */
    int64_t evicted;            /* evicted keys; -1: not known on this connection */
    bool lost_keys; /* keys were evicted since its record was written; the counter may be reset */
    bool data_suspect; /* it may have lost data that no record shows yet */

    enum reason write_why; /* why the guard wants to write a record; REASON_NONE: it does not */
    bool write_under_way;
    int64_t written_ns; /* when the last record was written */
    enum override override;
};

/* The other inputs for the judgement of a sample. */
struct identity_context {
    const char *set_id;
    const char *reset_set; /* replace records of the set with this id; NULL: of no set */
    bool clock_stepped;    /* stepped recently, so no restart is harmless */
    bool has_override;     /* an operator override is under way */
};

void identity_on_connected(struct identity *identity, const char *run_id, int64_t begun_ns);
void identity_on_lost(struct identity *identity);
void identity_on_facts(struct identity *identity, const struct guard_facts *facts);

/* Returns true if another record was adopted. */
bool identity_on_sample(struct identity *identity, const struct guard_periods *periods,
                        const struct identity_context *context, const struct guard_sample *sample);

/* Is the record right except for its durability, so that a new one should replace it? */
bool identity_wants_durability(const struct identity *identity, const struct guard_periods *periods,
                               int64_t now_ns);

/* The wanted record was written; overridden: with the content of an operator override. */
void identity_on_written(struct identity *identity, bool overridden, int64_t now_ns);

/* Why the master's own answers deny it the vote, or REASON_NONE. A reason that an operator can
 * mend comes first. */
enum reason identity_refuses(const struct identity *identity);

/* REASON_NONE, or a reason that ends by itself once the record is written and the quarantine
 * over? */
bool identity_ends_by_itself(enum reason error);

static inline bool identity_is_sampled(const struct identity *identity)
{
    return identity->presence == PRESENCE_SAMPLED;
}

static inline bool identity_facts_known(const struct identity *identity)
{
    return identity->evicted >= 0;
}

#endif
