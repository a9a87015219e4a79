#include "tests/torture/player.h"

#include "protocol/units.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    WORK_MS = 40,        /* usual work */
    LONG_WORK_MS = 1500, /* occasional long work */
    REST_MS = 30,
    SILENCE_MS = 1800, /* the longest silence; it exceeds any validity */
    WAIT_MS = 2000,
    PING_EVERY_MS = 30,
    HOLD_TTL_MS = 600, /* minimum; a shorter TTL leaves no time for an extension */
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
    return player->state == AWAY && !player->home.open && !player->side.open;
}

const char *player_state_word(const struct player *player)
{
    static const char *const words[] = {
        [AWAY] = "is away",       [IDLE] = "is idle",           [ASKING] = "waits for a lock",
        [HOLDING] = "has a lock", [RELEASING] = "releases one", [LEAVING] = "waits for the end",
    };
    return words[player->state];
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

static void give_up(struct player *player)
{
    ledger_ended(&player->torture->ledger, player->resource, player->token);
}

/* --- requests --- */

static void ask_for_lock(struct player *player)
{
    char wait[24] = "";
    char name[16] = "r";
    char slots[24] = "";
    player->lock++;
    player->resource = below(player, TORTURE_RESOURCES);
    player->slots = one_in(player, 3) ? 1 + below(player, TORTURE_RESOURCES - 1) : 0;
    player->hold = one_in(player, 3);
    player->lingers = player->hold && one_in(player, 2);
    player->fenced = one_in(player, 2);
    player->extending = false;
    player->ttl_ms = player->hold ? HOLD_TTL_MS + below(player, TORTURE_MAX_TTL_MS - HOLD_TTL_MS)
                                  : 60 + below(player, TORTURE_MAX_TTL_MS - 60);
    /* With SLOTS it is not known yet whose fencing tokens it must exceed; the ledger checks it. */
    player->fence_before =
        player->slots > 0 ? 0 : ledger_fence(&player->torture->ledger, player->resource);
    player->state = ASKING;
    if (!one_in(player, 3))
        snprintf(wait, sizeof(wait), " WAIT %ums", below(player, WAIT_MS));
    player->home.holds = player->home.holds || player->hold;
    if (player->slots > 0)
        snprintf(slots, sizeof(slots), " SLOTS %u", player->slots);
    else
        snprintf(name, sizeof(name), "r#%u", player->resource);
    wire_ask(&player->home, WIRE_LOCK, player->lock, "LOCK %s %ums%s%s%s%s", name, player->ttl_ms,
             slots, wait, player->fenced ? " FENCE" : "",
             player->lingers ? " HOLD LINGER"
             : player->hold  ? " HOLD"
                             : "");
}

static void ask_for_status(struct player *player)
{
    player->resource = below(player, TORTURE_RESOURCES);
    ledger_holder(&player->torture->ledger, player->resource, player->token);
    player->lock++;
    wire_ask(&player->home, WIRE_STATUS, player->lock, "STATUS r#%u", player->resource);
}

static void ask_on_side(struct player *player)
{
    player->act_ns = in_ms(player, REST_MS);
    switch (below(player, 12)) {
    case 0:
        ask_for_status(player);
        break;
    case 1:
        if (player->home.request_count == 0)
            wire_ask(&player->home, WIRE_STATS, 0, "STATS");
        break;
    default:
        ask_for_lock(player);
    }
}

/* A follow-up request goes through the player's own connection, or through another daemon. */
static struct wire *follow_up_wire(struct player *player)
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
    give_up(player);
    player->state = RELEASING;
    wire_ask(follow_up_wire(player), WIRE_UNLOCK, player->lock, "UNLOCK r#%u %s", player->resource,
             player->token);
}

static void ask_for_extension(struct player *player)
{
    player->extending = true;
    player->act_ns = in_ms(player, LONG_WORK_MS / 10);
    wire_ask(follow_up_wire(player), WIRE_EXTEND, player->lock, "EXTEND r#%u %s %ums",
             player->resource, player->token, 60 + below(player, TORTURE_MAX_TTL_MS - 60));
}

/* --- how a client leaves --- */

static void go_silent(struct player *player, bool vanishing)
{
    ledger_note(&player->torture->ledger, "player %u %s", player->number,
                vanishing ? "vanishes" : "goes silent");
    player->silent_until_ns = in_ms(player, SILENCE_MS);
    player->vanishing = vanishing;
    player->torture->tally.silences++;
}

static void reset_home(struct player *player)
{
    ledger_note(&player->torture->ledger, "player %u resets its connection", player->number);
    /* On a unix socket there is no reset: the daemon sees a clean end. */
    if (player->hold && !player->lingers && !player->home.over_tcp && player->state == HOLDING)
        give_up(player);
    /* Sometimes a last request arrives together with the reset. */
    if (one_in(player, 2) && player->home.request_count < SIDE_REQUESTS)
        wire_ask(&player->home, WIRE_PING, 0, "PING");
    wire_reset(&player->home);
    player->state = AWAY;
}

/* The client dies in one of several ways. With HOLD, a clean end of the connection releases the
 * lock; with LINGER only QUIT does. Without HOLD, another process may have the token and continue
 * to work, so the lock counts as held until its deadline. */
static void die(struct player *player)
{
    player->torture->tally.deaths++;
    enum { RESETS, VANISHES, CLOSES, HALF_CLOSES, QUITS, WAYS };
    unsigned way = below(player, WAYS);
    if (way == RESETS) {
        reset_home(player);
        return;
    }
    if (way == VANISHES) {
        go_silent(player, true);
        return;
    }
    if (player->hold && player->state == HOLDING && (!player->lingers || way == QUITS))
        give_up(player);
    ledger_note(&player->torture->ledger, "player %u ends its connection", player->number);
    player->home.ending = true;
    player->state = LEAVING;
    if (way == CLOSES) {
        wire_close(&player->home);
        player->state = AWAY;
    } else if (way == HALF_CLOSES) {
        /* If the shutdown fails, the connection is already reset. */
        shutdown(player->home.client.fd, SHUT_WR);
    } else {
        wire_ask(&player->home, WIRE_QUIT, 0, "QUIT");
    }
}

/* --- replies --- */

static bool concerns(const struct player *player, const struct wire_answer *answer,
                     enum player_state state)
{
    return player->state == state && answer->request.lock == player->lock;
}

static struct claim claim_of(const struct player *player, const struct wire_answer *answer,
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

/* A LOCK with SLOTS: which slot was granted? */
static void take_slot(struct player *player, const struct wire_answer *answer)
{
    unsigned number = 0;
    if (sscanf(answer->text, "OK %*s %*d %*d %*s r#%u", &number) != 1 || number == 0 ||
        number > player->slots)
        ledger_violated(&player->torture->ledger, "player %u: a slot that it may not have: %s",
                        player->number, answer->text);
    player->resource = number;
    player->torture->tally.slots++;
}

static void on_granted(struct player *player, const struct wire *wire,
                       const struct wire_answer *answer)
{
    struct torture *torture = player->torture;
    char fence[24];
    int64_t validity_ms;
    int64_t elapsed_ms;
    ck_assert_int_eq(sscanf(answer->text, "OK %40s %" SCNd64 " %" SCNd64 " %23s", player->token,
                            &validity_ms, &elapsed_ms, fence),
                     4);
    if (player->slots > 0)
        take_slot(player, answer);
    struct claim claim = claim_of(player, answer, validity_ms, elapsed_ms);
    if ((fence[0] != '-') != player->fenced)
        ledger_violated(&torture->ledger,
                        "player %u: a fencing token without FENCE, or none with it: %s",
                        player->number, answer->text);
    if (player->fenced)
        claim.fence = strtoll(fence, NULL, 10);
    if (player->fenced && claim.fence <= player->fence_before)
        ledger_violated(&torture->ledger, "player %u: a fencing token that does not rise: %s",
                        player->number, answer->text);
    bool in_time = ledger_granted(&torture->ledger, wire->daemon, &claim);
    torture->tally.holds += player->hold;
    player->state = HOLDING;
    /* A client that reads its grant too late releases it at once. */
    player->act_ns = in_time ? in_ms(player, one_in(player, 6) ? LONG_WORK_MS : WORK_MS) : 0;
    player->ping_ns = ledger_now_ns();
}

static void on_extended(struct player *player, const struct wire_answer *answer)
{
    char token[41];
    int64_t validity_ms;
    int64_t elapsed_ms;
    ck_assert_int_eq(
        sscanf(answer->text, "OK %40s %" SCNd64 " %" SCNd64, token, &validity_ms, &elapsed_ms), 3);
    if (strcmp(token, player->token) != 0)
        ledger_violated(&player->torture->ledger,
                        "player %u: another token than the extended one: %s", player->number,
                        answer->text);
    struct claim claim = claim_of(player, answer, validity_ms, elapsed_ms);
    ledger_prolonged(&player->torture->ledger, &claim);
    player->torture->tally.extensions++;
}

/* GONE is final, so the client does not even release. */
static void on_gone(struct player *player)
{
    give_up(player);
    player->state = IDLE;
}

/* A PONG confirms a HOLD for a third of its TTL from the PING on. The extension that the daemon
 * relies on may be as old as the longest TTL, so begun_ns is that much earlier. */
static void on_pong(struct player *player, const struct wire_answer *answer)
{
    int64_t third_ns = player->ttl_ms * NS_PER_MS / 3;
    struct claim claim = {.resource = player->resource,
                          .token = player->token,
                          .until_ns = answer->request.sent_ns + third_ns,
                          .begun_ns = answer->request.sent_ns - TORTURE_MAX_TTL_MS * NS_PER_MS};
    ledger_prolonged(&player->torture->ledger, &claim);
    player->torture->tally.renewed++;
}

static void on_lost(struct player *player, const struct wire_answer *answer)
{
    if (player->state != HOLDING || strstr(answer->text, player->token) == NULL)
        return;
    give_up(player);
    player->torture->tally.holds_lost++;
    player->state = IDLE;
}

/* STATUS was answered FREE: this is wrong if one token has held the lock since before the
 * request. */
static void on_free(struct player *player)
{
    char token[HISTORY_TOKEN + 1];
    struct ledger *ledger = &player->torture->ledger;
    if (!ledger->masters_lose_data && player->token[0] != '\0' &&
        ledger_holder(ledger, player->resource, token) && strcmp(token, player->token) == 0)
        ledger_violated(ledger, "player %u: r%u is answered FREE, but %.8s holds it",
                        player->number, player->resource, token);
}

static void on_stats(struct player *player, const struct wire *wire,
                     const struct wire_answer *answer)
{
    const char *field = strstr(answer->text, " handovers=");
    if (field != NULL)
        player->torture->tally.handovers[wire->daemon] =
            (unsigned)strtoul(field + strlen(" handovers="), NULL, 10);
}

static void on_released(struct player *player, const struct wire_answer *answer)
{
    bool decided = strcmp(answer->text, "OK") == 0 || strcmp(answer->text, "GONE") == 0;
    /* Some clients repeat an UNLOCK that has succeeded, perhaps through another daemon. */
    decided = decided && !one_in(player, 6);
    player->torture->tally.holds_kept += player->hold && strcmp(answer->text, "OK") == 0;
    if (!decided && one_in(player, 2) && player->home.open)
        ask_for_release(player);
    else
        player->state = IDLE;
}

static void on_answer(struct player *player, const struct wire *wire,
                      const struct wire_answer *answer)
{
    bool ok = strncmp(answer->text, "OK", 2) == 0;
    switch (answer->request.verb) {
    case WIRE_LOCK:
        if (concerns(player, answer, ASKING) && ok)
            on_granted(player, wire, answer);
        else if (concerns(player, answer, ASKING))
            player->state = IDLE;
        break;
    case WIRE_EXTEND:
        if (!concerns(player, answer, HOLDING))
            break;
        player->extending = false;
        if (ok)
            on_extended(player, answer);
        else if (strcmp(answer->text, "GONE") == 0)
            on_gone(player);
        break;
    case WIRE_UNLOCK:
        if (concerns(player, answer, RELEASING))
            on_released(player, answer);
        break;
    case WIRE_PING:
        if (concerns(player, answer, HOLDING) && player->hold && wire == &player->home)
            on_pong(player, answer);
        break;
    case WIRE_STATS:
        on_stats(player, wire, answer);
        break;
    case WIRE_LOST:
        on_lost(player, answer);
        break;
    case WIRE_STATUS:
        if (concerns(player, answer, IDLE) && strcmp(answer->text, "FREE") == 0)
            on_free(player);
        break;
    case WIRE_QUIT:
    case WIRE_WARN:
    case WIRE_COUNT:
        break;
    }
}

/* --- actions without a reply --- */

/* Continue with the token on another connection. The token is valid through any daemon, but a HOLD
 * cannot move to another connection. */
static void continue_elsewhere(struct player *player)
{
    player->hold = false;
    player->extending = false;
    connect_to_some(player, &player->home);
    if (!player->home.open)
        player->state = AWAY;
}

static void on_home_ended(struct player *player)
{
    ledger_note(&player->torture->ledger, "player %u is cut off from %u", player->number,
                player->home.daemon);
    bool has_token = player->state == HOLDING || player->state == RELEASING;
    player->torture->tally.cut += player->state != LEAVING;
    wire_close(&player->home);
    if (has_token && one_in(player, 2))
        continue_elsewhere(player);
    else
        player->state = AWAY;
    /* The UNLOCK was not answered, so the client sends it again. */
    if (player->state == RELEASING)
        ask_for_release(player);
}

static void on_side_ended(struct player *player)
{
    wire_close(&player->side);
    player->extending = false;
    if (player->state == RELEASING)
        player->state = IDLE;
}

static void has_lock(struct player *player, int64_t now_ns)
{
    bool ending = player->torture->ending;
    if (player->hold && now_ns >= player->ping_ns && player->home.request_count < SIDE_REQUESTS) {
        player->ping_ns = now_ns + PING_EVERY_MS * NS_PER_MS;
        wire_ask(&player->home, WIRE_PING, player->lock, "PING");
    }
    if (now_ns < player->act_ns && !ending)
        return;
    if (one_in(player, 20) && !ending)
        die(player);
    else if (one_in(player, 30) && !ending)
        go_silent(player, false);
    else if (one_in(player, 3) && !player->extending && !ending)
        ask_for_extension(player);
    else
        ask_for_release(player);
}

static void is_idle(struct player *player, int64_t now_ns)
{
    if (player->torture->ending && player->home.request_count == 0) {
        wire_close(&player->home);
        player->state = AWAY;
    } else if (now_ns >= player->act_ns && !player->torture->ending) {
        ask_on_side(player);
    }
}

static void rejoin(struct player *player)
{
    connect_to_some(player, &player->home);
    if (player->home.open)
        player->state = IDLE;
    else
        player->act_ns = in_ms(player, 2 * WORK_MS);
}

static void act(struct player *player, int64_t now_ns)
{
    switch (player->state) {
    case AWAY:
        if (!player->torture->ending && now_ns >= player->act_ns)
            rejoin(player);
        break;
    case IDLE:
        is_idle(player, now_ns);
        break;
    case ASKING:
        if (player->torture->ending)
            break;
        if (one_in(player, 12000))
            die(player);
        else if (one_in(player, 12000))
            go_silent(player, false);
        break;
    case HOLDING:
        has_lock(player, now_ns);
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
        reset_home(player);
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
    struct wire_answer answer;
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
