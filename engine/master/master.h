/*
 * One master as this daemon sees it: its two connections, what the guard asks of it, what it has
 * refused on this connection, and why it has no vote. Pure.
 *
 * What the guard asks, as Redis commands (guard_io.c):
 *
 *     probe       GET redlockd:node, TIME, INFO replication: behind every batch that asks for votes
 *     heartbeat   INFO memory, INFO stats, a probe, whether a SET of a lock would be taken,
 *                 heartbeat.lua: every guard->heartbeat_ns; where a set is to be reset, also what
 * the daemons of the old one left mark        write_record.lua, and a probe behind it
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
    struct link link;       /* commands; owns what is under way and what is pending_releases */
    struct tracker tracker; /* reports of changes */

    unsigned key_probes;     /* at keys, under way */
    enum reason vote_reason; /* why it has no vote, as last told; REASON_NONE: it has */

    /* On this connection: */
    bool tracking_refused;    /* it does not report changes */
    uint64_t refused_reasons; /* that have been logged; a bit each */

    struct guard *guard;    /* keeps what it concludes from the answers */
    const char *clock_id;   /* of this host's clock: see engine_rules */
    const char *absent_key; /* below the prefix of the locks; none of them can have this name */
    const char *daemon;     /* GUARD_DAEMON bytes: which this is, for the leases of names */
    unsigned signs_due;     /* answers that may be signs of life of the old set, with reset_set */
    int64_t sign_us;        /* the last of them; -1: one of the answers was an error */
    char sign_daemon[GUARD_DAEMON + 1];
    unsigned probes; /* under way, beside those at the end of batches */
    bool heartbeat_in_full;
    struct guard_heartbeat heartbeat; /* the heartbeat under way */
    struct guard_facts facts;
    struct guard_sample sample; /* that is coming in */
    char record[LIMIT_RECORD + 1];
};

/* Why no vote is asked of it now; REASON_NONE: it votes. The one place that knows: the connection
 * comes before the guard. */
enum reason master_refuses_vote(const struct master *master, int64_t now_ns);

/* Its commands can be written to. */
bool master_is_connected(const struct master *master);

/* The connection for commands is lost, and with it what is known of it. */
void master_on_lost(struct master *master);

/* It has answered an error to a command of this kind. True if that is to be logged: once for each
 * reason and connection. */
bool master_note_refusal(struct master *master, enum reason reason);

/* When its current run began, at the latest; INT64_MIN unknown. */
int64_t master_begun_ns(const struct master *master, const struct drift *drift, int64_t now_ns);

/* --- what the guard asks --- */

/* Behind votes: always. These bytes, the same for all nodes, are written by the caller; of each
 * that gets them, the answers are expected. */
extern const char guard_io_probe_bytes[];
extern const size_t guard_io_probe_len;
void guard_io_expect_batch(struct master *master, int64_t now_ns);

/* By itself: unless one is under way already. */
void guard_io_probe(struct master *master, int64_t now_ns);

/* Unless one is under way, or the link is not connected. */
void guard_io_heartbeat(struct master *master, int64_t now_ns);

/* Write the record that the guard wants written, if any. */
void guard_io_write_record(struct master *master, int64_t now_ns);

/* An answer to any of it. */
enum guard_result guard_io_on_reply(struct master *master, const struct outstanding *outstanding,
                                    const struct redis_reply *reply, int64_t now_ns);

#endif
