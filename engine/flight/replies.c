#include "engine/flight/replies.h"

#include <assert.h>
#include <string.h>

#include "engine/flight/masters.h"
#include "engine/flight/self_test.h"
#include "engine/flight/write.h"
#include "engine/round/node_set.h"
#include "protocol/token.h"
#include "protocol/units.h"

/* --- votes that wait for the guard --- */

static struct kept_vote *votes_of(struct flights *flights, unsigned node)
{
    return flights->votes + (size_t)node * LIMIT_LINK_KEPT;
}

/* The answers of those entries of votes_of() that are single votes, at the same indices. */
static struct answer *answers_of(struct flights *flights, unsigned node)
{
    return flights->vote_answers + (size_t)node * LIMIT_LINK_KEPT;
}

/* Deliver the votes of one entry. */
static inline void deliver_kept(struct flights *flights, unsigned node,
                                const struct kept_vote *vote, const struct answer *answer,
                                int64_t now_ns)
{
    struct flight *flight = vote->flight;
    unsigned count = vote->unfenced > 0 ? vote->unfenced : 1;
    for (unsigned i = 0; i < count; i++) {
        struct flight *next = flight->batch_next;
        flights_deliver_vote(flights, node, flight, answer, now_ns);
        flight = next;
    }
}

/* The guard has decided about the kept votes of a node. failed: REASON_NONE if they count,
 * otherwise why they do not. */
static void deliver_votes(struct flights *flights, unsigned node, enum reason failed,
                          int64_t now_ns)
{
    const struct kept_vote *votes = votes_of(flights, node);
    const struct answer *answers = answers_of(flights, node);
    const struct answer yes = {.kind = ANSWER_YES};
    const struct answer refused = {.kind = ANSWER_FAILED, .reason = failed};
    const struct answer unchecked = {.kind = ANSWER_FAILED, .reason = REASON_UNCHECKED};
    unsigned count = flights->vote_count[node];
    uint32_t epoch = guard_epoch(&flights->guard, node);
    flights->vote_count[node] = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct answer *answer = votes[i].unfenced > 0 ? &yes : &answers[i];
        if (votes[i].epoch != epoch)
            answer = &unchecked;
        if (failed != REASON_NONE)
            answer = &refused;
        deliver_kept(flights, node, &votes[i], answer, now_ns);
    }
}

static void keep_vote(struct flights *flights, unsigned node, const struct outstanding *outstanding,
                      const struct answer *answer, int64_t now_ns)
{
    unsigned count = flights->vote_count[node];
    /* The list gets full if probe after probe proves nothing. */
    if (count == LIMIT_LINK_KEPT) {
        flights_deliver(flights, node, outstanding->owner, ROUND_VOTE,
                        &(struct answer){.kind = ANSWER_FAILED, .reason = REASON_CLOCK}, now_ns);
        return;
    }
    votes_of(flights, node)[count] = (struct kept_vote){
        .flight = outstanding->owner,
        .sent_ns = outstanding->sent_ns,
        .epoch = outstanding->epoch,
    };
    answers_of(flights, node)[count] = *answer;
    flights->vote_count[node] = count + 1;
}

unsigned replies_keep_unfenced_yes(struct flights *flights, unsigned node,
                                   const struct redis_reply *reply, unsigned count, int64_t now_ns)
{
    struct link *link = &flights->masters[node].link;
    const struct outstanding *batch = link_expects_votes(link);
    unsigned kept = flights->vote_count[node];
    if (batch == NULL || !redis_is_ok(reply) || kept == LIMIT_LINK_KEPT)
        return 0;
    if (count > batch->more + 1)
        count = batch->more + 1;
    votes_of(flights, node)[kept] = (struct kept_vote){
        .flight = batch->owner,
        .sent_ns = batch->sent_ns,
        .epoch = batch->epoch,
        .unfenced = count,
    };
    flights->vote_count[node] = kept + 1;
    link_take_votes(link, count, now_ns);
    return count;
}

/* The sample of this probe proves nothing. The sample of the next probe may still prove that votes
 * count, unless they are too late by then. So ask for another probe if such votes are left. */
static void retry_guard(struct flights *flights, unsigned node, int64_t now_ns)
{
    struct kept_vote *votes = votes_of(flights, node);
    unsigned count = flights->vote_count[node];
    unsigned late = 0;
    /* The time of a batch is that of its first vote. The others of the batch were sent less than a
     * pass later. */
    while (late < count && now_ns - votes[late].sent_ns > flights->rules->round.node_timeout_ns)
        deliver_kept(flights, node, &votes[late++],
                     &(struct answer){.kind = ANSWER_FAILED, .reason = REASON_CLOCK}, now_ns);
    struct answer *answers = answers_of(flights, node);
    memmove(votes, votes + late, (count - late) * sizeof(votes[0]));
    memmove(answers, answers + late, (count - late) * sizeof(answers[0]));
    flights->vote_count[node] = count - late;
    if (late < count)
        flights->guard.probe |= nodes_only(node);
}

/* --- observations of keys --- */

/* A key probe or an undo has been answered: report what holds the key. */
static void report_observation(struct flights *flights, unsigned node, struct flight_key *key,
                               const struct answer *answer, const struct outstanding *outstanding)
{
    struct flights_news *news = &flights->news;
    assert(news->observed == NULL);
    news->any = true;
    news->observed = key;
    news->observed_on = node;
    news->answer = *answer;
    news->tracked = outstanding->tracking != 0 &&
                    outstanding->tracking == flights->masters[node].tracker.tracking;
    news->forgot_script = answer->kind == ANSWER_FAILED && answer->reason == REASON_NOSCRIPT &&
                          outstanding->form == REDIS_BY_SHA1;
}

/* A key probe or a far query was answered or lost. Returns its key. */
static struct flight_key *end_key_probe(struct flights *flights, unsigned node,
                                        const struct outstanding *outstanding)
{
    struct flight_key *key = outstanding->owner;
    flights->masters[node].key_probes--;
    key->key_probes--;
    return key;
}

static void on_key_probe_reply(struct flights *flights, unsigned node,
                               const struct redis_reply *reply,
                               const struct outstanding *outstanding)
{
    const struct answer answer = redis_answer(REDIS_KEY_PROBE, reply);
    report_observation(flights, node, end_key_probe(flights, node, outstanding), &answer,
                       outstanding);
}

static void on_far_reply(struct flights *flights, unsigned node, const struct redis_reply *reply,
                         const struct outstanding *outstanding)
{
    flights->news.any = true;
    flights->news.sought = end_key_probe(flights, node, outstanding);
    flights->news.sought_need_ns = redis_far_need_ms(reply, flights->daemon) * NS_PER_MS;
}

/* Note what a node has answered to a STATUS or freeze of a BREAK. A value that is longer than a
 * token but begins like one is accepted here; freeze.lua does not accept it. */
static void take_notes(const struct flight *flight, unsigned node, const struct redis_reply *reply)
{
    struct flight_notes *notes = flight->notes;
    if (flight->round.kind == ROUND_FREEZE) {
        if (redis_answer(REDIS_FREEZE, reply).kind != ANSWER_FAILED)
            notes->frozen_on |= nodes_only(node);
        return;
    }
    if (reply->kind != RESP_ARRAY || reply->item_count != 2 || reply->items[1].kind != RESP_STRING)
        return;
    const char *value = reply->items[1].str;
    size_t len = reply->items[1].len;
    if (token_is(value, len) || token_is_frozen(value, len))
        memcpy(notes->seen[node], value, LIMIT_TOKEN);
}

/* --- releases --- */

/* The node has not deleted the key. Send release.lua, whose answer says why. */
static void release_alone(struct flights *flights, unsigned node, struct flight *flight,
                          int64_t now_ns)
{
    enum reason refused = link_refuses_release(&flights->masters[node].link);
    if (refused != REASON_NONE)
        flights_fail(flights, node, flight, ROUND_VOTE, refused, now_ns);
    else
        write_release_alone(flights, node, flight, now_ns);
}

/* Log that a node has answered by an error. The node may work in every other way, so nothing else
 * would show the problem. */
static void note_refusal(struct flights *flights, unsigned node, enum redis_command sent,
                         const struct redis_reply *reply)
{
    struct master *master = &flights->masters[node];
    enum reason reason =
        reply->kind == RESP_ERROR ? link_reason_of(&master->link, reply) : REASON_GARBAGE;
    if (master_note_refusal(master, reason))
        flights->io->command_refused(flights->io->context, node, reason, sent == REDIS_RELEASE);
}

/* The compare-and-delete command of the node has been answered. */
static void on_native_release(struct flights *flights, unsigned node,
                              const struct outstanding *outstanding,
                              const struct redis_reply *reply, int64_t now_ns)
{
    enum answer_kind kind = redis_deleted(reply);
    if (kind != ANSWER_FAILED) {
        flights_deliver(flights, node, outstanding->owner, ROUND_VOTE,
                        &(struct answer){.kind = kind}, now_ns);
        return;
    }
    note_refusal(flights, node, REDIS_RELEASE, reply);
    release_alone(flights, node, outstanding->owner, now_ns);
}

/* releases.lua has been answered: several releases that were sent as one command. */
static void on_releases(struct flights *flights, unsigned node, const struct redis_reply *reply,
                        const struct outstanding *outstanding, int64_t now_ns)
{
    struct flight *flight = outstanding->owner;
    struct answer answer = {.kind = ANSWER_YES};
    bool all_deleted = redis_all_released(reply);
    if (reply->kind == RESP_ERROR) {
        if (reason_of_redis_error(reply->str, reply->len) == REASON_NOSCRIPT &&
            write_in_full(flights, node, outstanding, now_ns))
            return;
        note_refusal(flights, node, REDIS_RELEASE, reply);
    }
    /* Each of these flights still waits for this answer, so none of them is freed before the loop
     * reaches it. */
    for (unsigned i = 0; i < outstanding->count; i++) {
        struct flight *next = flight->batch_next;
        if (!all_deleted)
            answer.kind = redis_released(reply, outstanding->count, i);
        if (answer.kind == ANSWER_FAILED)
            release_alone(flights, node, flight, now_ns);
        else
            flights_deliver_vote(flights, node, flight, &answer, now_ns);
        flight = next;
    }
}

/* --- replies --- */

/* Returns true if the command was sent again. */
static bool on_failed_reply(struct flights *flights, unsigned node, enum redis_command sent,
                            const struct redis_reply *reply, const struct outstanding *outstanding,
                            enum reason reason, int64_t now_ns)
{
    if (reason == REASON_NOSCRIPT && write_in_full(flights, node, outstanding, now_ns))
        return true;
    note_refusal(flights, node, sent, reply);
    if (sent == REDIS_RELEASE)
        write_defer_release(flights, node, outstanding->owner, now_ns);
    return false;
}

static void on_round_reply(struct flights *flights, unsigned node, const struct redis_reply *reply,
                           const struct outstanding *outstanding, int64_t now_ns)
{
    struct flight *flight = outstanding->owner;
    enum round_command command = outstanding->command;
    enum redis_command sent = flight_command(flight, command);
    if (redis_is_native(outstanding->form)) {
        on_native_release(flights, node, outstanding, reply, now_ns);
        return;
    }
    struct answer answer = redis_answer(sent, reply);
    bool failed = answer.kind == ANSWER_FAILED;

    if (failed && on_failed_reply(flights, node, sent, reply, outstanding, answer.reason, now_ns))
        return;
    if (sent == REDIS_SWAP) {
        if (answer.contended) {
            flights->news.any = true;
            flights->news.contended = flight->key;
            flights->news.contention_need_ns = answer.need_ms * NS_PER_MS;
        }
        flights_deliver_to_partner(flights, node, flight, &answer, now_ns);
    }
    if (flight->notes != NULL)
        take_notes(flight, node, reply);
    if (command == ROUND_UNDO && !failed)
        report_observation(flights, node, flight->key, &answer, outstanding);
    if (!failed && flight_is_vote(flight, command))
        keep_vote(flights, node, outstanding, &answer, now_ns);
    else
        flights_deliver(flights, node, flight, command, &answer, now_ns);
}

static void on_guard_reply(struct flights *flights, unsigned node, const struct redis_reply *reply,
                           const struct outstanding *outstanding, int64_t now_ns)
{
    struct master *master = &flights->masters[node];
    unsigned probes = master->probes;
    enum reason reason;
    switch (guard_io_on_reply(master, outstanding, reply, now_ns)) {
    case GUARD_MORE:
        return;
    case GUARD_PASS:
        deliver_votes(flights, node, REASON_NONE, now_ns);
        /* The usual case, a probe after a batch of votes. If it gives the master its vote back, or
         * the guard something to send, that is done after the probe of the next heartbeat. */
        if (master->probes == probes)
            return;
        break;
    case GUARD_WAIT:
        retry_guard(flights, node, now_ns);
        break;
    case GUARD_FAIL:
        reason = guard_refuses_vote(&flights->guard, node, now_ns);
        deliver_votes(flights, node, reason != REASON_NONE ? reason : REASON_UNCHECKED, now_ns);
        break;
    case GUARD_TAKEN:
        break;
    }
    masters_note_votes(flights, now_ns);
    flights->guard_has_work = true;
}

static void on_reply(struct flights *flights, unsigned node, const struct redis_reply *reply,
                     const struct outstanding *outstanding, int64_t now_ns)
{
    switch (outstanding->kind) {
    case OUTSTANDING_ROUND:
        on_round_reply(flights, node, reply, outstanding, now_ns);
        break;
    case OUTSTANDING_RELEASES:
        on_releases(flights, node, reply, outstanding, now_ns);
        break;
    case OUTSTANDING_KEY_PROBE:
        on_key_probe_reply(flights, node, reply, outstanding);
        break;
    case OUTSTANDING_FAR:
        on_far_reply(flights, node, reply, outstanding);
        break;
    case OUTSTANDING_TRACKING:
        masters_on_tracking_reply(flights, node, reply);
        break;
    case OUTSTANDING_SELF_TEST:
        self_test_on_reply(flights, node, outstanding, reply);
        break;
    case OUTSTANDING_GUARD:
    case OUTSTANDING_HEARTBEAT:
        on_guard_reply(flights, node, reply, outstanding, now_ns);
        break;
    case OUTSTANDING_GREETING:
    case OUTSTANDING_PENDING_RELEASE:
        assert(false && "handled by the link");
    }
}

/* --- connections --- */

/* A connection was lost: fail one command that was under way on it. */
static void fail_outstanding(struct flights *flights, unsigned node,
                             const struct outstanding *outstanding, int64_t now_ns)
{
    enum reason reason = flights->masters[node].link.reason;
    struct flight *flight = outstanding->owner;
    switch (outstanding->kind) {
    case OUTSTANDING_KEY_PROBE:
        flights->news.any = true;
        flights->news.probes_lost |= nodes_only(node);
        /* fall through */
    case OUTSTANDING_FAR:
        flight_note_idle(&flights->idle_keys, end_key_probe(flights, node, outstanding));
        break;
    case OUTSTANDING_RELEASES:
        for (unsigned i = 0; i < outstanding->count; i++) {
            struct flight *next = flight->batch_next;
            flights_fail(flights, node, flight, ROUND_VOTE, reason, now_ns);
            flight = next;
        }
        break;
    default:
        assert(outstanding->kind == OUTSTANDING_ROUND);
        flights_fail(flights, node, flight, outstanding->command, reason, now_ns);
        break;
    }
}

/* A connection was lost: fail everything that was under way on it. */
static void fail_lost(struct flights *flights, unsigned node, int64_t now_ns)
{
    struct link *link = &flights->masters[node].link;
    const struct outstanding *outstanding;
    if (link->state != LINK_DOWN)
        return;
    flights->unprobed &= ~nodes_only(node);
    deliver_votes(flights, node, link->reason, now_ns);
    while (link->state == LINK_DOWN && (outstanding = link_take_lost(link)) != NULL)
        fail_outstanding(flights, node, outstanding, now_ns);
}

static bool on_command_reply(struct flights *flights, unsigned node,
                             const struct redis_reply *reply, int64_t now_ns)
{
    struct link *link = &flights->masters[node].link;
    enum link_state before = link->state;
    const struct outstanding *outstanding = link_on_reply(link, reply, now_ns);
    if (link->state != before)
        masters_note_link(flights, node, before, now_ns);
    if (link->state == LINK_DOWN) {
        fail_lost(flights, node, now_ns);
        return false;
    }
    if (outstanding != NULL)
        on_reply(flights, node, reply, outstanding, now_ns);
    /* This answer was late too, so the master stays SUSPECT. Only an answer within node_timeout
     * changes that, so send another heartbeat. */
    if (link->state == LINK_SUSPECT)
        guard_io_heartbeat(&flights->masters[node], now_ns);
    return true;
}

bool replies_on_reply(struct flights *flights, unsigned node, enum channel channel,
                      const struct redis_reply *reply, int64_t now_ns)
{
    return channel == CHANNEL_TRACKING ? masters_on_report(flights, node, reply, now_ns)
                                       : on_command_reply(flights, node, reply, now_ns);
}

void replies_on_connected(struct flights *flights, unsigned node, enum channel channel,
                          int64_t now_ns)
{
    struct master *master = &flights->masters[node];
    enum link_state before = master->link.state;
    if (channel == CHANNEL_TRACKING) {
        tracker_on_connected(&master->tracker, now_ns);
        return;
    }
    link_on_connected(&master->link, now_ns);
    masters_note_link(flights, node, before, now_ns);
}

void replies_on_closed(struct flights *flights, unsigned node, enum channel channel,
                       enum reason reason, int64_t now_ns)
{
    struct master *master = &flights->masters[node];
    enum link_state before = master->link.state;
    if (channel == CHANNEL_TRACKING) {
        tracker_on_closed(&master->tracker, now_ns);
        masters_on_untracked(flights, node);
        return;
    }
    link_on_closed(&master->link, reason, now_ns);
    masters_note_link(flights, node, before, now_ns);
    fail_lost(flights, node, now_ns);
}

/* --- time --- */

int64_t replies_deadline_ns(const struct flights *flights)
{
    int64_t deadline_ns = INT64_MAX;
    for (unsigned i = 0; i < flights->node_count; i++) {
        deadline_ns = min(deadline_ns, link_deadline_ns(&flights->masters[i].link));
        deadline_ns = min(deadline_ns, flights->masters[i].tracker.deadline_ns);
    }
    return deadline_ns;
}

void replies_on_timer(struct flights *flights, int64_t heard_ns, int64_t now_ns)
{
    for (unsigned i = 0; i < flights->node_count; i++) {
        struct master *master = &flights->masters[i];
        enum link_state before = master->link.state;
        if (link_on_timer(&master->link, heard_ns, now_ns))
            guard_io_heartbeat(master, now_ns);
        masters_note_link(flights, i, before, now_ns);
        fail_lost(flights, i, now_ns);
        if (tracker_on_timer(&master->tracker, heard_ns, now_ns))
            masters_on_untracked(flights, i);
    }
}

/* --- the end of a pass --- */

bool replies_wants_flush(const struct flights *flights)
{
    return flights->unprobed != 0 || flights->guard_has_work || !STAILQ_EMPTY(&flights->batched) ||
           !STAILQ_EMPTY(&flights->unwritten);
}

/* Send what the guard has asked for. It may have asked for something on nodes other than the one it
 * was examining. */
static void do_guard_work(struct flights *flights, int64_t now_ns)
{
    struct guard *guard = &flights->guard;
    uint32_t probe = guard->probe;
    flights->guard_has_work = false;
    guard->probe = 0;
    for (unsigned i = 0; i < flights->node_count; i++) {
        struct master *master = &flights->masters[i];
        uint32_t node = nodes_only(i);
        if (!master_is_connected(master)) {
            guard->heartbeat &= ~node;
            continue;
        }
        guard_io_write_record(master, now_ns);
        if (probe & node)
            guard_io_probe(master, now_ns);
        /* A heartbeat under way was written before the guard asked for a new one, so it does not
         * replace the new one. The new one is sent when the one under way has been answered. */
        if (!(guard->heartbeat & node) || master->link.heartbeat_due)
            continue;
        guard->heartbeat &= ~node;
        guard_io_heartbeat(master, now_ns);
    }
}

void replies_flush(struct flights *flights, int64_t now_ns)
{
    write_all_batched(flights, now_ns);
    flights_fail_unwritten(flights, now_ns);
    uint32_t unprobed = flights->unprobed;
    flights->unprobed = 0;
    for (uint32_t rest = unprobed; rest != 0; rest = nodes_after_first(rest))
        guard_io_expect_batch(&flights->masters[nodes_first(rest)], now_ns);
    flights->io->links.write(flights->io->links.context, unprobed, CHANNEL_COMMANDS,
                             guard_io_probe_bytes, guard_io_probe_len);
    if (flights->guard_has_work)
        do_guard_work(flights, now_ns);
}
