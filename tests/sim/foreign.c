#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#include "protocol/units.h"

/* The foreign client ends a round after this time. Its validity is the paper's: the TTL less 1 %
 * and 2 ms. */
#define ROUND_NS (50 * NS_PER_MS)
enum { MARGIN_PERCENT = 1, MARGIN_MS = 2 };

static void act_later(struct sim *sim, int64_t delay_ns)
{
    event_queue_add(&sim->event_queue, sim->now_ns + delay_ns, EVENT_FOREIGN, 0,
                    ++sim->foreign.actions);
}

static void become_idle(struct sim *sim)
{
    sim->foreign.state = FOREIGN_IDLE;
    act_later(sim, sim_between(sim, 0, 400 * NS_PER_MS));
}

static void send_command(struct sim *sim, unsigned master, const char *const *words, unsigned count)
{
    struct sim_foreign *foreign = &sim->foreign;
    char buf[512];
    size_t lens[8];
    for (unsigned i = 0; i < count; i++)
        lens[i] = strlen(words[i]);
    size_t len = redis_format_words(words, lens, count, buf, sizeof(buf));
    net_write(sim, foreign->wires[master], buf, len);
    net_seal(sim, foreign->wires[master]);
    foreign->due[master]++;
}

static bool is_connected(const struct sim *sim, unsigned master)
{
    unsigned wire = sim->foreign.wires[master];
    return wire != SIM_WIRES && sim->wires[wire].connected;
}

static void release(struct sim *sim)
{
    struct sim_foreign *foreign = &sim->foreign;
    const struct sim_name key = sim_name(sim, foreign->resource);
    for (unsigned i = 0; i < sim->node_count; i++) {
        if (!is_connected(sim, i))
            continue;
        send_command(sim, i,
                     (const char *[]){"EVAL", FAKE_FOREIGN_RELEASE, "1", key.text, foreign->token},
                     5);
        foreign->skip[i] = foreign->due[i];
    }
}

static void acquire(struct sim *sim)
{
    struct sim_foreign *foreign = &sim->foreign;
    char ttl[24];
    foreign->resource = sim_below(sim, sim->resource_count);
    foreign->ttl_ms = 100 + sim_below(sim, (unsigned)sim->max_ttl_ms - 100);
    foreign->yes = 0;
    foreign->sent_ns = sim->now_ns;
    foreign->state = FOREIGN_ASKING;
    const struct sim_name key = sim_name(sim, foreign->resource);
    snprintf(ttl, sizeof(ttl), "%" PRId64, foreign->ttl_ms);
    snprintf(foreign->token, sizeof(foreign->token), "ffffffff%032u", ++foreign->tokens);
    foreign->broken = false;
    sim_note(sim, "foreign: acquires r%u for %s ms as %s\n", foreign->resource, ttl,
             foreign->token + 32);
    for (unsigned i = 0; i < sim->node_count; i++) {
        if (foreign->wires[i] == SIM_WIRES)
            foreign->wires[i] = net_open(sim, SIM_FOREIGN, i, CHANNEL_COMMANDS);
        foreign->skip[i] = foreign->due[i];
        if (is_connected(sim, i))
            send_command(sim, i, (const char *[]){"SET", key.text, foreign->token, "NX", "PX", ttl},
                         6);
    }
    act_later(sim, ROUND_NS);
}

static void on_quorum(struct sim *sim)
{
    struct sim_foreign *foreign = &sim->foreign;
    int64_t validity_ms = foreign->ttl_ms - foreign->ttl_ms * MARGIN_PERCENT / 100 - MARGIN_MS;
    int64_t until_ns = clock_when(&foreign->clock, clock_at(&foreign->clock, foreign->sent_ns) +
                                                       validity_ms * NS_PER_MS);
    foreign->state = FOREIGN_HOLDING;
    sim_note(sim, "foreign: has %s until %.3f\n", foreign->token + 32, (double)until_ns / 1e9);
    checker_on_foreign(sim, foreign->resource, foreign->token, until_ns);
    act_later(sim, sim_between(sim, 0, foreign->ttl_ms * NS_PER_MS));
}

static void on_bytes(struct sim *sim, unsigned master, const char *bytes, size_t len)
{
    struct sim_foreign *foreign = &sim->foreign;
    const char *end = bytes + len;
    for (const char *at = bytes; at < end; at = (char *)memchr(at, '\n', (size_t)(end - at)) + 1) {
        foreign->due[master]--;
        if (foreign->skip[master] > 0)
            foreign->skip[master]--;
        else if (foreign->state == FOREIGN_ASKING && at[0] == '+' &&
                 ++foreign->yes == sim->node_count / 2 + 1)
            on_quorum(sim);
    }
}

/* The length of all complete lines in these bytes. */
static size_t whole_lines(const char *bytes, size_t len)
{
    while (len > 0 && bytes[len - 1] != '\n')
        len--;
    return len;
}

static void on_wire(struct sim *sim, const struct event *event)
{
    struct sim_wire *wire = &sim->wires[event->subject];
    unsigned master = wire->master;
    if (!wire->open_here)
        return;
    if (event->kind == EVENT_CONNECTED) {
        wire->connected = true;
        sim->foreign.due[master] = sim->foreign.skip[master] = 0;
    } else if (event->kind == EVENT_CLOSED) {
        sim->foreign.wires[master] = SIM_WIRES;
        sim->foreign.due[master] = sim->foreign.skip[master] = 0;
        net_drop(sim, event->subject);
    } else {
        char lines[16384];
        size_t arrived = net_arrived(sim, event->subject);
        const char *bytes = bytes_at(&wire->to_client.bytes);
        size_t len = whole_lines(bytes, arrived);
        assert(len < sizeof(lines));
        memcpy(lines, bytes, len);
        bytes_take(&wire->to_client.bytes, len);
        wire->to_client.taken += len;
        on_bytes(sim, master, lines, len);
    }
}

static void act(struct sim *sim)
{
    struct sim_foreign *foreign = &sim->foreign;
    switch (foreign->state) {
    case FOREIGN_IDLE:
        if (!sim->recovering)
            acquire(sim);
        break;
    case FOREIGN_HOLDING:
        history_ended(&sim->history, foreign->resource, foreign->token);
        release(sim);
        become_idle(sim);
        break;
    case FOREIGN_ASKING:
        release(sim);
        become_idle(sim);
        break;
    }
}

void foreign_on_event(struct sim *sim, const struct event *event)
{
    if (event->kind != EVENT_FOREIGN)
        on_wire(sim, event);
    else if (event->generation == sim->foreign.actions)
        act(sim);
}

void foreign_give_up(struct sim *sim)
{
    struct sim_foreign *foreign = &sim->foreign;
    if (foreign->state == FOREIGN_HOLDING)
        history_ended(&sim->history, foreign->resource, foreign->token);
}

void foreign_start(struct sim *sim)
{
    struct sim_foreign *foreign = &sim->foreign;
    foreign->state = FOREIGN_IDLE;
    foreign->tokens = 0;
    for (unsigned i = 0; i < SIM_MASTERS; i++) {
        foreign->wires[i] = SIM_WIRES;
        foreign->due[i] = foreign->skip[i] = 0;
    }
    if (fault_may(sim, FAULT_FOREIGN))
        act_later(sim, sim_between(sim, 0, 400 * NS_PER_MS));
}

/* --- a client that died halfway --- */

static const char leftover[] = "fffffffeffffffffffffffffffffffffffffffff";

bool foreign_leave_keys(struct sim *sim, struct sim_fault_run *run)
{
    run->resource = sim_below(sim, sim->resource_count);
    int64_t ttl_ms = 1 + sim_below(sim, (unsigned)sim->max_ttl_ms);
    const struct sim_name key = sim_name(sim, run->resource);
    unsigned left = 0;
    for (unsigned i = 0; i < sim->node_count; i++) {
        struct sim_master *master = &sim->masters[i];
        if (master->dead || master->hung || master->redis.paused || sim_below(sim, 8) == 0)
            continue;
        int64_t now_us = master_wall_us(sim, i);
        if (fake_find(&master->redis, key.text, key.len, now_us) == NULL)
            fake_set(&master->redis, key.text, leftover, ttl_ms, now_us);
        net_send_output(sim, i);
        left++;
    }
    sim_note(sim, "FAULT a leftover of %s on %u masters for %" PRId64 " ms\n", key.text, left,
             ttl_ms);
    return left > 0;
}

static bool is_leftover(struct sim *sim, unsigned master, const char *key)
{
    const struct fake_key *found =
        fake_find(&sim->masters[master].redis, key, strlen(key), master_wall_us(sim, master));
    return found != NULL && strcmp(found->value, leftover) == 0;
}

void foreign_remove_key(struct sim *sim, struct sim_fault_run *run)
{
    const struct sim_name key = sim_name(sim, run->resource);
    unsigned first = sim_below(sim, sim->node_count);
    unsigned i = 0;
    while (i < sim->node_count && !is_leftover(sim, (first + i) % sim->node_count, key.text))
        i++;
    if (i == sim->node_count)
        return;
    unsigned master = (first + i) % sim->node_count;
    fake_delete(&sim->masters[master].redis, key.text, master_wall_us(sim, master));
    sim_note(sim, "FAULT the leftover of %s is removed from %c\n", key.text, 'a' + master);
    net_send_output(sim, master);
    if (sim->recovering || sim_below(sim, 3) == 0)
        return;
    run->active = true;
    event_queue_add(&sim->event_queue, sim->now_ns + sim_between(sim, 10 * NS_PER_MS, NS_PER_S),
                    EVENT_FAULT_END, (uint32_t)(run - sim->fault_runs), run->generation);
}
