/*
 * A lock that the daemon extends for as long as its client is connected: when to extend it, and
 * when to say that it is lost. Pure.
 *
 *     granted        renew                     lost         until
 *        |-------------|-------------------------|------------|
 *        0            ttl/3                     until - ttl/3
 *
 * It is lost while a third of the time to live is left, so that its client can stop in time, and so
 * that an answer of the daemon that no loss precedes proves it for a third of the time to live.
 */
#ifndef ENGINE_LOCKS_HOLD_H
#define ENGINE_LOCKS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"

struct hold {
    int64_t ttl_ns;
    int64_t drift_ns; /* of that time to live */
    int64_t since_ns; /* when the round began that was granted */
    int64_t until_ns; /* what its client may rely on */
    int64_t retry_ns; /* an extension has failed: the next not before this */
};

/* Granted for ttl_ns by a round that began at since_ns, to be trusted until until_ns. */
void hold_init(struct hold *hold, int64_t ttl_ns, int64_t since_ns, int64_t until_ns);

/* An extension was granted, to be trusted until then. It never shortens. */
void hold_on_extended(struct hold *hold, int64_t until_ns);

/* One has failed: when to try again. */
void hold_on_failed(struct hold *hold, int64_t backoff_ns, int64_t now_ns);

/* When the next extension is due; INT64_MAX once it has been held as long as it may be. */
int64_t hold_renew_ns(const struct hold *hold, int64_t max_hold_ns);

/* May it be extended at now_ns by ttl_ns? Not beyond the longest hold, counted from its grant. */
bool hold_may_extend(const struct hold *hold, int64_t ttl_ns, int64_t max_hold_ns, int64_t now_ns);

/* When it is lost, if nothing extends it. */
int64_t hold_lost_ns(const struct hold *hold);

/* The shortest time to live with which an extension has the time of one round before it is lost. */
int64_t hold_shortest_ms(const struct drift *drift, int64_t node_timeout_ns);

#endif
