/*
 * How often and for how long this daemon has extended each token, for the limits max_extensions and
 * max_hold. Pure. The time of a token counts from its first granted extension.
 *
 * Only extensions on request of a client are counted, and not those by the connection that holds
 * the lock. That connection, and the daemon itself for a HOLD, are limited by max_hold from the
 * grant on (engine/locks/hold.h).
 *
 * The table has a fixed size. When it is full, it forgets the token whose last extension is oldest.
 * Only tokens that were extended, or given to extension_limits_end(), have an entry. So neither a
 * LOCK nor a made-up token costs memory.
 */
#ifndef ENGINE_LOCKS_EXTENSION_LIMITS_H
#define ENGINE_LOCKS_EXTENSION_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/flight/io.h"
#include "engine/pool.h"

struct extended;

struct extension_limits {
    const struct engine_rules *rules;
    struct pool pool;
    LIST_HEAD(extended_chain, extended) * chains; /* by the hash of the token */
    TAILQ_HEAD(, extended) least_recent;          /* least recently extended first */
};

/* Returns false if there is not enough memory. rules must outlive limits. */
bool extension_limits_init(struct extension_limits *limits, const struct engine_rules *rules);
void extension_limits_deinit(struct extension_limits *limits);

/* May this token be extended now by ttl_ns? NULL: yes. Otherwise the limit that forbids it, as the
 * word that follows LIMIT in the reply. */
const char *extension_limits_refuse(const struct extension_limits *limits, const char *token,
                                    int64_t ttl_ns, int64_t now_ns);

/* Count a granted extension of this token. */
void extension_limits_count(struct extension_limits *limits, const char *token, int64_t now_ns);

/* The token has been released by a quorum, so it cannot be extended any more: forget it. */
void extension_limits_forget(struct extension_limits *limits, const char *token);

/* extension_limits_end(): the token is going to be released. From now on it must not be extended,
 * even if a master still has it. extension_limits_ended(): was it called for this token? */
void extension_limits_end(struct extension_limits *limits, const char *token, int64_t now_ns);
bool extension_limits_ended(const struct extension_limits *limits, const char *token);

#endif
