/*
 * Is this master the one whose votes were counted, with all its data? Pure.
 *
 * A master has a record (record.h) of its data, its process, its replication history and its
 * evicted keys. Each sample compares two things: the master with the record that is on it, and that
 * record with the one that this daemon has adopted, which means accepted as valid. If either
 * differs, the master may have lost data. Then it has no vote and needs a new record, which begins
 * a quarantine for all daemons.
 *
 *     presence    AWAY -> CONNECTED -> SAMPLED -> AWAY
 *     error       what is wrong according to the last sample. REASON_NONE: the record on the
 *                 master is the adopted one, and the vote comes back when the quarantine in the
 *                 record has ended
 *     write_why   the reason for which a record has to be written
 *     durability  does the master write every command to disk before it answers? A restart is
 *                 harmless only if the record said so before the restart, and the settings of the
 *                 master confirm it after the restart
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
    /* Why an answer was an error; then the other fields are not set. REASON_NONE: none was. */
    enum reason failed;
    const char *record; /* NULL: the master has no record */
    size_t record_len;
    bool master;     /* INFO replication: its role is master */
    bool replicated; /* INFO replication: it has replicas, so it may fail over to one */
    /* INFO replication: it was a replica since its start, so its data may be another server's. */
    bool was_replica;
    const char *replid; /* INFO replication: master_replid, RECORD_ID bytes */
};

enum durability { DURABILITY_NOT_WANTED, DURABILITY_MISSING, DURABILITY_SEEN };

/* From INFO and CONFIG, read with every heartbeat. */
struct guard_facts {
    enum reason failed;
    bool may_evict; /* maxmemory is set, and the policy is not noeviction */
    int64_t evicted;
    /* According to the settings of the master; NOT_WANTED: not asked for. */
    enum durability durability;
};

struct record_text {
    char text[LIMIT_RECORD]; /* NUL-terminated */
    size_t len;              /* 0: no record */
};

/* "<mark>.<time>.<number>", see heartbeat.lua. */
enum { IDENTITY_BEATS = 56 };

enum presence { PRESENCE_AWAY, PRESENCE_CONNECTED, PRESENCE_SAMPLED };

/* Has this daemon written the master's record for an operator override? CLOCK: it has, and the
 * override still has to make the clock trusted. DONE: the clock is trusted as well. */
enum override { OVERRIDE_NONE, OVERRIDE_CLOCK, OVERRIDE_DONE };

struct identity {
    enum presence presence;
    char run_id[RECORD_ID + 1]; /* of the present connection, or of the last one */
    int64_t begun_ns; /* the latest time at which that run can have begun; INT64_MIN: not known */
    char replid[RECORD_ID + 1];

    enum reason error;
    struct record_text seen; /* the text of the record on the master, at the last sample */
    bool readable;           /* `seen` could be parsed as a record */
    struct record record;    /* parsed from `seen`, if readable */
    struct record_text adopted_text;
    struct record adopted;
    int64_t adopted_ns; /* when `adopted` was adopted */
    int64_t known_ns;   /* when the adopted record was last seen on the master */
    int64_t quarantine_until_ns;

    enum reason facts_error;    /* what is wrong according to INFO; REASON_NONE: nothing */
    enum durability durability; /* as of the last heartbeat */
    int64_t evicted;            /* number of evicted keys; -1: not known on this connection */
    /* Keys were evicted since the adopted record was written. The flag is needed because the
     * counter of the master may be reset. */
    bool lost_keys;
    bool data_suspect;          /* the master may have lost data, and no record shows it yet */
    char beats[IDENTITY_BEATS]; /* as last seen with the adopted record; "": not yet */
    bool went_back; /* earlier or other beats were seen: the data is older than before */

    /* Why the guard wants to write a record; REASON_NONE: it does not want to. */
    enum reason write_why;
    bool write_under_way;
    int64_t written_ns;      /* when the last record was written */
    enum reason write_error; /* why the master refused that write; REASON_NONE: it did not */
    enum override override;
};

/* What else the judgement of a sample depends on. */
struct identity_context {
    const char *set_id;
    /* --reset-set: replace the records of the set with this id; NULL: without it. */
    const char *reset_set;
    bool clock_stepped; /* the clock has stepped recently, so no restart is harmless */
    bool has_override;  /* an operator override is under way */
};

void identity_on_connected(struct identity *identity, const char *run_id, int64_t begun_ns);
void identity_on_lost(struct identity *identity);
void identity_on_facts(struct identity *identity, const struct guard_facts *facts);

/* The beats of the master (heartbeat.lua), of which all daemons raise the number. If they are
 * earlier than those seen before with the same record, the data went back, and if they are others,
 * another daemon has found that. Returns true if so. */
bool identity_on_beats(struct identity *identity, const char *beats);

/* Judge a sample. Returns true if another record was adopted. */
bool identity_on_sample(struct identity *identity, const struct guard_periods *periods,
                        const struct identity_context *context, const struct guard_sample *sample);

/* Is the record right except for its durability, so that a new record should replace it? */
bool identity_wants_durability(const struct identity *identity, const struct guard_periods *periods,
                               int64_t now_ns);

/* The wanted record is being written. overridden: with the content of an operator override. */
void identity_on_written(struct identity *identity, bool overridden, int64_t now_ns);

/* Why the master has no vote according to its own answers; REASON_NONE: no reason. If there are
 * several reasons, one that an operator can end comes first. */
enum reason identity_refuses(const struct identity *identity);

static inline bool identity_is_sampled(const struct identity *identity)
{
    return identity->presence == PRESENCE_SAMPLED;
}

static inline bool identity_facts_known(const struct identity *identity)
{
    return identity->evicted >= 0;
}

#endif
