/* The internals of the engine, for its own files and for tests. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/flight/flights.h"
#include "engine/flight/self_test.h"
#include "engine/flight/write.h"
#include "engine/locks/manager.h"

struct engine {
    struct engine_rules rules;
    struct engine_io io;
    struct engine_stats stats;
    struct flights flights;
    struct lock_manager manager;
    int64_t flushed_ns; /* time of the last engine_flush() */
};

/* Like engine_new() and engine_free(), but the caller provides the memory of struct engine.
 * engine_init() returns false if there is not enough memory for what struct engine points to. */
bool engine_init(struct engine *engine, const struct engine_rules *rules,
                 const struct engine_io *io, int64_t now_ns);
void engine_deinit(struct engine *engine);

#endif
