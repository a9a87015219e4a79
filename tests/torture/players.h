/*
 * All clients of the daemons, in one thread.
 */
#ifndef TESTS_TORTURE_PLAYERS_H
#define TESTS_TORTURE_PLAYERS_H

#include <pthread.h>

#include "tests/torture/player.h"
#include "tests/torture/torture.h"

enum { PLAYERS = 32 };

struct players {
    struct torture *torture;
    struct grammar grammar;
    struct prng prng;
    struct player each[PLAYERS];
    pthread_t thread;
};

/* The caller frees the result with players_end(). */
struct players *players_start(struct torture *torture);

/* Wait until each client has its last reply, or a violation is found. torture->ending must be
 * set. */
void players_end(struct players *players);

#endif
