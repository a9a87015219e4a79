#include "tests/torture/players.h"

#include "protocol/units.h"

#include <check.h>
#include <poll.h>
#include <stdlib.h>

/* How long the players may take to finish. Even on a busy machine, replies come much sooner. */
enum { END_MS = 40000 };

static void wait_for_lines(struct players *players)
{
    struct pollfd ready[2 * PLAYERS];
    for (unsigned i = 0; i < PLAYERS; i++) {
        const struct player *player = &players->each[i];
        bool silent = player->silent_until_ns != 0;
        const struct wire *wires[] = {&player->home, &player->side};
        for (unsigned j = 0; j < 2; j++)
            ready[2 * i + j] = (struct pollfd){
                .fd = wires[j]->open && !silent ? wires[j]->client.fd : -1, .events = POLLIN};
    }
    poll(ready, 2 * PLAYERS, 1);
}

static bool are_done(const struct players *players)
{
    for (unsigned i = 0; i < PLAYERS; i++)
        if (!player_is_done(&players->each[i]))
            return false;
    return true;
}

static void report_unfinished(struct players *players)
{
    for (unsigned i = 0; i < PLAYERS; i++)
        if (!player_is_done(&players->each[i]))
            ledger_violated(&players->torture->ledger, "player %u %s for too long after the end", i,
                            player_state_word(&players->each[i]));
}

static void *play(void *context)
{
    struct players *players = context;
    struct torture *torture = players->torture;
    int64_t end_ns = 0;
    while (!torture->ledger.violated && !(torture->ending && are_done(players))) {
        wait_for_lines(players);
        for (unsigned i = 0; i < PLAYERS; i++)
            player_play(&players->each[i], ledger_now_ns());
        if (torture->ending && end_ns == 0)
            end_ns = ledger_now_ns() + END_MS * NS_PER_MS;
        if (end_ns != 0 && ledger_now_ns() > end_ns)
            report_unfinished(players);
    }
    for (unsigned i = 0; i < PLAYERS; i++)
        player_close(&players->each[i]);
    return NULL;
}

struct players *players_start(struct torture *torture)
{
    struct players *players = calloc(1, sizeof(*players));
    ck_assert_ptr_nonnull(players);
    players->torture = torture;
    players->prng.state = torture->seed * 4 + 1;
    grammar_init(&players->grammar);
    for (unsigned i = 0; i < PLAYERS; i++)
        player_init(&players->each[i], torture, &players->grammar, &players->prng, i);
    ck_assert_int_eq(pthread_create(&players->thread, NULL, play, players), 0);
    return players;
}

void players_end(struct players *players)
{
    pthread_join(players->thread, NULL);
    grammar_free(&players->grammar);
    free(players);
}
