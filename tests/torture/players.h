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

/* Freed by players_end. */
struct players *players_start(struct torture *torture);

/* torture->ending is set: wait until each has had its last answer, or a violation is found. */
void players_end(struct players *players);

#endif
