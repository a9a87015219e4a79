#include "tests/torture/player.h"

#include "protocol/units.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    WORK_MS = 40,        /* mostly; */
    LONG_WORK_MS = 1500, /* sometimes */
    REST_MS = 30,
    SILENCE_MS = 1800, /* longer than any validity */
    WAIT_MS = 2000,
    PING_EVERY_MS = 30,
    HOLD_TTL_MS = 600, /* at least; shorter ones leave no time for an extension */
    SIDE_REQUESTS = 4,
};

static unsigned below(struct player *player, unsigned count)
{
    return prng_below(player->prng, count);
}

static bool one_in(struct player *player, unsigned count)
{
    return below(player, count) == 0;
}

static int64_t in_ms(struct player *player, unsigned ms)
{
    return ledger_now_ns() + below(player, ms) * NS_PER_MS;
}

void player_init(struct player *player, struct torture *torture, const struct grammar *grammar,
                 struct prng *prng, unsigned number)
{
    memset(player, 0, sizeof(*player));
    player->torture = torture;
    player->prng = prng;
    player->number = number;
    player->home = (struct wire){
        .ledger = &torture->ledger, .grammar = grammar, .player = number, .name = 'h'};
    player->side = player->home;
    player->side.name = 's';
}

void player_close(struct player *player)
{
    wire_close(&player->home);
    wire_close(&player->side);
}

bool player_is_done(const struct player *player)
{
    return player->doing == AWAY && !player->home.open && !player->side.open;
}

const char *player_doing(const struct player *player)
{
    static const char *const words[] = {
        [AWAY] = "is away",       [IDLE] = "is idle",           [ASKING] = "waits for a lock",
        [HOLDING] = "has a lock", [RELEASING] = "releases one", [LEAVING] = "waits for the end",
    };
    return words[player->doing];
}

/* --- connections --- */

static void connect_to_some(struct player *player, struct wire *wire)
{
    struct torture *torture = player->torture;
    unsigned index = below(player, TORTURE_DAEMONS);
    const struct daemon *daemon = &torture->daemons[index];
    bool over_tcp = one_in(player, 2);
    const char *host = index == DAEMON_ROUTED ? torture->daemon_host : "127.0.0.1";
    bool connected = over_tcp ? client_try_tcp(&wire->client, host, daemon->port)
                              : client_try_unix(&wire->client, daemon->socket);
    if (connected)
        wire_opened(wire, index, over_tcp);
}

static void gives_up(struct player *player)
{
    ledger_ended(&player->torture->ledger, player->resource, player->token);
}

/* --- asking --- */

static void ask_for_lock(struct player *player)
{
    char wait[24] = "";
    player->lock++;
    player->resource = below(player, TORTURE_RESOURCES);
    player->hold = one_in(player, 3);
    player->lingers = player->hold && one_in(player, 2);
    player->fenced = one_in(player, 2);
    player->extending = false;
    player->ttl_ms = player->hold ? HOLD_TTL_MS + below(player, TORTURE_MAX_TTL_MS - HOLD_TTL_MS)
                                  : 60 + below(player, TORTURE_MAX_TTL_MS - 60);
    player->fence_before = ledger_fence(&player->torture->ledger, player->resource);
    player->doing = ASKING;
    if (!one_in(player, 3))
        snprintf(wait, sizeof(wait), " WAIT %ums", below(player, WAIT_MS));
    player->home.holds = player->home.holds || player->hold;
    wire_ask(&player->home, VERB_LOCK, player->lock, "LOCK r%u %ums%s%s%s", player->resource,
             player->ttl_ms, wait, player->fenced ? " FENCE" : "",
             player->lingers ? " HOLD LINGER"
             : player->hold  ? " HOLD"
                             : "");
}

static void ask_for_status(struct player *player)
{
    player->resource = below(player, TORTURE_RESOURCES);
    ledger_holder(&player->torture->ledger, player->resource, player->token);
    player->lock++;
    wire_ask(&player->home, VERB_STATUS, player->lock, "STATUS r%u", player->resource);
}

static void ask_something(struct player *player)
{
    player->act_ns = in_ms(player, REST_MS);
    switch (below(player, 12)) {
    case 0:
        ask_for_status(player);
        break;
    case 1:
        if (player->home.request_count == 0)
            wire_ask(&player->home, VERB_STATS, 0, "STATS");
        break;
    default:
        ask_for_lock(player);
    }
}

/* Through its own connection, or through another daemon. */
static struct wire *follow_up(struct player *player)
{
    struct wire *side = &player->side;
    if (one_in(player, 2))
        return &player->home;
    if (!side->open)
        connect_to_some(player, side);
    return side->open && side->request_count < SIDE_REQUESTS ? side : &player->home;
}

static void ask_for_release(struct player *player)
{
    gives_up(player);
    player->doing = RELEASING;
    wire_ask(follow_up(player), VERB_UNLOCK, player->lock, "UNLOCK r%u %s", player->resource,
             player->token);
}

static void ask_for_extension(struct player *player)
{
    player->extending = true;
    player->act_ns = in_ms(player, LONG_WORK_MS / 10);
    wire_ask(follow_up(player), VERB_EXTEND, player->lock, "EXTEND r%u %s %ums", player->resource,
             player->token, 60 + below(player, TORTURE_MAX_TTL_MS - 60));
}

/* --- the ways a client may go --- */

static void goes_silent(struct player *player, bool vanishing)
{
    ledger_note(&player->torture->ledger, "player %u %s", player->number,
                vanishing ? "vanishes" : "goes silent");
    player->silent_until_ns = in_ms(player, SILENCE_MS);
    player->vanishing = vanishing;
    player->torture->tally.silences++;
}

static void resets(struct player *player)
{
    ledger_note(&player->torture->ledger, "player %u resets its connection", player->number);
    /* On a unix socket that is an end in order. */
    if (player->hold && !player->lingers && !player->home.over_tcp && player->doing == HOLDING)
        gives_up(player);
    /* What it still asked arrives together with the reset. */
    if (one_in(player, 2) && player->home.request_count < SIDE_REQUESTS)
        wire_ask(&player->home, VERB_PING, 0, "PING");
    wire_reset(&player->home);
    player->doing = AWAY;
}

/* With HOLD, an end in order is the end of the lock; with LINGER only QUIT is. Without it, somebody
 * else may have the token and work on, so that the lock counts until its time is over. */
static void dies(struct player *player)
{
    player->torture->tally.deaths++;
    enum { RESETS, VANISHES, CLOSES, HALF_CLOSES, QUITS, WAYS };
    unsigned way = below(player, WAYS);
    if (way == RESETS) {
        resets(player);
        return;
    }
    if (way == VANISHES) {
        goes_silent(player, true);
        return;
    }
    if (player->hold && player->doing == HOLDING && (!player->lingers || way == QUITS))
        gives_up(player);
    ledger_note(&player->torture->ledger, "player %u ends its connection", player->number);
    player->home.ending = true;
    player->doing = LEAVING;
    if (way == CLOSES) {
        wire_close(&player->home);
        player->doing = AWAY;
    } else if (way == HALF_CLOSES) {
        /* It is reset already, if that fails. */
        shutdown(player->home.client.fd, SHUT_WR);
    } else {
        wire_ask(&player->home, VERB_QUIT, 0, "QUIT");
    }
}

/* --- answers --- */

static bool concerns(const struct player *player, const struct answer *answer, enum doing doing)
{
    return player->doing == doing && answer->request.lock == player->lock;
}

static struct claim claim_of(const struct player *player, const struct answer *answer,
                             int64_t validity_ms, int64_t elapsed_ms)
{
    int64_t decided_ns = answer->request.sent_ns + elapsed_ms * NS_PER_MS;
    return (struct claim){
        .resource = player->resource,
        .token = player->token,
        .until_ns = decided_ns + validity_ms * NS_PER_MS,
        .begun_ns = decided_ns - TORTURE_NODE_TIMEOUT_MS * NS_PER_MS,
    };
}

static void on_granted(struct player *player, const struct wire *wire, const struct answer *answer)
{
    struct torture *torture = player->torture;
    char fence[24];
    int64_t validity_ms;
    int64_t elapsed_ms;
    ck_assert_int_eq(sscanf(answer->text, "OK %40s %" SCNd64 " %" SCNd64 " %23s", player->token,
                            &validity_ms, &elapsed_ms, fence),
                     4);
    struct claim claim = claim_of(player, answer, validity_ms, elapsed_ms);
    if ((fence[0] != '-') != player->fenced)
        ledger_violated(&torture->ledger, "player %u: a fence, or none: %s", player->number,
                        answer->text);
    if (player->fenced)
        claim.fence = strtoll(fence, NULL, 10);
    if (player->fenced && claim.fence <= player->fence_before)
        ledger_violated(&torture->ledger, "player %u: a fence below the one of before: %s",
                        player->number, answer->text);
    bool in_time = ledger_granted(&torture->ledger, wire->daemon, &claim);
    torture->tally.holds += player->hold;
    player->doing = HOLDING;
    /* Whoever hears of it too late does not work. */
    player->act_ns = in_time ? in_ms(player, one_in(player, 6) ? LONG_WORK_MS : WORK_MS) : 0;
    player->ping_ns = ledger_now_ns();
}

static void on_extended(struct player *player, const struct answer *answer)
{
    char token[41];
    int64_t validity_ms;
    int64_t elapsed_ms;
    ck_assert_int_eq(
        sscanf(answer->text, "OK %40s %" SCNd64 " %" SCNd64, token, &validity_ms, &elapsed_ms), 3);
    if (strcmp(token, player->token) != 0)
        ledger_violated(&player->torture->ledger, "player %u: not the token that was extended: %s",
                        player->number, answer->text);
    struct claim claim = claim_of(player, answer, validity_ms, elapsed_ms);
    ledger_prolonged(&player->torture->ledger, &claim);
    player->torture->tally.extensions++;
}

/* Final, so it does not even ask for a release. */
static void on_gone(struct player *player)
{
    gives_up(player);
    player->doing = IDLE;
}

/* It proves a HOLD for a third of its time to live since the PING was sent; the extension that the
 * daemon relies on may have been long before. */
static void on_pong(struct player *player, const struct answer *answer)
{
    int64_t third_ns = player->ttl_ms * NS_PER_MS / 3;
    struct claim claim = {.resource = player->resource,
                          .token = player->token,
                          .until_ns = answer->request.sent_ns + third_ns,
                          .begun_ns = answer->request.sent_ns - TORTURE_MAX_TTL_MS * NS_PER_MS};
    ledger_prolonged(&player->torture->ledger, &claim);
    player->torture->tally.renewed++;
}

static void on_lost(struct player *player, const struct answer *answer)
{
    if (player->doing != HOLDING || strstr(answer->text, player->token) == NULL)
        return;
    gives_up(player);
    player->torture->tally.holds_lost++;
    player->doing = IDLE;
}

/* Somebody had it before we asked, and has it still. */
static void on_free(struct player *player)
{
    char token[HISTORY_TOKEN + 1];
    struct ledger *ledger = &player->torture->ledger;
    if (!ledger->forgetting && player->token[0] != '\0' &&
        ledger_holder(ledger, player->resource, token) && strcmp(token, player->token) == 0)
        ledger_violated(ledger, "player %u: r%u is called free, but %.8s has it", player->number,
                        player->resource, token);
}

static void on_stats(struct player *player, const struct wire *wire, const struct answer *answer)
{
    const char *field = strstr(answer->text, " handovers=");
    if (field != NULL)
        player->torture->tally.handovers[wire->daemon] =
            (unsigned)strtoul(field + strlen(" handovers="), NULL, 10);
}

static void on_released(struct player *player, const struct answer *answer)
{
    bool decided = strcmp(answer->text, "OK") == 0 || strcmp(answer->text, "GONE") == 0;
    /* Also where there is nothing left to release, by now perhaps through another daemon. */
    decided = decided && !one_in(player, 6);
    player->torture->tally.holds_kept += player->hold && strcmp(answer->text, "OK") == 0;
    if (!decided && one_in(player, 2) && player->home.open)
        ask_for_release(player);
    else
        player->doing = IDLE;
}

static void on_answer(struct player *player, const struct wire *wire, const struct answer *answer)
{
    bool ok = strncmp(answer->text, "OK", 2) == 0;
    switch (answer->request.verb) {
    case VERB_LOCK:
        if (concerns(player, answer, ASKING) && ok)
            on_granted(player, wire, answer);
        else if (concerns(player, answer, ASKING))
            player->doing = IDLE;
        break;
    case VERB_EXTEND:
        if (!concerns(player, answer, HOLDING))
            break;
        player->extending = false;
        if (ok)
            on_extended(player, answer);
        else if (strcmp(answer->text, "GONE") == 0)
            on_gone(player);
        break;
    case VERB_UNLOCK:
        if (concerns(player, answer, RELEASING))
            on_released(player, answer);
        break;
    case VERB_PING:
        if (concerns(player, answer, HOLDING) && player->hold && wire == &player->home)
            on_pong(player, answer);
        break;
    case VERB_STATS:
        on_stats(player, wire, answer);
        break;
    case VERB_LOST:
        on_lost(player, answer);
        break;
    case VERB_STATUS:
        if (concerns(player, answer, IDLE) && strcmp(answer->text, "FREE") == 0)
            on_free(player);
        break;
    case VERB_QUIT:
    case VERB_WARN:
    case VERB_COUNT:
        break;
    }
}

/* --- what it does when nothing has come --- */

/* Its token serves through any daemon; the connection of a HOLD cannot be had back. */
static void works_on_elsewhere(struct player *player)
{
    player->hold = false;
    player->extending = false;
    connect_to_some(player, &player->home);
    if (!player->home.open)
        player->doing = AWAY;
}

static void on_home_ended(struct player *player)
{
    ledger_note(&player->torture->ledger, "player %u is cut off from %u", player->number,
                player->home.daemon);
    bool has_token = player->doing == HOLDING || player->doing == RELEASING;
    player->torture->tally.cut += player->doing != LEAVING;
    wire_close(&player->home);
    if (has_token && one_in(player, 2))
        works_on_elsewhere(player);
    else
        player->doing = AWAY;
    /* Nothing is known of an UNLOCK that was not answered. */
    if (player->doing == RELEASING)
        ask_for_release(player);
}

static void on_side_ended(struct player *player)
{
    wire_close(&player->side);
    player->extending = false;
    if (player->doing == RELEASING)
        player->doing = IDLE;
}

static void has_a_lock(struct player *player, int64_t now_ns)
{
    bool ending = player->torture->ending;
    if (player->hold && now_ns >= player->ping_ns && player->home.request_count < SIDE_REQUESTS) {
        player->ping_ns = now_ns + PING_EVERY_MS * NS_PER_MS;
        wire_ask(&player->home, VERB_PING, player->lock, "PING");
    }
    if (now_ns < player->act_ns && !ending)
        return;
    if (one_in(player, 20) && !ending)
        dies(player);
    else if (one_in(player, 30) && !ending)
        goes_silent(player, false);
    else if (one_in(player, 3) && !player->extending && !ending)
        ask_for_extension(player);
    else
        ask_for_release(player);
}

static void is_idle(struct player *player, int64_t now_ns)
{
    if (player->torture->ending && player->home.request_count == 0) {
        wire_close(&player->home);
        player->doing = AWAY;
    } else if (now_ns >= player->act_ns && !player->torture->ending) {
        ask_something(player);
    }
}

static void joins(struct player *player)
{
    connect_to_some(player, &player->home);
    if (player->home.open)
        player->doing = IDLE;
    else
        player->act_ns = in_ms(player, 2 * WORK_MS);
}

static void act(struct player *player, int64_t now_ns)
{
    switch (player->doing) {
    case AWAY:
        if (!player->torture->ending && now_ns >= player->act_ns)
            joins(player);
        break;
    case IDLE:
        is_idle(player, now_ns);
        break;
    case ASKING:
        if (player->torture->ending)
            break;
        if (one_in(player, 12000))
            dies(player);
        else if (one_in(player, 12000))
            goes_silent(player, false);
        break;
    case HOLDING:
        has_a_lock(player, now_ns);
        break;
    case RELEASING:
    case LEAVING:
        break;
    }
}

static bool is_silent(struct player *player, int64_t now_ns)
{
    if (now_ns < player->silent_until_ns && !player->torture->ending)
        return true;
    player->silent_until_ns = 0;
    if (player->vanishing && player->home.open)
        resets(player);
    player->vanishing = false;
    return false;
}

static void close_idle_side(struct player *player)
{
    if (player->side.open && player->side.request_count == 0 &&
        (player->torture->ending || one_in(player, 500)))
        wire_close(&player->side);
}

void player_play(struct player *player, int64_t now_ns)
{
    struct answer answer;
    if (is_silent(player, now_ns))
        return;
    while (wire_read(&player->home, &answer))
        on_answer(player, &player->home, &answer);
    while (wire_read(&player->side, &answer))
        on_answer(player, &player->side, &answer);
    if (player->side.open && wire_ended(&player->side))
        on_side_ended(player);
    if (player->home.open && wire_ended(&player->home))
        on_home_ended(player);
    act(player, ledger_now_ns());
    close_idle_side(player);
}
