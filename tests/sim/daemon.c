#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "engine/locks/hold.h"
#include "engine/round/node_set.h"
#include "protocol/token.h"
#include "protocol/units.h"
#include "tests/sim/sim.h"

/* In schedules with faults, some passes are slow and take up to BUSY_NS. When an event finds the
 * daemon idle, a slow pass starts with a chance of 1 in BUSY_IN. For a request, the chance is twice
 * that. */
enum { BUSY_IN = 6 };
#define BUSY_NS (10 * NS_PER_MS)

/* A timer is at most this late. */
#define TIMER_LATE_NS (3 * NS_PER_MS / 2)

/* How long requests may wait for their start although there is room: for two timers, of which the
 * second one starts requests (on_timer()), and both of which may come during a slow pass. */
#define IN_VAIN_NS (2 * (TIMER_LATE_NS + BUSY_NS))

/* The context of the engine's io: which daemon of which simulation. */
struct place {
    struct sim *sim;
    unsigned daemon;
};

static struct place places[SIM_DAEMONS];

static struct sim_daemon *daemon_at(const struct place *place)
{
    return &place->sim->daemons[place->daemon];
}

int64_t daemon_clock_ns(const struct sim *sim, unsigned daemon)
{
    return clock_at(&sim->daemons[daemon].clock, sim->now_ns);
}

/* --- the io of the engine --- */

static void io_open(void *context, unsigned node, enum channel channel)
{
    const struct place *place = context;
    struct sim_daemon *daemon = daemon_at(place);
    assert(daemon->wires[node][channel] == SIM_WIRES);
    resp_reset(&daemon->resps[node][channel]);
    daemon->wires[node][channel] = net_open(place->sim, place->daemon, node, channel);
}

static void io_close(void *context, unsigned node, enum channel channel)
{
    const struct place *place = context;
    struct sim_daemon *daemon = daemon_at(place);
    unsigned wire = daemon->wires[node][channel];
    if (wire == SIM_WIRES)
        return;
    daemon->wires[node][channel] = SIM_WIRES;
    net_reset(place->sim, wire);
}

static void io_write(void *context, uint32_t nodes, enum channel channel, const char *bytes,
                     size_t len)
{
    const struct place *place = context;
    for (; nodes != 0; nodes = nodes_after_first(nodes))
        net_write(place->sim, daemon_at(place)->wires[nodes_first(nodes)][channel], bytes, len);
}

static void io_reply(void *context, struct engine_client *client, const char *tag, size_t tag_len,
                     const struct reply *reply)
{
    const struct place *place = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format(reply, tag, tag_len, line);
    connection_take_reply(place->sim, place->daemon, client, line, len);
}

static void io_undone(void *context, struct engine_client *client, const char *tag, size_t tag_len)
{
    const struct place *place = context;
    (void)client;
    connection_take_undone(place->sim, place->daemon, tag, tag_len);
}

static void io_push(void *context, struct engine_client *client, const struct push *push)
{
    const struct place *place = context;
    char line[LIMIT_REPLY];
    size_t len = reply_format_push(push, line);
    connection_take_push(place->sim, place->daemon, client, line, len);
}

static void io_link_changed(void *context, unsigned node, enum link_state before)
{
    const struct place *place = context;
    const struct link *link = &daemon_at(place)->engine.flights.masters[node].link;
    assert(link->state != before);
    sim_note(place->sim, "daemon %u: node %c is %s (%s)\n", place->daemon, 'a' + node,
             link_state_word(link->state), reason_word(link->reason));
}

static void io_clock_stepped_back(void *context, unsigned node, int64_t back_ns)
{
    const struct place *place = context;
    sim_note(place->sim, "daemon %u: the clock of %c went back by %.3f ms\n", place->daemon,
             'a' + node, (double)back_ns / 1e6);
}

static void io_vote_changed(void *context, unsigned node, enum reason before, enum reason reason,
                            int64_t now_ns)
{
    const struct place *place = context;
    (void)now_ns;
    sim_note(place->sim, "daemon %u: vote of %c: %s -> %s\n", place->daemon, 'a' + node,
             reason_word(before), reason_word(reason));
}

static void io_command_refused(void *context, unsigned node, enum reason reason, bool release)
{
    (void)context;
    (void)node;
    (void)reason;
    (void)release;
}

static void io_breaking(void *context, const struct engine_client *by,
                        const struct engine_broken *broken)
{
    (void)context;
    (void)by;
    (void)broken;
}

static void io_broken(void *context, const struct engine_broken *broken)
{
    const struct place *place = context;
    char token[LIMIT_TOKEN + 1];
    snprintf(token, sizeof(token), "%.*s", LIMIT_TOKEN, broken->token);
    checker_on_break(place->sim, place->daemon,
                     sim_resource(place->sim, broken->resource, broken->resource_len), token);
}

static int64_t io_wall_us(void *context)
{
    const struct place *place = context;
    return (daemon_clock_ns(place->sim, place->daemon) + daemon_at(place)->wall_ahead_ns) / 1000;
}

/* Each token begins with its number. The part that a frozen token keeps (protocol/token.h) begins
 * with the same number, but there CHECKER_FROZEN is set in its first byte. The checker finds its
 * record of the token by this number. */
static void io_random(void *context, void *bytes, size_t len)
{
    const struct place *place = context;
    struct sim *sim = place->sim;
    unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++)
        at[i] = (unsigned char)sim_below(sim, 256);
    if (len == LIMIT_TOKEN_BYTES) {
        unsigned number = checker_new_token(sim, place->daemon);
        for (unsigned i = 0; i < 4; i++)
            at[i] = at[TOKEN_FRESH_BYTES + i] = (unsigned char)(number >> 8 * (3 - i));
        at[TOKEN_FRESH_BYTES] |= CHECKER_FROZEN;
    }
}

/* --- one pass of the event loop --- */

/* The guard caches whether all nodes may vote. Check the cache against the guard's result for each
 * node. */
static void check_all_vote_cache(struct sim *sim, unsigned index)
{
    struct guard *guard = &sim->daemons[index].engine.flights.guard;
    int64_t now_ns = daemon_clock_ns(sim, index);
    bool all = true;
    for (unsigned node = 0; node < sim->node_count; node++)
        all = all && guard_refuses_vote(guard, node, now_ns) == REASON_NONE;
    if (guard_all_vote(guard, now_ns) != all)
        checker_violation(sim, "daemon %u has a stale all-vote cache", index);
}

/* The number of requests that have waited for their start and do not wait any more. */
static uint64_t starts_ended(const struct engine *engine)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += engine->stats.held_back.counts[i];
    return count;
}

/* A pass can end while requests wait for their start although there is room, because it has started
 * many others. The next passes must go on with them, even if nothing else happens. */
static void check_starts(struct sim *sim, unsigned index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    uint64_t ended = starts_ended(&daemon->engine);
    if (!bounds_hold_back(&daemon->engine))
        daemon->in_vain_ns = 0;
    else if (daemon->in_vain_ns == 0 || daemon->in_vain_ns < daemon->paused_at_ns ||
             daemon->starts_ended != ended)
        daemon->in_vain_ns = sim->now_ns;
    else if (sim->now_ns - daemon->in_vain_ns > IN_VAIN_NS)
        checker_violation(sim, "daemon %u holds requests back in vain", index);
    daemon->starts_ended = ended;
}

static void end_pass(struct sim *sim, unsigned index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    check_all_vote_cache(sim, index);
    bounds_note(&daemon->engine, sim->tally->met);
    const char *passed = bounds_passed(&daemon->engine);
    if (passed != NULL)
        checker_violation(sim, "daemon %u exceeds its limit of %s", index, passed);
    while (engine_wants_flush(&daemon->engine))
        engine_flush(&daemon->engine, daemon_clock_ns(sim, index));
    check_starts(sim, index);
    for (unsigned node = 0; node < sim->node_count; node++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            if (daemon->wires[node][channel] != SIM_WIRES)
                net_seal(sim, daemon->wires[node][channel]);
    int64_t deadline_ns = engine_deadline_ns(&daemon->engine);
    if (daemon->draining && deadline_ns > daemon->drain_end_ns)
        deadline_ns = daemon->drain_end_ns;
    int64_t at_ns = deadline_ns != INT64_MAX ? clock_when(&daemon->clock, deadline_ns) : INT64_MAX;
    if (at_ns < sim->now_ns)
        at_ns = sim->now_ns;
    if (at_ns >= daemon->timer_ns || at_ns == INT64_MAX)
        return;
    /* A timer is never early, and seldom on time. */
    daemon->timer_ns = at_ns;
    event_queue_add(&sim->event_queue, at_ns + sim_below(sim, TIMER_LATE_NS), EVENT_TIMER, index,
                    daemon->life);
}

static void feed(struct sim *sim, unsigned index, unsigned wire_index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    struct sim_wire *wire = &sim->wires[wire_index];
    struct resp *resp = &daemon->resps[wire->master][wire->channel];
    size_t len = net_arrived(sim, wire_index);
    if (len == 0)
        return;
    resp_feed(resp, bytes_at(&wire->to_client.bytes), len);
    pipe_take(&wire->to_client, len);
    for (;;) {
        enum resp_result result = resp_next(resp);
        assert(result != RESP_GARBAGE);
        if (result == RESP_MORE)
            return;
        unsigned taken =
            engine_on_replies(&daemon->engine, wire->master, wire->channel, resp->reply,
                              resp->repeats + 1, daemon_clock_ns(sim, index));
        if (taken == 0)
            return;
        resp_skip(resp, taken - 1);
    }
}

static void on_wire(struct sim *sim, unsigned index, const struct event *event)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    struct sim_wire *wire = &sim->wires[event->subject];
    if (!wire_exists(sim, event->subject, event->generation) || !wire->open_here)
        return;
    assert(daemon->wires[wire->master][wire->channel] == event->subject);
    if (event->kind == EVENT_CONNECTED) {
        wire->connected = true;
        engine_on_connected(&daemon->engine, wire->master, wire->channel,
                            daemon_clock_ns(sim, index));
    } else if (event->kind == EVENT_TO_CLIENT) {
        feed(sim, index, event->subject);
    } else {
        unsigned node = wire->master;
        enum channel channel = wire->channel;
        enum reason reason = wire->closed;
        daemon->wires[node][channel] = SIM_WIRES;
        net_drop(sim, event->subject);
        engine_on_closed(&daemon->engine, node, channel, reason, daemon_clock_ns(sim, index));
    }
}

/* As in the server, a deadline of a round or master takes two calls. The first call only runs the
 * timers of HOLDs, waits and queues, and stores its time in heard_ns. Before the second call, every
 * reply that had arrived by heard_ns is handled. The second call then treats rounds and masters as
 * late if their deadlines had passed at heard_ns. */
static void on_timer(struct sim *sim, unsigned index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    int64_t now_ns = daemon_clock_ns(sim, index);
    if (daemon->heard_ns == 0) {
        engine_catch_up(&daemon->engine, now_ns);
        if (engine_deadline_ns(&daemon->engine) <= now_ns)
            daemon->heard_ns = now_ns;
    } else {
        engine_on_timer(&daemon->engine, daemon->heard_ns, now_ns);
        daemon->heard_ns = 0;
    }
    if (!daemon->draining)
        return;
    if (now_ns >= daemon->drain_end_ns)
        engine_abandon(&daemon->engine, now_ns);
    engine_flush(&daemon->engine, now_ns);
    if (now_ns >= daemon->drain_end_ns || !engine_busy(&daemon->engine))
        daemon_die(sim, index, true);
}

static void handle(struct sim *sim, unsigned index, const struct event *event)
{
    switch (event->kind) {
    case EVENT_CONNECTED:
    case EVENT_TO_CLIENT:
    case EVENT_CLOSED:
        on_wire(sim, index, event);
        break;
    case EVENT_TIMER:
        on_timer(sim, index);
        break;
    case EVENT_REQUEST:
        connection_submit(sim, event);
        break;
    case EVENT_HANGUP:
        connection_on_hangup(sim, event);
        break;
    default:
        assert(false && "not an event of a daemon");
    }
}

static unsigned daemon_of_event(const struct sim *sim, const struct event *event)
{
    switch (event->kind) {
    case EVENT_CONNECTED:
    case EVENT_TO_CLIENT:
    case EVENT_CLOSED:
        return sim->wires[event->subject].owner;
    case EVENT_REQUEST:
        return sim->requests[event->subject].daemon;
    case EVENT_HANGUP:
        return sim->connections[event->subject].daemon;
    default:
        return event->subject;
    }
}

/* Must the event wait for a later pass? Now and then a pass is slow, and the next pass handles all
 * events that arrived meanwhile. */
static bool defer_while_busy(struct sim *sim, unsigned index, const struct event *event)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    if (daemon->paused || daemon->busy)
        return true;
    if (sim->turns != NULL ||
        sim_below(sim, event->kind == EVENT_REQUEST ? BUSY_IN / 2 : BUSY_IN) != 0)
        return false;
    daemon->busy = true;
    event_queue_add(&sim->event_queue, sim->now_ns + sim_between(sim, 0, BUSY_NS), EVENT_PASS,
                    index, daemon->life);
    return true;
}

/* One pass that handles all deferred events. */
static void catch_up(struct sim *sim, unsigned index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    daemon->busy = false;
    for (unsigned i = 0; i < daemon->backlog_count && daemon->alive; i++)
        handle(sim, index, &daemon->backlog[i]);
    daemon->backlog_count = 0;
    if (daemon->alive)
        end_pass(sim, index);
}

void daemon_on_event(struct sim *sim, const struct event *event)
{
    unsigned index = daemon_of_event(sim, event);
    struct sim_daemon *daemon = &sim->daemons[index];
    bool timer = event->kind == EVENT_TIMER;
    bool pass = event->kind == EVENT_PASS;
    if (!daemon->alive || ((timer || pass) && event->generation != daemon->life))
        return;
    if (pass) {
        if (daemon->busy && !daemon->paused)
            catch_up(sim, index);
        return;
    }
    if (timer)
        daemon->timer_ns = INT64_MAX;
    if (defer_while_busy(sim, index, event)) {
        assert(daemon->backlog_count < SIM_BACKLOG);
        daemon->backlog[daemon->backlog_count++] = *event;
        return;
    }
    handle(sim, index, event);
    if (daemon->alive)
        end_pass(sim, index);
}

/* --- start and end --- */

static void fill_rules(const struct sim *sim, const struct sim_daemon *daemon, bool bootstrap,
                       struct engine_rules *rules)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    *rules = (struct engine_rules){
        .round = {.node_count = sim->node_count,
                  .quorum = sim->node_count / 2 + 1,
                  .node_timeout_ns = SIM_NODE_TIMEOUT_MS * NS_PER_MS,
                  .min_validity_ns = NS_PER_MS,
                  .drift = sim->drift},
        .key_prefix = "",
        .cluster = "sim",
        .max_ttl_ns = sim->max_ttl_ms * NS_PER_MS,
        .fence_ttl_ns = sim->fence_ttl_ms * NS_PER_MS,
        .max_hold_ns = 4 * sim->max_ttl_ms * NS_PER_MS,
        .max_extensions = 4,
        .backoff_min_ns = 5 * NS_PER_MS,
        .backoff_max_ns = 250 * NS_PER_MS,
        .waiters = 12,
        .waiters_per_resource = 5,
        .bootstrap = bootstrap,
        .clock_id = daemon->clock_id,
    };
    for (unsigned i = 0; i < sim->node_count; i++) {
        rules->node_names[i] = names[i];
        rules->durable |= sim->masters[i].durable ? nodes_only(i) : 0;
    }
    if (!bounds_are_in_force())
        return;
    rules->waiters = sim_bounds.waiters;
    rules->max_extensions = sim_bounds.extensions;
    rules->max_hold_ns = sim_bounds.hold_ttls * sim->max_ttl_ms * NS_PER_MS;
}

void daemon_reload(struct sim *sim, unsigned index)
{
    struct engine *engine = &sim->daemons[index].engine;
    struct engine_rules rules = engine->rules;
    rules.max_hold_ns = (1 + sim_below(sim, 4)) * sim->max_ttl_ms * NS_PER_MS;
    rules.max_extensions = 1 + sim_below(sim, 6);
    rules.backoff_min_ns = (1 + sim_below(sim, 10)) * NS_PER_MS;
    rules.waiters_per_resource = 2 + sim_below(sim, 4); /* at the end two clients wait */
    engine_apply_config(engine, &rules);
}

void daemon_start(struct sim *sim, unsigned index, bool bootstrap)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    const struct engine_io io = {
        .links = {&places[index], io_open, io_close, io_write, io_random},
        .context = &places[index],
        .reply = io_reply,
        .undone = io_undone,
        .push = io_push,
        .link_changed = io_link_changed,
        .clock_stepped_back = io_clock_stepped_back,
        .vote_changed = io_vote_changed,
        .command_refused = io_command_refused,
        .breaking = io_breaking,
        .broken = io_broken,
        .wall_us = io_wall_us,
    };
    struct engine_rules rules;
    places[index] = (struct place){sim, index};
    daemon->alive = true;
    daemon->paused = daemon->busy = daemon->draining = false;
    daemon->life++;
    daemon->backlog_count = 0;
    daemon->timer_ns = INT64_MAX;
    daemon->heard_ns = 0;
    daemon->in_vain_ns = 0;
    snprintf(daemon->clock_id, sizeof(daemon->clock_id), "host%u", daemon->host);
    for (unsigned node = 0; node < SIM_MASTERS; node++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            daemon->wires[node][channel] = SIM_WIRES;
    fill_rules(sim, daemon, bootstrap, &rules);
    bool made = engine_init(&daemon->engine, &rules, &io, daemon_clock_ns(sim, index));
    assert(made);
    end_pass(sim, index);
}

void daemon_die(struct sim *sim, unsigned index, bool orderly)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    sim_note(sim, "daemon %u %s\n", index, orderly ? "ends" : "is killed");
    connection_lose_daemon(sim, index);
    engine_deinit(&daemon->engine);
    daemon->alive = false;
    daemon->life++;
    /* The kernel sends what was written, and closes the connections. */
    for (unsigned node = 0; node < sim->node_count; node++)
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            if (daemon->wires[node][channel] != SIM_WIRES)
                net_end(sim, daemon->wires[node][channel]);
}

void daemon_pause(struct sim *sim, unsigned index)
{
    sim->daemons[index].paused = true;
    sim->daemons[index].paused_at_ns = sim->now_ns;
}

void daemon_resume(struct sim *sim, unsigned index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    daemon->paused = false;
    daemon->paused_at_ns = sim->now_ns;
    catch_up(sim, index);
}

void daemon_drain(struct sim *sim, unsigned index)
{
    struct sim_daemon *daemon = &sim->daemons[index];
    int64_t now_ns = daemon_clock_ns(sim, index);
    sim_note(sim, "daemon %u drains\n", index);
    daemon->draining = true;
    daemon->drain_end_ns = now_ns + 2 * NS_PER_S;
    engine_drain(&daemon->engine, now_ns);
    if (!engine_busy(&daemon->engine))
        daemon->drain_end_ns = now_ns;
    end_pass(sim, index);
}
