#include "tests/unit/world_wire.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "tests/unit/world_answer.h"
#include "tests/unit/world_master.h"
#include "tests/unit/world_tracking.h"

/* --- open and closed --- */

void world_clear_inbox(struct world_inbox *inbox)
{
    inbox->start = inbox->len = 0;
    inbox->oks = 0;
    inbox->open = false;
    inbox->written = 0;
    inbox->first_arrival = inbox->arrival_count = 0;
}

void world_close_tracker(struct world_master *master)
{
    master->tracker_connecting = false;
    master->tracker.open = false;
    master->tracker.len = 0;
    memset(master->tracked, 0, sizeof(master->tracked));
}

static void connect_node(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->connecting = false;
    if (master->dead) {
        engine_on_closed(&world->engine, node, CHANNEL_COMMANDS, REASON_REFUSED, world->now_ns);
        return;
    }
    master->current.len = 0;
    master->current.oks = 0;
    master->current.open = true;
    master->current.client_id = ++master->next_client_id;
    engine_on_connected(&world->engine, node, CHANNEL_COMMANDS, world->now_ns);
}

static void connect_tracker(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->tracker_connecting = false;
    if (master->dead) {
        engine_on_closed(&world->engine, node, CHANNEL_TRACKING, REASON_REFUSED, world->now_ns);
        return;
    }
    world_clear_inbox(&master->tracker);
    master->tracker.open = true;
    master->tracker.client_id = 1000000 + ++master->tracker_ids;
    engine_on_connected(&world->engine, node, CHANNEL_TRACKING, world->now_ns);
}

bool world_connect(struct world *world, unsigned node)
{
    const struct world_master *master = &world->masters[node];
    bool wanted = master->connecting || master->tracker_connecting;
    if (master->connecting)
        connect_node(world, node);
    if (master->tracker_connecting)
        connect_tracker(world, node);
    return wanted;
}

void world_close(struct world *world, unsigned node, enum channel channel)
{
    struct world_master *master = &world->masters[node];
    if (channel == CHANNEL_TRACKING) {
        world_close_tracker(master);
        return;
    }
    master->connecting = false;
    master->current.open = false;
    world_untrack(master);
    /* A master that hangs does not see the reset before it goes on. */
    if (master->current.len > 0 && master->hung)
        master->zombie = master->current;
    master->current.len = 0;
}

/* --- bytes --- */

enum { WORDS = 3 + 2 * LIMIT_TOGETHER };

/* Take one command, "*2\r\n$3\r\nGET...", off the inbox; words end in a NUL each. */
static bool take_command(struct world_inbox *inbox, char buf[REDIS_RELEASES_MAX], char **words)
{
    const char *end = buf + REDIS_RELEASES_MAX;
    char *begin = inbox->bytes + inbox->start;
    char *at = begin;
    if (inbox->len == 0)
        return false;
    ck_assert_int_eq(*at, '*');
    unsigned count = (unsigned)strtoul(at + 1, &at, 10);
    ck_assert_uint_le(count, WORDS);
    at += 2;
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(*at, '$');
        size_t len = strtoul(at + 1, &at, 10);
        at += 2;
        ck_assert_uint_lt(len, (size_t)(end - buf));
        memcpy(buf, at, len);
        buf[len] = '\0';
        words[i] = buf;
        buf += len + 1;
        at += len + 2;
    }
    inbox->start += (size_t)(at - begin);
    inbox->len -= (size_t)(at - begin);
    return true;
}

/* Has the next command arrived? */
static bool has_arrived(const struct world *world, struct world_inbox *inbox)
{
    uint64_t taken = inbox->written - inbox->len;
    while (inbox->arrival_count > 0 && inbox->arrivals[inbox->first_arrival].end <= taken) {
        inbox->first_arrival = (inbox->first_arrival + 1) % WORLD_ARRIVALS;
        inbox->arrival_count--;
    }
    return inbox->arrival_count == 0 ||
           inbox->arrivals[inbox->first_arrival].at_ns <= world->now_ns;
}

static void note_arrival(struct world_inbox *inbox, size_t len, int64_t at_ns)
{
    unsigned last = (inbox->first_arrival + inbox->arrival_count) % WORLD_ARRIVALS;
    ck_assert_uint_lt(inbox->arrival_count, WORLD_ARRIVALS);
    inbox->written += len;
    inbox->arrivals[last].end = inbox->written;
    inbox->arrivals[last].at_ns = at_ns;
    inbox->arrival_count++;
}

void world_write(struct world *world, unsigned node, enum channel channel, const char *bytes,
                 size_t len)
{
    struct world_inbox *inbox =
        channel == CHANNEL_TRACKING ? &world->masters[node].tracker : &world->masters[node].current;
    ck_assert(inbox->open);
    if (inbox->len == 0)
        inbox->start = 0;
    if (inbox->start + inbox->len + len > sizeof(inbox->bytes)) {
        memmove(inbox->bytes, inbox->bytes + inbox->start, inbox->len);
        inbox->start = 0;
    }
    ck_assert_uint_le(inbox->start + inbox->len + len, sizeof(inbox->bytes));
    memcpy(inbox->bytes + inbox->start + inbox->len, bytes, len);
    inbox->len += len;
    note_arrival(inbox, len, world->now_ns + world->masters[node].delay_ns);
}

int64_t world_arrival_ns(const struct world_master *master)
{
    const struct world_inbox *inbox = &master->current;
    if (master->hung || master->dead || inbox->len == 0 || inbox->arrival_count == 0)
        return INT64_MAX;
    return inbox->arrivals[inbox->first_arrival].at_ns;
}

/* --- commands and answers --- */

static void deliver_oks(struct world *world, unsigned node)
{
    static const struct redis_reply ok = {.kind = RESP_STATUS, .str = "OK", .len = 2};
    struct world_inbox *inbox = &world->masters[node].current;
    while (inbox->open && inbox->oks > 0) {
        unsigned taken = engine_on_replies(&world->engine, node, CHANNEL_COMMANDS, &ok, inbox->oks,
                                           world->now_ns);
        inbox->oks = taken > 0 ? inbox->oks - taken : 0;
    }
}

void world_deliver(struct world *world, unsigned node, struct world_inbox *inbox,
                   struct redis_reply answer)
{
    const struct world_master *master = &world->masters[node];
    enum channel channel = inbox == &master->tracker ? CHANNEL_TRACKING : CHANNEL_COMMANDS;
    if (!inbox->open || master->mute)
        return;
    if (world->diverted & nodes_only(node)) {
        world->divert(world, node, channel, &answer);
        return;
    }
    /* As they come in one read: at once, in front of what comes behind them. */
    if (channel == CHANNEL_COMMANDS && redis_is_ok(&answer)) {
        inbox->oks++;
        return;
    }
    if (channel == CHANNEL_COMMANDS)
        deliver_oks(world, node);
    if (inbox->open)
        engine_on_replies(&world->engine, node, channel, &answer, 1, world->now_ns);
}

static struct redis_reply run_subscriber(struct world_inbox *inbox, char **words)
{
    if (strcmp(words[0], "CLIENT") == 0)
        return strcmp(words[1], "ID") == 0 ? world_number(inbox->client_id)
                                           : world_text(RESP_STATUS, "OK");
    bool ping = strcmp(words[0], "PING") == 0;
    struct redis_reply answer = {.kind = RESP_ARRAY, .item_count = ping ? 2 : 3};
    answer.items[0].kind = RESP_STRING;
    answer.items[0].str = ping ? "pong" : "subscribe";
    answer.items[0].len = strlen(answer.items[0].str);
    return answer;
}

bool world_serve(struct world *world, unsigned node, struct world_inbox *inbox)
{
    char buf[REDIS_RELEASES_MAX];
    char *words[WORDS + 1] = {NULL}; /* one of them ends them */
    if (world->masters[node].hung || world->masters[node].dead)
        return false;
    if (!has_arrived(world, inbox) || !take_command(inbox, buf, words)) {
        bool kept = inbox == &world->masters[node].current && inbox->open && inbox->oks > 0;
        if (kept)
            deliver_oks(world, node);
        return kept;
    }
    world_deliver(world, node, inbox,
                  inbox == &world->masters[node].tracker ? run_subscriber(inbox, words)
                                                         : world_run(world, node, inbox, words));
    return true;
}

/* --- what befalls connections --- */

void world_cut(struct world *world, unsigned node)
{
    struct world_master *master = &world->masters[node];
    master->zombie = master->current;
    master->zombie.open = false;
    master->current.open = false;
    master->current.len = 0;
    world_untrack(master);
    engine_on_closed(&world->engine, node, CHANNEL_COMMANDS, REASON_DISCONNECTED, world->now_ns);
}

void world_cut_tracker(struct world *world, unsigned node)
{
    if (!world->masters[node].tracker.open)
        return;
    world_close_tracker(&world->masters[node]);
    engine_on_closed(&world->engine, node, CHANNEL_TRACKING, REASON_DISCONNECTED, world->now_ns);
}
