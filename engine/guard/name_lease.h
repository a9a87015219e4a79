/*
 * Which server do other daemons know under this master's name? Pure.
 *
 * Two daemons must not use different servers under one name. Therefore each daemon writes to every
 * master, with each heartbeat, which server it knows under each name. It does so as a lease that
 * outlives every lock for which a daemon counts a vote of that server before its next heartbeat. A
 * name has a vote while a quorum of the masters leases it to our server and no master leases it to
 * another server. The lease also lists the daemons that have renewed it lately. If another process
 * with the same data takes over, it gets the name once no other daemon can still count votes of the
 * previous process.
 *
 * A master answers one of these about a name:
 *
 *     held        the name is leased to our server now
 *     conflict    it is leased to another server; other_process: to another process with the same
 *                 data
 */
#ifndef ENGINE_GUARD_NAME_LEASE_H
#define ENGINE_GUARD_NAME_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/guard/record.h"
#include "engine/guard/rules.h"
#include "protocol/limits.h"
#include "protocol/reason.h"

enum { GUARD_SERVER_MAX = sizeof("4294967295/") + 2 * RECORD_ID + sizeof(" ") };

struct name_lease {
    uint32_t held_on;       /* masters that lease the name to our server */
    uint32_t conflicts;     /* masters that lease it to another server */
    uint32_t other_process; /* those of `conflicts` that name another process with the same data */
    uint32_t ending; /* those of `conflicts` that have named our server since, but only once */
    int64_t reported_ns[LIMIT_NODES]; /* when each master last reported a conflict; 0: never */
    /* When each of `conflicts` first named our server since, and might have lost the lease of the
     * other one; 0: it has not. */
    int64_t doubted_ns[LIMIT_NODES];
    int64_t conflict_since_ns; /* when the present conflict began; 0: there was none */
    int64_t conflict_until_ns;
    /* From this time on, no other daemon can count votes of the other process, unless that daemon
     * is still connected to it. */
    int64_t handover_ns;
    bool wanted; /* the lease is still to be requested with heartbeats to all masters */
};

/* The server under the name may have changed, or other daemons may have leased the name meanwhile:
 * request the lease anew. */
void name_lease_begin(struct name_lease *lease);

/* The digits in the reply of heartbeat.lua, one for each name. */
enum { LEASE_OURS = '0', LEASE_OTHER = '1', LEASE_OTHER_PROCESS = '2' };

/*
 * A master has answered with this digit. ours: our server is still the one for which the lease was
 * requested. keeps: a probe that was sent with the request shows that the master has kept its data
 * since it last reported a conflict, and that its clock is steady.
 *
 * With its data, or by a step of its clock, a master loses the leases of other daemons too, and no
 * longer reports a conflict. So it ends a conflict only by naming our server twice in a row: the
 * second probe shows whether the master had kept its leases when it gave the first answer. If that
 * is not shown, the conflict lasts as long as if the first answer had reported it again.
 */
void name_lease_on_digit(struct name_lease *lease, const struct guard_periods *periods,
                         unsigned master, char digit, bool ours, bool keeps, int64_t now_ns);

/* The conflict that this master may have reported no longer counts. */
void name_lease_forget(struct name_lease *lease, unsigned master);

/* When a master last reported a conflict. Only if there was one. */
int64_t name_lease_reported_ns(const struct name_lease *lease, const struct guard_periods *periods);

/* Why conflicts take away the vote of the name; REASON_NONE: no conflict. The caller checks by
 * held_on whether a quorum leases the name to our server. If the connection to a master is lost,
 * its last answer stays valid for as long as a lease lasts. */
enum reason name_lease_refuses(const struct name_lease *lease, int64_t now_ns);

/*
 * Format the value of a lease: "<id of the record> <run_id>", preceded by "<database>/" if the
 * database is not 0. heartbeat.lua compares the first RECORD_ID bytes, so a copy of the data with
 * another id, or another database, is another server.
 */
void name_lease_server(unsigned database, const char *id, const char *run_id,
                       char server[GUARD_SERVER_MAX]);

/* Why this lease, NUL-terminated, denies `server` a vote; REASON_NONE: it does not. Signatures from
 * before fresh_ms (a time on the master's clock, in milliseconds) do not count. */
enum reason name_lease_conflict(const char *lease, const char *server, int64_t fresh_ms);

#endif
