/*
 * A lock that the daemon extends while its client is connected: when the daemon extends it, and
 * when it reports it as lost. Pure; engine/locks/grants.c acts.
 *
 *     granted        renew                     lost         until
 *        |-------------|-------------------------|------------|
 *        0            ttl/3                     until - ttl/3
 *
 * The hold counts as lost when a third of the TTL is left, so that its client has time to stop. So
 * if the daemon sends a client a reply and has sent no LOST before it, the hold is valid for
 * another third of the TTL from that moment on.
 */
#ifndef ENGINE_LOCKS_HOLD_H
#define ENGINE_LOCKS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"

struct hold {
    int64_t ttl_ns;
    int64_t drift_ns; /* the clock drift that is subtracted from that TTL */
    int64_t since_ns; /* start of the round that was granted */
    int64_t until_ns; /* end of the validity promised to the client */
    /* After a failed extension: earliest time of the next attempt; 0: none has failed. */
    int64_t retry_ns;
};

/* The lock was granted for ttl_ns by a round that began at since_ns, and is valid until
 * until_ns. */
void hold_init(struct hold *hold, int64_t ttl_ns, int64_t since_ns, int64_t until_ns);

/* An extension was granted: the lock is valid until until_ns. This never shortens the hold. */
void hold_on_extended(struct hold *hold, int64_t until_ns);

/* An extension has failed: try again after backoff_ns. */
void hold_on_failed(struct hold *hold, int64_t backoff_ns, int64_t now_ns);

/* When the next extension is due; INT64_MAX once max_hold_ns is used up. */
int64_t hold_renew_ns(const struct hold *hold, int64_t max_hold_ns);

/* May the hold be extended at now_ns by ttl_ns? It may not if it would then last longer than
 * max_hold_ns from its grant. */
bool hold_may_extend(const struct hold *hold, int64_t ttl_ns, int64_t max_hold_ns, int64_t now_ns);

/* When the hold counts as lost if no extension succeeds before. */
int64_t hold_lost_ns(const struct hold *hold);

/* The shortest TTL with which an extension has node_timeout_ns, the time of one round, before the
 * hold counts as lost. */
int64_t hold_shortest_ms(const struct drift *drift, int64_t node_timeout_ns);

#endif
