/*
 * Faults of masters and expected votes, for tests of the guard.
 */
#ifndef TESTS_UNIT_CLUSTER_GUARD_H
#define TESTS_UNIT_CLUSTER_GUARD_H

#include "tests/unit/cluster.h"

/* A quarantine lasts max_ttl (60 s) and its drift (0.61 s). OBSERVED_MS: after this time the guard
 * has sent a heartbeat and acted on its answer. */
enum { QUARANTINE_MS = 60610, OBSERVED_MS = 1100 };

/* Assert that cluster_vote() of each of these nodes is `reason`: the word that says why the node
 * has no vote, or "-" if it votes. */
void cluster_expect_votes(const struct cluster *cluster, unsigned first, unsigned last,
                          const char *reason);

/* Assert that these nodes have no vote, for this reason, until the quarantine ends, and that all
 * five nodes vote after it. */
void cluster_expect_quarantine(struct cluster *cluster, unsigned first, unsigned last,
                               const char *reason);

/* Send "LOCK a 60s" once a second, and assert that it is never granted. */
void cluster_expect_no_grant_for_s(struct cluster *cluster, unsigned seconds);

/* The name of a key of the guard, "redlockd:<kind>:<set id><rest>", in a buffer that the next call
 * overwrites. For example, kind "name" and rest ":a" give the key of the name lease of master A. */
const char *cluster_guard_key(const struct cluster *cluster, const char *kind, const char *rest);

/* Replace the first occurrence of a word in a master's record. */
void cluster_forge(struct cluster *cluster, unsigned node, const char *word, const char *by);

/* Write a name lease to this node: the master's name in `rest` (":a" for A) belongs to a server
 * that is none of the masters. */
void cluster_lease_to_another(struct cluster *cluster, unsigned node, const char *rest,
                              int64_t ttl_ms);

/* The beats that the node's answer to the next heartbeat will have. */
void cluster_next_beats(struct cluster *cluster, unsigned node, char beats[IDENTITY_BEATS]);

void cluster_step_clock(struct cluster *cluster, unsigned first, unsigned last, int64_t seconds);

/* "a" is granted for 60 s, and its key is on A, B and C only. */
void cluster_lock_on_three(struct cluster *cluster);

/* Restart the master with all its data. */
void cluster_restart_with_data(struct cluster *cluster, unsigned node);

/* Restart the master with all its data; another daemon has already updated its record. */
void cluster_restart_recorded(struct cluster *cluster, unsigned node);

#endif
