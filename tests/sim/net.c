#include <assert.h>
#include <string.h>

#include "tests/sim/sim.h"

#include "protocol/units.h"

/* --- latency --- */

int64_t master_wall_us(const struct sim *sim, unsigned master)
{
    return clock_at(&sim->masters[master].clock, sim->now_ns) / 1000;
}

enum { TO_MASTER, FROM_MASTER };

static int64_t arrival_ns(struct sim *sim, const struct sim_wire *wire, unsigned direction)
{
    const struct sim_master *master = &sim->masters[wire->master];
    int64_t blocked_ns = master->blocked_ns[wire->owner][direction];
    int64_t from_ns = blocked_ns > sim->now_ns ? blocked_ns : sim->now_ns;
    int64_t latency_ns = master->latency_ns[wire->owner];
    int64_t at_ns = from_ns + latency_ns / 2 + sim_below(sim, (unsigned)latency_ns + 1);
    if (fault_may(sim, FAULT_JITTER) && !sim->recovering && sim_below(sim, 16) == 0)
        at_ns += sim_between(sim, 0, 40 * NS_PER_MS);
    return at_ns;
}

bool wire_exists(const struct sim *sim, unsigned wire, uint32_t generation)
{
    return sim->wires[wire].used && sim->wires[wire].generation == generation;
}

static void plan(struct sim *sim, int64_t at_ns, enum event_kind kind, unsigned wire)
{
    event_queue_add(&sim->event_queue, at_ns, kind, wire, sim->wires[wire].generation);
}

/* --- opening and writing --- */

unsigned net_open(struct sim *sim, unsigned owner, unsigned master, enum channel channel)
{
    unsigned index = 0;
    while (index < SIM_WIRES && sim->wires[index].used)
        index++;
    assert(index < SIM_WIRES);
    struct sim_wire *wire = &sim->wires[index];
    wire->used = true;
    wire->generation++;
    wire->owner = owner;
    wire->master = master;
    wire->channel = channel;
    wire->open_here = true;
    wire->connected = wire->reset_sent = false;
    wire->session = 0;
    pipe_clear(&wire->to_server);
    pipe_clear(&wire->to_client);
    plan(sim, arrival_ns(sim, wire, TO_MASTER), EVENT_CONNECT, index);
    return index;
}

void net_write(struct sim *sim, unsigned wire, const char *bytes, size_t len)
{
    assert(wire < SIM_WIRES);
    assert(sim->wires[wire].open_here);
    pipe_add(&sim->wires[wire].to_server, bytes, len);
}

static void seal(struct sim *sim, unsigned index, struct pipe *pipe, unsigned direction,
                 enum event_kind kind)
{
    const struct sim_wire *wire = &sim->wires[index];
    if (pipe->sealed == pipe->sent)
        return;
    /* Now and then the bytes travel in two segments. Another event can then come between them. */
    if (pipe->sent - pipe->sealed > 1 && sim_below(sim, 8) == 0) {
        uint64_t cut = pipe->sealed + 1 + sim_below(sim, (unsigned)(pipe->sent - pipe->sealed - 1));
        pipe_seal(pipe, cut, arrival_ns(sim, wire, direction));
        plan(sim, pipe->last_ns, kind, index);
    }
    pipe_seal(pipe, pipe->sent, arrival_ns(sim, wire, direction));
    plan(sim, pipe->last_ns, kind, index);
}

void net_seal(struct sim *sim, unsigned wire)
{
    seal(sim, wire, &sim->wires[wire].to_server, TO_MASTER, EVENT_TO_SERVER);
}

/* --- the end of a wire --- */

/* The server to which the wire leads. The ids of sessions differ between the two servers. */
static struct fake_master *server_of(struct sim *sim, const struct sim_wire *wire)
{
    struct sim_master *master = &sim->masters[wire->master];
    bool other = fake_session(&master->other, wire->session) != NULL;
    return other ? &master->other : &master->redis;
}

static struct fake_session *session_of(struct sim *sim, const struct sim_wire *wire)
{
    return sim->masters[wire->master].dead ? NULL
                                           : fake_session(server_of(sim, wire), wire->session);
}

static void free_if_over(struct sim *sim, unsigned index)
{
    struct sim_wire *wire = &sim->wires[index];
    if (!wire->open_here && wire->session == 0 && !wire->reset_sent)
        wire->used = false;
}

/* Drop the bytes that have not arrived. */
static void lose_unarrived(struct pipe *pipe)
{
    pipe->count = 0;
    pipe->sealed = pipe->sent;
}

/* Delay the bytes in flight, as a middlebox does, so that they arrive after later bytes of another
 * connection. */
static void stall(struct sim *sim, unsigned index)
{
    struct pipe *pipe = &sim->wires[index].to_server;
    int64_t longer_ns = sim_between(sim, 0, NS_PER_S);
    for (unsigned i = 0; i < pipe->count; i++) {
        int64_t *at_ns = &pipe->segments[(pipe->first + i) % PIPE_SEGMENTS].at_ns;
        if (*at_ns > sim->now_ns) {
            *at_ns += longer_ns;
            plan(sim, *at_ns, EVENT_TO_SERVER, index);
            pipe->last_ns = *at_ns;
        }
    }
}

static void plan_reset(struct sim *sim, unsigned index, bool loses)
{
    struct sim_wire *wire = &sim->wires[index];
    int64_t at_ns = arrival_ns(sim, wire, TO_MASTER);
    if (loses)
        lose_unarrived(&wire->to_server);
    else if (sim_below(sim, 2) == 0)
        stall(sim, index);
    if (at_ns < wire->to_server.last_ns)
        at_ns = wire->to_server.last_ns;
    wire->reset_sent = true;
    plan(sim, at_ns, EVENT_RESET, index);
}

static void abandon_wire(struct sim *sim, unsigned index, bool loses)
{
    struct sim_wire *wire = &sim->wires[index];
    assert(wire->open_here);
    wire->open_here = false;
    plan_reset(sim, index, loses);
}

void net_reset(struct sim *sim, unsigned wire)
{
    /* The bytes written in this pass have not left the daemon, and are lost. Bytes in flight are
     * lost in half of the cases. */
    sim->wires[wire].to_server.sealed = sim->wires[wire].to_server.sent;
    abandon_wire(sim, wire, sim_below(sim, 2) == 0);
}

void net_end(struct sim *sim, unsigned wire)
{
    net_seal(sim, wire);
    abandon_wire(sim, wire, false);
}

void net_drop(struct sim *sim, unsigned index)
{
    sim->wires[index].open_here = false;
    free_if_over(sim, index);
}

void net_cut(struct sim *sim, unsigned index)
{
    struct sim_wire *wire = &sim->wires[index];
    if (!wire->open_here || !wire->connected || wire->reset_sent)
        return;
    wire->closed = REASON_DISCONNECTED;
    plan(sim, sim->now_ns + sim_between(sim, 0, 20 * NS_PER_MS), EVENT_CLOSED, index);
    /* The master may learn of the cut later, and first read the bytes that were in flight. */
    wire->reset_sent = true;
    if (sim_below(sim, 2) == 0)
        lose_unarrived(&wire->to_server);
    else
        stall(sim, index);
    int64_t last_ns = wire->to_server.last_ns;
    plan(sim,
         (last_ns > sim->now_ns ? last_ns : sim->now_ns) + sim_between(sim, 0, 500 * NS_PER_MS),
         EVENT_RESET, index);
}

void net_cut_all(struct sim *sim, unsigned owner, unsigned master, bool only_other)
{
    for (unsigned i = 0; i < SIM_WIRES; i++) {
        const struct sim_wire *wire = &sim->wires[i];
        if (wire->used && wire->owner == owner && wire->master == master &&
            (!only_other || server_of(sim, wire) == &sim->masters[master].other))
            net_cut(sim, i);
    }
}

/* The master has closed the wire. */
static void close_by_master(struct sim *sim, unsigned index)
{
    struct sim_wire *wire = &sim->wires[index];
    wire->session = 0;
    if (wire->open_here) {
        wire->closed = wire->connected ? REASON_DISCONNECTED : REASON_REFUSED;
        int64_t at_ns = arrival_ns(sim, wire, FROM_MASTER);
        if (at_ns < wire->to_client.last_ns)
            at_ns = wire->to_client.last_ns;
        plan(sim, at_ns, EVENT_CLOSED, index);
    }
    free_if_over(sim, index);
}

void net_kill_master(struct sim *sim, unsigned master)
{
    struct fake_master *redis = &sim->masters[master].redis;
    for (unsigned i = 0; i < redis->session_end; i++)
        if (redis->sessions[i].id != 0)
            close_by_master(sim, redis->sessions[i].wire);
    fake_close_all(redis);
}

/* --- the master's side --- */

/* Send the session's output, and close the session if it was killed. */
static void send_output(struct sim *sim, struct fake_master *redis, struct fake_session *session)
{
    struct sim_wire *wire = &sim->wires[session->wire];
    size_t len = bytes_len(&session->output);
    if (len > 0 && wire->open_here && !wire->reset_sent) {
        pipe_add(&wire->to_client, bytes_at(&session->output), len);
        seal(sim, session->wire, &wire->to_client, FROM_MASTER, EVENT_TO_CLIENT);
    }
    bytes_clear(&session->output);
    if (session->killed) {
        fake_close(redis, session);
        close_by_master(sim, session->wire);
    }
}

static void send_all_output(struct sim *sim, struct fake_master *redis)
{
    for (unsigned i = 0; i < redis->session_end; i++)
        if (redis->sessions[i].id != 0)
            send_output(sim, redis, &redis->sessions[i]);
}

void net_send_output(struct sim *sim, unsigned master)
{
    send_all_output(sim, &sim->masters[master].redis);
    send_all_output(sim, &sim->masters[master].other);
}

static void serve(struct sim *sim, unsigned index)
{
    struct sim_wire *wire = &sim->wires[index];
    struct sim_master *master = &sim->masters[wire->master];
    struct fake_session *session = session_of(sim, wire);
    pipe_move(&wire->to_server, session != NULL ? &session->input : NULL, sim->now_ns);
    if (session != NULL && !master->hung)
        fake_serve(server_of(sim, wire), session, master_wall_us(sim, wire->master));
}

void net_serve_all(struct sim *sim, unsigned master)
{
    struct fake_master *redis = &sim->masters[master].redis;
    unsigned first = sim_below(sim, FAKE_SESSIONS);
    for (unsigned i = 0; i < FAKE_SESSIONS; i++) {
        const struct fake_session *session = &redis->sessions[(first + i) % FAKE_SESSIONS];
        if (session->id != 0)
            serve(sim, session->wire);
    }
    net_send_output(sim, master);
    /* Close the sessions whose wires were reset during the hang. */
    for (unsigned i = 0; i < redis->session_end; i++) {
        struct fake_session *session = &redis->sessions[i];
        struct sim_wire *wire = &sim->wires[session->wire];
        if (session->id == 0 || wire->open_here || wire->reset_sent)
            continue;
        fake_close(redis, session);
        wire->session = 0;
        free_if_over(sim, session->wire);
    }
}

static void on_connect(struct sim *sim, unsigned index)
{
    struct sim_wire *wire = &sim->wires[index];
    struct sim_master *master = &sim->masters[wire->master];
    struct fake_session *session = NULL;
    if (!wire->open_here)
        return;
    if (!master->dead)
        session = fake_accept(&master->redis);
    if (session == NULL) {
        wire->closed = REASON_REFUSED;
        plan(sim, arrival_ns(sim, wire, FROM_MASTER), EVENT_CLOSED, index);
        return;
    }
    session->wire = index;
    wire->session = session->id;
    plan(sim, arrival_ns(sim, wire, FROM_MASTER), EVENT_CONNECTED, index);
}

static void on_reset(struct sim *sim, unsigned index)
{
    struct sim_wire *wire = &sim->wires[index];
    struct fake_session *session = session_of(sim, wire);
    serve(sim, index);
    wire->reset_sent = false;
    net_send_output(sim, wire->master);
    /* A hung master does not see the reset now. It first executes the commands that have arrived
     * (net_serve_all). */
    if (session != NULL && session->id != 0 && !sim->masters[wire->master].hung) {
        fake_close(server_of(sim, wire), session);
        wire->session = 0;
    }
    free_if_over(sim, index);
}

void net_on_event(struct sim *sim, const struct event *event)
{
    unsigned index = event->subject;
    if (!wire_exists(sim, index, event->generation))
        return;
    switch (event->kind) {
    case EVENT_CONNECT:
        on_connect(sim, index);
        break;
    case EVENT_TO_SERVER:
        serve(sim, index);
        net_send_output(sim, sim->wires[index].master);
        break;
    case EVENT_RESET:
        on_reset(sim, index);
        break;
    default:
        assert(false && "event of the owner, not of the network");
    }
}

size_t net_arrived(struct sim *sim, unsigned wire)
{
    return pipe_arrived(&sim->wires[wire].to_client, sim->now_ns);
}

void net_clear(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_WIRES; i++)
        sim->wires[i].used = false;
}
