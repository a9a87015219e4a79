/*
 * How often and for how long this daemon has extended each token, for the limits max_extensions and
 * max_hold. Pure. The time of a token counts from its first granted extension.
 *
 * Only extensions on request of a client are counted, and not those by the connection that holds
 * the lock. That connection, and the daemon itself for a HOLD, are limited by max_hold from the
 * grant on (engine/locks/hold.h).
 *
 * The table has a fixed size. When it is full, it forgets the token whose last extension is oldest.
 * Only tokens that were extended, or given to extensions_end(), have an entry. So neither a LOCK
 * nor a made-up token costs memory.
 */
#ifndef ENGINE_LOCKS_EXTENSIONS_H
#define ENGINE_LOCKS_EXTENSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/flight/io.h"
#include "engine/pool.h"

struct extended;

struct extensions {
    const struct engine_rules *rules;
    struct pool pool;
    LIST_HEAD(extended_chain, extended) * chains; /* by the hash of the token */
    TAILQ_HEAD(, extended) least_recent;          /* least recently extended first */
};

/* Returns false if there is not enough memory. rules must outlive extensions. */
bool extensions_init(struct extensions *extensions, const struct engine_rules *rules);
void extensions_deinit(struct extensions *extensions);

/* May this token be extended now by ttl_ns? NULL: yes. Otherwise the limit that forbids it, as the
 * word that follows LIMIT in the reply. */
const char *extensions_refuse(const struct extensions *extensions, const char *token,
                              int64_t ttl_ns, int64_t now_ns);

/* Count a granted extension of this token. */
void extensions_count(struct extensions *extensions, const char *token, int64_t now_ns);

/* The token has been released by a quorum, so it cannot be extended any more: forget it. */
void extensions_forget(struct extensions *extensions, const char *token);

/* extensions_end(): the token is going to be released. From now on it must not be extended, even if
 * a master still has it. extensions_ended(): was it called for this token? */
void extensions_end(struct extensions *extensions, const char *token, int64_t now_ns);
bool extensions_ended(const struct extensions *extensions, const char *token);

#endif
