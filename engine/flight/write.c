#include "engine/flight/write.h"

#include <assert.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

int64_t need_ns(int64_t backoff_min_ns, int64_t round_trip_ns)
{
    int64_t ns = 3 * round_trip_ns + NS_PER_MS;
    return ns > backoff_min_ns ? ns : 0;
}

/* need_ns() for a waiter here, in milliseconds, from the round trip to the nearest quorum. */
static int64_t need_ms(const struct flights *flights)
{
    int64_t distances_ns[LIMIT_NODES];
    uint32_t known = 0;
    for (unsigned i = 0; i < flights->node_count; i++) {
        distances_ns[i] = flights->masters[i].link.distance_ns;
        known |= distances_ns[i] >= 0 ? nodes_only(i) : 0;
    }
    int64_t distance_ns = nodes_quorum_ns(flights->rules->round.quorum, 0, known, distances_ns);
    if (distance_ns == INT64_MAX)
        return 0;
    int64_t ns = need_ns(flights->rules->backoff_min_ns, distance_ns);
    int64_t rounded_ms = (ns + NS_PER_MS - 1) / NS_PER_MS;
    return min(rounded_ms, REDIS_NEED_MAX_MS);
}

static void add_hint(const struct flights *flights, struct redis_call *call)
{
    call->daemon = flights->daemon;
    if (call->command != REDIS_SWAP)
        call->need_ms = need_ms(flights);
}

/* Format a command of a round in flights->command. Returns its length. */
static size_t format_round(struct flights *flights, const struct flight *flight,
                           enum round_command command, enum redis_form form, int64_t now_ns)
{
    const struct round *round = &flight->round;
    struct redis_call call = {
        .command = flight_command(flight, command),
        .token = flight->token,
        .old_token = flight->predecessor,
        .ttl_ms = round->ttl_ns / NS_PER_MS,
        .ballot = flight->ballot,
        .fence_ttl_ms = flights->rules->fence_ttl_ns / NS_PER_MS,
    };
    call.key = flight->key->bytes;
    call.key_len = flight->key->len;
    if (command == ROUND_BACKFILL)
        call.ttl_ms = round_backfill_ttl_ms(round, now_ns);
    else if (call.command == REDIS_RELEASE)
        call.ttl_ms = flights->rules->max_ttl_ns / NS_PER_MS;
    /* A daemon leaves a contention hint if it was refused the lock, but not if it releases the
     * lock. swap.lua gets the id of the daemon to find hints of other daemons. */
    if (command == ROUND_UNDO || call.command == REDIS_SWAP)
        add_hint(flights, &call);
    return redis_format(&call, form, flights->command);
}

void write_defer_release(struct flights *flights, unsigned node, const struct flight *flight,
                         int64_t now_ns)
{
    flights->stats->deferred_releases++;
    link_defer_release(&flights->masters[node].link, flight->key->bytes, flight->key->len,
                       flight->token, now_ns);
}

/* While clients wait, the undo of a refused round serves as a key probe: have the key tracked that
 * it reads. Returns the serial number of the tracker, or 0 if the master will not report the next
 * change of the key. */
static uint32_t track_undo(struct flights *flights, unsigned node, const struct flight *flight,
                           int64_t now_ns)
{
    struct link *link = &flights->masters[node].link;
    uint32_t tracking = flights->masters[node].tracker.tracking;
    if (!flight->key_probes || tracking == 0 || link_refuses_vote(link) != REASON_NONE)
        return 0;
    tracker_request_report(link, now_ns);
    return tracking;
}

/* Write the command that was formatted last. */
static void write_formatted(struct flights *flights, uint32_t nodes, size_t len)
{
    flights->io->links.write(flights->io->links.context, nodes, CHANNEL_COMMANDS, flights->command,
                             len);
}

/* Returns the nodes that refuse to take the command. */
static uint32_t write_round(struct flights *flights, struct flight *flight,
                            enum round_command command, uint32_t nodes, int64_t now_ns)
{
    bool release = flight_is_release(flight, command);
    struct outstanding outstanding = {.kind = OUTSTANDING_ROUND,
                                      .command = (uint8_t)command,
                                      .form = REDIS_BY_SHA1,
                                      .unfenced = flight_command(flight, command) == REDIS_ACQUIRE,
                                      .sent_ns = now_ns,
                                      .owner = flight};
    uint32_t refused = 0;
    write_batched_first(flights, flight->key, now_ns);
    size_t len = format_round(flights, flight, command, REDIS_BY_SHA1, now_ns);
    bool joined = false;
    if (outstanding.unfenced)
        outstanding.number = ++flights->unfenced_votes;
    for (uint32_t rest = nodes; rest != 0; rest = nodes_after_first(rest)) {
        unsigned node = nodes_first(rest);
        struct link *link = &flights->masters[node].link;
        if ((release ? link_refuses_release(link) : link_refuses_vote(link)) != REASON_NONE) {
            refused |= nodes_only(node);
            continue;
        }
        outstanding.epoch = guard_epoch(&flights->guard, node);
        if (outstanding.unfenced) {
            joined |= link_expect_vote(link, &outstanding);
            continue;
        }
        if (command == ROUND_UNDO)
            outstanding.tracking = track_undo(flights, node, flight, now_ns);
        link_expect(link, &outstanding);
    }
    /* The previous flight of the batch still exists, because it waits for its answer. */
    if (joined) {
        assert(flights->last_unfenced->batch_next == NULL);
        flights->last_unfenced->batch_next = flight;
    }
    if (outstanding.unfenced)
        flights->last_unfenced = flight;
    write_formatted(flights, nodes & ~refused, len);
    /* The guard's probe follows at the end of the pass. */
    if (flight_is_vote(flight, command))
        flights->unprobed |= nodes & ~refused;
    return refused;
}

/* --- releases --- */

static bool is_batched(const struct flight *flight, enum round_command command)
{
    /* The release of a BREAK may leave nodes out, so it is not batched. */
    return command == ROUND_VOTE && flight->round.kind == ROUND_RELEASE && flight->skipped == NULL;
}

void write_release_alone(struct flights *flights, unsigned node, struct flight *flight,
                         int64_t now_ns)
{
    const struct outstanding outstanding = {.kind = OUTSTANDING_ROUND,
                                            .command = ROUND_VOTE,
                                            .form = REDIS_BY_SHA1,
                                            .sent_ns = now_ns,
                                            .owner = flight};
    size_t len = format_round(flights, flight, ROUND_VOTE, REDIS_BY_SHA1, now_ns);
    link_send(&flights->masters[node].link, flights->command, len, &outstanding);
}

/* Batch the release for these nodes until the end of the pass. */
static void add_to_batch(struct flights *flights, struct flight *flight, uint32_t nodes,
                         int64_t now_ns)
{
    assert(flight->batched_for == 0);
    /* No command may contain a key twice. */
    write_batched_first(flights, flight->key, now_ns);
    if (nodes == 0)
        return;
    flight->batched_for = nodes;
    flight->key->batched = true;
    STAILQ_INSERT_TAIL(&flights->batched, flight, batched);
}

/* Take releases from the start of the batch, as a chain: at most LIMIT_BATCH, all for the same
 * nodes. Returns their number. */
static unsigned take_chain(struct flights *flights, struct flight **first)
{
    struct flight *flight = STAILQ_FIRST(&flights->batched);
    struct flight **end = first;
    uint32_t nodes = flight->batched_for;
    unsigned count = 0;
    while (flight != NULL && flight->batched_for == nodes && count < LIMIT_BATCH) {
        STAILQ_REMOVE_HEAD(&flights->batched, batched);
        flight->key->batched = false;
        flight->batched_for = 0;
        *end = flight;
        end = &flight->batch_next;
        count++;
        flight = STAILQ_FIRST(&flights->batched);
    }
    *end = NULL;
    return count;
}

/* Format the command for a chain of releases in flights->command. Returns its length. */
static size_t format_chain(struct flights *flights, const struct flight *first, unsigned count,
                           enum redis_form form, int64_t now_ns)
{
    struct redis_release releases[LIMIT_BATCH];
    if (count == 1)
        return format_round(flights, first, ROUND_VOTE, form, now_ns);
    for (unsigned i = 0; i < count; i++, first = first->batch_next)
        releases[i] = (struct redis_release){
            .key = first->key->bytes,
            .key_len = first->key->len,
            .token = first->token,
        };
    return redis_format_releases(releases, count, form, flights->command);
}

/* Some nodes refuse to take these releases. Let them fail at the end of the pass, rather than in
 * the middle of another operation. */
static void fail_later(struct flights *flights, struct flight *first, uint32_t refused)
{
    for (struct flight *next; first != NULL; first = next) {
        next = first->batch_next;
        first->batched_for = refused;
        STAILQ_INSERT_TAIL(&flights->unwritten, first, batched);
    }
}

static void write_chain(struct flights *flights, int64_t now_ns)
{
    struct flight *first;
    uint32_t nodes = STAILQ_FIRST(&flights->batched)->batched_for;
    uint32_t refused = 0;
    uint32_t written_to = 0; /* nodes that flights->command is to be written to */
    unsigned count = take_chain(flights, &first);
    size_t len = 0;
    struct outstanding outstanding = {
        .kind = OUTSTANDING_ROUND,
        .command = ROUND_VOTE,
        .sent_ns = now_ns,
        .owner = first,
    };
    if (count > 1) {
        outstanding.kind = OUTSTANDING_RELEASES;
        outstanding.count = (uint8_t)count;
    }
    for (uint32_t rest = nodes; rest != 0; rest = nodes_after_first(rest)) {
        struct link *link = &flights->masters[nodes_first(rest)].link;
        enum redis_form form = count > 1 ? REDIS_BY_SHA1 : link->release_form;
        if (link_refuses_release(link) != REASON_NONE) {
            refused |= nodes_only(link->node);
            continue;
        }
        /* If all masters are of one kind, as usual, the command is formatted and written once. */
        if (len == 0 || form != outstanding.form) {
            write_formatted(flights, written_to, len);
            written_to = 0;
            outstanding.form = (uint8_t)form;
            len = format_chain(flights, first, count, form, now_ns);
        }
        link_expect(link, &outstanding);
        written_to |= nodes_only(link->node);
    }
    write_formatted(flights, written_to, len);
    if (refused != 0)
        fail_later(flights, first, refused);
}

void write_batched_first(struct flights *flights, const struct flight_key *key, int64_t now_ns)
{
    while (key->batched)
        write_chain(flights, now_ns);
}

void write_all_batched(struct flights *flights, int64_t now_ns)
{
    while (!STAILQ_EMPTY(&flights->batched))
        write_chain(flights, now_ns);
}

uint32_t write_command(struct flights *flights, struct flight *flight, enum round_command command,
                       uint32_t nodes, int64_t now_ns)
{
    if (!is_batched(flight, command))
        return write_round(flights, flight, command, nodes, now_ns);
    add_to_batch(flights, flight, nodes, now_ns);
    return 0;
}

/* --- in full --- */

bool write_in_full(struct flights *flights, unsigned node, const struct outstanding *outstanding,
                   int64_t now_ns)
{
    struct link *link = &flights->masters[node].link;
    const struct flight *flight = outstanding->owner;
    struct outstanding again = *outstanding;
    bool several = outstanding->kind == OUTSTANDING_RELEASES;
    bool release = several || flight_is_release(flight, outstanding->command);
    bool vote = !several && flight_is_vote(flight, outstanding->command);
    enum reason refused = release ? link_refuses_release(link) : link_refuses_vote(link);
    /* A vote that arrives after the undo of its round would set a key that nothing deletes. */
    if (outstanding->form == REDIS_IN_FULL || refused != REASON_NONE ||
        (vote && flight->round.phase != ROUND_VOTING))
        return false;
    size_t len = several
                     ? format_chain(flights, flight, outstanding->count, REDIS_IN_FULL, now_ns)
                     : format_round(flights, flight, outstanding->command, REDIS_IN_FULL, now_ns);
    again.form = REDIS_IN_FULL;
    again.unfenced = false; /* a single vote, not part of a batch */
    again.tracking = 0;     /* tracking was requested with the first attempt */
    again.sent_ns = now_ns;
    link_send(link, flights->command, len, &again);
    if (vote)
        flights->unprobed |= nodes_only(node);
    return true;
}

/* --- key probes --- */

void write_key_probe(struct flights *flights, unsigned node, struct flight_key *key,
                     const char *token, enum redis_form form, int64_t now_ns)
{
    struct master *master = &flights->masters[node];
    /* The probe leaves a contention hint, so that the daemon that hands the lock over learns that
     * this daemon waits. */
    struct redis_call call = {
        .command = REDIS_KEY_PROBE,
        .key = key->bytes,
        .key_len = key->len,
        .token = token,
        .ttl_ms = flights->rules->max_ttl_ns / NS_PER_MS,
    };
    const struct outstanding outstanding = {.kind = OUTSTANDING_KEY_PROBE,
                                            .form = (uint8_t)form,
                                            .sent_ns = now_ns,
                                            .tracking = master->tracker.tracking,
                                            .owner = key};
    add_hint(flights, &call);
    flights->stats->key_probes++;
    master->key_probes++;
    key->key_probes++;
    write_batched_first(flights, key, now_ns);
    if (outstanding.tracking != 0)
        tracker_request_report(&master->link, now_ns);
    size_t len = redis_format(&call, form, flights->command);
    link_send(&master->link, flights->command, len, &outstanding);
}

void write_far_query(struct flights *flights, struct flight_key *key, int64_t now_ns)
{
    /* It is enough to ask one master, because a far waiter leaves its hint on each master that has
     * refused it. */
    unsigned node = flights->far_queries++ % flights->node_count;
    struct master *master = &flights->masters[node];
    const struct outstanding outstanding = {
        .kind = OUTSTANDING_FAR, .sent_ns = now_ns, .owner = key};
    if (master->key_probes >= LIMIT_LINK_KEY_PROBES ||
        link_refuses_vote(&master->link) != REASON_NONE)
        return;
    master->key_probes++;
    key->key_probes++;
    size_t len = redis_format_far(key->bytes, key->len, flights->command);
    link_send(&master->link, flights->command, len, &outstanding);
}
