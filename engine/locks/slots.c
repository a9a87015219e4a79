#include "engine/locks/slots.h"

#include <assert.h>

#include "engine/locks/waits.h"

/*
 * How many slots are tried for a LOCK: slots of which this daemon does not know whether they are
 * held. Each try is a round or two, and a refused round costs two commands on each master.
 *
 * TRIES_WITHOUT_WAIT: after so many slots, the reply is HELD. So with up to eight slots that other
 * daemons may hold, HELD is certain. With more, a few tries find a free slot unless nearly all are
 * held. No try begins later than node_timeout after the arrival, because the client expects its
 * reply.
 *
 * TRIES_BEFORE_WATCHING: after so many slots, a LOCK with WAIT has the daemon watch all slots.
 * This takes one key probe for each slot on each master, once for all LOCKs that wait.
 */
enum { TRIES_WITHOUT_WAIT = 8, TRIES_BEFORE_WATCHING = 2 };

static struct slot_name name_of(const struct semaphore *semaphore, unsigned number)
{
    return slot_name(semaphore->resource->name, semaphore->resource->name_len, number);
}

static struct resource *take_slot(struct lock_manager *manager, const struct slot_name *name)
{
    struct resource *slot = resource_take(&manager->resources, manager->rules,
                                          ++manager->queue_seed, name->bytes, name->len);
    /* There are resources for all seekers: manager_init(). */
    assert(slot != NULL);
    return slot;
}

/* Does this daemon know nothing of the slot that a round would first have to find out? */
static bool is_unknown(const struct resource *slot, int64_t now_ns)
{
    return slot->lock == NULL && slot->acquire == NULL && slot->queue.length == 0 &&
           !queue_yields(&slot->queue, now_ns);
}

/* What a walk over the slots has found. It holds until a queue has been run. So many LOCKs that get
 * no slot do not each walk over all slots. */
struct look {
    unsigned nothing_among; /* no slot from 1 to this one is left to try */
    unsigned ends_among;    /* the number of slots that ends_ns is for */
    int64_t ends_ns;        /* when the first slot ends that this daemon has granted */
};

/* Place a seeker on a slot that may be free. Returns NULL if no slot is left to try. The search
 * begins at a random slot, so that daemons do not chase each other over the same slots. */
static struct seeker *try_slot(struct lock_manager *manager, struct pending_request *pending,
                               struct look *look, int64_t now_ns)
{
    struct semaphores *semaphores = &manager->semaphores;
    struct semaphore *semaphore = pending_semaphore(pending);
    unsigned first = semaphores_draw(semaphores, pending->slots);
    if (semaphore->watched >= pending->slots || semaphore->seeker_count == semaphore->slots ||
        look->nothing_among >= pending->slots)
        return NULL;
    for (unsigned i = 0; i < pending->slots; i++) {
        unsigned number = (first + i) % pending->slots + 1;
        struct slot_name name = name_of(semaphore, number);
        struct resource *slot = resource_find(&manager->resources, name.bytes, name.len);
        if (slot != NULL && !is_unknown(slot, now_ns))
            continue;
        slot = take_slot(manager, &name);
        slot->last_outcome = OUTCOME_HELD;
        struct seeker *seeker = seeker_place(semaphores, semaphore, slot, number, now_ns);
        pending->tries++;
        if (!pending->waits)
            queue_end_pause(&slot->queue, now_ns);
        return seeker;
    }
    look->nothing_among = pending->slots;
    return NULL;
}

static bool is_in_time(const struct lock_manager *manager, const struct pending_request *pending,
                       int64_t now_ns)
{
    return now_ns - pending->received_ns < manager->rules->round.node_timeout_ns;
}

/* A seeker for the LOCK: that of a slot that is or may be free. NULL: there is none, or the LOCK
 * has had its rounds. */
static struct seeker *find_seeker(struct lock_manager *manager, struct pending_request *pending,
                                  struct look *look, int64_t now_ns)
{
    if (!pending->waits &&
        (pending->tries >= TRIES_WITHOUT_WAIT || !is_in_time(manager, pending, now_ns)))
        return NULL;
    struct seeker *seeker =
        semaphore_ready(&manager->semaphores, pending_semaphore(pending), pending->slots);
    if (seeker != NULL || (pending->waits && pending->tries >= TRIES_BEFORE_WATCHING))
        return seeker;
    return try_slot(manager, pending, look, now_ns);
}

/* When the first slot ends that this daemon has granted; TIMER_NEVER: it has granted none. */
static int64_t first_end_ns(const struct lock_manager *manager,
                            const struct pending_request *pending, struct look *look)
{
    const struct semaphore *semaphore = pending_semaphore(pending);
    /* If all slots have seekers, their queues know when they end. */
    if (semaphore->seeker_count == semaphore->slots)
        return TIMER_NEVER;
    if (look->ends_among == pending->slots)
        return look->ends_ns;
    look->ends_among = pending->slots;
    look->ends_ns = TIMER_NEVER;
    for (unsigned number = 1; number <= pending->slots; number++) {
        struct slot_name name = name_of(semaphore, number);
        const struct resource *slot = resource_find(&manager->resources, name.bytes, name.len);
        if (slot != NULL && slot->lock != NULL && slot->lock->ends_ns < look->ends_ns)
            look->ends_ns = slot->lock->ends_ns;
    }
    return look->ends_ns;
}

/* Place a seeker on each slot that has none. What the masters know of the slots is found out by key
 * probes. */
static void watch(struct lock_manager *manager, struct semaphore *semaphore, unsigned slots,
                  int64_t now_ns)
{
    for (; semaphore->watched < slots; semaphore->watched++) {
        unsigned number = semaphore->watched + 1;
        struct slot_name name = name_of(semaphore, number);
        struct resource *slot = take_slot(manager, &name);
        if (slot->seeker != NULL) {
            /* It was placed for a LOCK without WAIT, whose round did not probe the key. If that
             * round is still under way, it will: waits_watch(). */
            if (slot->acquire == NULL)
                queue_probe_untracked(&slot->queue);
        } else {
            if (slot->queue.length == 0)
                slot->last_outcome = OUTCOME_HELD;
            seeker_place(&manager->semaphores, semaphore, slot, number, now_ns);
            queue_probe_first(&slot->queue);
        }
        waits_watch(slot, now_ns);
        waits_run(manager, slot, now_ns);
    }
}

/* Let seekers serve the LOCKs with WAIT that none serves yet, as long as there is a slot that may
 * be free. After that, they wait for the slots that the daemon watches. Returns false if one waits.
 */
static bool serve_waiting(struct lock_manager *manager, struct semaphore *semaphore, int64_t now_ns)
{
    struct pending_request *next;
    while ((next = semaphore_next_waiting(semaphore)) != NULL) {
        struct look look = {0};
        struct seeker *seeker = find_seeker(manager, next, &look, now_ns);
        if (seeker == NULL) {
            watch(manager, semaphore, next->slots, now_ns);
            return false;
        }
        waits_run(manager, seeker->slot, now_ns);
    }
    return true;
}

/* Let seekers serve the LOCKs without WAIT that none serves yet, and refuse those for which there
 * is nothing left to try. While rounds for others are under way, it is not known yet that all slots
 * are held; then a LOCK waits for their outcome, but only until its deadline. Returns false if a
 * queue was run, after which the walk over the LOCKs has to begin again. */
static bool serve_impatient(struct lock_manager *manager, struct semaphore *semaphore,
                            bool others_wait, int64_t now_ns)
{
    struct look look = {0};
    struct waiter *waiter = TAILQ_FIRST(&semaphore->impatient);
    while (waiter != NULL) {
        struct pending_request *pending = pending_of(waiter);
        waiter = TAILQ_NEXT(waiter, entry);
        if (pending->seeker != NULL)
            continue;
        struct seeker *seeker = others_wait ? NULL : find_seeker(manager, pending, &look, now_ns);
        if (seeker != NULL) {
            waits_run(manager, seeker->slot, now_ns);
            return false;
        }
        if (others_wait || semaphore->serving == 0 || !is_in_time(manager, pending, now_ns))
            waits_answer_slots(manager, pending, first_end_ns(manager, pending, &look), now_ns);
    }
    return true;
}

static void serve(struct lock_manager *manager, struct semaphore *semaphore, int64_t now_ns)
{
    bool others_wait = !serve_waiting(manager, semaphore, now_ns);
    while (!serve_impatient(manager, semaphore, others_wait, now_ns))
        ;
}

static void end(struct lock_manager *manager, struct semaphore *semaphore, int64_t now_ns)
{
    struct resource *resource = semaphore->resource;
    struct seeker *seeker;
    while ((seeker = LIST_FIRST(&semaphore->seekers)) != NULL) {
        struct resource *slot = seeker->slot;
        seeker_remove(&manager->semaphores, seeker);
        waits_run(manager, slot, now_ns);
    }
    semaphore_give(&manager->semaphores, semaphore);
    flight_note_idle(&manager->flights->idle_keys, &resource->key);
}

void slots_run(struct lock_manager *manager, int64_t now_ns)
{
    struct semaphores *semaphores = &manager->semaphores;
    struct semaphore *semaphore;
    while ((semaphore = semaphores_next(semaphores)) != NULL) {
        if (semaphore_has_locks(semaphore))
            serve(manager, semaphore, now_ns);
        else
            end(manager, semaphore, now_ns);
    }
}

static void drain(struct lock_manager *manager, const struct waiter_list *list)
{
    struct waiter *waiter = TAILQ_FIRST(list);
    while (waiter != NULL) {
        struct waiter *next = TAILQ_NEXT(waiter, entry);
        waits_shut_down(manager, pending_of(waiter));
        waiter = next;
    }
}

void slots_drain(struct lock_manager *manager)
{
    struct semaphore *semaphore;
    LIST_FOREACH (semaphore, &manager->semaphores.all, of_all) {
        drain(manager, &semaphore->waiting);
        drain(manager, &semaphore->impatient);
    }
}
