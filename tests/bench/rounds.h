/* Redlock rounds by a client that formats RESP itself, writes once to each master in a pass, and
 * handles no error: the shared part of limit.h and proxy.h. Keys live for 2 s; a slot has at most
 * one round in flight. */
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

/* A quorum has said yes. Called from rounds_read() and rounds_flush(); the callback may call
 * rounds_put(). */
typedef void rounds_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns);

struct rounds_plan {
    struct master *masters; /* ROUNDS_MASTERS of them, over TCP */
    bool guarded; /* send the commands of redlockd's guard after the votes of a pass, and ignore the
                     replies */
    bool batched; /* batch the releases of a pass in one script, as redlockd does; false: one script
                     each, as in the paper */
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

/* The end of a pass. A quorum of fast masters must not run ahead of a slow one: the replies of a
 * master with too many outstanding are read first. */
void rounds_flush(struct rounds *rounds);

/* Does any master have outstanding replies? */
bool rounds_pending(const struct rounds *rounds);

#endif
