/*
 * How often and for how long this daemon has extended each token. The limits max_extensions and
 * max_hold need it. Extensions of a HOLD by the daemon, or by the connection that holds it, are not
 * counted here: max_hold limits them from the grant on (engine/locks/hold.h). Pure. The table has a
 * fixed size and forgets the token first whose last extension is oldest.
 *
 * Only extended tokens have an entry, so neither a LOCK nor a made-up token costs anything. The
 * time counts from the first extension.
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

/* May this token be extended now by ttl_ns? Returns NULL, or the limit that forbids it: the word
 * that follows LIMIT. */
const char *extensions_refuse(const struct extensions *extensions, const char *token,
                              int64_t ttl_ns, int64_t now_ns);

/* Count an extension of this token. */
void extensions_count(struct extensions *extensions, const char *token, int64_t now_ns);

/* The token is gone from the masters, so it cannot be extended any more. */
void extensions_forget(struct extensions *extensions, const char *token);

/* The token is going to be released. From now on it must not be extended, even if a master still
 * has it. */
void extensions_end(struct extensions *extensions, const char *token, int64_t now_ns);
bool extensions_ended(const struct extensions *extensions, const char *token);

#endif
