/*
 * How many lines of one kind the log gets in a second: so many whole ones, and a count of the rest.
 * Pure.
 */
#ifndef SERVER_THROTTLE_H
#define SERVER_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

enum { THROTTLE_LINES = 20 };

/* All zero to begin with. */
struct throttle {
    int64_t until_ns; /* the second ends */
    unsigned lines;   /* written in it */
    uint64_t left_out;
};

/* May this line be written? If not, it is counted. What an earlier second left out has to have been
 * taken. */
bool throttle_may(struct throttle *throttle, int64_t now_ns);

/* How many a second that is over has left out, and forget them; 0 also while it lasts. */
uint64_t throttle_take(struct throttle *throttle, int64_t now_ns);

#endif
