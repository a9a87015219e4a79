#include "engine/guard/guard.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/round/node_set.h"

#define HEARTBEAT_NS (1 * NS_PER_S)
#define FRESH_NS     GUARD_DAEMON_TIMEOUT_NS

uint32_t guard_epoch(const struct guard *guard, unsigned node)
{
    return guard->nodes[node].epoch;
}

/* --- servers and names --- */

static bool is_connected(const struct guard_node *node)
{
    return node->identity.presence != PRESENCE_AWAY;
}

unsigned guard_duplicate_of(const struct guard *guard, unsigned index)
{
    const struct guard_node *node = &guard->nodes[index];
    unsigned first = index;
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        if (is_connected(node) && is_connected(&guard->nodes[i]) &&
            strcmp(node->identity.run_id, guard->nodes[i].identity.run_id) == 0 &&
            strcmp(guard->rules.node_names[i], guard->rules.node_names[first]) < 0)
            first = i;
    return first;
}

/* If several names lead to one server, only the name that is alphabetically first has a vote. */
static void find_duplicates(struct guard *guard)
{
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        struct guard_node *node = &guard->nodes[i];
        bool was_duplicate = node->duplicate;
        node->duplicate = guard_duplicate_of(guard, i) != i;
        if (node->duplicate != was_duplicate)
            name_lease_begin(&node->lease);
    }
}

/* The value of a lease on the name of the node. */
static void describe_server(const struct guard *guard, unsigned index,
                            char server[GUARD_SERVER_MAX])
{
    const struct identity *identity = &guard->nodes[index].identity;
    name_lease_server(guard->rules.databases[index], identity->record.id, identity->run_id, server);
}

void guard_name_key(const struct guard *guard, unsigned index, char key[GUARD_NAME_KEY_MAX])
{
    snprintf(key, GUARD_NAME_KEY_MAX, "redlockd:name:%s:%s", guard->set_id,
             guard->rules.node_names[index]);
}

/* --- an operator's override --- */

bool guard_has_override(const struct guard *guard)
{
    return (guard->rules.bootstrap || guard->rules.reset_set != NULL) && !guard->override_done;
}

/* Does this node conflict with the override? With --bootstrap it does, unless it has no record yet
 * or has the record that this override wrote. With --reset-set it does if a daemon of the old set
 * runs, if its record is unreadable, or if the record is of a set that is neither the old one nor
 * ours. */
static bool conflicts(const struct guard *guard, const struct guard_node *node)
{
    const struct identity *identity = &node->identity;
    if (!identity_is_sampled(identity))
        return false;
    if (guard->rules.bootstrap)
        return identity->error == REASON_NONE ? identity->override == OVERRIDE_NONE ||
                                                    identity->adopted.why != REASON_BOOTSTRAP
                                              : identity->error != REASON_NEW;
    return node->old_set == OLD_SET_ALIVE || identity->error == REASON_RECORD ||
           (identity->error == REASON_OTHERSET &&
            strcmp(identity->record.set_id, guard->rules.reset_set) != 0);
}

enum guard_progress guard_progress(const struct guard *guard, unsigned *index)
{
    enum guard_progress progress = GUARD_DONE;
    unsigned new = 0;
    if (guard->override_done)
        return GUARD_DONE;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        const struct guard_node *node = &guard->nodes[i];
        if (conflicts(guard, node)) {
            *index = i;
            return GUARD_REFUSED;
        }
        /* Of the nodes that are not done, report one that is away if there is one, because an
         * operator can do something about it. */
        bool away = !identity_is_sampled(&node->identity);
        bool done = !away && node->identity.error == REASON_NONE &&
                    (node->clock.entry_left || !guard->rules.bootstrap);
        if (!done && (away || progress == GUARD_DONE))
            *index = i;
        if (!done)
            progress = GUARD_IN_PROGRESS;
        new += !away && node->identity.error == REASON_NEW;
    }
    /* Only masters of the old set show how long its locks live, and whether its daemons run. */
    return guard->rules.reset_set != NULL && new == guard->rules.node_count ? GUARD_REFUSED
                                                                            : progress;
}

/* --- the vote --- */

/* Does a quorum of the nodes lease the name to the server that this daemon uses? Then any other
 * daemon that has a quorum learns of it. */
static bool is_leased(const struct guard *guard, const struct guard_node *node)
{
    return nodes_count(node->lease.held_on) >= guard->rules.quorum;
}

/* Is the node away, or its last answer to a heartbeat too old? If it has answered none on this
 * connection, it is cut off if it answered none on the last one either. Otherwise a master that
 * accepts connections, but no writes, would be waited for again and again. */
static bool is_cut_off(const struct guard *guard, const struct guard_node *node, int64_t now_ns)
{
    bool too_old = now_ns - node->heartbeat_sent_ns > guard->periods.fresh_ns;
    return !is_connected(node) || (node->heartbeat_sent_ns == 0 ? node->was_silent : too_old);
}

/* Has a node that is not cut off not said yet to which server this name is leased? Another daemon
 * may know another server under the name and may have told only that node. */
static bool awaits_lease_answer(const struct guard *guard, const struct guard_node *node,
                                int64_t now_ns)
{
    uint32_t missing = nodes_all(guard->rules.node_count) & ~node->lease.held_on;
    for (; missing != 0; missing = nodes_after_first(missing)) {
        const struct guard_node *other = &guard->nodes[nodes_first(missing)];
        if (other->heartbeat_error == REASON_NONE && !is_cut_off(guard, other, now_ns))
            return true;
    }
    return false;
}

/* Why the node has no vote according to its own samples; REASON_NONE: no reason. */
static enum reason refused_by_samples(const struct guard_node *node)
{
    if (!identity_is_sampled(&node->identity))
        return REASON_UNCHECKED;
    return node->duplicate ? REASON_DUPLICATE : identity_refuses(&node->identity);
}

/* Like refused_by_samples(), but also considers the answers to heartbeats and to the test of
 * SET. */
static enum reason refused_by_answers(const struct guard_node *node)
{
    enum reason shown = refused_by_samples(node);
    if (shown != REASON_NONE)
        return shown;
    return node->heartbeat_error != REASON_NONE ? node->heartbeat_error : node->set_error;
}

/* Has everything happened that a vote waits for: the facts, a heartbeat and enough leases have been
 * answered, and no step is still to be announced? */
static bool is_checked(const struct guard *guard, const struct guard_node *node)
{
    return identity_facts_known(&node->identity) && node->heartbeat_sent_ns != 0 &&
           node->clock.step_unannounced_ns == 0 && is_leased(guard, node);
}

/* Has a master reported a conflict about the name since the last quarantine of the node ended? */
static bool is_conflict_confirmed(const struct guard *guard, const struct guard_node *node)
{
    return name_lease_reported_ns(&node->lease, &guard->periods) >
           node->identity.quarantine_until_ns;
}

enum reason guard_refuses_vote(const struct guard *guard, unsigned index, int64_t now_ns)
{
    const struct guard_node *node = &guard->nodes[index];
    if (now_ns < guard->suspect_until_ns)
        return REASON_OWN_CLOCK;
    enum reason refused = refused_by_answers(node);
    if (refused != REASON_NONE)
        return refused;
    if (now_ns < node->clock.stepped_until_ns)
        return REASON_STEPPED;
    if (now_ns <= node->identity.quarantine_until_ns)
        return node->identity.adopted.why;
    enum reason leased = name_lease_refuses(&node->lease, now_ns);
    /* The lease of a server that was lost usually expires shortly before the quarantine of the new
     * one ends, and the next heartbeat shows whether a conflict is left. It can last for fresh_ns
     * more: as long as it lists another daemon, which may have ended (heartbeat.lua). */
    if (leased == REASON_REPOINTED && !is_conflict_confirmed(guard, node))
        return REASON_UNCHECKED;
    if (leased != REASON_NONE)
        return leased;
    if (!node->clock.monitor.begun)
        return REASON_CLOCK;
    if (!is_checked(guard, node) || now_ns - node->heartbeat_sent_ns > guard->periods.fresh_ns ||
        awaits_lease_answer(guard, node, now_ns))
        return REASON_UNCHECKED;
    if (node->clock.state != CLOCK_TRUSTED)
        return REASON_CLOCK_UNPROVEN;
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
        /* As time passes, votes only come back, with one exception: a heartbeat gets too old. */
        until_ns = min(until_ns, guard->nodes[i].heartbeat_sent_ns + guard->periods.fresh_ns + 1);
    }
    guard->all_vote_until_ns = until_ns;
    return true;
}

enum reason guard_own_conflict(const struct guard *guard, unsigned index, int64_t now_ns)
{
    const struct identity *identity = &guard->nodes[index].identity;
    enum reason shown = refused_by_samples(&guard->nodes[index]);
    if (!identity_facts_known(identity))
        return REASON_UNCHECKED;
    if (shown != REASON_NONE)
        return shown;
    return now_ns <= identity->quarantine_until_ns ? identity->adopted.why : REASON_NONE;
}

enum reason guard_lease_conflict(const struct guard *guard, unsigned index, const char *lease,
                                 int64_t time_us)
{
    const struct identity *identity = &guard->nodes[index].identity;
    char server[GUARD_SERVER_MAX];
    if (!identity_is_sampled(identity) || identity->error != REASON_NONE)
        return REASON_NONE;
    describe_server(guard, index, server);
    return name_lease_conflict(lease, server, time_us / 1000 - guard->periods.fresh_ns / NS_PER_MS);
}

bool guard_may_hold_locks(const struct guard *guard, unsigned index, int64_t now_ns)
{
    switch (guard_refuses_vote(guard, index, now_ns)) {
    case REASON_OTHERSET:
    case REASON_RECORD:
    case REASON_REPLICA:
    case REASON_REPOINTED:
    case REASON_OTHERPROCESS:
    case REASON_DUPLICATE:
    case REASON_UNCHECKED:
        return false;
    default:
        return true;
    }
}

int64_t guard_quarantine_ms(const struct guard *guard, unsigned index, enum reason why,
                            int64_t now_ns)
{
    const struct identity *identity = &guard->nodes[index].identity;
    bool keeps_data = why == REASON_DURABLE || why == REASON_STEPPED;
    int64_t quarantine_ms = guard->periods.quarantine_ns / NS_PER_MS + 1;
    /* Locks that the present record allows may live as long as its quarantine: those of the old
     * set, or those of a master that keeps its data. */
    if (why == REASON_RESET || keeps_data)
        quarantine_ms = max(quarantine_ms, identity->record.quarantine_ms);
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        const struct identity *other = &guard->nodes[i].identity;
        if (now_ns <= other->quarantine_until_ns)
            quarantine_ms = max(quarantine_ms, other->adopted.quarantine_ms);
    }
    return quarantine_ms;
}

/* Is it known when this reason ends? Other reasons end when an operator or another daemon acts. */
static bool is_timed(const struct identity *identity, enum reason reason, int64_t now_ns)
{
    switch (reason) {
    case REASON_OWN_CLOCK:
    case REASON_STEPPED:
    case REASON_CLOCK_UNPROVEN:
    case REASON_OTHERPROCESS:
        return true;
    default:
        return (reason == identity->error && reason_ends_by_waiting(reason)) ||
               (reason == identity->adopted.why && now_ns <= identity->quarantine_until_ns);
    }
}

int64_t guard_refuses_until_ns(const struct guard *guard, unsigned index, int64_t now_ns)
{
    const struct guard_node *node = &guard->nodes[index];
    enum reason reason = guard_refuses_vote(guard, index, now_ns);
    if (reason == REASON_NONE)
        return now_ns;
    if (!is_timed(&node->identity, reason, now_ns))
        return INT64_MAX;
    /* The suspicion, the step, the quarantine and so on all have to end, so the latest end
     * counts. */
    int64_t until_ns = max(guard->suspect_until_ns, node->clock.stepped_until_ns);
    until_ns = max(until_ns, node->identity.quarantine_until_ns);
    if (node->lease.conflicts != 0)
        until_ns = max(until_ns, node->lease.handover_ns);
    /* After trusted_from_ns, the next steady sample makes the clock trusted. */
    if (node->clock.state != CLOCK_TRUSTED)
        until_ns = max(until_ns, node->clock.trusted_from_ns);
    /* A new record is about to be written. It begins a quarantine, except for REASON_DURABLE. */
    if (reason == node->identity.error)
        until_ns = max(until_ns, now_ns + (reason == REASON_DURABLE
                                               ? guard->periods.heartbeat_ns
                                               : guard_quarantine_ms(guard, index, reason, now_ns) *
                                                     NS_PER_MS));
    return max(until_ns, now_ns);
}

/* --- samples --- */

/* May the bounds of this clock be left on the master for other daemons? Before the first sample on
 * this connection, they may be the bounds of another server's clock. */
static bool has_bounds(const struct guard *guard, const struct guard_node *node, int64_t now_ns)
{
    return now_ns >= guard->suspect_until_ns && identity_is_sampled(&node->identity) &&
           clock_has_bounds(&node->clock, now_ns);
}

/* A quorum of the masters' clocks seems to have stepped at the same time. That is unlikely, so
 * assume that the clock of this daemon has stepped. */
static void suspect_own_clock(struct guard *guard, int64_t now_ns)
{
    guard->suspect_until_ns = now_ns + guard->periods.quarantine_ns;
    guard->heartbeat |= nodes_all(guard->rules.node_count);
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        clock_on_suspect(&guard->nodes[i].clock, &guard->periods, now_ns);
        guard->nodes[i].identity.write_why = REASON_NONE;
    }
}

/* Act on the result that the clock of a node has returned. */
static void on_clock(struct guard *guard, unsigned index, const struct clock_result *result,
                     int64_t now_ns)
{
    unsigned stepped = 0;
    if (result->heartbeat)
        guard->heartbeat |= nodes_only(index);
    if (result->result != MONITOR_STEPPED)
        return;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        int64_t stepped_ns = guard->nodes[i].clock.stepped_ns;
        stepped += stepped_ns != 0 && now_ns - stepped_ns <= 2 * guard->periods.heartbeat_ns;
    }
    if (stepped >= guard->rules.quorum)
        suspect_own_clock(guard, now_ns);
    /* Probe this node again to confirm the step, and the other nodes to see whether the clock of
     * this daemon kept pace with theirs. */
    guard->probe |= nodes_all(guard->rules.node_count);
}

/* A record may have to be written although the present one is right: because of a step, or of the
 * durability of the node. */
static void want_record(struct guard *guard, struct guard_node *node, bool adopted, bool confirmed,
                        int64_t now_ns)
{
    struct identity *identity = &node->identity;
    bool none = identity->write_why == REASON_NONE;
    if (adopted && identity->adopted.why == REASON_STEPPED) {
        /* Another daemon has seen the same step and recorded it first. */
        clock_drop_step(&node->clock);
        if (identity->write_why == REASON_STEPPED)
            identity->write_why = REASON_NONE;
    } else if (none && confirmed)
        identity->write_why = REASON_STEPPED;
    if (identity_wants_durability(identity, &guard->periods, now_ns))
        identity->write_why = REASON_DURABLE;
}

static enum guard_result check_sample(struct guard *guard, unsigned index,
                                      enum monitor_result result, int64_t now_ns)
{
    struct guard_node *node = &guard->nodes[index];
    if (node->identity.error != REASON_NONE)
        return GUARD_FAIL;
    switch (result) {
    case MONITOR_STEADY:
        /* An operator override replaces the time of monitoring. */
        if (node->identity.override == OVERRIDE_CLOCK) {
            clock_override(&node->clock);
            node->identity.override = OVERRIDE_DONE;
        }
        if (!node->clock.entry_left && node->heartbeat_error == REASON_NONE &&
            has_bounds(guard, node, now_ns))
            guard->heartbeat |= nodes_only(index);
        return node->clock.unmonitored_since_ns != 0 ? GUARD_WAIT : GUARD_PASS;
    case MONITOR_UNCLEAR:
        return GUARD_WAIT;
    case MONITOR_STEPPED:
    case MONITOR_STEPPED_BACK:
    case MONITOR_LOST:
        break;
    }
    return GUARD_FAIL;
}

static enum guard_result take_sample(struct guard *guard, unsigned index,
                                     const struct guard_sample *sample)
{
    struct guard_node *node = &guard->nodes[index];
    int64_t now_ns = sample->clock.received_ns;
    struct clock_result clock = {.result = MONITOR_UNCLEAR};
    enum reason before = node->identity.error;
    if (sample->failed == REASON_NONE) {
        clock = clock_on_sample(&node->clock, &guard->periods, &sample->clock);
        on_clock(guard, index, &clock, now_ns);
    }
    uint64_t quarantine_id = node->identity.adopted.quarantine_id;
    bool adopted = identity_on_sample(&node->identity, &guard->periods,
                                      &(struct identity_context){
                                          .set_id = guard->set_id,
                                          .reset_set = guard->rules.reset_set,
                                          .clock_stepped = now_ns < node->clock.stepped_until_ns,
                                          .has_override = guard_has_override(guard),
                                      },
                                      sample);
    if (sample->failed != REASON_NONE)
        return GUARD_FAIL;
    /* Other daemons may have counted votes of this server, and this daemon may not know it: then
     * earlier samples of the clock, which were of another server, prove nothing. */
    const struct record *record = &node->identity.adopted;
    if (adopted && record->quarantine_id != quarantine_id &&
        record->join_us <= sample->clock.time_us && clock.result != MONITOR_STEPPED)
        clock = clock_begin_anew(&node->clock, &guard->periods, &sample->clock);
    /* While there was an error, this daemon did not renew the lease on the name, so other daemons
     * may have taken it. */
    if (adopted || (node->identity.error == REASON_NONE && before != REASON_NONE))
        name_lease_begin(&node->lease);
    if (node->lease.wanted && node->identity.error == REASON_NONE &&
        node->identity.facts_error == REASON_NONE) {
        node->lease.wanted = false;
        guard->heartbeat = nodes_all(guard->rules.node_count);
    }
    want_record(guard, node, adopted, clock.confirmed, now_ns);
    return check_sample(guard, index, clock.result, now_ns);
}

/* --- heartbeats --- */

void guard_heartbeat(const struct guard *guard, unsigned index, int64_t now_ns,
                     struct guard_heartbeat *heartbeat)
{
    const struct guard_node *node = &guard->nodes[index];
    const struct guard_periods *periods = &guard->periods;
    *heartbeat = (struct guard_heartbeat){
        .attestation_ttl_ms = 2 * periods->fresh_ns / NS_PER_MS,
        .fresh_ms =
            (periods->fresh_ns + drift_of(&periods->drift, periods->fresh_ns)) / NS_PER_MS + 1,
    };
    heartbeat->lease_ms = guard->rules.max_ttl_ns / NS_PER_MS + heartbeat->fresh_ms;
    for (unsigned i = 0; i < guard->rules.node_count; i++) {
        /* Until an operator override is carried out, the configuration may name the wrong
         * masters. */
        if (guard_has_override(guard) || guard->nodes[i].duplicate ||
            !identity_is_sampled(&guard->nodes[i].identity) ||
            guard->nodes[i].identity.error != REASON_NONE)
            continue;
        heartbeat->names |= nodes_only(i);
        describe_server(guard, i, heartbeat->servers[i]);
    }
    clock_describe(&node->clock, has_bounds(guard, node, now_ns), heartbeat->entry,
                   heartbeat->attestation);
    memcpy(heartbeat->step, node->clock.known_step, sizeof(heartbeat->step));
    memcpy(heartbeat->beats, node->identity.beats, sizeof(heartbeat->beats));
}

/* Does the probe that was sent with a heartbeat show that the node has kept the leases of other
 * daemons? It has not if its data is lost, or if its clock was stepped forward. */
static bool keeps_leases(const struct guard *guard, unsigned index, int64_t sent_ns, int64_t now_ns)
{
    const struct guard_node *node = &guard->nodes[index];
    return guard_own_conflict(guard, index, now_ns) == REASON_NONE &&
           now_ns >= node->clock.stepped_until_ns && node->clock.state == CLOCK_TRUSTED &&
           node->clock.steady_ns >= sent_ns;
}

/* When a node last lost its data, or the trust in its clock, as far as is known: the present
 * quarantine, or the last one, began then. */
static int64_t last_loss_ns(const struct guard *guard, unsigned index)
{
    const struct guard_node *node = &guard->nodes[index];
    int64_t until_ns = max(node->identity.quarantine_until_ns, node->clock.stepped_until_ns);
    return max(until_ns, node->clock.trusted_from_ns) - guard->periods.quarantine_ns;
}

static void take_leases(struct guard *guard, unsigned index, const struct guard_heartbeat *left,
                        int64_t sent_ns, const char *digits, int64_t now_ns)
{
    bool keeps = keeps_leases(guard, index, sent_ns, now_ns);
    int64_t loss_ns = last_loss_ns(guard, index);
    for (unsigned i = 0; i < guard->rules.node_count && *digits != ' '; i++) {
        char server[GUARD_SERVER_MAX];
        if (!(left->names & nodes_only(i)))
            continue;
        describe_server(guard, i, server);
        /* The quarantine of this node does not cover the locks of another daemon that learned of
         * the loss later. So a conflict from before the loss ends by time alone. */
        struct name_lease *lease = &guard->nodes[i].lease;
        bool kept = keeps && lease->reported_ns[index] >= loss_ns;
        name_lease_on_digit(lease, &guard->periods, index, *digits++,
                            strcmp(left->servers[i], server) == 0, kept, now_ns);
        if (guard->nodes[i].lease.ending & nodes_only(index))
            guard->heartbeat |= nodes_only(index);
    }
}

static void take_heartbeat(struct guard *guard, unsigned index, const struct guard_heartbeat *left,
                           int64_t sent_ns, const char *text, size_t len, int64_t now_ns)
{
    struct guard_node *node = &guard->nodes[index];
    char copy[512] = "";
    if (len < sizeof(copy))
        memcpy(copy, text, len);
    char *beats = strchr(copy, ' ');
    char *attestation = beats != NULL ? strchr(beats + 1, ' ') : NULL;
    char *step = attestation != NULL ? strchr(attestation + 1, ' ') : NULL;
    char *entry = step != NULL ? strchr(step + 1, ' ') : NULL;
    if (entry == NULL || entry - step > GUARD_STEP_MAX || attestation - beats > IDENTITY_BEATS) {
        node->heartbeat_error = REASON_GARBAGE;
        return;
    }
    *attestation = *entry = '\0';
    node->heartbeat_sent_ns = sent_ns;
    node->heartbeat_error = REASON_NONE;
    if (clock_on_heartbeat(&node->clock, &guard->periods, left->entry, step + 1, sent_ns, now_ns))
        guard->probe |= nodes_only(index);
    /* The answer has the step before the announced one. Once another answer has shown the announced
     * one, an entry can be left again. */
    if (strcmp(left->entry, CLOCK_STEP_ANNOUNCED) == 0)
        guard->heartbeat |= nodes_only(index);
    take_leases(guard, index, left, sent_ns, copy, now_ns);
    if (identity_on_beats(&node->identity, beats + 1))
        guard->probe |= nodes_only(index);
    unsigned waited_for;
    if (guard_has_override(guard) && guard_progress(guard, &waited_for) == GUARD_DONE) {
        guard->override_done = true;
        guard->heartbeat = nodes_all(guard->rules.node_count);
    }
    if (now_ns < guard->suspect_until_ns)
        return;
    struct clock_result clock =
        clock_inherit(&node->clock, &guard->periods, attestation + 1, entry + 1, now_ns);
    on_clock(guard, index, &clock, now_ns);
}

/* --- epochs --- */

static struct guard_basis basis_of(const struct guard *guard, unsigned index)
{
    const struct guard_node *node = &guard->nodes[index];
    return (struct guard_basis){
        .refused = refused_by_answers(node),
        .checked = is_checked(guard, node),
        .trusted = node->clock.state == CLOCK_TRUSTED,
        .trusted_from_ns = node->clock.trusted_from_ns,
        .stepped_until_ns = node->clock.stepped_until_ns,
        .quarantine_until_ns = node->identity.quarantine_until_ns,
        .conflict_since_ns = node->lease.conflict_since_ns,
        .suspect_until_ns = guard->suspect_until_ns,
    };
}

void guard_init(struct guard *guard, const struct guard_rules *rules)
{
    assert(rules->node_count <= LIMIT_NODES);
    memset(guard, 0, sizeof(*guard));
    guard->rules = *rules;
    record_set_id(rules, guard->set_id);
    int64_t quarantine_ns = rules->max_ttl_ns + drift_of(&rules->drift, rules->max_ttl_ns);
    /* A heartbeat must be valid for less than a quarantine. If a master was replaced, a daemon that
     * keeps a link to the old one has to notice that before the new master votes. */
    guard->periods = (struct guard_periods){
        .drift = rules->drift,
        .quarantine_ns = quarantine_ns,
        .heartbeat_ns = min(HEARTBEAT_NS, quarantine_ns / 4),
        .fresh_ns = min(FRESH_NS, quarantine_ns / 2),
    };
    for (unsigned i = 0; i < rules->node_count; i++)
        guard->nodes[i].basis = basis_of(guard, i);
}

/* Does everything that the votes rested on still hold? If a node only gets its vote back, it
 * does. */
static bool still_holds(const struct guard_basis *before, const struct guard_basis *after)
{
    return (after->refused == before->refused || after->refused == REASON_NONE) &&
           after->checked >= before->checked && after->trusted >= before->trusted &&
           (after->trusted_from_ns == before->trusted_from_ns || !before->trusted) &&
           after->stepped_until_ns == before->stepped_until_ns &&
           after->quarantine_until_ns == before->quarantine_until_ns &&
           after->conflict_since_ns == before->conflict_since_ns &&
           after->suspect_until_ns == before->suspect_until_ns;
}

/* The only place where epochs begin, called at the end of each event. Once the facts behind a vote
 * have changed for the worse, no vote that was asked for before may count. */
static void begin_epochs(struct guard *guard, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        struct guard_node *node = &guard->nodes[i];
        struct guard_basis after = basis_of(guard, i);
        node->epoch += !still_holds(&node->basis, &after);
        node->basis = after;
    }
    guard->all_vote_until_ns = 0;
}

static void begin_all_epochs(struct guard *guard)
{
    begin_epochs(guard, 0, guard->rules.node_count);
}

/* --- events --- */

void guard_on_connected(struct guard *guard, unsigned index, const char *run_id, int64_t begun_ns,
                        int64_t now_ns)
{
    struct guard_node *node = &guard->nodes[index];
    /* A name that votes now does so although this node may have reported a conflict long ago. The
     * answers of this node count as if it had reported none, so the name keeps its vote. */
    for (unsigned i = 0; i < guard->rules.node_count; i++)
        if (guard_refuses_vote(guard, i, now_ns) == REASON_NONE)
            name_lease_forget(&guard->nodes[i].lease, index);
    identity_on_connected(&node->identity, run_id, begun_ns);
    node->clock.entry_left = false;
    /* The server may have changed, or other daemons may have leased the name while the node was
     * away. */
    name_lease_begin(&node->lease);
    node->heartbeat_sent_ns = 0;
    node->heartbeat_error = REASON_NONE;
    node->set_error = REASON_NONE;
    find_duplicates(guard);
    begin_all_epochs(guard);
}

void guard_on_lost(struct guard *guard, unsigned index)
{
    struct guard_node *node = &guard->nodes[index];
    node->was_silent = node->heartbeat_sent_ns == 0;
    identity_on_lost(&node->identity);
    find_duplicates(guard);
    begin_all_epochs(guard);
}

enum guard_result guard_on_sample(struct guard *guard, unsigned index,
                                  const struct guard_sample *sample)
{
    int64_t suspect_until_ns = guard->suspect_until_ns;
    enum guard_result result = take_sample(guard, index, sample);
    /* A sample changes the basis of one node, unless it makes the clock of this daemon suspect. */
    if (guard->suspect_until_ns == suspect_until_ns)
        begin_epochs(guard, index, index + 1);
    else
        begin_all_epochs(guard);
    return result;
}

void guard_on_facts(struct guard *guard, unsigned index, const struct guard_facts *facts)
{
    identity_on_facts(&guard->nodes[index].identity, facts);
    begin_all_epochs(guard);
}

void guard_on_set(struct guard *guard, unsigned index, enum reason refused)
{
    guard->nodes[index].set_error = refused;
    begin_all_epochs(guard);
}

void guard_on_record_written(struct guard *guard, unsigned index, enum reason refused)
{
    guard->nodes[index].identity.write_error = refused;
    begin_all_epochs(guard);
}

void guard_on_heartbeat_failed(struct guard *guard, unsigned index, enum reason reason)
{
    guard->nodes[index].heartbeat_error = reason;
    begin_all_epochs(guard);
}

void guard_on_heartbeat(struct guard *guard, unsigned index,
                        const struct guard_heartbeat *heartbeat, int64_t sent_ns, const char *text,
                        size_t len, int64_t now_ns)
{
    take_heartbeat(guard, index, heartbeat, sent_ns, text, len, now_ns);
    begin_all_epochs(guard);
}
