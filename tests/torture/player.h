/*
 * A client of the daemons: takes locks, works, extends, releases, goes silent and dies, and relies
 * on what docs/protocol.txt says that it may rely on, and on nothing else.
 */
#ifndef TESTS_TORTURE_PLAYER_H
#define TESTS_TORTURE_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/prng.h"
#include "tests/torture/torture.h"
#include "tests/torture/wire.h"

enum doing { AWAY, IDLE, ASKING, HOLDING, RELEASING, LEAVING };

struct player {
    struct torture *torture;
    struct prng *prng;
    unsigned number;
    struct wire home; /* where it locks */
    struct wire side; /* to another daemon, for errands */
    enum doing doing;
    int64_t act_ns;          /* it does nothing new before */
    int64_t silent_until_ns; /* it neither reads nor writes before */
    bool vanishing;          /* ... and then resets its connection */

    /* The lock it asks for, or has. */
    unsigned lock; /* numbers them */
    unsigned resource;
    bool hold;    /* it relies on the connection */
    bool lingers; /* ... and what it has started works on when that has ended */
    bool fenced;
    bool extending;
    unsigned ttl_ms;
    char token[HISTORY_TOKEN + 1];
    int64_t fence_before;
    int64_t ping_ns; /* when to send the next PING */
};

void player_init(struct player *player, struct torture *torture, const struct grammar *grammar,
                 struct prng *prng, unsigned number);

/* Read what has come, and do what it is time for. */
void player_play(struct player *player, int64_t now_ns);

/* Has it come to its end, once the torture is ending? Nothing of it is under way then. */
bool player_is_done(const struct player *player);

/* What it waits for, for a message. */
const char *player_doing(const struct player *player);

void player_close(struct player *player);

#endif
