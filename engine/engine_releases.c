#include <assert.h>
#include <string.h>

#include "engine/engine_parts.h"
#include "engine/round/node_set.h"

void engine_releases_init(struct engine *engine)
{
    STAILQ_INIT(&engine->gathered);
    STAILQ_INIT(&engine->unwritten);
}

void engine_forbid_planting(struct engine *engine, const struct resource *resource,
                            const char *token, int64_t now_ns)
{
    struct operation *other;
    struct operation *next;
    for (other = LIST_FIRST(&resource->operations); other != NULL; other = next) {
        next = LIST_NEXT(other, of_resource);
        if (other->round.kind == ROUND_EXTEND && memcmp(other->token, token, LIMIT_TOKEN) == 0)
            engine_step(engine, other,
                        &(struct round_event){.type = ROUND_EVENT_RELEASING, .now_ns = now_ns});
    }
}

/* --- gathering --- */

bool engine_gathers(const struct operation *operation, enum round_command command)
{
    /* A BREAK deletes nothing on some nodes. */
    return command == ROUND_VOTE && operation->round.kind == ROUND_RELEASE &&
           operation->breaking == NULL;
}

/* As a command of its own, to a link that takes releases. */
static void write_alone(struct engine *engine, unsigned node, struct operation *operation,
                        enum redis_form form, int64_t now_ns)
{
    const struct link_ticket ticket = {.kind = TICKET_ROUND,
                                       .command = ROUND_VOTE,
                                       .form = (uint8_t)form,
                                       .sent_ns = now_ns,
                                       .owner = operation};
    size_t len = engine_format(engine, operation, ROUND_VOTE, form, now_ns);
    link_send(&engine->links[node], engine->command, len, &ticket);
}

uint32_t engine_gather(struct engine *engine, struct operation *operation, uint32_t nodes,
                       int64_t now_ns)
{
    uint32_t refused = 0;
    uint32_t gathered_for = nodes & ~engine->apart;
    assert(operation->gathered_for == 0);
    /* No key twice in one command. */
    engine_settle_order(engine, operation->resource, now_ns);
    for (uint32_t rest = nodes & engine->apart; rest != 0; rest = nodes_behind_first(rest)) {
        struct link *link = &engine->links[nodes_first(rest)];
        if (link_refuses_release(link) != REASON_NONE)
            refused |= nodes_only(link->node);
        else
            write_alone(engine, link->node, operation, link->release_form, now_ns);
    }
    if (gathered_for == 0)
        return refused;
    operation->gathered_for = gathered_for;
    operation->resource->gathered = true;
    STAILQ_INSERT_TAIL(&engine->gathered, operation, gathered);
    return refused;
}

/* --- writing --- */

/* Take the first that are gathered for the same nodes, as a chain; returns how many. */
static unsigned take_chain(struct engine *engine, struct operation **first)
{
    struct operation *operation = STAILQ_FIRST(&engine->gathered);
    struct operation **end = first;
    uint32_t nodes = operation->gathered_for;
    unsigned count = 0;
    while (operation != NULL && operation->gathered_for == nodes && count < LIMIT_TOGETHER) {
        STAILQ_REMOVE_HEAD(&engine->gathered, gathered);
        operation->resource->gathered = false;
        operation->gathered_for = 0;
        *end = operation;
        end = &operation->together;
        count++;
        operation = STAILQ_FIRST(&engine->gathered);
    }
    *end = NULL;
    return count;
}

/* As engine_format(). */
static size_t format(struct engine *engine, const struct operation *first, unsigned count,
                     enum redis_form form, int64_t now_ns)
{
    struct redis_release releases[LIMIT_TOGETHER];
    if (count == 1)
        return engine_format(engine, first, ROUND_VOTE, form, now_ns);
    for (unsigned i = 0; i < count; i++, first = first->together)
        releases[i] = (struct redis_release){
            .key = first->resource->key,
            .key_len = first->resource->key_len,
            .token = first->token,
        };
    return redis_format_releases(releases, count, form, engine->command);
}

/* What could not be written to some nodes after all fails at the end of the pass, not in the midst
 * of whatever is being done now. */
static void put_off(struct engine *engine, struct operation *first, uint32_t refused)
{
    for (struct operation *next; first != NULL; first = next) {
        next = first->together;
        first->gathered_for = refused;
        STAILQ_INSERT_TAIL(&engine->unwritten, first, gathered);
    }
}

/* What has been formatted. */
static void write_to(struct engine *engine, uint32_t nodes, size_t len)
{
    engine->io.write(engine->io.context, nodes, CHANNEL_COMMANDS, engine->command, len);
}

static void write_chain(struct engine *engine, int64_t now_ns)
{
    struct operation *first;
    uint32_t nodes = STAILQ_FIRST(&engine->gathered)->gathered_for;
    uint32_t refused = 0;
    uint32_t written_to = 0; /* by what is in engine->command */
    unsigned count = take_chain(engine, &first);
    size_t len = 0;
    struct link_ticket ticket = {
        .kind = count > 1 ? TICKET_RELEASES : TICKET_ROUND,
        .command = count > 1 ? (uint8_t)count : ROUND_VOTE,
        .sent_ns = now_ns,
        .owner = first,
    };
    for (uint32_t rest = nodes; rest != 0; rest = nodes_behind_first(rest)) {
        struct link *link = &engine->links[nodes_first(rest)];
        enum redis_form form = count > 1 ? REDIS_BY_SHA1 : link->release_form;
        if (link_refuses_release(link) != REASON_NONE) {
            refused |= nodes_only(link->node);
            continue;
        }
        /* Mostly all masters are alike, and it is written once. */
        if (len == 0 || form != ticket.form) {
            write_to(engine, written_to, len);
            written_to = 0;
            ticket.form = (uint8_t)form;
            len = format(engine, first, count, form, now_ns);
        }
        link_expect(link, &ticket);
        written_to |= nodes_only(link->node);
    }
    write_to(engine, written_to, len);
    if (refused != 0)
        put_off(engine, first, refused);
}

void engine_settle_order(struct engine *engine, const struct resource *resource, int64_t now_ns)
{
    while (resource->gathered)
        write_chain(engine, now_ns);
}

/* --- answers --- */

static void fail(struct engine *engine, unsigned node, struct operation *operation,
                 enum reason reason, int64_t now_ns)
{
    engine_owe(engine, node, operation, now_ns);
    engine_deliver(engine, node, operation, ROUND_VOTE,
                   &(struct answer){.kind = ANSWER_FAILED, .reason = reason}, now_ns);
}

/* Why it could not be written there; the link may take releases again by now. */
static enum reason why_unwritten(const struct engine *engine, unsigned node)
{
    enum reason reason = link_refuses_release(&engine->links[node]);
    return reason != REASON_NONE ? reason : REASON_BACKLOG;
}

static void fail_unwritten(struct engine *engine, int64_t now_ns)
{
    struct operation *operation;
    while ((operation = STAILQ_FIRST(&engine->unwritten)) != NULL) {
        uint32_t nodes = operation->gathered_for;
        operation->gathered_for = 0;
        STAILQ_REMOVE_HEAD(&engine->unwritten, gathered);
        /* The last of them may finish it, and then it is gone. */
        for (; nodes != 0; nodes = nodes_behind_first(nodes)) {
            unsigned node = nodes_first(nodes);
            fail(engine, node, operation, why_unwritten(engine, node), now_ns);
        }
    }
}

bool engine_wants_releases(const struct engine *engine)
{
    return !STAILQ_EMPTY(&engine->gathered) || !STAILQ_EMPTY(&engine->unwritten);
}

void engine_write_releases(struct engine *engine, int64_t now_ns)
{
    while (!STAILQ_EMPTY(&engine->gathered))
        write_chain(engine, now_ns);
    fail_unwritten(engine, now_ns);
}

/* The scripts have been flushed. */
static bool write_in_full(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                          const struct redis_reply *reply, int64_t now_ns)
{
    struct link *link = &engine->links[node];
    if (ticket->form == REDIS_IN_FULL || reply->kind != RESP_ERROR ||
        reason_of_redis_error(reply->str, reply->len) != REASON_NOSCRIPT ||
        link_refuses_release(link) != REASON_NONE)
        return false;
    struct link_ticket again = *ticket;
    again.form = REDIS_IN_FULL;
    again.sent_ns = now_ns;
    size_t len = format(engine, ticket->owner, ticket->command, REDIS_IN_FULL, now_ns);
    link_send(link, engine->command, len, &again);
    return true;
}

/* The master did not delete it, and release.lua says why. */
static void ask_alone(struct engine *engine, unsigned node, struct operation *operation,
                      int64_t now_ns)
{
    enum reason refused = link_refuses_release(&engine->links[node]);
    if (refused != REASON_NONE)
        fail(engine, node, operation, refused, now_ns);
    else
        write_alone(engine, node, operation, REDIS_BY_SHA1, now_ns);
}

void engine_on_native_release(struct engine *engine, unsigned node,
                              const struct link_ticket *ticket, const struct redis_reply *reply,
                              int64_t now_ns)
{
    enum answer_kind kind = redis_deleted(reply);
    if (kind != ANSWER_FAILED) {
        engine_deliver(engine, node, ticket->owner, ROUND_VOTE, &(struct answer){.kind = kind},
                       now_ns);
        return;
    }
    engine->refusing_native |= nodes_only(node);
    ask_alone(engine, node, ticket->owner, now_ns);
}

void engine_release_frozen(struct engine *engine, const struct operation *operation, int64_t now_ns)
{
    for (uint32_t rest = operation->round.absent; rest != 0; rest = nodes_behind_first(rest)) {
        const struct resource *resource = operation->resource;
        struct link *link = &engine->links[nodes_first(rest)];
        /* One at a time: clients can cause it at will, and must not crowd out what is owed. Nor is
         * it counted as that: the node was not away. */
        if (redis_is_native(link->release_form) && link->owed.count == 0)
            link_owe(link, resource->key, resource->key_len, operation->token, now_ns);
    }
}

/* What a script for one does behind a refusal could have been done: the node's ACL lacks what the
 * other command needs. Any other trouble the script has as well. */
void engine_on_released_alone(struct engine *engine, unsigned node, enum answer_kind said)
{
    uint32_t bit = nodes_only(node);
    struct link *link = &engine->links[node];
    bool apart = engine->refusing & bit;
    bool native = engine->refusing_native & bit;
    engine->refusing &= ~bit;
    engine->refusing_native &= ~bit;
    if (said != ANSWER_YES && said != ANSWER_ABSENT)
        return;
    if (apart) {
        engine->apart |= bit;
        engine->io.releases_refused(engine->io.context, node, REDIS_BY_SHA1);
    }
    if (native && redis_is_native(link->release_form)) {
        engine->io.releases_refused(engine->io.context, node, link->release_form);
        link->release_form = REDIS_BY_SHA1;
    }
}

void engine_on_releases(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                        const struct redis_reply *reply, int64_t now_ns)
{
    struct operation *operation = ticket->owner;
    struct answer said = {.kind = ANSWER_YES};
    bool all_deleted = redis_all_released(reply);
    if (write_in_full(engine, node, ticket, reply, now_ns))
        return;
    if (reply->kind == RESP_ERROR)
        engine->refusing |= nodes_only(node);
    /* All of them wait for this answer, so none is gone before its turn. */
    for (unsigned i = 0; i < ticket->command; i++) {
        struct operation *next = operation->together;
        if (!all_deleted)
            said.kind = redis_released(reply, ticket->command, i);
        if (said.kind == ANSWER_FAILED)
            ask_alone(engine, node, operation, now_ns);
        else
            engine_deliver_vote(engine, node, operation, &said, now_ns);
        operation = next;
    }
}

void engine_on_releases_lost(struct engine *engine, unsigned node, const struct link_ticket *ticket,
                             int64_t now_ns)
{
    struct operation *operation = ticket->owner;
    enum reason reason = engine->links[node].reason;
    for (unsigned i = 0; i < ticket->command; i++) {
        struct operation *next = operation->together;
        fail(engine, node, operation, reason, now_ns);
        operation = next;
    }
}
