/*
 * What tests of the guard do to the masters of a fake cluster, and expect of their votes.
 */
#ifndef TESTS_UNIT_CLUSTER_GUARD_H
#define TESTS_UNIT_CLUSTER_GUARD_H

#include "tests/unit/cluster.h"

/* max_ttl is 60 s, its drift 0.61 s; a heartbeat later at the latest the guard has looked. */
enum { QUARANTINE_MS = 60610, LOOKED_MS = 1100 };

/* All of these nodes vote ("-"), or have no vote for this reason. */
void cluster_expect_votes(const struct cluster *cluster, unsigned first, unsigned last,
                          const char *reason);

/* They have no vote, for this reason, until the quarantine is over; then all of five vote. */
void cluster_expect_quarantine(struct cluster *cluster, unsigned first, unsigned last,
                               const char *reason);

/* "a" is granted to nobody within this time; asked each second. */
void cluster_expect_no_grant_for_s(struct cluster *cluster, unsigned seconds);

/* A key that daemons of the set leave for each other, in a buffer that the next call overwrites. */
const char *cluster_guard_key(const struct cluster *cluster, const char *kind, const char *rest);

/* Replace a word of a master's record by another. */
void cluster_forge(struct cluster *cluster, unsigned node, const char *word, const char *by);

/* The node's table says that this name (":a") is another server's. */
void cluster_lease_to_another(struct cluster *cluster, unsigned node, const char *rest,
                              int64_t ttl_ms);

void cluster_step_clock(struct cluster *cluster, unsigned first, unsigned last, int64_t seconds);

/* "a" is granted for 60 s, and is on A, B and C alone. */
void cluster_lock_on_three(struct cluster *cluster);

/* It restarts, and has all its data. */
void cluster_restart_with_data(struct cluster *cluster, unsigned node);

/* Likewise, and another daemon has recorded it. */
void cluster_restart_recorded(struct cluster *cluster, unsigned node);

#endif
