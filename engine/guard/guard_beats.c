#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/guard/guard_parts.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

static void describe(const struct guard *guard, unsigned index, char server[GUARD_SERVER_MAX])
{
    const struct guard_node *node = &guard->nodes[index];
    name_lease_server(guard->rules.databases[index], node->record.id, node->run_id, server);
}

void guard_name_key(const struct guard *guard, unsigned index, char key[GUARD_NAME_KEY_MAX])
{
    snprintf(key, GUARD_NAME_KEY_MAX, "redlockd:name:%s:%s", guard->set_id,
             guard->rules.node_names[index]);
}

enum reason guard_lease_finds(const struct guard *guard, unsigned index, const char *lease,
                              int64_t time_us)
{
    const struct guard_node *node = &guard->nodes[index];
    char server[GUARD_SERVER_MAX];
    if (!node->connected || !node->sampled || node->trouble != REASON_NONE)
        return REASON_NONE;
    describe(guard, index, server);
    return name_lease_finds(lease, server, time_us / 1000 - guard->periods.fresh_ns / NS_PER_MS);
}

bool guard_has_bounds(const struct guard *guard, const struct guard_node *node, int64_t now_ns)
{
    return now_ns >= guard->doubt_until_ns && clock_has_bounds(&node->clock, now_ns);
}

void guard_beat(const struct guard *guard, unsigned index, int64_t now_ns, struct guard_beat *beat)
{
    const struct guard_node *node = &guard->nodes[index];
    *beat = (struct guard_beat){
        .vouch_ttl_ms = 2 * guard->periods.fresh_ns / NS_PER_MS,
        .lease_ms = guard->periods.quarantine_ns / NS_PER_MS,
        .fresh_ms =
            (guard->periods.fresh_ns + drift_of(&guard->rules.drift, guard->periods.fresh_ns)) /
                NS_PER_MS +
            1,
    };
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        const struct guard_node *named = &guard->nodes[i];
        /* Whose word does not hold may have named the wrong masters. */
        if (guard_has_word(guard) || !named->connected || !named->sampled || named->doubled ||
            named->trouble != REASON_NONE)
            continue;
        beat->names |= nodes_only(i);
        describe(guard, i, beat->servers[i]);
    }
    clock_describe(&node->clock, guard_has_bounds(guard, node, now_ns), beat->entry, beat->vouch);
    snprintf(beat->step, sizeof(beat->step), "%s", node->clock.known_step);
}

static void take_leases(struct guard *guard, unsigned index, const struct guard_beat *beat,
                        const char *digits, int64_t now_ns)
{
    for (unsigned i = 0; i < guard->rules.node_count && *digits != ' '; i++) {
        struct guard_node *named = guard_change(guard, i);
        if (!(beat->names & nodes_only(i)))
            continue;
        uint32_t before = named->lease.conflicts;
        char server[GUARD_SERVER_MAX];
        describe(guard, i, server);
        name_lease_on_digit(&named->lease, &guard->periods, index, *digits++,
                            strcmp(beat->servers[i], server) == 0, now_ns);
        if (before == 0 && named->lease.conflicts != 0)
            guard_begin_epoch(named);
    }
}

void guard_on_beat_failed(struct guard *guard, unsigned index, enum reason reason)
{
    struct guard_node *node = guard_change(guard, index);
    if (node->beat_failed == REASON_NONE)
        guard_begin_epoch(node);
    node->beat_failed = reason;
}

void guard_on_beat(struct guard *guard, unsigned index, const struct guard_beat *beat,
                   int64_t sent_ns, const char *text, size_t len, int64_t now_ns)
{
    struct guard_node *node = guard_change(guard, index);
    char copy[512];
    if (len >= sizeof(copy)) {
        guard_on_beat_failed(guard, index, REASON_GARBAGE);
        return;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    char *vouch = strchr(copy, ' ');
    char *step = vouch != NULL ? strchr(vouch + 1, ' ') : NULL;
    char *entry = step != NULL ? strchr(step + 1, ' ') : NULL;
    if (entry == NULL || entry - step > GUARD_STEP_MAX) {
        guard_on_beat_failed(guard, index, REASON_GARBAGE);
        return;
    }
    *entry = '\0';
    node->beat_ns = sent_ns;
    node->beat_failed = REASON_NONE;
    int64_t trusted_from_ns = node->clock.trusted_from_ns;
    if (clock_on_heartbeat(&node->clock, &guard->periods, beat->entry, step + 1, sent_ns, now_ns))
        guard->probe |= nodes_only(index);
    if (node->clock.trusted_from_ns != trusted_from_ns)
        guard_begin_epoch(node);
    take_leases(guard, index, beat, copy, now_ns);
    unsigned waited_for;
    if (guard_has_word(guard) && guard_progress(guard, &waited_for) == GUARD_DONE) {
        guard->word_done = true;
        guard->beat = nodes_all(guard->rules.node_count);
    }
    if (now_ns < guard->doubt_until_ns)
        return;
    struct clock_result result =
        clock_inherit(&node->clock, &guard->periods, vouch + 1, entry + 1, now_ns);
    if (result.verdict == WATCH_STEPPED)
        guard_begin_epoch(node);
    guard_on_clock(guard, index, &result, now_ns);
}
