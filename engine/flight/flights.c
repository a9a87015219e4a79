#include "engine/flight/flights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/flight/masters.h"
#include "engine/flight/write.h"
#include "engine/round/node_set.h"
#include "protocol/text.h"
#include "protocol/token.h"

static_assert(offsetof(struct flight, batch_next) == 0, "links find the next of a batch here");
static_assert(offsetof(struct flight, round.phase) < POOL_LINE, "a vote touches one cache line");
static_assert(offsetof(struct flight, round.ballot_seen) <= 2 * POOL_LINE,
              "most rounds touch two cache lines");

static const enum redis_command commands[] = {
    [ROUND_ACQUIRE] = REDIS_ACQUIRE, [ROUND_EXTEND] = REDIS_EXTEND, [ROUND_RELEASE] = REDIS_RELEASE,
    [ROUND_STATUS] = REDIS_STATUS,   [ROUND_FREEZE] = REDIS_FREEZE,
};

/* --- tokens --- */

/* Write `count` random bytes, unpredictable like those of a token, as 2 * count hex digits. */
static void draw_digits(struct flights *flights, size_t count, char *digits)
{
    unsigned char bytes[LIMIT_TOKEN_BYTES];
    assert(count <= sizeof(bytes));
    flights->io->links.random(flights->io->links.context, bytes, count);
    text_hex(bytes, count, digits);
}

void flights_make_token(struct flights *flights, char *token)
{
    draw_digits(flights, LIMIT_TOKEN_BYTES, token);
}

void flights_freeze_token(struct flights *flights, const char *token, char *frozen)
{
    unsigned char fresh[TOKEN_FRESH_BYTES];
    flights->io->links.random(flights->io->links.context, fresh, sizeof(fresh));
    token_freeze(token, fresh, frozen);
}

/* --- allocation --- */

static bool allocate(struct flights *flights)
{
    size_t kept = (size_t)flights->node_count * LIMIT_LINK_KEPT;
    flights->outstanding_memory =
        calloc(flights->node_count, LIMIT_LINK_COMMANDS * sizeof(struct outstanding));
    flights->pending_releases =
        calloc(flights->node_count, LIMIT_LINK_PENDING_RELEASES * sizeof(struct pending_release));
    flights->votes = calloc(kept, sizeof(struct kept_vote));
    flights->vote_answers = calloc(kept, sizeof(struct answer));
    return flights->outstanding_memory != NULL && flights->pending_releases != NULL &&
           flights->votes != NULL && flights->vote_answers != NULL &&
           pool_init(&flights->pool, sizeof(struct flight), LIMIT_ROUNDS);
}

bool flights_init(struct flights *flights, const struct engine_rules *rules,
                  const struct engine_io *io, struct engine_stats *stats, int64_t now_ns)
{
    memset(flights, 0, sizeof(*flights));
    flights->rules = rules;
    flights->io = io;
    flights->stats = stats;
    flights->node_count = rules->round.node_count;
    TAILQ_INIT(&flights->voting);
    TAILQ_INIT(&flights->settled);
    STAILQ_INIT(&flights->batched);
    STAILQ_INIT(&flights->unwritten);
    admission_init(&flights->admission, rules->round.node_timeout_ns);
    SLIST_INIT(&flights->idle_keys);
    draw_digits(flights, sizeof(flights->daemon) / 2, flights->daemon);
    if (!allocate(flights))
        return false;
    masters_init(flights, now_ns);
    return true;
}

void flights_deinit(struct flights *flights)
{
    pool_deinit(&flights->pool);
    free(flights->outstanding_memory);
    free(flights->pending_releases);
    free(flights->votes);
    free(flights->vote_answers);
}

struct flight *flights_open(struct flights *flights, struct flight_key *key, enum round_kind kind,
                            int64_t ttl_ns)
{
    struct flight *flight = pool_take(&flights->pool);
    if (flight == NULL)
        return NULL;
    /* Clear all fields but the round and the two tokens, which are written before they are read. */
    memset(flight, 0, offsetof(struct flight, round));
    memset(&flight->key, 0, offsetof(struct flight, token) - offsetof(struct flight, key));
    memset(&flight->partner, 0,
           offsetof(struct flight, predecessor) - offsetof(struct flight, partner));
    round_init(&flight->round, &flights->rules->round, kind, ttl_ns);
    flight->vote_command = commands[kind];
    flight->key = key;
    LIST_INSERT_HEAD(&key->flights, flight, of_key);
    key->extends += kind == ROUND_EXTEND;
    key->releases += kind == ROUND_RELEASE;
    return flight;
}

void flight_note_idle(struct flight_keys *idle, struct flight_key *key)
{
    if (key->idle)
        return;
    key->idle = true;
    SLIST_INSERT_HEAD(idle, key, of_idle);
}

void flights_end(struct flights *flights, struct flight *flight)
{
    assert(!flight->settled);
    assert(flight->pending == NULL);
    assert(flight->renews == NULL);
    assert(flight->breaking == NULL);
    assert(flight->batched_for == 0);
    if (flight->partner != NULL)
        flight->partner->partner = NULL;
    LIST_REMOVE(flight, of_key);
    flight->key->extends -= flight->round.kind == ROUND_EXTEND;
    flight->key->releases -= flight->round.kind == ROUND_RELEASE;
    flight_note_idle(&flights->idle_keys, flight->key);
    pool_give(&flights->pool, flight);
}

void flights_drop(struct flights *flights, struct flight *flight)
{
    assert(flight->round.sent == 0);
    flights_end(flights, flight);
}

/* --- steps --- */

/* Recursive: a step can write commands, and a node that refuses to take a command has failed, which
 * is the next step. */
static void step_flight(struct flights *flights, struct flight *flight,
                        const struct round_event *event);

/*
 * A release asks for no vote, so no probe follows it. But a node without a vote may have lost the
 * key, so if it denies having the token, that proves nothing about the lock. Returns why the denial
 * does not count, or REASON_NONE.
 */
static enum reason distrust_denial(const struct flights *flights, unsigned node,
                                   const struct flight *flight, enum round_command command,
                                   const struct answer *answer, int64_t now_ns)
{
    if (flight->round.kind != ROUND_RELEASE || command != ROUND_VOTE ||
        (answer->kind != ANSWER_ABSENT && answer->kind != ANSWER_HELD))
        return REASON_NONE;
    return guard_refuses_vote(&flights->guard, node, now_ns);
}

void flights_deliver(struct flights *flights, unsigned node, struct flight *flight,
                     enum round_command command, const struct answer *answer, int64_t now_ns)
{
    enum reason distrust = distrust_denial(flights, node, flight, command, answer, now_ns);
    const struct answer distrusted = {.kind = ANSWER_FAILED, .reason = distrust};
    if (distrust != REASON_NONE)
        answer = &distrusted;
    step_flight(flights, flight,
                &(struct round_event){.type = ROUND_EVENT_ANSWER,
                                      .now_ns = now_ns,
                                      .node = node,
                                      .command = command,
                                      .answer = answer});
}

void flights_deliver_to_partner(struct flights *flights, unsigned node, struct flight *flight,
                                const struct answer *answer, int64_t now_ns)
{
    struct flight *release = flight->partner;
    struct answer released = *answer;
    assert(release != NULL); /* it exists because it waits for this answer */
    released.kind = answer->released;
    if (released.kind == ANSWER_FAILED)
        write_defer_release(flights, node, release, now_ns);
    flights_deliver(flights, node, release, ROUND_VOTE, &released, now_ns);
}

void flights_fail(struct flights *flights, unsigned node, struct flight *flight,
                  enum round_command command, enum reason reason, int64_t now_ns)
{
    const struct answer failed = {
        .kind = ANSWER_FAILED, .reason = reason, .released = ANSWER_FAILED};
    if (flight_is_swap(flight, command))
        flights_deliver_to_partner(flights, node, flight, &failed, now_ns);
    if (flight_is_release(flight, command))
        write_defer_release(flights, node, flight, now_ns);
    flights_deliver(flights, node, flight, command, &failed, now_ns);
}

/* Write a command to the nodes that the round has named. */
static void send_to_nodes(struct flights *flights, struct flight *flight,
                          enum round_command command, uint32_t nodes, int64_t now_ns)
{
    if (command == ROUND_BACKFILL)
        flights->stats->backfilled++;
    /* On these nodes, the swap of the acquire releases the old token as well. */
    if (command == ROUND_VOTE && flight->vote_command != REDIS_SWAP)
        nodes &= ~flight->swap_nodes;
    /* The last failure can finish the round, which frees the flight. */
    for (uint32_t refused = write_command(flights, flight, command, nodes, now_ns); refused != 0;
         refused = nodes_after_first(refused))
        flights_fail(flights, nodes_first(refused), flight, command, REASON_BACKLOG, now_ns);
}

/* Count the nodes without a vote in this round, by reason. */
static void count_refusals(struct flights *flights, const struct round *round)
{
    if (round->kind == ROUND_RELEASE)
        return;
    for (uint32_t failed = round->failed; failed != 0; failed = nodes_after_first(failed)) {
        unsigned node = nodes_first(failed);
        flights->stats->refused[node][round->reasons[node]]++;
    }
}

/* Carry out the actions of a step. This can free the flight. */
static inline void carry_out(struct flights *flights, struct flight *flight,
                             const struct round_actions *actions, int64_t now_ns)
{
    if (actions->send_to != 0)
        send_to_nodes(flights, flight, actions->send, actions->send_to, now_ns);
    else if (flights_is_over(flight))
        flights_end(flights, flight);
}

/* Releases and extensions make room or keep a promise, so they start at once. So does the STATUS of
 * a BREAK, which keeps notes; few BREAKs run at a time. */
static bool has_to_be_admitted(const struct flight *flight)
{
    return (flight->round.kind == ROUND_STATUS && flight->notes == NULL) ||
           (flight->round.kind == ROUND_ACQUIRE && flight->vote_command != REDIS_SWAP);
}

/* A step has settled the round: queue it for the lock manager, which decides what follows. The
 * backfill of a grant waits until the client has been told, because a grant that reaches no client
 * is undone instead. */
static void note_settled(struct flights *flights, struct flight *flight,
                         const struct round_actions *actions, int64_t now_ns)
{
    const struct round *round = &flight->round;
    bool granted =
        round->kind == ROUND_ACQUIRE && round->outcome == OUTCOME_OK && !round->cancelled;
    TAILQ_REMOVE(&flights->voting, flight, of_list);
    TAILQ_INSERT_TAIL(&flights->settled, flight, of_list);
    flight->settled = true;
    admission_on_settled(&flights->admission, has_to_be_admitted(flight));
    count_refusals(flights, round);
    if (granted)
        flight->backfill = actions->send_to;
    else if (actions->send_to != 0)
        send_to_nodes(flights, flight, actions->send, actions->send_to, now_ns);
}

static void step_flight(struct flights *flights, struct flight *flight,
                        const struct round_event *event)
{
    bool was_settled = flight->round.phase == ROUND_SETTLED;
    struct round_actions actions;
    round_step(&flight->round, event, &actions);
    if (!was_settled && flight->round.phase == ROUND_SETTLED)
        note_settled(flights, flight, &actions, event->now_ns);
    else
        carry_out(flights, flight, &actions, event->now_ns);
}

void flights_conclude(struct flights *flights, struct flight *flight, bool delivered,
                      int64_t now_ns)
{
    struct round_actions actions = {.send = ROUND_BACKFILL, .send_to = flight->backfill};
    assert(flight->settled);
    TAILQ_REMOVE(&flights->settled, flight, of_list);
    flight->settled = false;
    if (!delivered)
        round_step(&flight->round,
                   &(struct round_event){.type = ROUND_EVENT_UNDELIVERED, .now_ns = now_ns},
                   &actions);
    carry_out(flights, flight, &actions, now_ns);
}

/* --- start --- */

/* Is this token being released? Then an extension that starts now must not backfill it. */
static bool being_released(const struct flight *flight)
{
    const struct flight *other;
    /* A short cut, because clients can have thousands of other rounds for the key. */
    if (flight->key->releases == 0)
        return false;
    LIST_FOREACH (other, &flight->key->flights, of_key)
        if (other->round.kind == ROUND_RELEASE &&
            memcmp(other->token, flight->token, LIMIT_TOKEN) == 0)
            return true;
    return false;
}

/* Find the nodes that can be sent the release, and a reason for each other node. A node that cannot
 * be written to gets a pending release, unless flight->skipped leaves it out. */
static void find_reachable(struct flights *flights, struct flight *flight,
                           struct round_event *event, enum reason *reasons)
{
    for (unsigned i = 0; i < flights->node_count; i++) {
        reasons[i] = flight->skipped != NULL ? flight->skipped[i] : REASON_NONE;
        if (reasons[i] != REASON_NONE)
            continue;
        reasons[i] = link_refuses_release(&flights->masters[i].link);
        if (reasons[i] == REASON_NONE)
            event->reachable |= nodes_only(i);
        else
            write_defer_release(flights, i, flight, event->now_ns);
    }
}

/* Find the nodes that may be asked for their vote, the reason for each other node, and which of the
 * others may hold locks and can be written to. */
static void find_voters(struct flights *flights, struct round_event *event, enum reason *reasons)
{
    int64_t now_ns = event->now_ns;
    bool all_vote = guard_all_vote(&flights->guard, now_ns);
    uint32_t reachable = 0;
    for (unsigned i = 0; i < flights->node_count; i++) {
        enum reason reason = link_refuses_vote(&flights->masters[i].link);
        bool linked = reason == REASON_NONE;
        if (linked && !all_vote)
            reason = guard_refuses_vote(&flights->guard, i, now_ns);
        if (reason == REASON_NONE) {
            reachable |= nodes_only(i);
            continue;
        }
        reasons[i] = reason;
        if (linked && guard_may_hold_locks(&flights->guard, i, now_ns))
            event->may_hold_key |= nodes_only(i);
    }
    event->reachable = reachable;
}

void flights_start(struct flights *flights, struct flight *flight, int64_t now_ns)
{
    enum reason reasons[LIMIT_NODES];
    struct round_event event = {
        .type = ROUND_EVENT_START,
        .now_ns = now_ns,
        .unreachable_because = reasons,
    };
    if (flight->round.kind == ROUND_EXTEND && being_released(flight))
        flight->round.token_releasing = true;
    if (flight->round.kind == ROUND_RELEASE)
        find_reachable(flights, flight, &event, reasons);
    else
        find_voters(flights, &event, reasons);
    /* flights_hand_over_nodes() has chosen these nodes in the same call of the engine. */
    assert((flight->swap_nodes & ~event.reachable) == 0);
    admission_on_start(&flights->admission, has_to_be_admitted(flight));
    /* All rounds have the same timeout, so their deadlines are in the order of their starts. */
    TAILQ_INSERT_TAIL(&flights->voting, flight, of_list);
    step_flight(flights, flight, &event);
}

/* False if a round that starts now would find no quorum only because links are full. */
static bool links_have_room(const struct flights *flights)
{
    unsigned up = 0;
    unsigned free = 0;
    for (unsigned i = 0; i < flights->node_count; i++) {
        up += flights->masters[i].link.state == LINK_UP;
        free += link_refuses_vote(&flights->masters[i].link) == REASON_NONE;
    }
    return free >= flights->rules->round.quorum || up < flights->rules->round.quorum;
}

bool flights_has_room(const struct flights *flights)
{
    const struct admission *admission = &flights->admission;
    if (!admission_has_room(admission))
        return false;
    /* Releases are not limited, and can fill the links. */
    return admission->in_flight < LIMIT_LINK_VOTES / 4 || links_have_room(flights);
}

void flights_adapt(struct flights *flights, int64_t now_ns)
{
    unsigned quorum = flights->rules->round.quorum;
    int64_t latencies_ns[LIMIT_NODES];
    int64_t distances_ns[LIMIT_NODES];
    uint32_t connected = 0;
    uint32_t measured = 0;
    if (!admission_is_due(&flights->admission)) {
        flights->admission.settled = 0;
        return;
    }
    for (unsigned i = 0; i < flights->node_count; i++) {
        const struct link *link = &flights->masters[i].link;
        latencies_ns[i] = link_latency_ns(link, now_ns);
        distances_ns[i] = link->distance_ns;
        connected |= link_is_connected(link->state) ? nodes_only(i) : 0;
        measured |= link->distance_ns >= 0 ? nodes_only(i) : 0;
    }
    admission_adapt(&flights->admission, nodes_quorum_ns(quorum, 0, connected, latencies_ns),
                    nodes_quorum_ns(quorum, 0, measured, distances_ns), now_ns);
}

uint32_t flights_hand_over_nodes(struct flights *flights, struct flight_key *key, int64_t now_ns)
{
    uint32_t nodes = 0;
    /* Batched releases of this key are written before the links are checked, because they may take
     * the last room of a link. */
    write_batched_first(flights, key, now_ns);
    for (unsigned i = 0; i < flights->node_count; i++)
        if (master_refuses_vote(&flights->masters[i], now_ns) == REASON_NONE &&
            link_refuses_release(&flights->masters[i].link) == REASON_NONE)
            nodes |= nodes_only(i);
    return nodes;
}

void flights_hand_over(struct flights *flights, struct flight *release, struct flight *acquire,
                       uint32_t nodes, int64_t now_ns)
{
    acquire->vote_command = REDIS_SWAP;
    memcpy(acquire->predecessor, release->token, LIMIT_TOKEN);
    acquire->partner = release;
    release->partner = acquire;
    acquire->swap_nodes = release->swap_nodes = nodes;
    flights_start(flights, release, now_ns);
    flights_start(flights, acquire, now_ns);
}

void flights_cancel(struct flights *flights, struct flight *flight, int64_t now_ns)
{
    step_flight(flights, flight,
                &(struct round_event){.type = ROUND_EVENT_CANCEL, .now_ns = now_ns});
}

void flights_forbid_backfill(struct flights *flights, struct flight_key *key, const char *token,
                             int64_t now_ns)
{
    struct flight *other;
    struct flight *next;
    /* A short cut, because clients can have thousands of other rounds for the key. */
    if (key->extends == 0)
        return;
    for (other = LIST_FIRST(&key->flights); other != NULL; other = next) {
        next = LIST_NEXT(other, of_key);
        if (other->round.kind == ROUND_EXTEND && memcmp(other->token, token, LIMIT_TOKEN) == 0)
            step_flight(flights, other,
                        &(struct round_event){.type = ROUND_EVENT_RELEASING, .now_ns = now_ns});
    }
}

void flights_defer_release(struct flights *flights, const struct flight_key *key, const char *token,
                           uint32_t nodes, int64_t now_ns)
{
    for (; nodes != 0; nodes = nodes_after_first(nodes))
        link_defer_release(&flights->masters[nodes_first(nodes)].link, key->bytes, key->len, token,
                           now_ns);
}

void flights_release_frozen(struct flights *flights, const struct flight *flight, int64_t now_ns)
{
    for (uint32_t rest = flight->round.absent; rest != 0; rest = nodes_after_first(rest)) {
        struct link *link = &flights->masters[nodes_first(rest)].link;
        /* At most one for each link: clients can cause these releases at will, and they must not
         * crowd out other pending releases. The statistics do not count this as a deferred release,
         * because the node was not away. */
        if (redis_is_native(link->release_form) && link->pending_releases.count == 0)
            link_defer_release(link, flight->key->bytes, flight->key->len, flight->token, now_ns);
    }
}

/* Why the node has refused to take the release. If the link can take releases again by now, assume
 * that it was full. */
static enum reason unwritten_reason(const struct flights *flights, unsigned node)
{
    enum reason reason = link_refuses_release(&flights->masters[node].link);
    return reason != REASON_NONE ? reason : REASON_BACKLOG;
}

void flights_fail_unwritten(struct flights *flights, int64_t now_ns)
{
    struct flight *flight;
    while ((flight = STAILQ_FIRST(&flights->unwritten)) != NULL) {
        uint32_t nodes = flight->batched_for;
        flight->batched_for = 0;
        STAILQ_REMOVE_HEAD(&flights->unwritten, batched);
        /* The last failure can finish the round, which frees the flight. */
        for (; nodes != 0; nodes = nodes_after_first(nodes)) {
            unsigned node = nodes_first(nodes);
            flights_fail(flights, node, flight, ROUND_VOTE, unwritten_reason(flights, node),
                         now_ns);
        }
    }
}

/* --- time --- */

int64_t flights_deadline_ns(const struct flights *flights)
{
    const struct flight *first = TAILQ_FIRST(&flights->voting);
    return first != NULL ? round_deadline_ns(&first->round) : INT64_MAX;
}

void flights_on_deadline(struct flights *flights, int64_t heard_ns, int64_t now_ns)
{
    while (flights_deadline_ns(flights) <= heard_ns)
        step_flight(flights, TAILQ_FIRST(&flights->voting),
                    &(struct round_event){.type = ROUND_EVENT_DEADLINE, .now_ns = now_ns});
}
