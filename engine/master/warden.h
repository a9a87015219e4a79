/*
 * What the guard asks of one master, as Redis commands, and what the answers mean to it. Pure.
 *
 *     probe       GET redlockd:node, TIME, INFO replication: behind every batch that asks for votes
 *     heartbeat   INFO memory, INFO stats, a probe, whether a SET of a lock would be taken,
 *                 beat.lua: every guard->heartbeat_ns; where a set is to be reset, also what the
 *                 daemons of the old one left
 *     mark        mark.lua, and a probe behind it
 */
#ifndef ENGINE_MASTER_WARDEN_H
#define ENGINE_MASTER_WARDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/guard/record_write.h"
#include "engine/master/link.h"

struct warden {
    struct guard *guard;
    struct link *link;
    unsigned node;
    const char *clock_id;   /* of this host's clock: see engine_rules */
    const char *absent_key; /* below the prefix of the locks; none of them can have this name */
    char daemon[GUARD_DAEMON + 1]; /* which daemon this is, for the leases of names */

    unsigned signs_due; /* answers that may be signs of life of the old set, with reset_set */
    int64_t sign_us;    /* the last of them; -1: one of the answers was an error */
    char sign_daemon[GUARD_DAEMON + 1];
    unsigned probes; /* under way, beside those at the end of batches */
    bool beat_in_full;
    struct guard_beat beat; /* the heartbeat under way */
    struct guard_facts facts;

    /* The sample that is coming in. */
    struct guard_sample sample;
    char record[LIMIT_RECORD + 1];
};

/* Behind votes: always. These bytes, the same for all nodes, are written by the caller; the warden
 * of each that gets them is told. */
extern const char warden_probe_bytes[];
extern const size_t warden_probe_len;
void warden_expect_batch(struct warden *warden, int64_t now_ns);

/* By itself: unless one is under way already. */
void warden_probe(struct warden *warden, int64_t now_ns);

/* Unless one is under way, or the link is not connected. */
void warden_heartbeat(struct warden *warden, int64_t now_ns);

/* Write the record that the guard wants written, if any. */
void warden_mark(struct warden *warden, int64_t now_ns);

/* An answer to any of it, or the loss of the connection. */
enum guard_verdict warden_on_reply(struct warden *warden, const struct link_ticket *ticket,
                                   const struct redis_reply *reply, int64_t now_ns);
void warden_on_lost(struct warden *warden);

#endif
