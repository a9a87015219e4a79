#include "engine/locks/semaphore.h"

#include <assert.h>

#include "engine/locks/manager.h"
#include "protocol/text.h"

/* How many ready seekers a random choice looks at. */
enum { READY_CHOICE = 16 };

bool semaphores_init(struct semaphores *semaphores, uint32_t seed)
{
    *semaphores = (struct semaphores){.random = seed};
    TAILQ_INIT(&semaphores->to_serve);
    return pool_init(&semaphores->pool, sizeof(struct semaphore), LIMIT_SEEKERS) &&
           pool_init(&semaphores->seekers, sizeof(struct seeker), LIMIT_SEEKERS);
}

void semaphores_deinit(struct semaphores *semaphores)
{
    pool_deinit(&semaphores->pool);
    pool_deinit(&semaphores->seekers);
}

unsigned semaphores_draw(struct semaphores *semaphores, unsigned count)
{
    semaphores->random = semaphores->random * 1664525 + 1013904223;
    return (unsigned)(((uint64_t)semaphores->random * count) >> 32);
}

struct slot_name slot_name(const char *name, size_t name_len, unsigned number)
{
    struct slot_name slot;
    struct text text = {.buf = slot.bytes, .size = sizeof(slot.bytes)};
    text_bytes(&text, name, name_len);
    text_byte(&text, '#');
    text_number(&text, number);
    slot.len = text.len;
    return slot;
}

/* --- semaphores --- */

static void schedule(struct semaphores *semaphores, struct semaphore *semaphore)
{
    if (semaphore->to_serve)
        return;
    semaphore->to_serve = true;
    TAILQ_INSERT_TAIL(&semaphores->to_serve, semaphore, of_to_serve);
}

struct semaphore *semaphores_next(struct semaphores *semaphores)
{
    struct semaphore *semaphore = TAILQ_FIRST(&semaphores->to_serve);
    if (semaphore == NULL)
        return NULL;
    TAILQ_REMOVE(&semaphores->to_serve, semaphore, of_to_serve);
    semaphore->to_serve = false;
    return semaphore;
}

/* Each semaphore has at least one reserved seeker, so there are enough semaphores. */
static struct semaphore *take(struct semaphores *semaphores, struct resource *resource)
{
    struct semaphore *semaphore = pool_take(&semaphores->pool);
    assert(semaphore != NULL);
    *semaphore = (struct semaphore){.resource = resource};
    TAILQ_INIT(&semaphore->waiting);
    TAILQ_INIT(&semaphore->impatient);
    TAILQ_INIT(&semaphore->ready);
    LIST_INSERT_HEAD(&semaphores->all, semaphore, of_all);
    resource->semaphore = semaphore;
    return semaphore;
}

bool semaphore_reserve(struct semaphores *semaphores, struct resource *resource, unsigned slots)
{
    struct semaphore *semaphore = resource->semaphore;
    unsigned reserved = semaphore != NULL ? semaphore->slots : 0;
    unsigned more = slots > reserved ? slots - reserved : 0;
    assert(slots > 0);
    if (semaphores->reserved + more > LIMIT_SEEKERS)
        return false;
    if (semaphore == NULL)
        semaphore = take(semaphores, resource);
    semaphores->reserved += more;
    semaphore->slots += more;
    /* If no LOCK follows, the semaphore ends. */
    schedule(semaphores, semaphore);
    return true;
}

void semaphore_give(struct semaphores *semaphores, struct semaphore *semaphore)
{
    assert(!semaphore_has_locks(semaphore));
    assert(LIST_EMPTY(&semaphore->seekers));
    assert(!semaphore->to_serve);
    LIST_REMOVE(semaphore, of_all);
    semaphores->reserved -= semaphore->slots;
    semaphore->resource->semaphore = NULL;
    pool_give(&semaphores->pool, semaphore);
}

/* --- LOCKs --- */

static struct waiter_list *list_of(struct semaphore *semaphore,
                                   const struct pending_request *pending)
{
    return pending->waits ? &semaphore->waiting : &semaphore->impatient;
}

bool semaphore_has_locks(const struct semaphore *semaphore)
{
    return !TAILQ_EMPTY(&semaphore->waiting) || !TAILQ_EMPTY(&semaphore->impatient);
}

void semaphore_join(struct semaphores *semaphores, struct semaphore *semaphore,
                    struct pending_request *pending)
{
    struct waiter_list *list = list_of(semaphore, pending);
    const struct waiter *last = TAILQ_LAST(list, waiter_list);
    pending->waiter.seeks = false;
    pending->waiter.number = last != NULL ? last->number + 1 : 0;
    TAILQ_INSERT_TAIL(list, &pending->waiter, entry);
    semaphore->length += pending->waits;
    schedule(semaphores, semaphore);
}

void semaphore_leave(struct semaphores *semaphores, struct pending_request *pending)
{
    struct semaphore *semaphore = pending_semaphore(pending);
    if (pending->seeker != NULL)
        seeker_stop(semaphores, pending->seeker);
    TAILQ_REMOVE(list_of(semaphore, pending), &pending->waiter, entry);
    semaphore->length -= pending->waits;
    schedule(semaphores, semaphore);
}

/* The LOCKs that seekers serve are among the first in the list, so this is a short walk. */
static struct pending_request *first_unserved(const struct waiter_list *list, unsigned slots)
{
    struct waiter *waiter;
    TAILQ_FOREACH (waiter, list, entry)
        if (pending_of(waiter)->seeker == NULL && pending_of(waiter)->slots >= slots)
            return pending_of(waiter);
    return NULL;
}

struct pending_request *semaphore_next_waiting(const struct semaphore *semaphore)
{
    return first_unserved(&semaphore->waiting, 0);
}

struct pending_request *semaphore_next(const struct semaphore *semaphore)
{
    struct pending_request *waiting = semaphore_next_waiting(semaphore);
    return waiting != NULL ? waiting : first_unserved(&semaphore->impatient, 0);
}

unsigned semaphore_position(struct semaphore *semaphore, const struct pending_request *pending,
                            int64_t now_ns)
{
    /* A LOCK without WAIT is answered soon. */
    if (!pending->waits)
        return 1;
    return waiters_position(&semaphore->waiting, semaphore->length, &semaphore->numbered_ns,
                            &pending->waiter, now_ns);
}

/* --- seekers --- */

struct seeker *seeker_place(struct semaphores *semaphores, struct semaphore *semaphore,
                            struct resource *slot, unsigned number, int64_t now_ns)
{
    struct seeker *seeker = pool_take(&semaphores->seekers);
    assert(seeker != NULL);
    assert(slot->seeker == NULL);
    *seeker = (struct seeker){.slot = slot, .number = number, .semaphore = semaphore};
    seeker->waiter.seeks = true;
    slot->seeker = seeker;
    LIST_INSERT_HEAD(&semaphore->seekers, seeker, of_semaphore);
    semaphore->seeker_count++;
    semaphore->soonest_slots = 0;
    queue_join(&slot->queue, &seeker->waiter, now_ns);
    return seeker;
}

void seeker_remove(struct semaphores *semaphores, struct seeker *seeker)
{
    assert(seeker->serves == NULL);
    seeker_set_ready(seeker, false);
    queue_leave(&seeker->slot->queue, &seeker->waiter);
    seeker->slot->seeker = NULL;
    LIST_REMOVE(seeker, of_semaphore);
    seeker->semaphore->seeker_count--;
    seeker->semaphore->soonest_slots = 0;
    pool_give(&semaphores->seekers, seeker);
}

struct seeker *seeker_of(struct waiter *waiter)
{
    static_assert(offsetof(struct seeker, waiter) == 0, "the cast below");
    return waiter->seeks ? (struct seeker *)waiter : NULL;
}

bool seeker_serve(struct seeker *seeker)
{
    struct pending_request *next = semaphore_next_waiting(seeker->semaphore);
    assert(seeker->serves == NULL);
    if (next == NULL)
        next = first_unserved(&seeker->semaphore->impatient, seeker->number);
    if (next == NULL || next->slots < seeker->number)
        return false;
    seeker_set_ready(seeker, false);
    seeker->serves = next;
    next->seeker = seeker;
    seeker->semaphore->serving++;
    return true;
}

void seeker_stop(struct semaphores *semaphores, struct seeker *seeker)
{
    seeker->serves->seeker = NULL;
    seeker->serves->ballot_seen = 0; /* it is of this slot; other slots have other ballots */
    seeker->serves = NULL;
    seeker->semaphore->serving--;
    seeker->semaphore->soonest_slots = 0;
    schedule(semaphores, seeker->semaphore);
}

void seeker_set_ready(struct seeker *seeker, bool ready)
{
    struct semaphore *semaphore = seeker->semaphore;
    if (ready == seeker->ready)
        return;
    seeker->ready = ready;
    if (ready)
        TAILQ_INSERT_TAIL(&semaphore->ready, seeker, of_ready);
    else
        TAILQ_REMOVE(&semaphore->ready, seeker, of_ready);
}

void seeker_requeue(struct seeker *seeker, int64_t now_ns)
{
    queue_leave(&seeker->slot->queue, &seeker->waiter);
    queue_join(&seeker->slot->queue, &seeker->waiter, now_ns);
}

struct seeker *semaphore_ready(struct semaphores *semaphores, const struct semaphore *semaphore,
                               unsigned slots)
{
    struct seeker *chosen = NULL;
    struct seeker *seeker;
    unsigned seen = 0;
    /* Each of the first few that may be chosen is chosen with the same probability. */
    TAILQ_FOREACH (seeker, &semaphore->ready, of_ready) {
        if (seen == READY_CHOICE)
            break;
        if (seeker->number <= slots && semaphores_draw(semaphores, ++seen) == 0)
            chosen = seeker;
    }
    return chosen;
}

/* How much a slot says about why a LOCK gets none: see semaphore_soonest(). */
static unsigned rank_of(const struct resource *slot, int64_t hint_ms)
{
    if (slot->lock != NULL || hint_ms >= 0 || queue_is_held(&slot->queue))
        return 2;
    return slot->last_outcome == OUTCOME_NOQUORUM ? 1 : 0;
}

static void find_soonest(struct semaphore *semaphore, unsigned slots, int64_t now_ns)
{
    const struct seeker *seeker;
    unsigned best = 0;
    semaphore->soonest = NULL;
    semaphore->soonest_hint_ms = -1;
    LIST_FOREACH (seeker, &semaphore->seekers, of_semaphore) {
        if (seeker->number > slots)
            continue;
        int64_t hint_ms = queue_hint_ms(&seeker->slot->queue, now_ns);
        unsigned rank = rank_of(seeker->slot, hint_ms);
        bool sooner = hint_ms >= 0 &&
                      (semaphore->soonest_hint_ms < 0 || hint_ms < semaphore->soonest_hint_ms);
        if (semaphore->soonest != NULL && rank <= best && !(rank == 2 && sooner))
            continue;
        semaphore->soonest = seeker->slot;
        semaphore->soonest_hint_ms = rank == 2 ? hint_ms : -1;
        best = rank;
    }
    semaphore->soonest_ns = now_ns;
    semaphore->soonest_slots = slots;
}

struct resource *semaphore_soonest(struct semaphore *semaphore, unsigned slots, int64_t now_ns,
                                   int64_t *hint_ms)
{
    if (semaphore->soonest_slots != slots || semaphore->soonest_ns != now_ns)
        find_soonest(semaphore, slots, now_ns);
    *hint_ms = semaphore->soonest_hint_ms;
    return semaphore->soonest;
}

unsigned semaphore_held(const struct semaphore *semaphore)
{
    const struct seeker *seeker;
    unsigned held = 0;
    LIST_FOREACH (seeker, &semaphore->seekers, of_semaphore)
        held += seeker->slot->lock != NULL || queue_is_held(&seeker->slot->queue);
    return held;
}
