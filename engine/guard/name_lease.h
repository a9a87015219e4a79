/*
 * Which server do other daemons know under this master's name? Pure.
 *
 * Two daemons must not use different masters under one name. With each heartbeat a daemon leaves on
 * every master the server that it knows under each name, as a lease for a quarantine. A name has a
 * vote while a quorum leases it to our server and no master leases it to another one. The lease
 * also lists the daemons that renewed it lately. Another process with the same data gets the name
 * once no other daemon can still count votes of the previous process.
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
    uint32_t held_on; /* masters where the name was leased to this server */
    uint32_t conflicts;
    uint32_t other_process;    /* subset of conflicts */
    int64_t conflict_since_ns; /* 0: never */
    int64_t conflict_until_ns;
    /* From then on no other daemon can count votes of that process, except for a daemon that is
     * still connected to the process. */
    int64_t handover_ns;
    bool wanted; /* heartbeats still have to ask for the lease */
};

/* The server may have changed, or other daemons may have leased the name meanwhile. */
void name_lease_begin(struct name_lease *lease);

/* The digit for each name in the answer of heartbeat.lua. */
enum { LEASE_OURS = '0', LEASE_OTHER = '1', LEASE_OTHER_PROCESS = '2' };

/* A master has answered about the name. ours: our server is still the one that was asked for. */
void name_lease_on_digit(struct name_lease *lease, const struct guard_periods *periods,
                         unsigned master, char digit, bool ours, int64_t now_ns);

/* Why the name has no vote, or REASON_NONE. The answer of a lost master stays valid for the time
 * of a lease. */
enum reason name_lease_refuses(const struct name_lease *lease, int64_t now_ns);

/*
 * The value of a lease: "<id of the record> <run_id>", with "<database>/" in front where that is
 * not 0. A copy of the data, or another database, is another server: heartbeat.lua compares the
 * first RECORD_ID bytes.
 */
void name_lease_server(unsigned database, const char *id, const char *run_id,
                       char server[GUARD_SERVER_MAX]);

/* Why a NUL-terminated lease denies this server a vote, or REASON_NONE. Signatures older than
 * fresh_ms, on the master's clock, do not count. */
enum reason name_lease_conflict(const char *lease, const char *server, int64_t fresh_ms);

#endif
