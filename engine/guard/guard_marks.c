#include <stdio.h>
#include <string.h>

#include "engine/guard/guard_parts.h"

#include "protocol/units.h"

/* --- an operator's word --- */

bool guard_has_word(const struct guard *guard)
{
    return (guard->rules.bootstrap || guard->rules.reset_set != NULL) && !guard->word_done;
}

/* Does this node stand against the operator's word: a record where there must be none, or one that
 * the word does not speak of? */
static bool stands_against(const struct guard *guard, const struct guard_node *node)
{
    if (!node->connected || !node->sampled)
        return false;
    if (guard->rules.bootstrap)
        return node->trouble == REASON_NONE
                   ? !node->by_word || node->quarantine_why != REASON_BOOTSTRAP
                   : node->trouble != REASON_NEW;
    return node->alive || node->trouble == REASON_RECORD ||
           (node->trouble == REASON_OTHERSET &&
            strcmp(node->record.set_id, guard->rules.reset_set) != 0);
}

enum guard_progress guard_progress(const struct guard *guard, unsigned *index)
{
    enum guard_progress progress = GUARD_DONE;
    if (guard->word_done)
        return GUARD_DONE;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        const struct guard_node *node = &guard->nodes[i];
        if (stands_against(guard, node)) {
            *index = i;
            return GUARD_REFUSED;
        }
        bool done = node->connected && node->sampled && node->trouble == REASON_NONE &&
                    (node->clock.entry_left || !guard->rules.bootstrap);
        /* One that is away is what an operator can do something about. */
        bool away = !node->connected || !node->sampled;
        if (!done && (away || progress == GUARD_DONE))
            *index = i;
        if (!done)
            progress = GUARD_UNDER_WAY;
    }
    return progress;
}

/* --- records --- */

/* How many nodes bear a record of our set; and how many at most, of one other. */
static bool outnumbered(const struct guard *guard)
{
    unsigned ours = 0;
    unsigned theirs = 0;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        const struct guard_node *node = &guard->nodes[i];
        if (!node->sampled || !node->readable)
            continue;
        unsigned same = 0;
        for (unsigned j = 0; j < guard->rules.node_count; j++)
            same += guard->nodes[j].sampled && guard->nodes[j].readable &&
                    strcmp(guard->nodes[j].record.set_id, node->record.set_id) == 0;
        if (strcmp(node->record.set_id, guard->set_id) == 0)
            ours = same;
        else if (same > theirs)
            theirs = same;
    }
    return theirs > ours;
}

static unsigned count_sampled(const struct guard *guard)
{
    unsigned count = 0;
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        count += guard->nodes[i].connected && guard->nodes[i].sampled;
    return count;
}

/* Has our clock kept pace with a majority of the nodes since? Then the step is the node's own. */
static bool kept_pace_since(const struct guard *guard, int64_t then_ns)
{
    unsigned count = 0;
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        count += guard->nodes[i].connected && guard->nodes[i].clock.state == CLOCK_TRUSTED &&
                 guard->nodes[i].clock.steady_ns >= then_ns;
    return count >= guard->rules.quorum;
}

void guard_on_sign_of_life(struct guard *guard, unsigned index, int64_t time_us, const char *daemon)
{
    struct guard_node *node = guard_change(guard, index);
    if (node->alive_looked && time_us <= node->alive_us)
        return;
    node->alive = node->alive_looked;
    node->alive_looked = true;
    node->alive_us = time_us;
    snprintf(node->alive_daemon, sizeof(node->alive_daemon), "%s", daemon);
}

bool guard_shows_life(const struct guard *guard, unsigned index, int64_t now_ns)
{
    /* Whatever its max_ttl is: a daemon that runs leaves something each second. */
    const struct guard_node *node = &guard->nodes[index];
    int64_t time_us = node->clock.looked_time_us + (now_ns - node->clock.looked_ns) / 1000;
    return node->alive || (node->alive_us != 0 && node->alive_us >= time_us - GUARD_LIFE_NS / 1000);
}

/* A daemon that was stopped a moment ago has to be told from one that runs. */
static bool any_shows_life(const struct guard *guard, int64_t now_ns)
{
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        if (!guard->nodes[i].alive_looked || guard_shows_life(guard, i, now_ns))
            return true;
    return false;
}

/* May a record for this reason be written now? */
static bool may_mark(const struct guard *guard, const struct guard_node *node, int64_t now_ns)
{
    if (!node->connected || !node->sampled || !node->facts_known || node->mark_under_way)
        return false;
    /* Where it cannot be written, it is tried again with the heartbeats. */
    if (node->marked_ns != 0 && now_ns - node->marked_ns < guard->periods.heartbeat_ns)
        return false;
    /* For this the record has to be right but for the quarantine. */
    if (node->mark == REASON_STEPPED && node->trouble != REASON_NONE)
        return false;
    if (guard_has_word(guard)) {
        unsigned against;
        if (count_sampled(guard) < guard->rules.node_count ||
            guard_progress(guard, &against) == GUARD_REFUSED)
            return false;
    }
    if (node->mark == REASON_RESET)
        return !any_shows_life(guard, now_ns);
    if (now_ns < guard->doubt_until_ns || outnumbered(guard))
        return false;
    if (node->mark == REASON_STEPPED)
        return kept_pace_since(guard, node->clock.stepped_ns);
    /* Who sees but a few nodes may be the one with the wrong list. */
    return count_sampled(guard) >= guard->rules.quorum;
}

int64_t guard_quarantine_ms(const struct guard *guard, unsigned index, enum reason why,
                            int64_t now_ns)
{
    const struct guard_node *node = &guard->nodes[index];
    bool keeps_data = why == REASON_DURABLE || why == REASON_STEPPED;
    int64_t quarantine_ms = guard->periods.quarantine_ns / NS_PER_MS + 1;
    /* Locks of the old set may live as long as that let them. */
    if ((why == REASON_RESET || keeps_data) && node->record.quarantine_ms > quarantine_ms)
        quarantine_ms = node->record.quarantine_ms;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        const struct guard_node *other = &guard->nodes[i];
        if (now_ns <= other->quarantine_until_ns && other->quarantine_ms > quarantine_ms)
            quarantine_ms = other->quarantine_ms;
    }
    return quarantine_ms;
}

bool guard_take_mark(struct guard *guard, unsigned index, int64_t now_ns, uint64_t random,
                     struct guard_mark *mark)
{
    struct guard_node *node = guard_change(guard, index);
    /* What could not be told from a fault of our own clock is nothing for the others, later. */
    if (node->mark == REASON_STEPPED && now_ns - node->clock.stepped_ns > guard->periods.fresh_ns)
        node->mark = REASON_NONE;
    if (guard->rules.looks_on || node->mark == REASON_NONE || !may_mark(guard, node, now_ns))
        return false;
    bool trusted = guard->rules.bootstrap && !guard->word_done && node->mark == REASON_NEW;
    bool keeps_run = node->mark == REASON_DURABLE && strcmp(node->record.run_id, node->run_id) == 0;
    bool keeps_data = node->mark == REASON_DURABLE || node->mark == REASON_STEPPED;
    int64_t quarantine_ms = guard_quarantine_ms(guard, index, node->mark, now_ns);
    struct record record = {
        .quarantine_ms = quarantine_ms,
        .max_ttl_ms = guard->rules.max_ttl_ns / NS_PER_MS,
        /* Without a quarantine nothing is told that asks for one. */
        .evicted = keeps_run ? node->record.evicted : node->evicted,
        .durable = node->durability.seen == DURABILITY_SEEN,
        .mark = node->mark == REASON_DURABLE ? node->record.mark : random,
        .why = trusted ? REASON_BOOTSTRAP : node->mark,
    };
    memcpy(record.set_id, guard->set_id, sizeof(record.set_id));
    snprintf(record.cluster, sizeof(record.cluster), "%s", guard->rules.cluster);
    memcpy(record.id, keeps_data ? node->record.id : node->run_id, sizeof(record.id));
    memcpy(record.run_id, node->run_id, sizeof(record.run_id));
    memcpy(record.replid, node->replid, RECORD_ID);
    memcpy(mark->expected, node->seen, node->seen_len);
    mark->expected_len = node->seen_len;
    mark->text_len = record_format(&record, mark->text);
    mark->quarantine_us = trusted || node->mark == REASON_DURABLE ? 0 : quarantine_ms * 1000;
    /* For one run it only rises, also where the record that we remember is gone, and the clock was
     * stepped back; else it would be taken for an old one for ever. And a new quarantine must not
     * look like the old one. */
    mark->join_us = strcmp(node->join_run_id, node->run_id) == 0
                        ? node->join_us + (node->mark != REASON_DURABLE)
                        : 0;
    mark->run_id = node->mark == REASON_DURABLE ? node->record.run_id : node->run_id;
    /* Should it not be written, a step is tried again; for the rest each sample asks anew. */
    if (node->mark != REASON_STEPPED)
        node->mark = REASON_NONE;
    node->mark_under_way = true;
    node->marked_ns = now_ns;
    node->by_word = trusted;
    node->trusted = trusted;
    return true;
}
