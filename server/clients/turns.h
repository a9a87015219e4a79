/*
 * Turns: which sessions take input in a pass of the event loop, and how much.
 *
 *   - In each pass, clients have PASS_BUDGET_NS (server/net/pass.h), but no time while the engine
 *     takes no requests.
 *   - When the time is over, sessions with new input wait in a queue, unread. They have their turns
 *     in later passes, in the order of the queue. Until each has had its turn, sessions with new
 *     input queue up after them.
 *   - In a turn, a session takes at most LIMIT_READ_BUDGET lines or commands. The limit is
 *     LIMIT_READ_BUDGET_ALONE if the last pass that served sessions served one only. A session with
 *     more to take goes to the end of the queue.
 *   - A session is slow if TURN_SLOW_NS of its last turn were over after a listing, or if that was
 *     of all locks or all clients: its output takes its time at the end of the pass. Slow sessions
 *     queue up after others. A pass has at most two of them, one of the queue and one outside it.
 *     So other clients wait for one long listing, not for all that were requested before.
 *   - Input over TLS cannot wait unread. The session waits with its input in the same queue.
 */
#ifndef SERVER_CLIENTS_TURNS_H
#define SERVER_CLIENTS_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/units.h"

#define TURN_SLOW_NS NS_PER_MS

struct engine;
struct pass;

TAILQ_HEAD(turn_queue, turn);

/* The part of one session, all zero at first. */
struct turn {
    unsigned lines_left; /* lines or commands left in this turn */
    bool waits;          /* is in turns->queue; others only read it */
    bool slow;
    TAILQ_ENTRY(turn) entry; /* in turns->queue */
};

struct turns {
    struct pass *pass;     /* not owned */
    struct engine *engine; /* not owned */
    struct turn_queue queue;
    struct turn *next; /* where turns_next() continues; NULL: nowhere */
    struct turn *last; /* turns_next() ends after this one */
    bool crowded;      /* the time was over: sessions with new input queue up */
    bool slow_served;  /* a slow session has had its turn in this pass */
    unsigned budget;   /* lines for each turn */
    unsigned served;   /* sessions served in this pass */
};

void turns_init(struct turns *turns, struct pass *pass, struct engine *engine);

/* May the session be read now? If not, it waits in the queue. turns_begin() finds that the time is
 * over, which saves a clock read here. */
bool turns_may_read(struct turns *turns, struct turn *turn);

/* The session is about to take lines. If it has no turn now, it may take none. */
void turns_begin(struct turns *turns, struct turn *turn, int64_t now_ns);

/* May a request that will be slow run in this turn? If not, the turn is over, and the request waits
 * for another one. */
bool turns_may_be_slow(struct turns *turns, struct turn *turn);

/* The session was slow. Its turn is over. */
void turns_end_slow(struct turns *turns, struct turn *turn);

/* The session has more to take: it waits in the queue, after the others. */
void turns_wait(struct turns *turns, struct turn *turn);

/* The session is about to be freed. Not while turns_next() has sessions left. */
void turns_leave(struct turns *turns, struct turn *turn);

/* Call this at the end of a pass. True if the next pass, after its events, has to give the waiting
 * sessions their turns: turns_start(), then turns_next() until it returns NULL. turns_next() takes
 * a session from the queue, which then calls turns_begin(). */
bool turns_end_pass(struct turns *turns);
void turns_start(struct turns *turns);
struct turn *turns_next(struct turns *turns, int64_t now_ns);

#endif
