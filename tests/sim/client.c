#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/locks/hold.h"
#include "protocol/units.h"
#include "tests/sim/sim.h"

static void act_later(struct sim *sim, unsigned index, int64_t delay_ns)
{
    event_queue_add(&sim->event_queue, sim->now_ns + delay_ns, EVENT_ACT, index,
                    ++sim->clients[index].actions);
}

static int64_t until_ns(const struct sim *sim, const struct sim_client *client)
{
    return history_until(&sim->history, client->resource, client->token);
}

static void drop_lock(struct sim_client *client)
{
    client->has_lock = false;
    client->hold_connection = SIM_CONNECTIONS;
}

/* The client has no request in flight any more. */
static void become_idle(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    client->state = client->has_lock ? CLIENT_HOLDING : CLIENT_IDLE;
    client->asked = SIM_CONNECTIONS;
    if (!sim->finishing)
        act_later(sim, index, sim_between(sim, 0, 300 * NS_PER_MS));
}

/* The client's own daemon, or now and then another one. */
static unsigned some_daemon(struct sim *sim, const struct sim_client *client)
{
    return sim_below(sim, 6) == 0 ? sim_below(sim, sim->daemon_count) : client->home;
}

/* Usually LOCK; sometimes STATUS, or a BREAK by an operator. */
static enum verb some_verb(struct sim *sim)
{
    unsigned what = sim_below(sim, 20);
    if (what == 0 && fault_may(sim, FAULT_BREAKS))
        return VERB_BREAK;
    return what < 3 ? VERB_STATUS : VERB_LOCK;
}

/* In a schedule with semaphores, let half of the LOCKs and STATUSes be with SLOTS. Most have the
 * same number of slots, some have fewer. */
static void choose_slots(struct sim *sim, struct sim_request *request)
{
    if (!sim->semaphores || (request->verb != VERB_LOCK && request->verb != VERB_STATUS) ||
        sim_below(sim, 2) == 0)
        return;
    request->slots = sim->resource_count - 1;
    if (sim_below(sim, 4) == 0)
        request->slots = 1 + sim_below(sim, request->slots);
    request->resource = SIM_RESOURCES;
}

/* Send extra requests over the same connection. The client ignores their replies, so a lock that is
 * granted to one of them stays until it expires. */
static void send_extra_requests(struct sim *sim, unsigned connection)
{
    unsigned count = 1 + sim_below(sim, 4);
    for (unsigned i = 0; i < count; i++) {
        struct sim_request request = {
            .verb = some_verb(sim),
            .resource = sim_below(sim, sim->resource_count),
            .ttl_ms = sim->limits.ttl_min_ms + sim_below(sim, 60),
            .wait_ms = sim_below(sim, 2) == 0 ? 1 + sim_below(sim, 300) : 0,
            .fence = sim_below(sim, 4) < sim->fenced,
            .ignore_reply = true,
        };
        choose_slots(sim, &request);
        connection_send(sim, connection, &request);
    }
}

static bool ask(struct sim *sim, unsigned index, unsigned daemon, const struct sim_request *request)
{
    struct sim_client *client = &sim->clients[index];
    unsigned connection = connection_to(sim, index, daemon);
    if (connection == SIM_CONNECTIONS)
        return false;
    client->state = CLIENT_ASKING;
    client->asked = connection;
    connection_send(sim, connection, request);
    if (!sim->recovering && sim->extra_request_in > 0 && sim_below(sim, sim->extra_request_in) == 0)
        send_extra_requests(sim, connection);
    /* Some clients do not wait for the reply: act() then closes the connection. */
    if (fault_may(sim, FAULT_CLIENTS) && !sim->recovering && sim_below(sim, 12) == 0)
        act_later(sim, index, sim_between(sim, 0, (request->wait_ms + 200) * NS_PER_MS));
    else
        client->actions++;
    return true;
}

/* --- without a lock --- */

static int64_t some_ttl_ms(struct sim *sim)
{
    int64_t max_ms = sim->max_ttl_ms;
    switch (sim_below(sim, 4)) {
    case 0:
        return max_ms;
    case 1:
        return sim->limits.ttl_min_ms + sim_below(sim, sim_below(sim, 2) == 0 ? 30 : 240);
    default:
        return 200 + sim_below(sim, (unsigned)max_ms - 200);
    }
}

static int64_t some_wait_ms(struct sim *sim)
{
    switch (sim_below(sim, 4)) {
    case 0:
        return 0;
    case 1:
        return 1 + sim_below(sim, 300);
    default:
        return 1 + sim_below(sim, 4000);
    }
}

static void ask_for_lock(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    struct sim_request request = {
        .verb = some_verb(sim),
        .resource = sim_below(sim, sim->resource_count),
        .ttl_ms = some_ttl_ms(sim),
        .wait_ms = some_wait_ms(sim),
        .fence = sim_below(sim, 4) < sim->fenced,
    };
    unsigned how = sim_below(sim, 8);
    request.hold = how < 2;
    request.linger = how == 0;
    if (request.hold && request.ttl_ms < sim->limits.hold_ttl_min_ms)
        request.ttl_ms = sim->limits.hold_ttl_min_ms;
    choose_slots(sim, &request);
    if (!ask(sim, index, some_daemon(sim, client), &request))
        act_later(sim, index, sim_between(sim, 0, 300 * NS_PER_MS));
}

/* --- with a lock --- */

void client_release(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    struct sim_request request = {.verb = VERB_UNLOCK, .resource = client->resource};
    memcpy(request.token, client->token, sizeof(request.token));
    unsigned daemon = some_daemon(sim, client);
    if (connection_to(sim, index, daemon) == SIM_CONNECTIONS) {
        act_later(sim, index, sim_between(sim, 0, 300 * NS_PER_MS));
        return;
    }
    /* The client stops its work before it sends UNLOCK. */
    history_ended(&sim->history, client->resource, client->token);
    checker_token(sim, client->token)->release_requested = true;
    memcpy(client->released_token, client->token, sizeof(client->released_token));
    client->released_resource = client->resource;
    drop_lock(client);
    ask(sim, index, daemon, &request);
}

static void extend(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    struct sim_request request = {
        .verb = VERB_EXTEND, .resource = client->resource, .ttl_ms = some_ttl_ms(sim)};
    memcpy(request.token, client->token, sizeof(request.token));
    if (!ask(sim, index, some_daemon(sim, client), &request))
        act_later(sim, index, sim_between(sim, 0, 300 * NS_PER_MS));
}

static void ping(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    struct sim_request request = {.verb = VERB_PING,
                                  .resource = client->resource,
                                  .ttl_ms = client->ttl_ms,
                                  .ignore_reply = true};
    memcpy(request.token, client->token, sizeof(request.token));
    connection_send(sim, client->hold_connection, &request);
    act_later(sim, index, sim_between(sim, 0, client->ttl_ms / 2 * NS_PER_MS));
}

/* Another process that knows the token extends the lock, although the connection of its HOLD has
 * just ended. */
static void extend_after_the_end(struct sim *sim, unsigned index, unsigned daemon,
                                 const struct sim_request *request)
{
    unsigned connection = connection_to(sim, index, daemon);
    if (connection != SIM_CONNECTIONS)
        connection_send(sim, connection, request);
}

/* The client closes or loses a connection, or sends RESET. */
static void stop_using(struct sim *sim, unsigned connection)
{
    if (sim->slow_ends && sim_below(sim, 3) == 0)
        connection_reset(sim, connection);
    else
        connection_close(sim, connection, sim_below(sim, 2) == 0);
}

/* The client stops using a connection in the middle of its work. */
static void leave(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    bool holds = client->hold_connection != SIM_CONNECTIONS;
    unsigned connection = holds ? client->hold_connection : client->connections[client->home];
    struct sim_request extend = {.verb = VERB_EXTEND,
                                 .resource = client->resource,
                                 .ttl_ms = some_ttl_ms(sim),
                                 .ignore_reply = true};
    memcpy(extend.token, client->token, sizeof(extend.token));
    /* Some clients close right after their last requests. */
    if (connection != SIM_CONNECTIONS && bounds_are_crowded() && sim_below(sim, 2) == 0)
        send_extra_requests(sim, connection);
    if (connection != SIM_CONNECTIONS)
        stop_using(sim, connection);
    if (holds && sim_below(sim, 2) == 0)
        extend_after_the_end(sim, index, sim->connections[connection].daemon, &extend);
    /* The client forgets its token. Unless stop_using() has ended the hold in the history,
     * the client still relies on the lock until the deadline. */
    drop_lock(client);
    become_idle(sim, index);
}

/* The client repeats its last UNLOCK. */
static void release_again(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    struct sim_request request = {.verb = VERB_UNLOCK, .resource = client->released_resource};
    memcpy(request.token, client->released_token, sizeof(request.token));
    ask(sim, index, client->home, &request);
}

/* All clients that hold a lock release it at once. In a crowded schedule, idle clients sometimes
 * repeat their last UNLOCK at the same time. */
static void release_all_at_once(struct sim *sim, unsigned first)
{
    bool again = bounds_are_crowded() && sim_below(sim, 2) == 0;
    client_release(sim, first);
    for (unsigned i = 0; i < sim->client_count; i++) {
        const struct sim_client *client = &sim->clients[i];
        if (client->state == CLIENT_HOLDING && client->has_lock)
            client_release(sim, i);
        else if (client->state == CLIENT_IDLE && client->released_token[0] != '\0' && again)
            release_again(sim, i);
    }
}

static void use_lock(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    bool over = until_ns(sim, client) <= sim->now_ns;
    unsigned what = sim_below(sim, 24);
    if (sim->recovering || what < 4) {
        client_release(sim, index);
    } else if (what < 8) {
        release_all_at_once(sim, index);
    } else if (what < 12) {
        extend(sim, index);
    } else if (what < 14 && fault_may(sim, FAULT_CLIENTS)) {
        leave(sim, index);
    } else if (client->hold_connection != SIM_CONNECTIONS && (what < 21 || over)) {
        ping(sim, index);
    } else if (over) {
        drop_lock(client);
        become_idle(sim, index);
    } else {
        /* The client keeps working, and may oversleep its deadline. */
        act_later(sim, index, sim_between(sim, 0, client->ttl_ms * NS_PER_MS));
    }
}

/* --- events --- */

static void act(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    switch (client->state) {
    case CLIENT_IDLE:
        if (sim->recovering)
            client_retire(sim, index);
        else
            ask_for_lock(sim, index);
        break;
    case CLIENT_ASKING:
        stop_using(sim, client->asked);
        break;
    case CLIENT_HOLDING:
        use_lock(sim, index);
        break;
    }
}

void client_on_closed(struct sim *sim, unsigned index, unsigned connection)
{
    struct sim_client *client = &sim->clients[index];
    struct sim_connection *closed = &sim->connections[connection];
    /* Grants whose replies are still under way will never arrive: end their holds. */
    for (unsigned i = 0; i < SIM_REPLIES; i++) {
        const struct sim_reply *reply = &sim->replies[i];
        char token[LIMIT_TOKEN + 1];
        if (reply->used && reply->connection == connection && reply->number == closed->number &&
            reply->answers && reply->asked.verb == VERB_LOCK &&
            sscanf(reply->line, "%*s OK %40s", token) == 1)
            history_ended(&sim->history, reply->asked.resource, token);
    }
    if (client->hold_connection == connection) {
        client->hold_connection = SIM_CONNECTIONS;
        /* A clean end gives up the lock; with LINGER only QUIT does. After any other end the
         * lock counts as held until its deadline, because others may still rely on it, such as the
         * children of a killed client. */
        if (closed->clean && (closed->quits || !client->lingers)) {
            history_ended(&sim->history, client->resource, client->token);
            checker_token(sim, client->token)->release_requested = true;
            drop_lock(client);
            if (client->state == CLIENT_HOLDING)
                become_idle(sim, index);
        }
    }
    if (client->state == CLIENT_ASKING && client->asked == connection)
        become_idle(sim, index);
}

/* After a failed BREAK, the clients that hold the lock extend it. */
static void extend_after_failed_break(struct sim *sim, unsigned resource)
{
    for (unsigned i = 0; i < sim->client_count && !sim->recovering; i++) {
        const struct sim_client *client = &sim->clients[i];
        if (client->state == CLIENT_HOLDING && client->has_lock && client->resource == resource)
            extend(sim, i);
    }
}

static void on_lost(struct sim *sim, unsigned index, const char *line)
{
    struct sim_client *client = &sim->clients[index];
    if (!client->has_lock || strstr(line, client->token) == NULL)
        return;
    history_ended(&sim->history, client->resource, client->token);
    drop_lock(client);
    if (client->state == CLIENT_HOLDING)
        become_idle(sim, index);
}

static void on_answer(struct sim *sim, unsigned index, const struct sim_reply *reply)
{
    struct sim_client *client = &sim->clients[index];
    const struct sim_request *asked = &reply->asked;
    const char *words = strchr(reply->line, ' ') + 1;
    bool fine = strncmp(words, "OK", 2) == 0;
    if (asked->verb == VERB_LOCK && fine) {
        client->has_lock = true;
        client->resource = asked->resource;
        client->ttl_ms = asked->ttl_ms;
        memcpy(client->token, words + 3, LIMIT_TOKEN);
        client->lingers = asked->linger;
        client->hold_connection = asked->hold ? reply->connection : SIM_CONNECTIONS;
    }
    if (asked->verb == VERB_EXTEND && strncmp(words, "GONE", 4) == 0)
        drop_lock(client);
    become_idle(sim, index);
}

void client_on_event(struct sim *sim, const struct event *event)
{
    if (event->kind == EVENT_ACT) {
        if (event->generation == sim->clients[event->subject].actions)
            act(sim, event->subject);
        return;
    }
    const struct sim_reply *reply = connection_reply(sim, event);
    if (reply == NULL)
        return;
    unsigned index = sim->connections[reply->connection].client;
    if (reply->answers && reply->asked.verb == VERB_BREAK && strstr(reply->line, " OK") == NULL)
        extend_after_failed_break(sim, reply->asked.resource);
    if (strncmp(reply->line, "! LOST ", 7) == 0)
        on_lost(sim, index, reply->line);
    else if (reply->answers && !reply->asked.ignore_reply)
        on_answer(sim, index, reply);
}

/* --- start and retirement --- */

void client_start(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    client->state = CLIENT_IDLE;
    client->home = index % sim->daemon_count;
    client->asked = SIM_CONNECTIONS;
    client->latency_ns = 20000 + sim_below(sim, 2000000);
    client->released_token[0] = '\0';
    drop_lock(client);
    for (unsigned i = 0; i < SIM_DAEMONS; i++)
        client->connections[i] = SIM_CONNECTIONS;
    act_later(sim, index, sim_between(sim, 0, 300 * NS_PER_MS));
}

void client_retire(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    /* A client with a request in flight still receives the reply, and a client with a lock releases
     * the lock. All other connections are closed, since a HOLD whose UNLOCK was lost would live as
     * long as its connection. */
    if (client->state == CLIENT_HOLDING)
        act_later(sim, index, sim_between(sim, 0, 100 * NS_PER_MS));
    for (unsigned i = 0; i < sim->daemon_count; i++) {
        unsigned connection = client->connections[i];
        if (connection != SIM_CONNECTIONS && connection != client->hold_connection &&
            connection != client->asked)
            connection_close(sim, connection, true);
    }
}

void client_ask_last(struct sim *sim, unsigned index, unsigned daemon, unsigned resource,
                     int64_t ttl_ms)
{
    const struct sim_request request = {.verb = VERB_LOCK,
                                        .resource = resource,
                                        .ttl_ms = ttl_ms,
                                        .wait_ms = 4 * sim->max_ttl_ms,
                                        .fence = true};
    bool asked = ask(sim, index, daemon, &request);
    assert(asked);
}

void client_forget(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    drop_lock(client);
    client->state = CLIENT_IDLE;
    client->actions++;
}
