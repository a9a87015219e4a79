/*
 * Redlock rounds and nothing else: no guard, no handling of errors, no bound. RESP is written by
 * itself, once to each master in a pass. Nothing that does the same rounds can be faster, which is
 * what limit.h and proxy.h are for.
 *
 * Guarded, each master is asked behind the votes of a pass what the guard of redlockd asks, and the
 * answers are not looked at: that is what the guard costs at least.
 */
#ifndef TESTS_BENCH_ROUNDS_H
#define TESTS_BENCH_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/master.h"

enum { ROUNDS_MASTERS = 5, ROUNDS_SLOTS = 256, ROUNDS_TOKEN = 40 };

enum rounds_kind {
    TAKE, /* SET NX */
    SWAP, /* hand it over to a new token: SET XX */
    RELEASE,
};

struct rounds;

/* A quorum has said yes. */
typedef void rounds_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns);

struct rounds_plan {
    struct master *masters; /* ROUNDS_MASTERS of them, over TCP */
    bool guarded;
    rounds_done *done;
    void *arg;
};

struct rounds *rounds_open(const struct rounds_plan *plan);
void rounds_close(struct rounds *rounds);

/* What the slot locks; it has no round under way. */
void rounds_name(struct rounds *rounds, unsigned slot, const char *key);

/* Written at the end of the pass. */
void rounds_put(struct rounds *rounds, unsigned slot, enum rounds_kind kind);

/* With what it was taken, or swapped, last: ROUNDS_TOKEN digits. */
const char *rounds_token(const struct rounds *rounds, unsigned slot);

/* To be read from when it is readable. */
int rounds_fd(const struct rounds *rounds, unsigned master);
void rounds_read(struct rounds *rounds, unsigned master, int64_t now_ns);

/* The end of a pass. A quorum of quick masters must not run away from a slow one: where one has too
 * much to answer, it is waited for. */
void rounds_flush(struct rounds *rounds);

/* Has a master still something to answer? */
bool rounds_owed(const struct rounds *rounds);

#endif
