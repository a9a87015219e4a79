#include <assert.h>
#include <string.h>

#include "engine/guard/guard_parts.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

#define HEARTBEAT_NS (1 * NS_PER_S)
#define FRESH_NS     GUARD_LIFE_NS

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void guard_init(struct guard *guard, const struct guard_rules *rules)
{
    assert(rules->node_count <= LIMIT_NODES);
    memset(guard, 0, sizeof(*guard));
    guard->rules = *rules;
    record_set_id(&(struct record_set){.cluster = rules->cluster,
                                       .node_names = rules->node_names,
                                       .node_count = rules->node_count,
                                       .max_ttl_ns = rules->max_ttl_ns,
                                       .drift = rules->drift,
                                       .fence_ttl_ns = rules->fence_ttl_ns},
                  guard->set_id);
    guard->periods.drift = rules->drift;
    guard->periods.quarantine_ns = rules->max_ttl_ns + drift_of(&rules->drift, rules->max_ttl_ns);
    /* A look must be good for less than a quarantine: who keeps an old link to a master that was
     * replaced has to notice before the new one votes. */
    guard->periods.heartbeat_ns = min(HEARTBEAT_NS, guard->periods.quarantine_ns / 4);
    guard->periods.fresh_ns = min(FRESH_NS, guard->periods.quarantine_ns / 2);
}

uint32_t guard_epoch(const struct guard *guard, unsigned node)
{
    return guard->nodes[node].epoch;
}

/* --- who it is --- */

struct guard_node *guard_change(struct guard *guard, unsigned index)
{
    guard->all_vote_until_ns = 0;
    return &guard->nodes[index];
}

unsigned guard_twin(const struct guard *guard, unsigned index)
{
    const struct guard_node *node = &guard->nodes[index];
    unsigned first = index;
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        if (node->connected && guard->nodes[i].connected &&
            strcmp(node->run_id, guard->nodes[i].run_id) == 0 &&
            strcmp(guard->rules.node_names[i], guard->rules.node_names[first]) < 0)
            first = i;
    return first;
}

/* Of the names of one server, all but the first in the alphabet are without a vote. */
static void find_doubled(struct guard *guard)
{
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        struct guard_node *node = guard_change(guard, i);
        bool was_doubled = node->doubled;
        node->doubled = guard_twin(guard, i) != i;
        if (node->doubled != was_doubled) {
            guard_begin_epoch(node);
            name_lease_begin(&node->lease);
        }
    }
}

void guard_on_connected(struct guard *guard, unsigned index, const char *run_id, int64_t begun_ns)
{
    struct guard_node *node = guard_change(guard, index);
    assert(!node->connected);
    /* Perhaps another server than before, or others have leased the name meanwhile. */
    name_lease_begin(&node->lease);
    memcpy(node->run_id, run_id, RECORD_ID);
    node->run_id[RECORD_ID] = '\0';
    node->begun_ns = begun_ns;
    node->connected = true;
    node->sampled = false;
    node->facts_known = false;
    node->facts_trouble = REASON_NONE;
    node->beat_failed = REASON_NONE;
    node->set_refused = REASON_NONE;
    node->mark = REASON_NONE;
    node->mark_under_way = false;
    node->beat_ns = 0;
    clock_on_connected(&node->clock);
    guard_begin_epoch(node);
    find_doubled(guard);
}

void guard_on_lost(struct guard *guard, unsigned index)
{
    struct guard_node *node = guard_change(guard, index);
    node->connected = false;
    guard_begin_epoch(node);
    find_doubled(guard);
}

/* --- its clock --- */

/* Most clocks cannot step at once: ours has. */
static void suspect_ourselves(struct guard *guard, int64_t now_ns)
{
    guard->doubt_until_ns = now_ns + guard->periods.quarantine_ns;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        struct guard_node *node = guard_change(guard, i);
        clock_on_suspect(&node->clock, &guard->periods, now_ns);
        guard_begin_epoch(node);
        guard->beat |= nodes_only(i);
        node->mark = REASON_NONE;
    }
}

void guard_on_clock(struct guard *guard, unsigned index, const struct clock_result *result,
                    int64_t now_ns)
{
    unsigned together = 0;
    if (result->heartbeat)
        guard->beat |= nodes_only(index);
    if (result->verdict != WATCH_STEPPED)
        return;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        int64_t stepped_ns = guard->nodes[i].clock.stepped_ns;
        together += stepped_ns != 0 && now_ns - stepped_ns <= 2 * guard->periods.heartbeat_ns;
    }
    if (together >= guard->rules.quorum)
        suspect_ourselves(guard, now_ns);
    /* Once more to confirm it, and the others to see whether ours kept pace with them. */
    guard->probe |= nodes_all(guard->rules.node_count);
}

static enum watch_verdict look_at_clock(struct guard *guard, unsigned index,
                                        const struct guard_sample *sample)
{
    struct guard_node *node = guard_change(guard, index);
    int64_t trusted_from_ns = node->clock.trusted_from_ns;
    struct clock_result result = clock_on_sample(&node->clock, &guard->periods, &sample->clock);
    if (result.confirmed)
        node->mark = REASON_STEPPED;
    if (node->clock.trusted_from_ns != trusted_from_ns || result.verdict == WATCH_STEPPED_BACK)
        guard_begin_epoch(node);
    guard_on_clock(guard, index, &result, sample->clock.received_ns);
    return result.verdict;
}

int64_t guard_take_step_back(struct guard *guard, unsigned index, int64_t now_ns)
{
    return clock_take_step_back(&guard->nodes[index].clock, now_ns);
}

/* --- its record --- */

/* Its record is of no use, and is to be replaced; everything it held may be lost. */
static enum reason wants_record(struct guard_node *node, enum reason why)
{
    node->mark = why;
    node->tainted = node->tainted || why != REASON_DURABLE;
    return why;
}

/* Did this process begin after we last saw the one before it? Else it is a copy of the data, and
 * has not got what was written there since. */
static bool began_after(const struct guard_node *node)
{
    return node->adopted_len == 0 || node->begun_ns >= node->known_ns;
}

/* It said before the restart that it keeps everything; what it has kept is what we saw last; it has
 * had no other data since; and nothing had happened to it that no record told of. */
static bool is_durable_restart(const struct guard_node *node, const struct guard_sample *sample)
{
    int64_t now_ns = sample->clock.received_ns;
    bool newest =
        node->adopted_len == 0 || (node->adopted_len == node->seen_len &&
                                   memcmp(node->adopted, node->seen, node->seen_len) == 0);
    return node->durability.seen == DURABILITY_SEEN && node->record.durable && newest &&
           began_after(node) && !sample->was_replica && !node->tainted && !node->lost_keys &&
           now_ns >= node->clock.stepped_until_ns;
}

/*
 * Its record takes the place of another one: until when it has no vote at least, whatever the new
 * one says. Whoever begins a quarantine writes so while the record before it is there, so that its
 * end is about this or later. Else it is another server, database or copy than the one we had votes
 * of. And one that is known to have lost data has not kept everything, whoever says so.
 */
static int64_t least_until_ns(const struct guard *guard, const struct guard_node *node,
                              const struct guard_sample *sample)
{
    if (node->adopted_len == 0)
        return 0;
    if (node->quarantine_mark != node->record.mark)
        return node->known_ns + guard->periods.quarantine_ns;
    if (node->tainted && strcmp(node->join_run_id, node->record.run_id) != 0)
        return sample->clock.received_ns + guard->periods.quarantine_ns;
    return 0;
}

/* Has an operator given his word since we saw the record before? Then it stays as it is. */
static bool is_by_word_since(const struct guard_node *node, const struct guard_sample *sample)
{
    int64_t since_us = (sample->clock.received_ns - node->known_ns) / 1000;
    return node->record.why == REASON_BOOTSTRAP &&
           node->record.join_us >= sample->clock.time_us - since_us;
}

/* Is it another process of the data whose record was adopted, as another daemon has recorded? */
static bool is_next_run(const struct guard_node *node)
{
    return node->adopted_len > 0 && node->quarantine_mark == node->record.mark &&
           strcmp(node->join_run_id, node->record.run_id) != 0;
}

/* Is its record older than the one that was adopted? The end of a quarantine only rises: for one
 * run, and from each run of a durable master to the next one. */
static bool is_of_before(const struct guard_node *node)
{
    bool same_run = strcmp(node->join_run_id, node->record.run_id) == 0;
    return (same_run || is_next_run(node)) && node->record.join_us < node->join_us;
}

/* Until when it has no vote by what the record says. */
static int64_t says_until_ns(const struct guard *guard, const struct guard_node *node,
                             const struct guard_sample *sample)
{
    const struct record *record = &node->record;
    /* A clock that was stepped back must not put it off for an hour. */
    int64_t ours_ms = guard->periods.quarantine_ns / NS_PER_MS + 1;
    int64_t most_ms = record->quarantine_ms > ours_ms ? record->quarantine_ms : ours_ms;
    int64_t left_us = record->join_us - sample->clock.time_us;
    bool same_end = node->adopted_len > 0 && strcmp(node->join_run_id, record->run_id) == 0 &&
                    node->join_us == record->join_us;
    /* The same quarantine as before, of the same run: it is not begun anew by a clock set back. */
    if (same_end && node->quarantine_mark == record->mark)
        return node->quarantine_until_ns;
    /* Two that end alike, because the clock was set back: one of them has not begun when we think
     * it has. */
    if (same_end)
        left_us = most_ms * 1000;
    return sample->clock.received_ns + (left_us <= 0 ? 0 : min(left_us, most_ms * 1000) * 1000);
}

static void adopt(struct guard *guard, struct guard_node *node, const struct guard_sample *sample)
{
    const struct record *record = &node->record;
    int64_t says_ns = says_until_ns(guard, node, sample);
    int64_t least_ns = least_until_ns(guard, node, sample);
    node->quarantine_until_ns = says_ns > least_ns ? says_ns : least_ns;
    node->quarantine_why = record->why != REASON_NONE ? record->why : REASON_RECORD;
    /* Who says so has seen them, too, or a loss of everything. */
    if (node->quarantine_mark != record->mark)
        node->lost_keys = false;
    memcpy(node->adopted, node->seen, node->seen_len);
    node->adopted_len = node->seen_len;
    memcpy(node->join_run_id, record->run_id, sizeof(node->join_run_id));
    node->join_us = record->join_us;
    node->quarantine_mark = record->mark;
    node->quarantine_ms = record->quarantine_ms;
    durability_on_record(&node->durability, record->durable, sample->clock.received_ns);
    guard_begin_epoch(node);
    name_lease_begin(&node->lease);
    /* Another daemon has seen the same step, and was first. */
    if (record->why == REASON_STEPPED) {
        clock_drop_step(&node->clock);
        node->mark = REASON_NONE;
    }
}

/* Is what this sample brought, byte for byte, what was parsed last? */
static bool is_as_parsed(const struct guard_node *node, const struct guard_sample *sample)
{
    return node->readable && sample->record != NULL && sample->record_len == node->seen_len &&
           memcmp(sample->record, node->seen, node->seen_len) == 0;
}

/* REASON_NONE: it is the record that was adopted, now or before. */
static enum reason look_at_record(struct guard *guard, struct guard_node *node,
                                  const struct guard_sample *sample)
{
    const struct record *record = &node->record;
    bool parsed = is_as_parsed(node, sample);
    node->seen_len = sample->record == NULL ? 0 : sample->record_len;
    if (node->seen_len >= LIMIT_RECORD) {
        node->seen_len = 0;
        node->readable = false;
        return REASON_RECORD;
    }
    memcpy(node->seen, sample->record != NULL ? sample->record : "", node->seen_len);
    memcpy(node->replid, sample->replid, RECORD_ID);
    node->readable = false;
    if (sample->replicated)
        durability_on_replicas(&node->durability);
    if (node->seen_len == 0 && node->adopted_len == 0)
        return wants_record(node, REASON_NEW);
    if (node->seen_len == 0)
        return wants_record(node, strcmp(node->join_run_id, node->run_id) == 0 ? REASON_FLUSHED
                                                                               : REASON_RESTARTED);
    node->readable = parsed || record_parse(node->seen, node->seen_len, &node->record);
    if (!node->readable)
        return REASON_RECORD;
    if (strcmp(record->set_id, guard->set_id) != 0) {
        const char *old = guard->rules.reset_set;
        if (old != NULL && strcmp(record->set_id, old) == 0)
            node->mark = REASON_RESET;
        return REASON_OTHERSET;
    }
    if (strcmp(record->run_id, node->run_id) != 0)
        return wants_record(node,
                            is_durable_restart(node, sample) ? REASON_DURABLE : REASON_RESTARTED);
    if (memcmp(record->replid, sample->replid, RECORD_ID) != 0)
        return wants_record(node, REASON_FAILEDOVER);
    if (node->adopted_len == node->seen_len &&
        memcmp(node->adopted, node->seen, node->seen_len) == 0)
        return REASON_NONE;
    if (is_of_before(node))
        return wants_record(node, REASON_OLDDATA);
    if (is_next_run(node) && !began_after(node))
        return wants_record(node, REASON_RESTARTED);
    /* Daemons that have not seen the one before have to hear of it. */
    if (!is_by_word_since(node, sample) &&
        least_until_ns(guard, node, sample) >
            says_until_ns(guard, node, sample) + guard->periods.heartbeat_ns)
        return wants_record(node, strcmp(node->join_run_id, record->run_id) == 0
                                      ? REASON_FLUSHED
                                      : REASON_RESTARTED);
    adopt(guard, node, sample);
    return REASON_NONE;
}

/* --- samples, facts --- */

static void record_eviction(const struct guard *guard, struct guard_node *node)
{
    if (node->facts_known && node->facts_trouble == REASON_NONE)
        node->trouble = wants_record(node, REASON_EVICTED);
    /* While it may go on with that it has no vote anyway, but a daemon that comes later must hear
     * of it. An operator's word comes first: the record that it writes must not be another at once.
     */
    else if (node->facts_trouble == REASON_EVICTION && !guard_has_word(guard))
        wants_record(node, REASON_EVICTED);
}

/* The record says how many keys had been evicted when it was written. */
static void compare_evicted(struct guard_node *node)
{
    if (node->sampled && node->facts_known && node->trouble == REASON_NONE &&
        node->record.evicted != node->evicted)
        node->lost_keys = true;
}

enum guard_verdict guard_on_sample(struct guard *guard, unsigned index,
                                   const struct guard_sample *sample)
{
    struct guard_node *node = guard_change(guard, index);
    assert(node->connected);
    enum reason trouble_before = node->trouble;
    bool first = !node->sampled;
    node->sampled = true;
    node->mark_under_way = false;
    if (sample->failed != REASON_NONE) {
        node->trouble = sample->failed;
        guard_begin_epoch(node);
        return GUARD_FAIL;
    }
    if (node->mark != REASON_STEPPED)
        node->mark = REASON_NONE;
    enum watch_verdict clock = look_at_clock(guard, index, sample);
    node->trouble = sample->master ? look_at_record(guard, node, sample) : REASON_REPLICA;
    if (node->trouble == REASON_NONE) {
        node->known_ns = sample->clock.received_ns;
        compare_evicted(node);
        if (node->lost_keys)
            record_eviction(guard, node);
    }
    if (node->trouble != trouble_before || first)
        guard_begin_epoch(node);
    /* While it was in trouble, its name was not leased, and others may have leased it. */
    if (node->trouble == REASON_NONE && trouble_before != REASON_NONE)
        name_lease_begin(&node->lease);
    if (node->trouble == REASON_NONE && node->facts_known && node->facts_trouble == REASON_NONE)
        node->tainted = false;
    if (node->trouble == REASON_NONE && node->facts_trouble == REASON_NONE && node->lease.wanted) {
        node->lease.wanted = false;
        guard->beat = nodes_all(guard->rules.node_count);
    }
    if (node->trouble == REASON_NONE && node->mark == REASON_NONE && node->facts_known &&
        durability_wants_record(&node->durability, &guard->periods, sample->clock.received_ns))
        node->mark = REASON_DURABLE;
    if (node->trouble != REASON_NONE)
        return GUARD_FAIL;
    switch (clock) {
    case WATCH_STEADY:
        /* An operator's word settles what watching would. */
        if (node->trusted) {
            clock_override(&node->clock);
            node->trusted = false;
        }
        if (!node->clock.entry_left && node->beat_failed == REASON_NONE &&
            guard_has_bounds(guard, node, sample->clock.received_ns))
            guard->beat |= nodes_only(index);
        return node->clock.unmonitored_since_ns != 0 ? GUARD_WAIT : GUARD_PASS;
    case WATCH_UNCLEAR:
        return GUARD_WAIT;
    case WATCH_STEPPED:
    case WATCH_STEPPED_BACK:
    case WATCH_LOST:
        break;
    }
    return GUARD_FAIL;
}

void guard_on_facts(struct guard *guard, unsigned index, const struct guard_facts *facts)
{
    struct guard_node *node = guard_change(guard, index);
    enum reason before = node->facts_trouble;
    node->facts_trouble = facts->failed;
    if (facts->failed == REASON_NONE) {
        node->facts_known = true;
        node->evicted = facts->evicted;
        /* What it evicts it loses, and after a restart its settings may be others. */
        durability_on_facts(&node->durability, guard->rules.durable & nodes_only(index),
                            facts->durable && !facts->may_evict);
        node->tainted = node->tainted || facts->may_evict;
        if (facts->may_evict)
            node->facts_trouble = REASON_EVICTION;
        compare_evicted(node);
    }
    if (node->facts_trouble != before)
        guard_begin_epoch(node);
}

void guard_on_set(struct guard *guard, unsigned index, enum reason refused)
{
    struct guard_node *node = guard_change(guard, index);
    if (refused != REASON_NONE && node->set_refused == REASON_NONE)
        guard_begin_epoch(node);
    node->set_refused = refused;
}

/* --- the vote --- */

/* Have enough nodes been told which server we know by this name, that any other daemon with a
 * quorum hears of it? */
static bool is_leased(const struct guard *guard, const struct guard_node *node)
{
    return nodes_count(node->lease.held_on) >= guard->rules.quorum;
}

/* Has a node that answers still to say whose this name is? The daemon that has another server
 * by it may have told no others. One that is silent for long is cut off, and not waited for. */
static bool is_still_to_be_heard(const struct guard *guard, const struct guard_node *node,
                                 int64_t now_ns)
{
    uint32_t missing =
        nodes_all(guard->rules.node_count) & ~(node->lease.held_on | node->lease.conflicts);
    for (; missing != 0; missing = nodes_behind_first(missing)) {
        const struct guard_node *other = &guard->nodes[nodes_first(missing)];
        if (other->connected && other->beat_failed == REASON_NONE &&
            (other->beat_ns == 0 || now_ns - other->beat_ns <= guard->periods.fresh_ns))
            return true;
    }
    return false;
}

/* REASON_NONE, or is there nothing to be done about it but to write its record and to wait? */
static bool heals_by_record(enum reason trouble)
{
    switch (trouble) {
    case REASON_NONE:
    case REASON_NEW:
    case REASON_RESTARTED:
    case REASON_FLUSHED:
    case REASON_FAILEDOVER:
    case REASON_OLDDATA:
    case REASON_EVICTED:
    case REASON_DURABLE:
        return true;
    default:
        return false;
    }
}

/* What it has told against itself; first what an operator can do something about. */
static enum reason has_shown(const struct guard_node *node)
{
    if (node->doubled)
        return REASON_DOUBLED;
    if (node->facts_trouble != REASON_NONE && heals_by_record(node->trouble))
        return node->facts_trouble;
    return node->trouble;
}

enum reason guard_refuses_vote(const struct guard *guard, unsigned index, int64_t now_ns)
{
    const struct guard_node *node = &guard->nodes[index];
    enum reason shown = has_shown(node);
    enum reason leased = name_lease_refuses(&node->lease, now_ns);
    if (now_ns < guard->doubt_until_ns)
        return REASON_DOUBT;
    if (!node->connected || !node->sampled)
        return REASON_UNCHECKED;
    if (shown != REASON_NONE)
        return shown;
    if (node->beat_failed != REASON_NONE)
        return node->beat_failed;
    if (node->set_refused != REASON_NONE)
        return node->set_refused;
    if (now_ns < node->clock.stepped_until_ns)
        return REASON_STEPPED;
    if (now_ns <= node->quarantine_until_ns)
        return node->quarantine_why;
    if (leased != REASON_NONE)
        return leased;
    if (!node->clock.watch.begun)
        return REASON_CLOCK;
    if (!node->facts_known || node->beat_ns == 0 ||
        now_ns - node->beat_ns > guard->periods.fresh_ns || node->clock.step_unannounced_ns != 0 ||
        !is_leased(guard, node) || is_still_to_be_heard(guard, node, now_ns))
        return REASON_UNCHECKED;
    if (node->clock.state != CLOCK_TRUSTED)
        return REASON_UNSETTLED;
    return REASON_NONE;
}

bool guard_all_vote(struct guard *guard, int64_t now_ns)
{
    int64_t until_ns = INT64_MAX;
    if (now_ns < guard->all_vote_until_ns)
        return true;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        if (guard_refuses_vote(guard, i, now_ns) != REASON_NONE)
            return false;
        /* Time alone gives votes back, but for this. */
        int64_t stale_ns = guard->nodes[i].beat_ns + guard->periods.fresh_ns + 1;
        until_ns = stale_ns < until_ns ? stale_ns : until_ns;
    }
    guard->all_vote_until_ns = until_ns;
    return true;
}

enum reason guard_finds(const struct guard *guard, unsigned index, int64_t now_ns)
{
    const struct guard_node *node = &guard->nodes[index];
    enum reason shown = has_shown(node);
    if (!node->connected || !node->sampled || !node->facts_known)
        return REASON_UNCHECKED;
    if (shown != REASON_NONE)
        return shown;
    return now_ns <= node->quarantine_until_ns ? node->quarantine_why : REASON_NONE;
}

bool guard_carries(const struct guard *guard, unsigned index, int64_t now_ns)
{
    switch (guard_refuses_vote(guard, index, now_ns)) {
    case REASON_OTHERSET:
    case REASON_RECORD:
    case REASON_REPLICA:
    case REASON_REPOINTED:
    case REASON_OTHERPROCESS:
    case REASON_DOUBLED:
    case REASON_UNCHECKED:
        return false;
    default:
        return true;
    }
}

/* Is when this ends a matter of time, and known? Of what is else, it depends on somebody else. */
static bool is_timed(const struct guard_node *node, enum reason reason, int64_t now_ns)
{
    switch (reason) {
    case REASON_DOUBT:
    case REASON_STEPPED:
    case REASON_UNSETTLED:
    case REASON_OTHERPROCESS:
        return true;
    default:
        return (reason == node->trouble && heals_by_record(reason)) ||
               (reason == node->quarantine_why && now_ns <= node->quarantine_until_ns);
    }
}

int64_t guard_refuses_until_ns(const struct guard *guard, unsigned index, int64_t now_ns)
{
    const struct guard_node *node = &guard->nodes[index];
    enum reason reason = guard_refuses_vote(guard, index, now_ns);
    if (reason == REASON_NONE)
        return now_ns;
    if (!is_timed(node, reason, now_ns))
        return INT64_MAX;
    /* One follows the other, and the last of them is what counts. */
    int64_t until_ns = max(guard->doubt_until_ns, node->clock.stepped_until_ns);
    until_ns = max(until_ns, node->quarantine_until_ns);
    if (node->lease.conflicts != 0)
        until_ns = max(until_ns, node->lease.handover_ns);
    /* Behind that, the next steady sample settles it. */
    if (node->clock.state != CLOCK_TRUSTED)
        until_ns = max(until_ns, node->clock.trusted_from_ns);
    /* Its record is about to be written. */
    if (reason == node->trouble)
        until_ns = max(until_ns, now_ns + (reason == REASON_DURABLE
                                               ? guard->periods.heartbeat_ns
                                               : guard_quarantine_ms(guard, index, reason, now_ns) *
                                                     NS_PER_MS));
    return max(until_ns, now_ns);
}
