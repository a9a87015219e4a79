#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#include "protocol/units.h"

/* For how long a daemon keeps an ended connection at most. */
#define SLOW_END_NS (3 * NS_PER_S)

static bool exists(const struct sim *sim, unsigned connection, uint32_t number)
{
    return connection != SIM_CONNECTIONS && sim->connections[connection].number == number;
}

/* --- the client's side --- */

unsigned connection_to(struct sim *sim, unsigned client, unsigned daemon)
{
    unsigned *current = &sim->clients[client].connections[daemon];
    if (*current != SIM_CONNECTIONS || !sim->daemons[daemon].alive || sim->daemons[daemon].draining)
        return *current;
    unsigned index = 0;
    while (index < SIM_CONNECTIONS &&
           (sim->connections[index].open || sim->connections[index].daemon_has_it))
        index++;
    assert(index < SIM_CONNECTIONS);
    struct sim_connection *connection = &sim->connections[index];
    *connection = (struct sim_connection){
        .open = true,
        .daemon_has_it = true,
        .number = ++sim->connection_number,
        .client = client,
        .daemon = daemon,
    };
    engine_client_init(&connection->engine_client, connection->number);
    *current = index;
    return index;
}

/* Returns the time at which a line that is sent now arrives. Lines keep their order. Now and then
 * one is slow and delays all later ones. */
static int64_t arrival_ns(struct sim *sim, const struct sim_connection *connection,
                          int64_t *last_ns)
{
    int64_t latency_ns = sim->clients[connection->client].latency_ns;
    int64_t at_ns = sim->now_ns + latency_ns / 2 + sim_below(sim, (unsigned)latency_ns + 1);
    if (fault_may(sim, FAULT_CLIENTS) && !sim->recovering && sim_below(sim, 64) == 0)
        at_ns += sim_between(sim, 0, 800 * NS_PER_MS);
    if (at_ns < *last_ns)
        at_ns = *last_ns;
    *last_ns = at_ns;
    return at_ns;
}

void connection_send(struct sim *sim, unsigned index, const struct sim_request *asked)
{
    struct sim_connection *connection = &sim->connections[index];
    unsigned slot = 0;
    while (slot < SIM_REQUESTS && sim->requests[slot].state != REQUEST_FREE)
        slot++;
    assert(slot < SIM_REQUESTS && connection->open);
    struct sim_request *request = &sim->requests[slot];
    uint32_t generation = request->generation + 1;
    *request = *asked;
    request->generation = generation;
    request->state = REQUEST_SENT;
    request->client = connection->client;
    request->daemon = connection->daemon;
    request->connection = index;
    request->number = connection->number;
    request->sent_ns = sim->now_ns;
    event_queue_add(&sim->event_queue, arrival_ns(sim, connection, &connection->to_daemon_ns),
                    EVENT_REQUEST, slot, generation);
}

/* Plan when the daemon learns of the end of the connection. A dead daemon learns of nothing. */
static void plan_hangup(struct sim *sim, unsigned index)
{
    struct sim_connection *connection = &sim->connections[index];
    if (!connection->daemon_has_it)
        return;
    connection->seen_early = sim->slow_ends && sim_below(sim, 2) == 0;
    if (connection->seen_early)
        event_queue_add(&sim->event_queue,
                        sim->now_ns + sim->clients[connection->client].latency_ns / 2, EVENT_HANGUP,
                        index, connection->number);
    event_queue_add(&sim->event_queue, arrival_ns(sim, connection, &connection->to_daemon_ns),
                    EVENT_HANGUP, index, connection->number);
}

void connection_close(struct sim *sim, unsigned index, bool clean)
{
    struct sim_connection *connection = &sim->connections[index];
    assert(connection->open);
    sim_note(sim, "client %u %s its connection to daemon %u\n", connection->client,
             clean ? "ends" : "loses", connection->daemon);
    connection->open = false;
    connection->clean = clean;
    connection->quits = clean && sim_below(sim, 2) == 0;
    sim->clients[connection->client].connections[connection->daemon] = SIM_CONNECTIONS;
    /* A loss may drop requests in flight, and the daemon may notice the loss late. */
    bool loses = !clean && sim_below(sim, 2) == 0;
    for (unsigned i = 0; i < SIM_REQUESTS && loses; i++)
        if (sim->requests[i].state == REQUEST_SENT && sim->requests[i].connection == index &&
            sim->requests[i].number == connection->number)
            sim->requests[i].state = REQUEST_FREE;
    if (!clean && !sim->recovering)
        connection->to_daemon_ns += sim_between(sim, 0, 2 * NS_PER_S);
    plan_hangup(sim, index);
    client_on_closed(sim, connection->client, index);
}

void connection_reset(struct sim *sim, unsigned index)
{
    struct sim_connection *connection = &sim->connections[index];
    const struct sim_request reset = {.verb = VERB_QUIT};
    assert(connection->open);
    sim->tally->counts[COUNT_RESETS]++;
    connection->clean = connection->quits = true;
    client_on_closed(sim, connection->client, index);
    for (unsigned i = 0; i < SIM_REQUESTS; i++)
        if (sim->requests[i].connection == index)
            sim->requests[i].given_up = true;
    for (unsigned i = 0; i < SIM_REPLIES; i++)
        if (sim->replies[i].connection == index)
            sim->replies[i].used = false;
    connection_send(sim, index, &reset);
}

static void forget_requests(struct sim *sim, unsigned index)
{
    for (unsigned i = 0; i < SIM_REQUESTS; i++)
        if (sim->requests[i].state != REQUEST_FREE && sim->requests[i].connection == index)
            sim->requests[i].state = REQUEST_FREE;
}

void connection_lose_daemon(struct sim *sim, unsigned daemon)
{
    for (unsigned i = 0; i < SIM_CONNECTIONS; i++) {
        struct sim_connection *connection = &sim->connections[i];
        if (connection->daemon != daemon || (!connection->open && !connection->daemon_has_it))
            continue;
        connection->daemon_has_it = false;
        forget_requests(sim, i);
        if (connection->open)
            connection_close(sim, i, false);
    }
}

void connection_clear(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_CONNECTIONS; i++)
        sim->connections[i].open = sim->connections[i].daemon_has_it = false;
    sim->connection_number = 0;
    for (unsigned i = 0; i < SIM_REQUESTS; i++) {
        sim->requests[i].state = REQUEST_FREE;
        sim->requests[i].generation = 0;
    }
    for (unsigned i = 0; i < SIM_REPLIES; i++)
        sim->replies[i].used = false;
}

/* --- the daemon's side --- */

static size_t write_line(const struct sim *sim, const struct sim_request *request, unsigned slot,
                         char *line, size_t size)
{
    int len =
        snprintf(line, size, "#%u.%u %s", slot, request->generation, verb_word(request->verb));
    size_t at = (size_t)len;
    if (request->verb == VERB_PING || request->verb == VERB_QUIT)
        return at;
    const struct sim_name name = sim_name(sim, request->resource);
    at += (size_t)snprintf(line + at, size - at, " %s", request->slots > 0 ? "r" : name.text);
    if (request->verb == VERB_UNLOCK || request->verb == VERB_EXTEND)
        at += (size_t)snprintf(line + at, size - at, " %s", request->token);
    if (request->verb == VERB_LOCK || request->verb == VERB_EXTEND)
        at += (size_t)snprintf(line + at, size - at, " %" PRId64 "ms", request->ttl_ms);
    if (request->slots > 0)
        at += (size_t)snprintf(line + at, size - at, " SLOTS %u", request->slots);
    if (request->verb != VERB_LOCK)
        return at;
    if (request->wait_ms > 0)
        at += (size_t)snprintf(line + at, size - at, " WAIT %" PRId64 "ms", request->wait_ms);
    at += (size_t)snprintf(line + at, size - at, "%s%s", request->fence ? " FENCE" : "",
                           request->hold ? request->linger ? " HOLD LINGER" : " HOLD" : "");
    return at;
}

/* The daemon learns how the connection ends, or reads RESET, which is ENGINE_QUIT too. */
static void end_at_daemon(struct sim *sim, struct sim_connection *connection, enum engine_end how)
{
    struct engine *engine = &sim->daemons[connection->daemon].engine;
    int64_t now_ns = daemon_clock_ns(sim, connection->daemon);
    const struct lock *lock;
    /* HOLDs whose time is over are lost first: the end of the connection does not release them. */
    engine_catch_up(engine, now_ns);
    LIST_FOREACH (lock, &connection->engine_client.holds, of_client)
        if (how == ENGINE_QUIT || (how == ENGINE_HALF_CLOSED && !lock->lingers))
            checker_on_hold_ended(sim, connection->daemon, lock->token);
    engine_client_end(engine, &connection->engine_client, how, now_ns);
    /* QUIT and RESET undo LOCKs without a word. */
    for (unsigned i = 0; i < SIM_REQUESTS && how == ENGINE_QUIT; i++)
        if (sim->requests[i].state == REQUEST_ARRIVED && sim->requests[i].verb == VERB_LOCK &&
            &sim->connections[sim->requests[i].connection] == connection)
            sim->requests[i].state = REQUEST_FREE;
}

void connection_submit(struct sim *sim, const struct event *event)
{
    struct sim_request *request = &sim->requests[event->subject];
    struct sim_connection *connection = &sim->connections[request->connection];
    struct sim_daemon *daemon = &sim->daemons[request->daemon];
    struct request parsed;
    struct error error;
    char line[SIM_LINE];
    if (request->generation != event->generation || request->state != REQUEST_SENT)
        return;
    assert(connection->number == request->number && connection->daemon_has_it);
    size_t len = write_line(sim, request, event->subject, line, sizeof(line));
    sim_note(sim, "client %u to %u: %s\n", request->client, request->daemon, line);
    if (request->verb == VERB_QUIT ||
        (request->verb == VERB_LOCK && connection->end != END_UNSEEN)) {
        request->state = REQUEST_FREE;
        if (request->verb == VERB_QUIT)
            end_at_daemon(sim, connection, ENGINE_QUIT);
        return;
    }
    request->state = REQUEST_ARRIVED;
    request->arrived_ns = daemon_clock_ns(sim, request->daemon);
    request->order = ++sim->order;
    if (request->verb == VERB_EXTEND)
        checker_on_extend(sim, request);
    if (request->verb == VERB_LOCK || request->verb == VERB_STATUS)
        checker_on_lock(sim, request);
    enum request_error failed = request_parse(line, len, &sim->limits, &parsed, &error);
    assert(failed == REQUEST_FINE);
    if (parsed.verb == VERB_PING) {
        int pong_len =
            snprintf(line, sizeof(line), "#%.*s PONG\n", (int)parsed.tag_len, parsed.tag);
        char answer[SIM_LINE];
        memcpy(answer, line, sizeof(answer));
        engine_catch_up(&daemon->engine, request->arrived_ns);
        connection_take_reply(sim, request->daemon, &connection->engine_client, answer,
                              (size_t)pong_len);
        return;
    }
    engine_submit(&daemon->engine, &connection->engine_client, &parsed, request->arrived_ns);
    if (connection->engine_client.pending_count > LIMIT_CLIENT_REQUESTS)
        checker_violation(sim, "client %u has more requests in flight than its limit",
                          request->client);
}

/* The daemon has read the end of the connection. Returns whether it keeps the connection for a
 * while, for example until the client has read all replies. */
static bool read_end(struct sim *sim, unsigned index)
{
    struct sim_connection *connection = &sim->connections[index];
    if (connection->quits)
        end_at_daemon(sim, connection, ENGINE_QUIT);
    else if (connection->clean)
        end_at_daemon(sim, connection, ENGINE_HALF_CLOSED);
    else if (sim->slow_ends)
        end_at_daemon(sim, connection, ENGINE_ENDING);
    if (!sim->slow_ends || sim->recovering || sim_below(sim, 2) == 0)
        return false;
    sim->tally->counts[COUNT_SLOW_ENDS]++;
    connection->end = END_READ;
    event_queue_add(&sim->event_queue, sim->now_ns + sim_between(sim, 0, SLOW_END_NS), EVENT_HANGUP,
                    index, connection->number);
    return true;
}

/* No extension of a HOLD has begun after the end of its client, except on request. */
static void check_not_extended(struct sim *sim, const struct sim_connection *connection)
{
    const struct sim_daemon *daemon = &sim->daemons[connection->daemon];
    const struct lock *lock;
    LIST_FOREACH (lock, &connection->engine_client.holds, of_client) {
        const struct sim_token *token = checker_token(sim, lock->token);
        bool asked = token->extends[connection->daemon] > 0 &&
                     token->extends_life[connection->daemon] == daemon->life;
        if (!asked && lock->hold.until_ns > connection->end_ns + lock->hold.ttl_ns)
            checker_violation(sim, "extended after the end of its client: %.8s", lock->token);
    }
}

void connection_on_hangup(struct sim *sim, const struct event *event)
{
    struct sim_connection *connection = &sim->connections[event->subject];
    if (!exists(sim, event->subject, event->generation) || !connection->daemon_has_it)
        return;
    if (connection->end == END_UNSEEN) {
        connection->end = END_SEEN;
        connection->end_ns = daemon_clock_ns(sim, connection->daemon);
    }
    if (connection->seen_early) {
        connection->seen_early = false;
        end_at_daemon(sim, connection, ENGINE_ENDING);
        return;
    }
    if (connection->end == END_SEEN && read_end(sim, event->subject))
        return;
    check_not_extended(sim, connection);
    connection->engine_client.disconnected = true;
    end_at_daemon(sim, connection, ENGINE_GONE);
    connection->daemon_has_it = false;
    forget_requests(sim, event->subject);
}

/* --- replies --- */

static struct sim_connection *connection_of(struct sim *sim, struct engine_client *client)
{
    char *at = (char *)client - offsetof(struct sim_connection, engine_client);
    return &sim->connections[((size_t)(at - (char *)sim->connections)) /
                             sizeof(sim->connections[0])];
}

static struct sim_reply *post(struct sim *sim, struct sim_connection *connection, const char *line,
                              size_t len)
{
    unsigned slot = 0;
    while (slot < SIM_REPLIES && sim->replies[slot].used)
        slot++;
    assert(slot < SIM_REPLIES && len > 0 && len <= LIMIT_REPLY);
    struct sim_reply *reply = &sim->replies[slot];
    reply->used = true;
    reply->generation++;
    reply->connection = (unsigned)(connection - sim->connections);
    reply->number = connection->number;
    reply->answers = false;
    memcpy(reply->line, line, len - 1);
    reply->line[len - 1] = '\0';
    event_queue_add(&sim->event_queue, arrival_ns(sim, connection, &connection->to_client_ns),
                    EVENT_REPLY, slot, reply->generation);
    return reply;
}

/* The request that the tag names; NULL if there is none. */
static struct sim_request *request_of(struct sim *sim, unsigned daemon, const char *tag)
{
    char *end;
    unsigned long slot = strtoul(tag, &end, 10);
    if (slot >= SIM_REQUESTS || *end != '.')
        return NULL;
    struct sim_request *request = &sim->requests[slot];
    bool same = request->state == REQUEST_ARRIVED && request->daemon == daemon &&
                request->generation == strtoul(end + 1, NULL, 10);
    return same ? request : NULL;
}

void connection_take_reply(struct sim *sim, unsigned daemon, struct engine_client *client,
                           const char *line, size_t len)
{
    struct sim_connection *connection = connection_of(sim, client);
    struct sim_request *request = request_of(sim, daemon, line + 1);
    sim_note(sim, "daemon %u to %u: %.*s", daemon, connection->client, (int)len, line);
    if (request == NULL || &sim->connections[request->connection] != connection) {
        checker_violation(sim, "a reply without a request: %.*s", (int)len - 1, line);
        return;
    }
    bool heard = connection->open && !request->given_up;
    /* When the daemon sends this reply, it may learn that the client is gone. */
    if (!connection->open && sim_below(sim, 2) == 0) {
        client->disconnected = true;
        request->state = REQUEST_FREE;
        return;
    }
    char text[LIMIT_REPLY + 1];
    const char *words = memchr(line, ' ', len);
    assert(words != NULL && line[len - 1] == '\n');
    snprintf(text, sizeof(text), "%.*s", (int)(len - 2 - (size_t)(words - line)), words + 1);
    const char *slot = strrchr(text, ' ');
    if (request->slots > 0 && strncmp(text, "OK ", 3) == 0 && slot != NULL)
        request->resource = sim_resource(sim, slot + 1, strlen(slot + 1));
    checker_on_reply(sim, request, text, heard);
    if (heard) {
        struct sim_reply *reply = post(sim, connection, line, len);
        reply->answers = true;
        reply->asked = *request;
    }
    request->state = REQUEST_FREE;
}

void connection_take_push(struct sim *sim, unsigned daemon, struct engine_client *client,
                          const char *line, size_t len)
{
    struct sim_connection *connection = connection_of(sim, client);
    char text[LIMIT_REPLY + 1];
    if (client->disconnected)
        return;
    sim_note(sim, "daemon %u to %u: %.*s", daemon, connection->client, (int)len, line);
    snprintf(text, sizeof(text), "%.*s", (int)len - 1, line);
    checker_on_push(sim, daemon, text);
    if (connection->open)
        post(sim, connection, line, len);
}

void connection_take_undone(struct sim *sim, unsigned daemon, const char *tag, size_t tag_len)
{
    char text[LIMIT_TAG + 1];
    snprintf(text, sizeof(text), "%.*s", (int)tag_len, tag);
    struct sim_request *request = request_of(sim, daemon, text);
    if (request == NULL)
        checker_violation(sim, "an undone request that does not exist: %s", text);
    else
        request->state = REQUEST_FREE;
}

struct sim_reply *connection_reply(struct sim *sim, const struct event *event)
{
    struct sim_reply *reply = &sim->replies[event->subject];
    if (!reply->used || reply->generation != event->generation)
        return NULL;
    reply->used = false;
    if (!exists(sim, reply->connection, reply->number) || !sim->connections[reply->connection].open)
        return NULL;
    return reply;
}
