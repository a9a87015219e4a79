/*
 * One master as this daemon sees it: its two connections, the guard's commands to it, what it has
 * refused on this connection, and why it has no vote. Pure.
 *
 * The guard's commands (guard_io.c):
 *
 *     probe         GET redlockd:node, TIME, INFO replication: after every batch that asks for
 * votes heartbeat     INFO memory, INFO stats, a probe, whether a SET of a lock would be accepted,
 *                   heartbeat.lua: every guard->heartbeat_ns. For --reset-set, also what
 *                   the daemons of the old set have left
 *     record write  write_record.lua, and a probe after it
 */
#ifndef ENGINE_MASTER_MASTER_H
#define ENGINE_MASTER_MASTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/guard/record_write.h"
#include "engine/master/link.h"
#include "engine/master/tracker.h"
#include "protocol/reason.h"

struct master {
    struct link link;       /* commands; owns the outstanding commands and pending releases */
    struct tracker tracker; /* reports of changes */

    unsigned key_probes;     /* key probes under way */
    enum reason vote_reason; /* why it has no vote, as last reported; REASON_NONE: it votes */

    /* State of this connection: */
    bool tracking_refused;    /* it refuses to report changes */
    uint64_t refused_reasons; /* reasons already logged, one bit each */

    struct guard *guard;    /* draws the conclusions from the answers */
    const char *clock_id;   /* of this host's clock: see engine_rules */
    const char *absent_key; /* below the prefix of the locks; no lock can have this name */
    const char *daemon;     /* GUARD_DAEMON bytes: this daemon's id, for the name leases */
    /* Answers still to come that may be signs of life of the old set (reset_set). */
    unsigned signs_of_life_due;
    int64_t sign_of_life_us; /* the latest of them; -1: one of the answers was an error */
    char sign_of_life_daemon[GUARD_DAEMON + 1];
    unsigned probes; /* probes under way, except for those at the end of batches */
    bool heartbeat_in_full;
    struct guard_heartbeat heartbeat; /* the heartbeat under way */
    struct guard_facts facts;
    struct guard_sample sample; /* being received */
    char record[LIMIT_RECORD + 1];
};

/* Why no vote is asked of it now; REASON_NONE: it votes. All callers get the answer here: the
 * connection is checked before the guard. */
enum reason master_refuses_vote(const struct master *master, int64_t now_ns);

/* Can commands be written to it? */
bool master_is_connected(const struct master *master);

/* The connection for commands is lost; reset what was known of it. */
void master_on_lost(struct master *master);

/* It has answered an error for this reason. Returns true if the caller should log it: once for each
 * reason and connection. */
bool master_note_refusal(struct master *master, enum reason reason);

/* When its present run began, at the latest; INT64_MIN: not known. */
int64_t master_begun_ns(const struct master *master, const struct drift *drift, int64_t now_ns);

/* --- the guard's commands --- */

/* The probe after votes, which is always sent. The bytes are the same for all nodes, and the
 * caller writes them; guard_io_expect_batch() is called for each node that gets them. */
extern const char guard_io_probe_bytes[];
extern const size_t guard_io_probe_len;
void guard_io_expect_batch(struct master *master, int64_t now_ns);

/* Send a single probe, unless one is under way. */
void guard_io_probe(struct master *master, int64_t now_ns);

/* Send a heartbeat, unless one is under way, or the link is not connected. */
void guard_io_heartbeat(struct master *master, int64_t now_ns);

/* Write the record that the guard wants written, if any. */
void guard_io_write_record(struct master *master, int64_t now_ns);

/* An answer to any of these commands. */
enum guard_result guard_io_on_reply(struct master *master, const struct outstanding *outstanding,
                                    const struct redis_reply *reply, int64_t now_ns);

#endif
