#include "engine/guard/record_write.h"

#include <stdio.h>
#include <string.h>

/* --- signs of life of the old set --- */

void guard_on_sign_of_life(struct guard *guard, unsigned index, int64_t time_us, const char *daemon)
{
    struct guard_node *node = &guard->nodes[index];
    if (node->old_set != OLD_SET_UNKNOWN && time_us <= node->old_set_us)
        return;
    node->old_set = node->old_set == OLD_SET_UNKNOWN ? OLD_SET_QUIET : OLD_SET_ALIVE;
    node->old_set_us = time_us;
    snprintf(node->old_set_daemon, sizeof(node->old_set_daemon), "%s", daemon);
}

bool guard_old_set_may_run(const struct guard *guard, unsigned index, int64_t now_ns)
{
    /* The limit is the same for any max_ttl, because a running daemon leaves a sign of life every
     * second. */
    const struct guard_node *node = &guard->nodes[index];
    int64_t time_us = node->clock.sampled_time_us + (now_ns - node->clock.sampled_ns) / 1000;
    return node->old_set == OLD_SET_ALIVE ||
           (node->old_set_us != 0 && node->old_set_us >= time_us - GUARD_DAEMON_TIMEOUT_NS / 1000);
}

/* May a daemon of the old set still run, according to any node? A node that has not answered about
 * signs of life counts too. A sign that is newer than the first look always counts. An older one
 * counts only for GUARD_DAEMON_TIMEOUT_NS, so a daemon that has stopped is not taken for a running
 * one for long. */
static bool any_shows_life(const struct guard *guard, int64_t now_ns)
{
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        if (guard->nodes[i].old_set == OLD_SET_UNKNOWN || guard_old_set_may_run(guard, i, now_ns))
            return true;
    return false;
}

/* --- may the record be written? --- */

/* The id of the set in the record of a node, as last seen; NULL: there is no record, or it has not
 * been read on this connection. */
static const char *set_of(const struct guard_node *node)
{
    const struct identity *identity = &node->identity;
    return identity->presence != PRESENCE_CONNECTED && identity->readable ? identity->record.set_id
                                                                          : NULL;
}

/* Do more nodes have a record of some other set than of ours? */
static bool is_outnumbered(const struct guard *guard)
{
    unsigned ours = 0;
    unsigned theirs = 0;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        const char *set = set_of(&guard->nodes[i]);
        unsigned same = 0;
        if (set == NULL)
            continue;
        for (unsigned j = 0; j < guard->rules.node_count; j++) {
            const char *other = set_of(&guard->nodes[j]);
            same += other != NULL && strcmp(other, set) == 0;
        }
        if (strcmp(set, guard->set_id) == 0)
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
        count += identity_is_sampled(&guard->nodes[i].identity);
    return count;
}

/* Has the clock of this daemon kept pace with the clocks of a quorum of nodes since then? If so, it
 * is the clock of the node that has stepped. */
static bool kept_pace_since(const struct guard *guard, int64_t then_ns)
{
    unsigned count = 0;
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        count += guard->nodes[i].identity.presence != PRESENCE_AWAY &&
                 guard->nodes[i].clock.state == CLOCK_TRUSTED &&
                 guard->nodes[i].clock.steady_ns >= then_ns;
    return count >= guard->rules.quorum;
}

/* May the record that this node needs be written now? */
static bool may_write(const struct guard *guard, const struct guard_node *node, int64_t now_ns)
{
    const struct identity *identity = &node->identity;
    if (!identity_is_sampled(identity) || !identity_facts_known(identity) ||
        identity->write_under_way)
        return false;
    /* If a write has failed, try again no sooner than after a heartbeat interval. */
    if (identity->written_ns != 0 && now_ns - identity->written_ns < guard->periods.heartbeat_ns)
        return false;
    /* The record of a step replaces only the quarantine, so the record must be right apart from
     * that. */
    if (identity->write_why == REASON_STEPPED && identity->error != REASON_NONE)
        return false;
    if (guard_has_override(guard)) {
        unsigned against;
        if (count_sampled(guard) < guard->rules.node_count ||
            guard_progress(guard, &against) == GUARD_REFUSED)
            return false;
    }
    if (identity->write_why == REASON_RESET)
        return !any_shows_life(guard, now_ns);
    if (now_ns < guard->suspect_until_ns || is_outnumbered(guard))
        return false;
    if (identity->write_why == REASON_STEPPED)
        return kept_pace_since(guard, node->clock.stepped_ns);
    /* This daemon may have the wrong list of masters if it sees only a few of them. */
    return count_sampled(guard) >= guard->rules.quorum;
}

/* --- content --- */

static void compose_record(const struct guard *guard, const struct guard_node *node,
                           uint64_t random, bool trusted, int64_t quarantine_ms,
                           struct record_write *write)
{
    const struct identity *identity = &node->identity;
    enum reason why = identity->write_why;
    bool begins = why != REASON_DURABLE;
    bool keeps_run = !begins && strcmp(identity->record.run_id, identity->run_id) == 0;
    bool keeps_data = !begins || why == REASON_STEPPED;
    struct record record = {
        .quarantine_ms = quarantine_ms,
        .max_ttl_ms = guard->rules.max_ttl_ns / NS_PER_MS,
        /* A record that begins no quarantine must not hide anything that requires one, such as
         * evictions. */
        .evicted = keeps_run ? identity->record.evicted : identity->evicted,
        .durable = identity->durability == DURABILITY_SEEN,
        .quarantine_id = begins ? random : identity->record.quarantine_id,
        .why = trusted ? REASON_BOOTSTRAP : why,
    };
    memcpy(record.set_id, guard->set_id, sizeof(record.set_id));
    snprintf(record.cluster, sizeof(record.cluster), "%s", guard->rules.cluster);
    memcpy(record.id, keeps_data ? identity->record.id : identity->run_id, sizeof(record.id));
    memcpy(record.run_id, identity->run_id, sizeof(record.run_id));
    memcpy(record.replid, identity->replid, RECORD_ID);
    write->expected = identity->seen.text;
    record_format(&record, write->text);
    write->quarantine_us = trusted || !begins ? 0 : quarantine_ms * 1000;
    /*
     * For one run, join_us only rises. This is so even if the clock was stepped back and the record
     * that this daemon remembers is gone; otherwise the new record would always be taken for an old
     * one. And the end of a new quarantine must differ from that of the old one.
     */
    write->join_us = strcmp(identity->adopted.run_id, identity->run_id) == 0
                         ? identity->adopted.join_us + begins
                         : 0;
    write->run_id = begins ? identity->run_id : identity->record.run_id;
}

bool guard_take_record_write(struct guard *guard, unsigned index, int64_t now_ns, uint64_t random,
                             struct record_write *write)
{
    struct guard_node *node = &guard->nodes[index];
    struct identity *identity = &node->identity;
    /* If it could not be decided within this time whether the node's clock or the clock of this
     * daemon has stepped, the step is not recorded for other daemons any more. */
    if (identity->write_why == REASON_STEPPED &&
        now_ns - node->clock.stepped_ns > guard->periods.fresh_ns)
        identity->write_why = REASON_NONE;
    if (guard->rules.read_only || identity->write_why == REASON_NONE ||
        !may_write(guard, node, now_ns))
        return false;
    bool trusted =
        guard->rules.bootstrap && !guard->override_done && identity->write_why == REASON_NEW;
    compose_record(guard, node, random, trusted,
                   guard_quarantine_ms(guard, index, identity->write_why, now_ns), write);
    identity_on_written(identity, trusted, now_ns);
    return true;
}
