#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/guard/guard_parts.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

/* What a clock entry may say, so that sums and differences of it do not overflow. */
#define ENTRY_TIME_MAX   (INT64_MAX / 4)
#define ENTRY_OFFSET_MAX (INT64_MAX / 4 * 3)

/* In place of an entry: there has been a step, and nobody may go on from any that is there. */
#define STEPPED "-"

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
    return at_ms < time_us / 1000 - guard->fresh_ns / NS_PER_MS ? REASON_NONE : REASON_OTHERPROCESS;
}

/* What is from before the last step was heard of does not count: it may be from before the step. */
bool guard_has_bounds(const struct guard *guard, const struct guard_node *node, int64_t now_ns)
{
    return node->settled && node->steady_ns != 0 && node->known_step[0] != '\0' &&
           node->steady_ns >= node->known_step_ns && node->tell_ns == 0 && node->blind_ns == 0 &&
           now_ns >= guard->doubt_until_ns && now_ns >= node->stepped_until_ns;
}

void guard_beat(const struct guard *guard, unsigned index, int64_t now_ns, struct guard_beat *beat)
{
    const struct guard_node *node = &guard->nodes[index];
    *beat = (struct guard_beat){
        .vouch_ttl_ms = 2 * guard->fresh_ns / NS_PER_MS,
        .lease_ms = guard->quarantine_ns / NS_PER_MS,
        .fresh_ms =
            (guard->fresh_ns + drift_of(&guard->rules.drift, guard->fresh_ns)) / NS_PER_MS + 1,
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
    const struct watch *watch = &node->watch;
    if (node->tell_ns != 0)
        memcpy(beat->entry, STEPPED, sizeof(STEPPED));
    else if (guard_has_bounds(guard, node, now_ns)) {
        snprintf(beat->entry, sizeof(beat->entry),
                 "%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64 ":%s", watch->at_ns,
                 watch->low_ns, watch->high_ns, watch->floor_ns, watch->tight_ns, node->known_step);
        int64_t hidden_ns = watch_hidden_ns(watch, node->steady_ns, node->steady_time_us);
        snprintf(beat->vouch, sizeof(beat->vouch), "%" PRId64 ":%" PRId64, node->steady_time_us,
                 hidden_ns / 1000 + 1);
    }
    snprintf(beat->step, sizeof(beat->step), "%s", node->known_step);
}

/* What a settled daemon anywhere has found. Does it settle the node here? */
static bool take_vouch(struct guard *guard, unsigned index, const char *vouch)
{
    struct guard_node *node = guard_change(guard, index);
    int64_t time_us = 0;
    int64_t hidden_us = 0;
    return sscanf(vouch, "%" SCNd64 ":%" SCNd64, &time_us, &hidden_us) == 2 &&
           time_us > node->first_time_us && hidden_us >= 0 && hidden_us < INT64_MAX / 1000 &&
           watch_inherit(&node->watch, &guard->rules.drift, hidden_us * 1000);
}

/* What a settled daemon of this host has left. */
static void take_entry(struct guard *guard, unsigned index, const char *entry, int64_t now_ns)
{
    struct guard_node *node = guard_change(guard, index);
    struct watch earlier = {.begun = true};
    int len = 0;
    if (sscanf(entry, "%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%n",
               &earlier.at_ns, &earlier.low_ns, &earlier.high_ns, &earlier.floor_ns,
               &earlier.tight_ns, &len) != 5 ||
        strcmp(entry + len, node->known_step) != 0)
        return;
    /* Who planted numbers that make no sense learns nothing by it. */
    const int64_t times[] = {earlier.at_ns, earlier.tight_ns};
    const int64_t offsets[] = {earlier.low_ns, earlier.high_ns, earlier.floor_ns};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] < 0 || times[i] > ENTRY_TIME_MAX)
            return;
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
        if (offsets[i] < -ENTRY_OFFSET_MAX || offsets[i] > ENTRY_OFFSET_MAX)
            return;
    switch (watch_resume(&node->watch, &guard->rules.drift, &earlier)) {
    case WATCH_STEADY:
        node->settled = true;
        break;
    case WATCH_STEPPED:
        guard_on_step(guard, node, now_ns, node->steady_time_us);
        break;
    case WATCH_STEPPED_BACK:
        node->settled = true;
        guard_on_step_back(guard, index, earlier.low_ns - node->watch.low_ns, now_ns);
        break;
    case WATCH_UNCLEAR:
    case WATCH_LOST:
        break;
    }
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
        named->handover_ns = now_ns + guard->fresh_ns + 2 * guard->heartbeat_ns;
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
            named->contested_until_ns = now_ns + guard->quarantine_ns;
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

/* The last step that is known there. Bounds are left anew, behind the next look. Who did not look
 * meanwhile may not have seen it, and what it counts on may be gone. */
static void hear_of_step(struct guard *guard, struct guard_node *node, const char *step,
                         int64_t now_ns)
{
    if (strcmp(step, node->known_step) == 0)
        return;
    snprintf(node->known_step, sizeof(node->known_step), "%s", step);
    node->known_step_ns = now_ns;
    node->entry_left = false;
    guard->probe |= nodes_only((unsigned)(node - guard->nodes));
    if (node->blind_ns != 0) {
        guard_unsettle(guard, node, now_ns, node->looked_time_us);
        guard_begin_epoch(node);
    }
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
    bool told = strcmp(beat->entry, STEPPED) == 0;
    node->beat_ns = sent_ns;
    node->beat_failed = REASON_NONE;
    node->entry_left = node->entry_left || (beat->entry[0] != '\0' && !told);
    hear_of_step(guard, node, step + 1, now_ns);
    if (told && sent_ns >= node->tell_ns)
        node->tell_ns = 0;
    if (sent_ns >= node->blind_ns)
        node->blind_ns = 0;
    take_leases(guard, index, beat, copy, now_ns);
    unsigned waited_for;
    if (guard_has_word(guard) && guard_progress(guard, &waited_for) == GUARD_DONE) {
        guard->word_done = true;
        guard->beat = nodes_all(guard->rules.node_count);
    }
    if (node->settled || node->steady_ns == 0 || now_ns < guard->doubt_until_ns ||
        now_ns < node->stepped_until_ns)
        return;
    if (take_vouch(guard, index, vouch + 1))
        node->settled = true;
    else
        take_entry(guard, index, entry + 1, now_ns);
}
