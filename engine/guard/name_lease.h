/*
 * Which server do other daemons know by the name of this master? Pure.
 *
 * Two daemons must not come to know different masters by one name. With each heartbeat a daemon
 * leaves on every master the server that it knows by each name, as a lease for a quarantine. A name
 * has a vote while it is leased to our server on a quorum, and to no other server. The lease also
 * says which daemons renewed it lately: another process of the same data gets the name once no
 * other daemon can still count votes of the process before it.
 *
 *     each master says of a name    held        it is leased to our server now
 *                                   conflict    to another server; other_process: to another
 *                                               process of the same data
 */
#ifndef ENGINE_GUARD_NAME_LEASE_H
#define ENGINE_GUARD_NAME_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/guard/record.h"
#include "engine/guard/rules.h"
#include "protocol/reason.h"

enum { GUARD_SERVER_MAX = sizeof("4294967295/") + 2 * RECORD_ID + sizeof(" ") };

struct name_lease {
    uint32_t held_on; /* masters where it has been leased to this server */
    uint32_t conflicts;
    uint32_t other_process;    /* some of the conflicts */
    int64_t conflict_since_ns; /* 0: never */
    int64_t conflict_until_ns;
    int64_t handover_ns; /* when no other daemon can still count votes of that process, unless it
                            is connected to it still */
    bool wanted;         /* heartbeats are still to ask for it */
};

/* Another server perhaps, or other daemons may have leased the name meanwhile. */
void name_lease_begin(struct name_lease *lease);

/* What heartbeat.lua answers, a digit for each name. */
enum { LEASE_OURS = '0', LEASE_OTHER = '1', LEASE_OTHER_PROCESS = '2' };

/* A master has said whose the name is. ours: our server is still the one that was asked for. */
void name_lease_on_digit(struct name_lease *lease, const struct guard_periods *periods,
                         unsigned master, char digit, bool ours, int64_t now_ns);

/* REASON_NONE, or what the masters have said. Of one that is lost, that stays true for as long as a
 * lease. */
enum reason name_lease_refuses(const struct name_lease *lease, int64_t now_ns);

/* What a lease is for: "<id of the record> <run_id>", "<database>/" before it where that is not 0.
 * A copy of the data is another server, and so is another database: heartbeat.lua compares the
 * first RECORD_ID bytes. */
void name_lease_server(unsigned database, const char *id, const char *run_id,
                       char server[GUARD_SERVER_MAX]);

/* What is against this server's vote by a lease found, NUL-terminated. Signatures older than
 * fresh_ms, in the master's time, do not count. */
enum reason name_lease_finds(const char *lease, const char *server, int64_t fresh_ms);

#endif
