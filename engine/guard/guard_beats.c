#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/guard/guard_parts.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

/* What a lease on its name is for: the data, and who has it. A copy of the data is another server,
 * and so is another database. It comes first, because beat.lua compares the id by its place. */
static void describe(const struct guard *guard, unsigned index, char server[GUARD_SERVER_MAX])
{
    const struct guard_node *node = &guard->nodes[index];
    unsigned database = guard->rules.databases[index];
    int len = database != 0 ? snprintf(server, GUARD_SERVER_MAX, "%u/", database) : 0;
    snprintf(server + len, GUARD_SERVER_MAX - (size_t)len, "%s %s", node->record.id, node->run_id);
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
    size_t len = strlen(server);
    if (strncmp(lease, server, len) == 0 && (lease[len] == ' ' || lease[len] == '\0'))
        return REASON_NONE;
    if (strncmp(lease, server, RECORD_ID) != 0)
        return REASON_REPOINTED;
    /* The latest signature comes first. */
    const char *signed_at = strchr(lease, '=');
    int64_t at_ms = signed_at != NULL ? strtoll(signed_at + 1, NULL, 10) : INT64_MAX;
    return at_ms < time_us / 1000 - guard->periods.fresh_ns / NS_PER_MS ? REASON_NONE
                                                                        : REASON_OTHERPROCESS;
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

/* The digits of beat.lua. */
enum { LEASE_OURS = '0', LEASE_OTHER = '1', LEASE_OTHER_RUN = '2' };

/* Since when the name is leased to nothing but another process of the same data. */
static void note_other_run(const struct guard *guard, struct guard_node *named, unsigned index,
                           bool other_run, int64_t now_ns)
{
    uint32_t before = named->other_run;
    named->other_run = other_run ? before | nodes_only(index) : before & ~nodes_only(index);
    if (before == 0 && other_run)
        named->handover_ns = now_ns + guard->periods.fresh_ns + 2 * guard->periods.heartbeat_ns;
}

static void take_leases(struct guard *guard, unsigned index, const struct guard_beat *beat,
                        const char *digits, int64_t now_ns)
{
    for (unsigned i = 0; i < guard->rules.node_count && *digits != ' '; i++) {
        struct guard_node *named = guard_change(guard, i);
        if (!(beat->names & nodes_only(i)))
            continue;
        uint32_t before = named->contested;
        char server[GUARD_SERVER_MAX];
        char digit = *digits++;
        describe(guard, i, server);
        bool asked_for_it = strcmp(beat->servers[i], server) == 0;
        /* What was asked for before the server changed was for the other. */
        if (digit == LEASE_OTHER || (digit == LEASE_OTHER_RUN && asked_for_it)) {
            named->contested |= nodes_only(index);
            named->contested_until_ns = now_ns + guard->periods.quarantine_ns;
            note_other_run(guard, named, index, digit == LEASE_OTHER_RUN, now_ns);
        } else if (digit == LEASE_OURS && asked_for_it) {
            named->contested &= ~nodes_only(index);
            named->leased_on |= nodes_only(index);
            note_other_run(guard, named, index, false, now_ns);
        }
        if (before == 0 && named->contested != 0)
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
