/* The part that limit.h and proxy.h share: a client that does Redlock rounds, formats RESP itself,
 * writes to each master once in each pass, and handles no error. Keys have a TTL of 2 s. A slot has
 * at most one round in flight. */
#ifndef TESTS_BENCH_ROUNDS_H
#define TESTS_BENCH_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/master.h"

enum { ROUNDS_MASTERS = 5, ROUNDS_SLOTS = 256, ROUNDS_TOKEN = 40 };

enum rounds_kind {
    TAKE, /* acquire: SET NX */
    SWAP, /* hand over to a new token: SET XX */
    RELEASE,
};

struct rounds;

/* Called from rounds_read() and rounds_flush() when a quorum has said yes. The callback is allowed
 * to call rounds_put(). */
typedef void rounds_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns);

struct rounds_plan {
    struct master *masters; /* ROUNDS_MASTERS of them, over TCP */
    bool guarded; /* send the probes of redlockd's guard after the votes of a pass, and ignore the
                     replies */
    bool batched; /* release all locks of a pass by one script call, as redlockd does; false: by
                     one call for each lock, as in the paper */
    rounds_done *done;
    void *arg;
};

struct rounds *rounds_open(const struct rounds_plan *plan);
void rounds_close(struct rounds *rounds);

/* Set the key of a slot (below ROUNDS_SLOTS). Call once, before the first rounds_put(). */
void rounds_name(struct rounds *rounds, unsigned slot, const char *key);

/* Start a round. Its commands are written at the end of the pass. */
void rounds_put(struct rounds *rounds, unsigned slot, enum rounds_kind kind);

/* The token of the slot's last acquire or swap: ROUNDS_TOKEN digits. */
const char *rounds_token(const struct rounds *rounds, unsigned slot);

/* The socket of a master. Call rounds_read() when it is readable. */
int rounds_fd(const struct rounds *rounds, unsigned master);
void rounds_read(struct rounds *rounds, unsigned master, int64_t now_ns);

/* Ends a pass: writes the commands. If a master has too many outstanding replies, the function
 * reads from it until it has caught up, so that a quorum of fast masters cannot run ahead of a slow
 * one. */
void rounds_flush(struct rounds *rounds);

/* Does any master have outstanding replies? */
bool rounds_pending(const struct rounds *rounds);

#endif
