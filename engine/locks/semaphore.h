/*
 * Semaphores: at most n clients hold a name at the same time. A LOCK with SLOTS is granted one of
 * the locks <name>#1 to <name>#<n>, the slots. A slot is an ordinary lock, so semaphores add
 * nothing to what keeps locks safe. They only choose which lock a client gets. Pure.
 *
 * The LOCKs of one name are in one list, in order of arrival. In the queues of the slots, seekers
 * wait for them: waiters without a client, at most one for each slot. When the queue of a slot is
 * to start a round, its seeker serves the first LOCK in the list that no other seeker serves. The
 * round then runs for this LOCK. If the slot is granted, the LOCK leaves the list. If not, it keeps
 * its place, and another seeker may serve it. LOCKs without WAIT are in a list of their own. They
 * are served only while each LOCK with WAIT is.
 *
 *                 served          first that is not
 *                    |                   |
 *     deploy:     LOCK -> LOCK -> LOCK -> LOCK -> LOCK
 *                  |                |
 *     deploy#1:  seeker    (round)  |
 *     deploy#2:  LOCK -> seeker     |              a client wants this slot by its own name
 *     deploy#3:  seeker          (round)
 *
 * So slots have everything that locks have: wake-ups without polling, hand-overs, and turns with
 * other daemons. While nothing changes, waiting LOCKs cost nothing, however many there are.
 *
 * A seeker is `ready` if the queue of its slot is to start a round, but the seeker has no LOCK to
 * serve. A semaphore exists while it has LOCKs.
 */
#ifndef ENGINE_LOCKS_SEMAPHORE_H
#define ENGINE_LOCKS_SEMAPHORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/locks/queue.h"
#include "engine/pool.h"

struct pending_request;
struct resource;

/* The name of a slot: that of its semaphore, "#", and the number. */
struct slot_name {
    char bytes[LIMIT_RESOURCE];
    size_t len;
};

struct slot_name slot_name(const char *name, size_t name_len, unsigned number);

struct seeker {
    struct waiter waiter; /* in the queue of the slot */
    struct resource *slot;
    unsigned number; /* of the slot, from 1 */
    struct semaphore *semaphore;
    struct pending_request *serves; /* the LOCK that the slot is acquired for; NULL: none */
    bool ready;
    TAILQ_ENTRY(seeker) of_ready;
    LIST_ENTRY(seeker) of_semaphore;
};

struct semaphore {
    struct resource *resource; /* the resource with the name of the semaphore */
    /* The LOCKs with WAIT and those without, in order of arrival. */
    struct waiter_list waiting;
    struct waiter_list impatient;
    unsigned length;     /* of `waiting` */
    unsigned slots;      /* the greatest n of its LOCKs; seekers are reserved for so many */
    unsigned watched;    /* slots 1 to `watched` all have their seekers */
    int64_t numbered_ns; /* when the LOCKs were last numbered */
    LIST_HEAD(, seeker) seekers;
    unsigned seeker_count;
    unsigned serving; /* seekers that serve a LOCK */
    TAILQ_HEAD(, seeker) ready;
    /* What semaphore_soonest() has found for `soonest_slots` slots at soonest_ns, so that many
     * LOCKs that are refused in one pass do not each walk over all slots. soonest_slots is 0 if it
     * has to be found anew. */
    struct resource *soonest;
    unsigned soonest_slots;
    int64_t soonest_ns;
    int64_t soonest_hint_ms;
    bool to_serve; /* in semaphores->to_serve */
    TAILQ_ENTRY(semaphore) of_to_serve;
    LIST_ENTRY(semaphore) of_all;
};

struct semaphores {
    struct pool pool;
    struct pool seekers;
    size_t reserved; /* seekers that the semaphores may take; LIMIT_SEEKERS at most */
    uint32_t random; /* state of the random generator */
    LIST_HEAD(, semaphore) all;
    /* Semaphores with a LOCK that a ready seeker, or a new one, may serve, and semaphores whose
     * last LOCK has left. The lock manager drains this list before it returns. */
    TAILQ_HEAD(, semaphore) to_serve;
};

/* Returns false if there is not enough memory. */
bool semaphores_init(struct semaphores *semaphores, uint32_t seed);
void semaphores_deinit(struct semaphores *semaphores);

/* Reserve seekers for `slots` slots of the semaphore with the name of this resource, and create it
 * if there is none. Returns false if there are not enough seekers. */
bool semaphore_reserve(struct semaphores *semaphores, struct resource *resource, unsigned slots);

/* Free a semaphore that has no LOCKs and no seekers. */
void semaphore_give(struct semaphores *semaphores, struct semaphore *semaphore);

/* Append a LOCK. Remove a LOCK from any place; if a seeker serves it, it no longer does. */
void semaphore_join(struct semaphores *semaphores, struct semaphore *semaphore,
                    struct pending_request *pending);
void semaphore_leave(struct semaphores *semaphores, struct pending_request *pending);

/* Take the next semaphore from semaphores->to_serve; NULL: the list is empty. */
struct semaphore *semaphores_next(struct semaphores *semaphores);

bool semaphore_has_locks(const struct semaphore *semaphore);

/* The next LOCK to serve; NULL: all are served. */
struct pending_request *semaphore_next(const struct semaphore *semaphore);

/* The next LOCK with WAIT to serve; NULL: all are served. */
struct pending_request *semaphore_next_waiting(const struct semaphore *semaphore);

/* The position of a LOCK among those with WAIT, counted from 1: see queue_position(). */
unsigned semaphore_position(struct semaphore *semaphore, const struct pending_request *pending,
                            int64_t now_ns);

/* Create a seeker for a slot that has none, and append it to the queue of that slot. */
struct seeker *seeker_place(struct semaphores *semaphores, struct semaphore *semaphore,
                            struct resource *slot, unsigned number, int64_t now_ns);

/* Remove the seeker from its queue, and free it. */
void seeker_remove(struct semaphores *semaphores, struct seeker *seeker);

/* The seeker that this waiter is part of; NULL: the waiter is part of a LOCK. */
struct seeker *seeker_of(struct waiter *waiter);

/* The queue of the slot is to start a round: let the seeker serve the next LOCK. Returns false if
 * there is none that may have this slot. LOCKs with WAIT take turns strictly: if the next one has a
 * smaller n, so that it may not have this slot, those after it wait as well. */
bool seeker_serve(struct seeker *seeker);

/* The seeker serves its LOCK no longer. The LOCK keeps its place. */
void seeker_stop(struct semaphores *semaphores, struct seeker *seeker);

void seeker_set_ready(struct seeker *seeker, bool ready);

/* The slot has been granted to the LOCK that the seeker has served. Now it is the turn of those
 * that wait for this slot by its own name: move the seeker to the end of the queue. */
void seeker_requeue(struct seeker *seeker, int64_t now_ns);

/* A random one of the ready seekers of slots 1 to `slots`; NULL: none is ready. If another daemon
 * chooses at the same time, the two most likely choose different slots. */
struct seeker *semaphore_ready(struct semaphores *semaphores, const struct semaphore *semaphore,
                               unsigned slots);

/* How many slots are held, as far as this daemon knows: of those that have seekers. */
unsigned semaphore_held(const struct semaphore *semaphore);

/* A random number below `count`. */
unsigned semaphores_draw(struct semaphores *semaphores, unsigned count);

/*
 * Of slots 1 to `slots`, the one whose state is the reply to a LOCK that gets no slot:
 *   - one that is held, as far as is known: that with the smallest hint;
 *   - otherwise one whose last round found no quorum;
 *   - otherwise any of them, or NULL if none has a seeker.
 * *hint_ms: the hint of a held slot; -1: not known.
 */
struct resource *semaphore_soonest(struct semaphore *semaphore, unsigned slots, int64_t now_ns,
                                   int64_t *hint_ms);

#endif
