/*
 * How many wrong secrets each origin may try: GUESSES_BURST at once, then one in GUESSES_EVERY_NS.
 * Beyond that no secret of that origin is looked at, right or wrong: a guess that is answered, if
 * only late, is a guess. Pure, and of a fixed size.
 *
 * The same wrong secret again tells nobody anything and costs nothing: a client that was forgotten
 * when a secret was changed must not shut out its neighbours. The last few are remembered, by a
 * fingerprint that only this process can compute.
 */
#ifndef SERVER_CLIENTS_GUESSES_H
#define SERVER_CLIENTS_GUESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "server/clients/origin.h"

#define GUESSES_EVERY_NS INT64_C(1000000000)

enum { GUESSES_BURST = 20, GUESSES_SEEN = 4, GUESSES_WAYS = 8 };

struct guesser {
    struct origin origin;
    int64_t forgiven_ns; /* when all is forgiven; the further ahead, the more guesses */
    uint64_t seen[GUESSES_SEEN];
    unsigned next_seen;
};

struct guesses {
    uint64_t seed;
    struct guesser guessers[LIMIT_GUESSERS];
};

/* seed: random, so that nobody knows which origins displace each other. */
void guesses_init(struct guesses *guesses, uint64_t seed);

/* For how long no secret of this origin is looked at; 0: now. */
int64_t guesses_wait_ns(const struct guesses *guesses, const struct origin *origin, int64_t now_ns);

/* A wrong one was tried. What is worth a line of a log: */
enum guesses_news {
    GUESSES_NOTHING,
    GUESSES_FIRST, /* the first of this origin, or after a pause that has forgiven all */
    GUESSES_SPENT, /* now no secret of this origin is looked at, for a while */
};
enum guesses_news guesses_note(struct guesses *guesses, const struct origin *origin,
                               uint64_t fingerprint, int64_t now_ns);

#endif
