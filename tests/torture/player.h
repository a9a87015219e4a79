/* A client of the daemons. It takes locks, works, extends, releases, falls silent and dies. It
 * relies only on the promises of docs/protocol.txt. */
#ifndef TESTS_TORTURE_PLAYER_H
#define TESTS_TORTURE_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/prng.h"
#include "tests/torture/torture.h"
#include "tests/torture/wire.h"

enum player_state { AWAY, IDLE, ASKING, HOLDING, RELEASING, LEAVING };

struct player {
    struct torture *torture;
    struct prng *prng;
    unsigned number;
    struct wire home; /* the connection over which it locks */
    struct wire side; /* a connection to another daemon, for follow-up requests */
    enum player_state state;
    int64_t act_ns;          /* time of its next action */
    int64_t silent_until_ns; /* it neither reads nor writes before this time */
    bool vanishing;          /* at the end of the silence it resets its connection */

    /* The lock that it requests or holds. */
    unsigned lock; /* counts LOCKs and STATUSes; a reply with an older number is ignored */
    unsigned resource;
    unsigned slots; /* LOCK with SLOTS: their number; the grant sets `resource`. 0: without */
    bool hold;      /* requested with HOLD */
    bool lingers;   /* HOLD LINGER: its work continues after a loss of the connection */
    bool fenced;
    bool extending;
    unsigned ttl_ms;
    char token[HISTORY_TOKEN + 1];
    int64_t fence_before;
    int64_t ping_ns; /* time of the next PING */
};

void player_init(struct player *player, struct torture *torture, const struct grammar *grammar,
                 struct prng *prng, unsigned number);

/* Read the replies that have arrived, and act if it is time. */
void player_play(struct player *player, int64_t now_ns);

/* After the torture has ended: is the player finished, with no request in flight? */
bool player_is_done(const struct player *player);

/* The present state, for a message. */
const char *player_state_word(const struct player *player);

void player_close(struct player *player);

#endif
