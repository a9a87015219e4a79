/*
 * Random clients, and random deaths of clients, daemons and masters: whatever happens, no two
 * clients may believe at once that they hold a lock, and fences rise.
 *
 * One process plays all clients, so that one clock writes the history. HISTORY_SECONDS says for how
 * long, HISTORY_SEED where the choices begin; what comes of them depends on the machine.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/dice.h"
#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

enum {
    DAEMONS = 2,
    PLAYERS = 12,
    RESOURCES = 2,
    SECONDS = 8,
    GRANTS_MIN = 20,
    PATIENCE_MS = 60000,
    FAULT_EVERY_MS = 120,
    PING_EVERY_MS = 20,
    HOLD_TTL_MS = 600,
};

enum doing { AWAY, IDLE, ASKING, HOLDING, RELEASING };

/* Somebody who wants locks, over a connection of its own. */
struct player {
    struct client client;
    enum doing doing;
    unsigned daemon;
    unsigned resource;
    bool hold;
    char token[41];
    int64_t sent_ms;   /* the request it relies on */
    int64_t pinged_ms; /* a PING not answered yet; 0: none */
    int64_t act_ms;    /* when it does something next */
    int64_t until_ms;  /* it believes that it holds the lock until then */
};

/* What was believed by those who have gone without a word, but may rely on it. */
struct belief {
    unsigned resource;
    int64_t until_ms;
    char token[41];
};

enum { BELIEFS = 4096 };

static struct stage stage;
static struct daemon second;
static struct player players[PLAYERS];
static struct belief beliefs[BELIEFS];
static unsigned belief_count;
static int64_t last_fence[RESOURCES];
static unsigned grants;
static unsigned lost;
static unsigned faults;
static struct dice dice;
static char history[1 << 20];
static size_t history_len;

static unsigned below(unsigned count)
{
    return dice_below(&dice, count);
}

__attribute__((format(printf, 1, 2))) static void note(const char *form, ...)
{
    va_list arguments;
    if (history_len > sizeof(history) - 1024) {
        memmove(history, history + sizeof(history) / 2, history_len - sizeof(history) / 2);
        history_len -= sizeof(history) / 2;
    }
    va_start(arguments, form);
    history_len += (size_t)snprintf(history + history_len, 32, "%" PRId64 " ", waiting_clock_ms());
    history_len += (size_t)vsnprintf(history + history_len, 900, form, arguments);
    va_end(arguments);
}

static void violated(const char *what)
{
    fprintf(stderr, "%s", history_len > 8000 ? history + history_len - 8000 : history);
    ck_abort_msg("%s", what);
}

static struct daemon *daemon_of(unsigned index)
{
    return index == 0 ? &stage.daemon : &second;
}

/* --- beliefs --- */

static void check(const struct player *granted, int64_t now_ms)
{
    for (unsigned i = 0; i < PLAYERS; i++)
        if (&players[i] != granted && players[i].resource == granted->resource &&
            players[i].until_ms > now_ms) {
            note("player %u relies on %.6s until %" PRId64 "\n", i, players[i].token,
                 players[i].until_ms);
            violated("two holders at once");
        }
    for (unsigned i = 0; i < belief_count; i++)
        if (beliefs[i].resource == granted->resource && beliefs[i].until_ms > now_ms) {
            note("one who has gone relies on %.6s until %" PRId64 "\n", beliefs[i].token,
                 beliefs[i].until_ms);
            violated("two holders at once");
        }
}

/* Its connection is over, but it may go on with its work. */
static void keep_belief(const struct player *player)
{
    if (player->until_ms == 0)
        return;
    ck_assert_uint_lt(belief_count, BELIEFS);
    struct belief *belief = &beliefs[belief_count++];
    belief->resource = player->resource;
    belief->until_ms = player->until_ms;
    memcpy(belief->token, player->token, sizeof(belief->token));
}

/* --- players --- */

static void leave(struct player *player)
{
    client_close(&player->client);
    player->doing = AWAY;
    player->until_ms = 0;
}

static void join(struct player *player)
{
    player->daemon = below(DAEMONS);
    player->client.input_len = 0;
    if (client_try_unix(&player->client, daemon_of(player->daemon)->socket))
        player->doing = IDLE;
}

__attribute__((format(printf, 2, 3))) static void tell(struct player *player, const char *form, ...)
{
    char line[128];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(line, sizeof(line), form, arguments);
    va_end(arguments);
    note("player %td to %u: %s", player - players, player->daemon, line);
    client_try_send(&player->client, line);
}

static void ask(struct player *player)
{
    player->resource = below(RESOURCES);
    player->hold = below(3) == 0;
    player->doing = ASKING;
    player->sent_ms = waiting_clock_ms();
    player->pinged_ms = 0;
    if (player->hold)
        tell(player, "#l LOCK r%u %dms WAIT 2s FENCE HOLD\n", player->resource, HOLD_TTL_MS);
    else
        tell(player, "#l LOCK r%u %ums WAIT 2s FENCE\n", player->resource, 50 + below(900));
}

static void on_granted(struct player *player, const char *line, int64_t now_ms)
{
    int64_t validity_ms;
    int64_t elapsed_ms;
    int64_t fence;
    ck_assert_int_eq(sscanf(line, "#l OK %40s %" SCNd64 " %" SCNd64 " %" SCNd64, player->token,
                            &validity_ms, &elapsed_ms, &fence),
                     4);
    player->until_ms = player->sent_ms + validity_ms + elapsed_ms;
    if (player->until_ms > now_ms)
        check(player, now_ms);
    if (fence <= last_fence[player->resource])
        violated("a fence that does not rise");
    last_fence[player->resource] = fence;
    grants++;
    player->doing = HOLDING;
    player->act_ms = now_ms + below(below(4) == 0 ? 1500 : 60);
}

static void on_line(struct player *player, const char *line, int64_t now_ms)
{
    note("player %td from %u: %s\n", player - players, player->daemon, line);
    if (strncmp(line, "! LOST ", 7) == 0) {
        lost++;
        if (player->doing == HOLDING && strstr(line, player->token) != NULL) {
            player->until_ms = 0;
            player->doing = IDLE;
        }
    } else if (strcmp(line, "PONG") == 0) {
        int64_t until_ms = player->pinged_ms + HOLD_TTL_MS / 3;
        if (player->doing == HOLDING && player->hold && until_ms > player->until_ms)
            player->until_ms = until_ms;
        if (player->until_ms > now_ms)
            check(player, now_ms);
        player->pinged_ms = 0;
    } else if (strncmp(line, "#l OK ", 6) == 0) {
        on_granted(player, line, now_ms);
    } else if (line[0] == '#') {
        player->doing = IDLE;
    }
}

static void let_go(struct player *player)
{
    if (below(10) == 0) {
        /* It dies: with HOLD, that is the end of its lock. */
        note("player %td dies\n", player - players);
        if (!player->hold)
            keep_belief(player);
        leave(player);
        return;
    }
    player->until_ms = 0;
    player->doing = RELEASING;
    tell(player, "#u UNLOCK r%u %s\n", player->resource, player->token);
}

static void act(struct player *player, int64_t now_ms)
{
    char peek;
    ssize_t got =
        player->doing == AWAY ? 1 : recv(player->client.fd, &peek, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        note("player %td is cut off\n", player - players);
        keep_belief(player);
        leave(player);
        return;
    }
    switch (player->doing) {
    case AWAY:
        join(player);
        break;
    case IDLE:
        ask(player);
        break;
    case ASKING:
        if (below(2000) == 0)
            leave(player);
        break;
    case HOLDING:
        if (now_ms >= player->act_ms) {
            let_go(player);
        } else if (player->hold && player->pinged_ms == 0 &&
                   now_ms >= player->sent_ms + PING_EVERY_MS) {
            player->pinged_ms = now_ms;
            client_try_send(&player->client, "PING\n");
        }
        break;
    case RELEASING:
        break;
    }
}

static void play(void)
{
    struct pollfd ready[PLAYERS];
    for (unsigned i = 0; i < PLAYERS; i++)
        ready[i] = (struct pollfd){.fd = players[i].doing == AWAY ? -1 : players[i].client.fd,
                                   .events = POLLIN};
    poll(ready, PLAYERS, 1);
    for (unsigned i = 0; i < PLAYERS; i++) {
        struct player *player = &players[i];
        while (player->doing != AWAY && client_has_line(&player->client))
            on_line(player, client_read(&player->client), waiting_clock_ms());
        act(player, waiting_clock_ms());
    }
}

/* --- faults --- */

static struct {
    bool stopped;
    int64_t until_ms;
} masters_stopped[STAGE_MASTERS], daemons_stopped[DAEMONS];

static void kill_daemon(unsigned index)
{
    struct daemon *daemon = daemon_of(index);
    note("daemon %u is killed\n", index);
    daemons_stopped[index].stopped = false;
    process_kill(daemon->pid);
    daemon_start(daemon, 0);
}

static void stop_daemon(unsigned index)
{
    if (daemons_stopped[index].stopped)
        return;
    note("daemon %u stops\n", index);
    kill(daemon_of(index)->pid, SIGSTOP);
    daemons_stopped[index].stopped = true;
    daemons_stopped[index].until_ms = waiting_clock_ms() + 50 + below(1000);
}

static void stop_master(unsigned index)
{
    if (masters_stopped[index].stopped)
        return;
    note("master %u stops\n", index);
    master_stop(&stage.masters[index]);
    masters_stopped[index].stopped = true;
    masters_stopped[index].until_ms = waiting_clock_ms() + 50 + below(1500);
}

static void restart_master(unsigned index)
{
    note("master %u restarts, empty\n", index);
    masters_stopped[index].stopped = false;
    master_kill(&stage.masters[index]);
    master_restart(&stage.masters[index]);
}

static void go_on(bool all)
{
    int64_t now_ms = waiting_clock_ms();
    for (unsigned i = 0; i < STAGE_MASTERS; i++)
        if (masters_stopped[i].stopped && (all || now_ms >= masters_stopped[i].until_ms)) {
            note("master %u goes on\n", i);
            master_continue(&stage.masters[i]);
            masters_stopped[i].stopped = false;
        }
    for (unsigned i = 0; i < DAEMONS; i++)
        if (daemons_stopped[i].stopped && (all || now_ms >= daemons_stopped[i].until_ms)) {
            note("daemon %u goes on\n", i);
            kill(daemon_of(i)->pid, SIGCONT);
            daemons_stopped[i].stopped = false;
        }
}

static void strike(void)
{
    unsigned master = below(STAGE_MASTERS);
    faults++;
    switch (below(16)) {
    case 0:
        restart_master(master);
        break;
    case 1:
        if (!masters_stopped[master].stopped) {
            note("master %u is flushed\n", master);
            masters_run(&stage.masters[master], 1, "FLUSHALL");
        }
        break;
    case 2:
        kill_daemon(below(DAEMONS));
        break;
    case 3:
    case 4:
        stop_daemon(below(DAEMONS));
        break;
    case 5:
        if (!masters_stopped[master].stopped)
            masters_run(&stage.masters[master], 1, "CLIENT KILL TYPE normal SKIPME yes");
        break;
    case 6:
        if (!masters_stopped[master].stopped)
            masters_run(&stage.masters[master], 1, "CLIENT KILL TYPE pubsub");
        break;
    default:
        stop_master(master);
        break;
    }
}

static int64_t setting(const char *name, int64_t initial)
{
    const char *value = getenv(name);
    return value != NULL ? strtoll(value, NULL, 10) : initial;
}

START_TEST(no_two_clients_hold_a_lock_at_once)
{
    const struct daemon_plan plan = {.node_timeout_ms = 50, .locks = ", max_ttl: 1s"};
    struct daemon_plan plan_of_second = plan;
    plan_of_second.name = "second";
    plan_of_second.elsewhere = true;
    dice.state = (uint64_t)setting("HISTORY_SEED", 1);
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 5, .over_unix = true, .daemon = plan});
    stage_start_daemon(&stage, &second, &plan_of_second);
    int64_t end_ms = waiting_clock_ms() + 1000 * setting("HISTORY_SECONDS", SECONDS);
    int64_t strike_ms = waiting_clock_ms() + FAULT_EVERY_MS;
    /* Without grants nothing would be shown. */
    while (waiting_clock_ms() < end_ms || grants < GRANTS_MIN) {
        ck_assert_int_lt(waiting_clock_ms(), end_ms + PATIENCE_MS);
        play();
        go_on(false);
        if (waiting_clock_ms() < strike_ms)
            continue;
        strike();
        strike_ms = waiting_clock_ms() + below(2 * FAULT_EVERY_MS);
    }
    go_on(true);
    for (unsigned i = 0; i < PLAYERS; i++)
        if (players[i].doing != AWAY)
            leave(&players[i]);
    printf("history: %u grants, %u holds lost, %u faults\n", grants, lost, faults);
    /* Once it is over, all is well again. */
    client_close(&stage.client);
    daemon_wait_up(&stage.daemon, 5);
    daemon_wait_up(&second, 5);
    daemon_connect(&stage.daemon, &stage.client);
    client_lock(&stage.client, "r0", "1s WAIT 10s");
    daemon_stop(&second);
    stage_close(&stage);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("history");
    TCase *cases = sandbox_case("history");
    tcase_set_timeout(cases, 36000);
    tcase_add_test(cases, no_two_clients_hold_a_lock_at_once);
    suite_add_tcase(suite, cases);
    return suite;
}
