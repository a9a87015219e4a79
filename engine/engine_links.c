#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_parts.h"
#include "engine/round/node_set.h"
#include "protocol/units.h"

/* Votes of a node, until the guard has passed. Nearly all of them are a plain yes, and most of
 * these are a run: they are kept as one. What another says more is kept apart. */
struct vote {
    struct operation *operation;
    int64_t sent_ns;
    uint32_t epoch;
    uint32_t plain; /* so many say yes, of this operation and those together with it; 0: another */
};

bool engine_links_init(struct engine *engine)
{
    size_t count = (size_t)engine->node_count * LIMIT_LINK_KEPT;
    engine->votes = calloc(count, sizeof(struct vote));
    engine->vote_answers = calloc(count, sizeof(struct answer));
    return engine->votes != NULL && engine->vote_answers != NULL;
}

void engine_links_deinit(struct engine *engine)
{
    free(engine->votes);
    free(engine->vote_answers);
}

void engine_guard_votes(struct engine *engine, const struct operation *operation,
                        enum round_command command, uint32_t nodes)
{
    if (operation_is_vote(operation, command))
        engine->unguarded |= nodes;
}

enum reason engine_refuses_vote(const struct engine *engine, unsigned node, int64_t now_ns)
{
    enum reason reason = link_refuses_vote(&engine->links[node]);
    return reason != REASON_NONE ? reason : guard_refuses_vote(&engine->guard, node, now_ns);
}

/* Log which nodes have lost their vote, or got it back. */
static void note_votes(struct engine *engine, int64_t now_ns)
{
    for (unsigned i = 0; i < engine->node_count; i++) {
        enum reason before = engine->vote_reason[i];
        enum reason reason = engine_refuses_vote(engine, i, now_ns);
        int64_t back_ns = guard_take_step_back(&engine->guard, i, now_ns);
        if (back_ns != 0)
            engine->io.clock_stepped_back(engine->io.context, i, back_ns);
        if (reason == before || reason == REASON_BACKLOG)
            continue;
        engine->vote_reason[i] = reason;
        if (before == REASON_NONE)
            engine_warn_holds(engine, i, reason);
        engine->io.vote_changed(engine->io.context, i, before, reason, now_ns);
        if (reason == REASON_NONE)
            engine_on_vote(engine, i, now_ns);
    }
}

static bool is_connected(enum link_state state)
{
    return state == LINK_UP || state == LINK_SUSPECT;
}

/* --- tracking --- */

/* Once both connections are there. */
static void start_tracking(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct tracker *tracker = &engine->trackers[node];
    if (tracker->state != TRACKER_LISTENING || !is_connected(engine->links[node].state) ||
        engine->untracked & nodes_only(node))
        return;
    tracker_start(tracker, &engine->links[node], now_ns);
    engine_on_tracked(engine, node, now_ns);
}

static void stop_tracking(struct engine *engine, unsigned node, int64_t now_ns)
{
    tracker_stop(&engine->trackers[node]);
    engine_on_untracked(engine, node, now_ns);
}

/* The answer to a setting: a master that refuses it is not asked again on this connection. */
static void on_tracking_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                              int64_t now_ns)
{
    if (reply->kind != RESP_ERROR || engine->trackers[node].tracking == 0)
        return;
    engine->untracked |= nodes_only(node);
    stop_tracking(engine, node, now_ns);
}

static bool on_tracker_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                             int64_t now_ns)
{
    const char *key;
    size_t key_len;
    switch (tracker_on_reply(&engine->trackers[node], reply, now_ns, &key, &key_len)) {
    case TRACKER_NOTHING:
        break;
    case TRACKER_READY:
        engine->untracked &= ~nodes_only(node);
        start_tracking(engine, node, now_ns);
        break;
    case TRACKER_LOST:
        engine_on_untracked(engine, node, now_ns);
        return false;
    case TRACKER_CHANGED:
        engine_on_changed(engine, node, key, key_len, now_ns);
        break;
    case TRACKER_ALL_CHANGED:
        engine_on_tracked(engine, node, now_ns);
        break;
    }
    return true;
}

/* When its run began, at the latest: of the seconds that it tells, the last may be almost none, and
 * its clock may run faster than ours. */
static int64_t begun_ns(const struct engine *engine, unsigned node, int64_t now_ns)
{
    int64_t uptime_s = engine->links[node].uptime_s;
    if (uptime_s < 0)
        return INT64_MIN;
    return now_ns - (uptime_s - 1) * NS_PER_S +
           drift_of(&engine->rules.round.drift, uptime_s * NS_PER_S);
}

/* Log what a link has become, if it has changed, and have the guard look at who is there. */
static void note_link(struct engine *engine, unsigned node, enum link_state before, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    if (link->state == before)
        return;
    engine->io.link_changed(engine->io.context, node, before);
    if (is_connected(link->state) && !is_connected(before)) {
        guard_on_connected(&engine->guard, node, link->run_id, begun_ns(engine, node, now_ns));
        engine->errands = true;
        link_heartbeat(link, now_ns);
        start_tracking(engine, node, now_ns);
    } else if (is_connected(before) && !is_connected(link->state)) {
        warden_on_lost(&engine->wardens[node]);
        stop_tracking(engine, node, now_ns);
        engine->untracked &= ~nodes_only(node);
        engine->refusing &= ~nodes_only(node);
        engine->refusing_native &= ~nodes_only(node);
        engine->apart &= ~nodes_only(node);
        engine->refused_for[node] = 0;
    }
    note_votes(engine, now_ns);
}

/* --- answers --- */

/* A release asks for no vote and no probe follows it. But a node that has no vote may have lost the
 * key, so that it does not have it now says nothing about the lock. */
static enum reason doubt_denial(const struct engine *engine, unsigned node,
                                const struct operation *operation, enum round_command command,
                                const struct answer *said, int64_t now_ns)
{
    if (operation->round.kind != ROUND_RELEASE || command != ROUND_VOTE ||
        (said->kind != ANSWER_ABSENT && said->kind != ANSWER_HELD))
        return REASON_NONE;
    return guard_refuses_vote(&engine->guard, node, now_ns);
}

void engine_deliver(struct engine *engine, unsigned node, struct operation *operation,
                    enum round_command command, const struct answer *said, int64_t now_ns)
{
    enum reason doubt = doubt_denial(engine, node, operation, command, said, now_ns);
    const struct answer doubted = {.kind = ANSWER_FAILED, .reason = doubt};
    if (doubt != REASON_NONE)
        said = &doubted;
    engine_step(engine, operation,
                &(struct round_event){.type = ROUND_EVENT_ANSWER,
                                      .now_ns = now_ns,
                                      .node = node,
                                      .command = command,
                                      .answer = said});
}

static struct vote *votes_of(struct engine *engine, unsigned node)
{
    return engine->votes + (size_t)node * LIMIT_LINK_KEPT;
}

/* ... at the same places, what they said that were no plain yes. */
static struct answer *answers_of(struct engine *engine, unsigned node)
{
    return engine->vote_answers + (size_t)node * LIMIT_LINK_KEPT;
}

/* What is kept as one. */
static inline void deliver_kept(struct engine *engine, unsigned node, const struct vote *vote,
                                const struct answer *said, int64_t now_ns)
{
    struct operation *operation = vote->operation;
    unsigned count = vote->plain > 0 ? vote->plain : 1;
    for (unsigned i = 0; i < count; i++) {
        struct operation *next = operation->together;
        engine_deliver_vote(engine, node, operation, said, now_ns);
        operation = next;
    }
}

/* The guard has spoken about all votes of a node that wait: `failed` tells why they do not count.
 */
static void deliver_votes(struct engine *engine, unsigned node, enum reason failed, int64_t now_ns)
{
    const struct vote *votes = votes_of(engine, node);
    const struct answer *answers = answers_of(engine, node);
    const struct answer yes = {.kind = ANSWER_YES};
    const struct answer refused = {.kind = ANSWER_FAILED, .reason = failed};
    const struct answer unchecked = {.kind = ANSWER_FAILED, .reason = REASON_UNCHECKED};
    unsigned count = engine->vote_count[node];
    uint32_t epoch = guard_epoch(&engine->guard, node);
    engine->vote_count[node] = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct answer *said = votes[i].plain > 0 ? &yes : &answers[i];
        if (votes[i].epoch != epoch)
            said = &unchecked;
        if (failed != REASON_NONE)
            said = &refused;
        deliver_kept(engine, node, &votes[i], said, now_ns);
    }
}

/* What a round had under way on a connection that is lost comes back as failed. */
static void fail_lost(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    const struct link_ticket *ticket;
    if (link->state != LINK_DOWN)
        return;
    engine->unguarded &= ~nodes_only(node);
    deliver_votes(engine, node, link->reason, now_ns);
    while (link->state == LINK_DOWN && (ticket = link_take_lost(link)) != NULL) {
        struct operation *operation = ticket->owner;
        enum round_command command = ticket->command;
        if (ticket->kind == TICKET_LOOK) {
            engine_on_look_lost(engine, node, ticket, now_ns);
            continue;
        }
        if (ticket->kind == TICKET_RELEASES) {
            engine_on_releases_lost(engine, node, ticket, now_ns);
            continue;
        }
        if (operation_is_swap(operation, command)) {
            engine_fail_swap(engine, node, operation, link->reason, now_ns);
            continue;
        }
        if (operation_is_release(operation, command))
            engine_owe(engine, node, operation, now_ns);
        engine_deliver(engine, node, operation, command,
                       &(struct answer){.kind = ANSWER_FAILED, .reason = link->reason}, now_ns);
    }
}

void engine_on_connected(struct engine *engine, unsigned node, enum channel channel, int64_t now_ns)
{
    engine_catch_up(engine, now_ns);
    if (channel == CHANNEL_TRACKING) {
        tracker_on_connected(&engine->trackers[node], now_ns);
        return;
    }
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    link_on_connected(link, now_ns);
    note_link(engine, node, before, now_ns);
    engine_finish(engine, now_ns);
}

void engine_on_closed(struct engine *engine, unsigned node, enum channel channel,
                      enum reason reason, int64_t now_ns)
{
    if (channel == CHANNEL_TRACKING) {
        engine_catch_up(engine, now_ns);
        tracker_on_closed(&engine->trackers[node], now_ns);
        engine_on_untracked(engine, node, now_ns);
        engine_finish(engine, now_ns);
        return;
    }
    /* First the link, so that what is overdue writes nothing to a connection that is no more. */
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    link_on_closed(link, reason, now_ns);
    engine_catch_up(engine, now_ns);
    note_link(engine, node, before, now_ns);
    fail_lost(engine, node, now_ns);
    engine_finish(engine, now_ns);
}

static void keep_vote(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                      const struct answer *said, int64_t now_ns)
{
    unsigned count = engine->vote_count[node];
    /* While nothing is proven, votes pile up. */
    if (count == LIMIT_LINK_KEPT) {
        engine_deliver(engine, node, ticket->owner, ROUND_VOTE,
                       &(struct answer){.kind = ANSWER_FAILED, .reason = REASON_CLOCK}, now_ns);
        return;
    }
    votes_of(engine, node)[count] = (struct vote){
        .operation = ticket->owner,
        .sent_ns = ticket->sent_ns,
        .epoch = ticket->epoch,
    };
    answers_of(engine, node)[count] = *said;
    engine->vote_count[node] = count + 1;
}

/* The scripts have been flushed: send it in full, which loads it again, in the same round, and in
 * the epoch in which its vote was asked for. */
static bool send_in_full(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                         int64_t now_ns)
{
    struct link *link = &engine->links[node];
    const struct operation *operation = ticket->owner;
    /* Behind the undo of its round it would set a key that nobody takes away. */
    if (operation_is_vote(operation, ticket->command) && operation->round.phase != ROUND_VOTING)
        return false;
    enum reason refused = operation_is_release(ticket->owner, ticket->command)
                              ? link_refuses_release(link)
                              : link_refuses_vote(link);
    if (ticket->form == REDIS_IN_FULL || refused != REASON_NONE)
        return false;
    size_t len = engine_format(engine, ticket->owner, ticket->command, REDIS_IN_FULL, now_ns);
    struct link_ticket again = *ticket;
    again.form = REDIS_IN_FULL;
    again.plain = false; /* of no run */
    again.tracking = 0;  /* that was asked for once */
    again.sent_ns = now_ns;
    link_send(link, engine->command, len, &again);
    engine_guard_votes(engine, operation, ticket->command, nodes_only(node));
    return true;
}

/* --- hand-overs --- */

/* What an answer says about the token that is released. */
static void deliver_to_partner(struct engine *engine, unsigned node, struct operation *operation,
                               const struct answer *said, int64_t now_ns)
{
    struct operation *release = operation->partner;
    struct answer answer = *said;
    assert(release != NULL); /* it waits for this answer */
    answer.kind = said->released;
    if (answer.kind == ANSWER_FAILED)
        engine_owe(engine, node, release, now_ns);
    engine_deliver(engine, node, release, ROUND_VOTE, &answer, now_ns);
}

void engine_fail_swap(struct engine *engine, unsigned node, struct operation *operation,
                      enum reason reason, int64_t now_ns)
{
    const struct answer failed = {
        .kind = ANSWER_FAILED, .reason = reason, .released = ANSWER_FAILED};
    deliver_to_partner(engine, node, operation, &failed, now_ns);
    engine_deliver(engine, node, operation, ROUND_VOTE, &failed, now_ns);
}

/* The undo of a round that was refused tells who holds the key. */
static void on_undo_reply(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                          const struct answer *said, int64_t now_ns)
{
    const struct operation *operation = ticket->owner;
    struct queue *queue = &operation->resource->queue;
    if (queue->length == 0 || said->kind == ANSWER_FAILED)
        return;
    engine_on_seen(engine, node, queue, said, ticket, now_ns);
}

/* It may be that the node does all the rest, so that nothing else would show. */
static void note_refusal(struct engine *engine, unsigned node, enum redis_command sent,
                         const struct redis_reply *reply)
{
    static_assert(REASON_COUNT <= 64, "a bit for each of them");
    enum reason reason =
        reply->kind == RESP_ERROR ? link_reason_of(&engine->links[node], reply) : REASON_GARBAGE;
    uint64_t bit = UINT64_C(1) << reason;
    if (reason == REASON_NOSCRIPT || (engine->refused_for[node] & bit) != 0)
        return;
    engine->refused_for[node] |= bit;
    engine->io.command_refused(engine->io.context, node, reason, sent == REDIS_RELEASE);
}

/* True if that is not the end of it: the command has been sent again. */
static bool on_failed_reply(struct engine *engine, unsigned node, enum redis_command sent,
                            const struct redis_reply *reply, const struct link_ticket *ticket,
                            enum reason reason, int64_t now_ns)
{
    if (reason == REASON_NOSCRIPT && send_in_full(engine, node, ticket, now_ns))
        return true;
    note_refusal(engine, node, sent, reply);
    if (sent == REDIS_RELEASE)
        engine_owe(engine, node, ticket->owner, now_ns);
    return false;
}

static void on_round_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                           const struct link_ticket *ticket, int64_t now_ns)
{
    struct operation *operation = ticket->owner;
    enum round_command command = ticket->command;
    enum redis_command sent = operation_command(operation, command);
    if (redis_is_native(ticket->form)) {
        engine_on_native_release(engine, node, ticket, reply, now_ns);
        return;
    }
    struct answer said = redis_answer(sent, reply);
    bool failed = said.kind == ANSWER_FAILED;

    if (failed && on_failed_reply(engine, node, sent, reply, ticket, said.reason, now_ns))
        return;
    if (sent == REDIS_SWAP) {
        if (said.wanted)
            queue_on_wanted(&operation->resource->queue, said.need_ms * NS_PER_MS);
        deliver_to_partner(engine, node, operation, &said, now_ns);
    }
    if (operation->breaking != NULL)
        engine_break_note(operation, node, reply);
    if (command == ROUND_UNDO)
        on_undo_reply(engine, node, ticket, &said, now_ns);
    if (sent == REDIS_RELEASE)
        engine_on_released_alone(engine, node, said.kind);
    if (!failed && operation_is_vote(operation, command))
        keep_vote(engine, node, ticket, &said, now_ns);
    else
        engine_deliver(engine, node, operation, command, &said, now_ns);
}

/* A sample that proves nothing: another may, for votes that are not too late anyway. */
static void wait_for_guard(struct engine *engine, unsigned node, int64_t now_ns)
{
    struct vote *votes = votes_of(engine, node);
    unsigned count = engine->vote_count[node];
    unsigned late = 0;
    /* Of a run, since the first was asked for: by less than a pass too early for the others. */
    while (late < count && now_ns - votes[late].sent_ns > engine->rules.round.node_timeout_ns)
        deliver_kept(engine, node, &votes[late++],
                     &(struct answer){.kind = ANSWER_FAILED, .reason = REASON_CLOCK}, now_ns);
    struct answer *answers = answers_of(engine, node);
    memmove(votes, votes + late, (count - late) * sizeof(votes[0]));
    memmove(answers, answers + late, (count - late) * sizeof(answers[0]));
    engine->vote_count[node] = count - late;
    if (late < count)
        engine->guard.probe |= nodes_only(node);
}

static void on_guard_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                           const struct link_ticket *ticket, int64_t now_ns)
{
    struct warden *warden = &engine->wardens[node];
    unsigned alone = warden->probes;
    enum reason reason;
    switch (warden_on_reply(warden, ticket, reply, now_ns)) {
    case WARDEN_MORE:
        return;
    case WARDEN_PASS:
        deliver_votes(engine, node, REASON_NONE, now_ns);
        /* Behind votes, the common case, it has changed nothing that would need a look. */
        if (warden->probes == alone)
            return;
        break;
    case WARDEN_WAIT:
        wait_for_guard(engine, node, now_ns);
        break;
    case WARDEN_FAIL:
        reason = guard_refuses_vote(&engine->guard, node, now_ns);
        deliver_votes(engine, node, reason != REASON_NONE ? reason : REASON_UNCHECKED, now_ns);
        break;
    case WARDEN_LOOKED:
        break;
    }
    note_votes(engine, now_ns);
    engine->errands = true;
}

static void on_reply(struct engine *engine, unsigned node, const struct redis_reply *reply,
                     const struct link_ticket *ticket, int64_t now_ns)
{
    switch (ticket->kind) {
    case TICKET_ROUND:
        on_round_reply(engine, node, reply, ticket, now_ns);
        break;
    case TICKET_RELEASES:
        engine_on_releases(engine, node, ticket, reply, now_ns);
        break;
    case TICKET_LOOK:
        engine_on_look(engine, node, ticket, reply, now_ns);
        break;
    case TICKET_TRACKING:
        on_tracking_reply(engine, node, reply, now_ns);
        break;
    case TICKET_TRIAL:
        engine_on_trial(engine, node, ticket, reply);
        break;
    case TICKET_GUARD:
    case TICKET_HEARTBEAT:
        on_guard_reply(engine, node, reply, ticket, now_ns);
        break;
    case TICKET_GREETING:
    case TICKET_OWED:
        assert(false && "the link's own");
    }
}

/* What masters say most: yes, and nothing else, to SETs that asked for votes. They are kept, which
 * is what all of the following would come to. Returns how many; 0: it is something else. */
static unsigned keep_plain_yes(struct engine *engine, unsigned node,
                               const struct redis_reply *reply, unsigned count, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    const struct link_ticket *run = link_expects_votes(link);
    unsigned kept = engine->vote_count[node];
    if (run == NULL || !redis_is_ok(reply) || kept == LIMIT_LINK_KEPT)
        return 0;
    if (count > run->more + 1)
        count = run->more + 1;
    votes_of(engine, node)[kept] = (struct vote){
        .operation = run->owner,
        .sent_ns = run->sent_ns,
        .epoch = run->epoch,
        .plain = count,
    };
    engine->vote_count[node] = kept + 1;
    link_take_votes(link, count, now_ns);
    return count;
}

static unsigned on_command_reply(struct engine *engine, unsigned node,
                                 const struct redis_reply *reply, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    enum link_state before = link->state;
    const struct link_ticket *ticket = link_on_reply(link, reply, now_ns);
    if (link->state != before)
        note_link(engine, node, before, now_ns);
    if (link->state == LINK_DOWN) {
        fail_lost(engine, node, now_ns);
        return 0;
    }
    if (ticket != NULL)
        on_reply(engine, node, reply, ticket, now_ns);
    /* Late: it has not answered in time yet, and is asked again. */
    if (link->state == LINK_SUSPECT)
        link_heartbeat(link, now_ns);
    return 1;
}

unsigned engine_on_replies(struct engine *engine, unsigned node, enum channel channel,
                           const struct redis_reply *reply, unsigned count, int64_t now_ns)
{
    engine_catch_up(engine, now_ns);
    unsigned dealt_with = 0;
    if (channel == CHANNEL_COMMANDS)
        dealt_with = keep_plain_yes(engine, node, reply, count, now_ns);
    if (dealt_with > 0)
        return dealt_with;
    dealt_with = channel == CHANNEL_TRACKING ? on_tracker_reply(engine, node, reply, now_ns)
                                             : on_command_reply(engine, node, reply, now_ns);
    engine_finish(engine, now_ns);
    return dealt_with;
}

/* --- the end of a pass --- */

bool engine_wants_flush(const struct engine *engine)
{
    return engine->unguarded != 0 || engine->errands || engine_wants_releases(engine) ||
           engine_wants_renewals(engine);
}

/* What the guard has asked for of nodes other than the one it was looking at. */
static void run_errands(struct engine *engine, int64_t now_ns)
{
    struct guard *guard = &engine->guard;
    uint32_t probe = guard->probe;
    engine->errands = false;
    guard->probe = 0;
    for (unsigned i = 0; i < engine->node_count; i++) {
        uint32_t node = nodes_only(i);
        if (!is_connected(engine->links[i].state)) {
            guard->beat &= ~node;
            continue;
        }
        warden_mark(&engine->wardens[i], now_ns);
        if (probe & node)
            warden_probe(&engine->wardens[i], now_ns);
        /* One that is under way was written before the reason for this one. */
        if (!(guard->beat & node) || engine->links[i].heartbeat_due)
            continue;
        guard->beat &= ~node;
        link_heartbeat(&engine->links[i], now_ns);
    }
}

void engine_flush(struct engine *engine, int64_t now_ns)
{
    engine_renew(engine, now_ns);
    engine_write_releases(engine, now_ns);
    uint32_t unguarded = engine->unguarded;
    engine->unguarded = 0;
    for (uint32_t rest = unguarded; rest != 0; rest = nodes_behind_first(rest))
        warden_expect_batch(&engine->wardens[nodes_first(rest)], now_ns);
    engine->io.write(engine->io.context, unguarded, CHANNEL_COMMANDS, warden_probe_bytes,
                     warden_probe_len);
    if (engine->errands)
        run_errands(engine, now_ns);
    engine_finish(engine, now_ns);
}

/* --- time --- */

void engine_links_on_timer(struct engine *engine, int64_t now_ns)
{
    for (unsigned i = 0; i < engine->node_count; i++) {
        enum link_state before = engine->links[i].state;
        link_on_timer(&engine->links[i], now_ns);
        note_link(engine, i, before, now_ns);
        fail_lost(engine, i, now_ns);
        if (tracker_on_timer(&engine->trackers[i], now_ns))
            engine_on_untracked(engine, i, now_ns);
    }
}
