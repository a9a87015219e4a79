/*
 * Redlock rounds by a client that writes RESP by itself, once to each master in a pass, and handles
 * no error: what limit.h and proxy.h have in common. Keys live for 2 s; a slot has one round under
 * way at most.
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

/* A quorum has said yes. Called out of rounds_read() and rounds_flush(); may put more. */
typedef void rounds_done(void *arg, unsigned slot, enum rounds_kind kind, int64_t now_ns);

struct rounds_plan {
    struct master *masters; /* ROUNDS_MASTERS of them, over TCP */
    bool guarded;  /* behind the votes of a pass, ask what the guard of redlockd asks; the answers
                      are not looked at */
    bool together; /* the releases of a pass are one script, as in redlockd; else one for each, as
                      in the paper */
    rounds_done *done;
    void *arg;
};

struct rounds *rounds_open(const struct rounds_plan *plan);
void rounds_close(struct rounds *rounds);

/* What the slot (below ROUNDS_SLOTS) locks: once, before anything is put. */
void rounds_name(struct rounds *rounds, unsigned slot, const char *key);

/* Written at the end of the pass. */
void rounds_put(struct rounds *rounds, unsigned slot, enum rounds_kind kind);

/* With what it was taken, or swapped, last: ROUNDS_TOKEN digits. */
const char *rounds_token(const struct rounds *rounds, unsigned slot);

/* To be read from when it is readable. */
int rounds_fd(const struct rounds *rounds, unsigned master);
void rounds_read(struct rounds *rounds, unsigned master, int64_t now_ns);

/* The end of a pass. A quorum of quick masters must not run away from a slow one: where one has too
 * much to answer, its answers are read first. */
void rounds_flush(struct rounds *rounds);

/* Has a master still something to answer? */
bool rounds_pending(const struct rounds *rounds);

#endif
