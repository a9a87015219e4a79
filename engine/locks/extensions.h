/*
 * How often, and for how long, this daemon has extended each token: for the bounds max_extensions
 * and max_hold. Of a HOLD, those of the daemon itself and of the connection that holds it are not
 * among them: max_hold bounds these from the grant (engine/locks/hold.h). Pure, and of a fixed
 * size: the token that was extended longest ago is forgotten first.
 *
 * Only what was extended is known here, so a LOCK costs nothing, and nor does a token that was made
 * up. The time counts from the first extension.
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
    TAILQ_HEAD(, extended) least_recent;          /* first */
};

/* False if there is not enough memory. The rules outlive it. */
bool extensions_init(struct extensions *extensions, const struct engine_rules *rules);
void extensions_deinit(struct extensions *extensions);

/* May this token be extended now, by ttl_ns? NULL, or the bound that is met: one word for LIMIT. */
const char *extensions_refuse(const struct extensions *extensions, const char *token,
                              int64_t ttl_ns, int64_t now_ns);

/* It was. */
void extensions_count(struct extensions *extensions, const char *token, int64_t now_ns);

/* It is gone, and nobody can extend it any more. */
void extensions_forget(struct extensions *extensions, const char *token);

/* It will be released, sooner or later, and must not be extended until then. */
void extensions_end(struct extensions *extensions, const char *token, int64_t now_ns);
bool extensions_ended(const struct extensions *extensions, const char *token);

#endif
