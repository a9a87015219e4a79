/*
 * One master as this daemon sees it: its two connections, the guard's commands to it, what it has
 * refused on this connection, and why it has no vote. Pure.
 *
 * The guard's commands (guard_io.c):
 *
 *     probe         after every batch of votes, and whenever the guard asks for one: GET
 *                   redlockd:node, TIME, INFO replication
 *
 *     heartbeat     at every interval of guard->periods.heartbeat_ns: INFO memory, INFO stats, a
 *                   probe, a SET that writes nothing but shows whether the SET of a lock would be
 *                   accepted, and heartbeat.lua. On a durable node, the daemon also reads the
 *                   settings. With --reset-set, it also reads what the daemons of the old set have
 *                   left. A daemon that must not write (read_only) sends PING instead of the SET
 *                   and heartbeat.lua
 *
 *     record write  when the record has to be replaced: write_record.lua, and a probe
 */
#ifndef ENGINE_MASTER_MASTER_H
#define ENGINE_MASTER_MASTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/guard/guard.h"
#include "engine/master/link.h"
#include "engine/master/tracker.h"
#include "protocol/reason.h"

struct master {
    /* The connection for commands; has the outstanding commands and the pending releases. */
    struct link link;
    struct tracker tracker; /* the connection for reports of changed keys */

    unsigned key_probes; /* key probes and far queries that this master has not answered */
    /* Why the master has no vote, and until when (master_refuses_until_ns()), as last reported;
     * REASON_NONE: it has one. */
    enum reason vote_reason;
    int64_t vote_ns;

    /* Reasons of error replies that were already logged, one bit for each reason. Reset when the
     * connection is lost. */
    uint64_t refused_reasons;

    struct guard *guard;    /* draws conclusions from the answers to its commands */
    const char *clock_id;   /* the identity of this host's clock: see engine_rules */
    const char *absent_key; /* a key with the prefix of the locks that no lock can have */
    const char *daemon;     /* GUARD_DAEMON bytes: the id of this daemon */
    /* With reset_set: answers still missing that can contain a sign of life of a daemon of the old
     * set. */
    unsigned signs_of_life_due;
    int64_t sign_of_life_us; /* the latest sign of life so far; -1: an answer could not be read */
    char sign_of_life_daemon[GUARD_DAEMON + 1];
    unsigned probes;        /* probes under way, except for the probes after batches of votes */
    bool heartbeat_in_full; /* send heartbeat.lua as text, not by its SHA1 */
    struct guard_heartbeat heartbeat; /* what the heartbeat under way leaves */
    struct guard_facts facts;
    struct guard_sample sample; /* the probe whose answers are being received */
    char record[LIMIT_RECORD];  /* what sample.record points to */
};

/* Why the master has no vote now; REASON_NONE: it has one. Checks the connection first, then
 * asks the guard. */
enum reason master_refuses_vote(const struct master *master, int64_t now_ns);

/* Until when the master has no vote, as far as is known. now_ns: it has its vote. INT64_MAX: time
 * alone does not bring the vote back. */
int64_t master_refuses_until_ns(const struct master *master, int64_t now_ns);

/* Can commands be written to the master? */
bool master_is_connected(const struct master *master);

/* The connection for commands is lost: reset what was known only for that connection. */
void master_on_lost(struct master *master);

/* The master has answered a command by an error, for this reason. Returns true if the caller should
 * log that: once for each reason and connection, and never for REASON_NOSCRIPT. */
bool master_note_refusal(struct master *master, enum reason reason);

/* The latest time at which the present run of the server can have begun, from its uptime;
 * INT64_MIN: not known. */
int64_t master_begun_ns(const struct master *master, const struct drift *drift, int64_t now_ns);

/* --- the guard's commands --- */

/* The probe that follows each batch of votes. The bytes are the same for all nodes. The caller
 * writes them, and calls guard_io_expect_batch() for each node that gets them. */
extern const char guard_io_probe_bytes[];
extern const size_t guard_io_probe_len;
void guard_io_expect_batch(struct master *master, int64_t now_ns);

/* Send a probe that belongs to no batch of votes, unless such a probe is under way. */
void guard_io_probe(struct master *master, int64_t now_ns);

/* Send a heartbeat, unless one is under way, or the link is not connected. */
void guard_io_heartbeat(struct master *master, int64_t now_ns);

/* If the guard wants a record to be written to this master, write it. */
void guard_io_write_record(struct master *master, int64_t now_ns);

/* Handle the answer to any of these commands. */
enum guard_result guard_io_on_reply(struct master *master, const struct outstanding *outstanding,
                                    const struct redis_reply *reply, int64_t now_ns);

#endif
