/* Schedules without faults in which all clients want one lock all the time. They show how often
 * each daemon gets the lock if one daemon is farther from the masters than the other. */
#include <assert.h>
#include <string.h>

#include "tests/sim/sim.h"

enum { TTL_MS = 5000, WAIT_MS = 60000 };

static void send(struct sim *sim, unsigned index, const struct sim_request *request)
{
    unsigned connection = connection_to(sim, index, sim->clients[index].home);
    assert(connection != SIM_CONNECTIONS);
    connection_send(sim, connection, request);
}

static void lock(struct sim *sim, unsigned index)
{
    send(sim, index,
         &(struct sim_request){.verb = VERB_LOCK, .ttl_ms = TTL_MS, .wait_ms = WAIT_MS});
}

static void unlock(struct sim *sim, unsigned index)
{
    struct sim_client *client = &sim->clients[index];
    struct sim_request request = {.verb = VERB_UNLOCK};
    memcpy(request.token, client->token, sizeof(request.token));
    history_ended(&sim->history, 0, client->token);
    checker_token(sim, client->token)->release_requested = true;
    client->has_lock = false;
    send(sim, index, &request);
}

void sim_turns_start(struct sim *sim, unsigned index, unsigned daemon)
{
    struct sim_client *client = &sim->clients[index];
    client->home = daemon;
    client->latency_ns = 50000;
    client->has_lock = false;
    client->hold_connection = SIM_CONNECTIONS;
    for (unsigned i = 0; i < SIM_DAEMONS; i++)
        client->connections[i] = SIM_CONNECTIONS;
    event_queue_add(&sim->event_queue, sim->now_ns, EVENT_ACT, index, ++client->actions);
}

static void on_reply(struct sim *sim, const struct event *event)
{
    const struct sim_reply *reply = connection_reply(sim, event);
    if (reply == NULL)
        return;
    unsigned index = sim->connections[reply->connection].client;
    struct sim_client *client = &sim->clients[index];
    const char *words = strchr(reply->line, ' ') + 1;
    if (strncmp(words, "OK", 2) != 0) {
        checker_violation(sim, "unexpected reply in a schedule without faults: %s", reply->line);
    } else if (reply->asked.verb == VERB_LOCK) {
        client->has_lock = true;
        memcpy(client->token, words + 3, LIMIT_TOKEN);
        sim->turns->grants[client->home]++;
        event_queue_add(&sim->event_queue, sim->now_ns + sim->turns->hold_ns, EVENT_ACT, index,
                        ++client->actions);
    } else {
        lock(sim, index);
    }
}

void sim_turns_on_event(struct sim *sim, const struct event *event)
{
    if (event->kind == EVENT_REPLY)
        on_reply(sim, event);
    else if (sim->clients[event->subject].has_lock)
        unlock(sim, event->subject);
    else
        lock(sim, event->subject);
}
