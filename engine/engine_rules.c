#include <assert.h>
#include <string.h>

#include "engine/engine_parts.h"

/* Of those that may not change, what is no text: that is the configuration's, and stays. */
static void check_fixed(const struct engine_rules *a, const struct engine_rules *b)
{
    assert(a->round.node_count == b->round.node_count);
    assert(a->round.node_timeout_ns == b->round.node_timeout_ns);
    assert(a->round.min_validity_ns == b->round.min_validity_ns);
    assert(a->round.drift.rate_ppm == b->round.drift.rate_ppm);
    assert(a->round.drift.margin_ns == b->round.drift.margin_ns);
    assert(a->key_prefix == b->key_prefix);
    assert(a->max_ttl_ns == b->max_ttl_ns);
    assert(a->fence_ttl_ns == b->fence_ttl_ns);
    assert(a->waiters == b->waiters);
    assert(a->durable == b->durable);
}

void engine_retune(struct engine *engine, const struct engine_rules *rules)
{
    struct engine_rules *own = &engine->rules;
    check_fixed(own, rules);
    own->max_hold_ns = rules->max_hold_ns;
    own->max_extensions = rules->max_extensions;
    own->backoff_min_ns = rules->backoff_min_ns;
    own->backoff_max_ns = rules->backoff_max_ns;
    own->waiters_per_resource = rules->waiters_per_resource;
    own->fence_always = rules->fence_always;
    memcpy(own->logins, rules->logins, sizeof(own->logins));

    engine->extensions.max_hold_ns = rules->max_hold_ns;
    engine->extensions.max_extensions = rules->max_extensions;
    engine->queue_rules.backoff_min_ns = rules->backoff_min_ns;
    engine->queue_rules.backoff_max_ns = rules->backoff_max_ns;
    for (unsigned i = 0; i < engine->node_count; i++) {
        engine->links[i].login = rules->logins[i];
        engine->trackers[i].login = rules->logins[i];
    }
    engine_set_hold_alarms(engine);
}
