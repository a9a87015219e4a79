/*
 * A lock that the daemon extends while its client is connected: when to extend it, and when to
 * report it as lost. Pure.
 *
 *     granted        renew                     lost         until
 *        |-------------|-------------------------|------------|
 *        0            ttl/3                     until - ttl/3
 *
 * The hold is lost while a third of the TTL is left, so that its client can stop in time. A reply
 * of the daemon that no LOST precedes therefore proves the hold for a third of the TTL.
 */
#ifndef ENGINE_LOCKS_HOLD_H
#define ENGINE_LOCKS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"

struct hold {
    int64_t ttl_ns;
    int64_t drift_ns; /* clock drift within that TTL */
    int64_t since_ns; /* start of the round that was granted */
    int64_t until_ns; /* end of the validity promised to the client */
    int64_t retry_ns; /* earliest next attempt after a failed extension */
};

/* The hold was granted for ttl_ns by a round that began at since_ns. It is valid until until_ns. */
void hold_init(struct hold *hold, int64_t ttl_ns, int64_t since_ns, int64_t until_ns);

/* An extension was granted, valid until until_ns. It never shortens the hold. */
void hold_on_extended(struct hold *hold, int64_t until_ns);

/* An extension has failed: try again after backoff_ns. */
void hold_on_failed(struct hold *hold, int64_t backoff_ns, int64_t now_ns);

/* When the next extension is due; INT64_MAX once max_hold_ns is used up. */
int64_t hold_renew_ns(const struct hold *hold, int64_t max_hold_ns);

/* May the hold be extended at now_ns by ttl_ns? Not beyond max_hold_ns, counted from the grant. */
bool hold_may_extend(const struct hold *hold, int64_t ttl_ns, int64_t max_hold_ns, int64_t now_ns);

/* When the hold is lost unless an extension succeeds. */
int64_t hold_lost_ns(const struct hold *hold);

/* The shortest TTL that leaves an extension the time of one round before the hold is lost. */
int64_t hold_shortest_ms(const struct drift *drift, int64_t node_timeout_ns);

#endif
