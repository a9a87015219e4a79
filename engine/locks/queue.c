#include "engine/locks/queue.h"

#include <assert.h>
#include <string.h>

#include "engine/round/node_set.h"
#include "protocol/units.h"

/* Redis rounds a TTL down to whole milliseconds. Without this addition, a round could start just
 * before the key ends, and fail. */
#define ROUNDED_NS NS_PER_MS

/* A random duration from least_ns to most_ns. The generator is the one from Numerical Recipes. It
 * only has to make daemons act at different times. */
static int64_t draw_ns(struct queue *queue, int64_t least_ns, int64_t most_ns)
{
    queue->random = queue->random * 1664525 + 1013904223;
    uint64_t range_ns = (uint64_t)(most_ns - least_ns);
    return least_ns + (int64_t)((range_ns >> 16) * (queue->random >> 16));
}

void queue_init(struct queue *queue, const struct engine_rules *rules, uint32_t seed)
{
    memset(queue, 0, sizeof(*queue));
    TAILQ_INIT(&queue->waiters);
    TAILQ_INIT(&queue->timed_out_waiters);
    queue->rules = rules;
    queue->phase = QUEUE_WATCHING;
    queue->acquire_ns = queue->probe_ns = TIMER_NEVER;
    queue->random = seed;
}

/* --- the queue --- */

static void forget_observation(struct queue *queue)
{
    queue->free = queue->held = queue->tracked = queue->changed = 0;
}

void queue_join(struct queue *queue, struct waiter *waiter, int64_t now_ns)
{
    /* While the queue had no waiters, its observations were not updated. */
    if (queue->length == 0)
        forget_observation(queue);
    if (queue->length == 0 && queue->phase == QUEUE_WATCHING) {
        queue->acquire_ns = now_ns;
        queue->probe_ns = TIMER_NEVER;
    }
    const struct waiter *last = TAILQ_LAST(&queue->waiters, waiter_list);
    waiter->timed_out = false;
    waiter->number = last != NULL ? last->number + 1 : 0;
    TAILQ_INSERT_TAIL(&queue->waiters, waiter, entry);
    queue->length++;
}

void queue_probe_untracked(struct queue *queue)
{
    queue->changed |= nodes_all(queue->rules->round.node_count) & ~queue->tracked;
}

void queue_probe_first(struct queue *queue)
{
    if (queue->length > 1 || queue->phase != QUEUE_WATCHING)
        return;
    queue->acquire_ns = TIMER_NEVER;
    queue_probe_untracked(queue);
}

void queue_end_pause(struct queue *queue, int64_t now_ns)
{
    if (queue->phase == QUEUE_PAUSING)
        queue->acquire_ns = now_ns;
}

void queue_leave(struct queue *queue, struct waiter *waiter)
{
    assert(queue->length > 0);
    TAILQ_REMOVE(&queue->waiters, waiter, entry);
    queue->length--;
    if (waiter->timed_out)
        queue_note_waiting(queue, waiter);
}

/* Numbers are consecutive, except where a waiter has left that was neither the first nor the last.
 * To close such gaps takes a walk over the queue, and each waiter may ask once a second, so the
 * walk does not follow each departure. */
unsigned waiters_position(struct waiter_list *waiters, unsigned length, int64_t *numbered_ns,
                          const struct waiter *waiter, int64_t now_ns)
{
    unsigned first = TAILQ_FIRST(waiters)->number;
    unsigned last = TAILQ_LAST(waiters, waiter_list)->number;
    if (last - first >= length && now_ns - *numbered_ns >= QUEUE_NUMBER_NS) {
        struct waiter *each;
        unsigned number = first;
        TAILQ_FOREACH (each, waiters, entry)
            each->number = number++;
        *numbered_ns = now_ns;
    }
    return waiter->number - first + 1;
}

unsigned queue_position(struct queue *queue, const struct waiter *waiter, int64_t now_ns)
{
    return waiters_position(&queue->waiters, queue->length, &queue->numbered_ns, waiter, now_ns);
}

void queue_note_timed_out(struct queue *queue, struct waiter *waiter)
{
    assert(!waiter->timed_out);
    waiter->timed_out = true;
    TAILQ_INSERT_TAIL(&queue->timed_out_waiters, waiter, timed_out_entry);
    queue->timed_out++;
}

void queue_note_waiting(struct queue *queue, struct waiter *waiter)
{
    assert(waiter->timed_out);
    waiter->timed_out = false;
    TAILQ_REMOVE(&queue->timed_out_waiters, waiter, timed_out_entry);
    queue->timed_out--;
}

/* --- observations --- */

/* When a quorum can be free at the earliest; 0: a quorum is free now. */
static int64_t free_ns(const struct queue *queue)
{
    unsigned free_now = nodes_count(queue->free);
    unsigned quorum = queue->rules->round.quorum;
    return free_now >= quorum ? 0 : nodes_quorum_ns(quorum, free_now, queue->held, queue->until_ns);
}

bool queue_is_held(const struct queue *queue)
{
    return nodes_count(queue->held) >= queue->rules->round.quorum;
}

int64_t queue_hint_ms(const struct queue *queue, int64_t now_ns)
{
    int64_t at_ns = free_ns(queue);
    if (queue_yields(queue, now_ns))
        return (queue->acquire_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    if (queue->phase == QUEUE_PAUSING || at_ns == TIMER_NEVER || at_ns == 0)
        return -1;
    at_ns -= ROUNDED_NS;
    return at_ns > now_ns ? (at_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* Does the key probe show the same as the observation before it? Then the report that led to it was
 * useless. */
static bool is_unchanged(const struct queue *queue, unsigned node, const struct observation *seen,
                         int64_t until_ns)
{
    int64_t before_ns = queue->until_ns[node];
    if (!seen->held || seen->holder != queue->holder)
        return false;
    if (before_ns == TIMER_NEVER || until_ns == TIMER_NEVER)
        return before_ns == until_ns;
    return until_ns - before_ns < QUEUE_SAME_NS && before_ns - until_ns < QUEUE_SAME_NS;
}

/*
 * A master whose table of tracked keys is full drops one key for each key that is added, and
 * reports the dropped key. To probe each reported key at once would only make the master drop the
 * next one.
 */
static void note_report(struct queue *queue, bool unchanged, int64_t now_ns)
{
    queue->idle_reports = unchanged ? queue->idle_reports + 1 : 0;
    if (queue->idle_reports >= QUEUE_IDLE_REPORTS)
        queue->quiet_ns = now_ns + draw_ns(queue, QUEUE_POLL_NS / 2, QUEUE_POLL_NS);
}

static void forget_node(struct queue *queue, unsigned node)
{
    queue->free &= ~nodes_only(node);
    queue->held &= ~nodes_only(node);
    queue->tracked &= ~nodes_only(node);
}

void queue_on_observed(struct queue *queue, unsigned node, const struct observation *seen,
                       int64_t now_ns)
{
    int64_t until_ns =
        seen->pttl_ms >= 0 ? now_ns + seen->pttl_ms * NS_PER_MS + ROUNDED_NS : TIMER_NEVER;
    bool reported = queue->reported & nodes_only(node);
    queue->probing &= ~nodes_only(node);
    queue->reported &= ~nodes_only(node);
    forget_node(queue, node);
    /* The master has reported a change that is newer than this observation. The two came on
     * different connections. */
    if (queue->changed & nodes_only(node))
        return;
    if (reported)
        note_report(queue, is_unchanged(queue, node, seen, until_ns), now_ns);
    if (seen->held)
        queue->held |= nodes_only(node);
    else
        queue->free |= nodes_only(node);
    if (seen->tracked)
        queue->tracked |= nodes_only(node);
    queue->holder = seen->held ? seen->holder : 0;
    queue->until_ns[node] = until_ns;
}

void queue_on_unobserved(struct queue *queue, unsigned node)
{
    queue->probing &= ~nodes_only(node);
    queue->reported &= ~nodes_only(node);
}

void queue_on_changed(struct queue *queue, unsigned node)
{
    forget_node(queue, node);
    queue->changed |= nodes_only(node);
}

static void probe_soon(struct queue *queue, int64_t now_ns)
{
    if (queue->probe_ns > now_ns + QUEUE_POLL_NS)
        queue->probe_ns = now_ns + draw_ns(queue, QUEUE_POLL_NS / 2, QUEUE_POLL_NS);
}

void queue_on_untracked(struct queue *queue, unsigned node, int64_t now_ns)
{
    queue->tracked &= ~nodes_only(node);
    queue->changed &= ~nodes_only(node);
    probe_soon(queue, now_ns);
}

static void assume_held(struct queue *queue, int64_t until_ns, int64_t since_ns)
{
    /* The reply to a key probe under way may be older than this grant. It must not count, not even
     * if the master's report of the grant has come before it. */
    uint32_t outdated = queue->changed | queue->probing;
    forget_observation(queue);
    queue->changed = outdated;
    queue->held = nodes_all(queue->rules->round.node_count);
    for (unsigned i = 0; i < queue->rules->round.node_count; i++)
        queue->until_ns[i] = until_ns + ROUNDED_NS;
    queue->quiet_ns = queue->probe_ns = since_ns + QUEUE_QUIET_NS;
}

void queue_on_held(struct queue *queue, int64_t until_ns, int64_t since_ns)
{
    if (queue->phase != QUEUE_WATCHING)
        return;
    queue->acquire_ns = TIMER_NEVER;
    assume_held(queue, until_ns, since_ns);
}

/* --- rounds --- */

void queue_on_acquiring(struct queue *queue)
{
    assert(queue->phase != QUEUE_ACQUIRING);
    queue->phase = QUEUE_ACQUIRING;
    queue->acquire_again = false;
    queue->yielded = false;
    forget_observation(queue);
}

static void pause_until(struct queue *queue, int64_t at_ns)
{
    queue->phase = QUEUE_PAUSING;
    queue->acquire_ns = at_ns;
}

/* A random pause: at least backoff_min, and at most twice that. After each further failure the
 * upper limit doubles, up to backoff_max. */
static int64_t backoff_ns(struct queue *queue, unsigned failures)
{
    const struct engine_rules *rules = queue->rules;
    int64_t most_ns = rules->backoff_max_ns;
    if (failures < 16 && rules->backoff_min_ns << (failures + 1) < most_ns)
        most_ns = rules->backoff_min_ns << (failures + 1);
    return draw_ns(queue, rules->backoff_min_ns, most_ns);
}

static void start_watching(struct queue *queue, int64_t acquire_ns)
{
    queue->phase = QUEUE_WATCHING;
    queue->acquire_ns = acquire_ns;
}

void queue_on_outcome(struct queue *queue, enum queue_outcome outcome, int64_t now_ns)
{
    assert(queue->phase == QUEUE_ACQUIRING);
    switch (outcome) {
    case QUEUE_HELD:
        queue->failures = 0;
        start_watching(queue, queue->acquire_again ? now_ns : TIMER_NEVER);
        queue->quiet_ns = now_ns;
        queue->probe_ns = TIMER_NEVER;
        probe_soon(queue, now_ns);
        break;
    case QUEUE_AGAIN:
        start_watching(queue, now_ns);
        break;
    case QUEUE_COLLIDED:
    case QUEUE_FAILED:
        pause_until(queue, now_ns + backoff_ns(queue, queue->failures));
        queue->failures++;
        break;
    }
}

/* The number of hand-overs in a streak. In a pause, a far daemon gets the lock once, while a near
 * daemon may get it several times. Therefore the streak is shorter for a far daemon. */
static unsigned streak_length(const struct queue *queue)
{
    bool far = queue->need_ns > 2 * queue->rules->backoff_min_ns;
    return far ? QUEUE_FAR_HANDOVERS : QUEUE_STREAK_HANDOVERS;
}

void queue_on_granted(struct queue *queue, bool handed_over, int64_t until_ns, int64_t now_ns)
{
    assert(queue->phase == QUEUE_ACQUIRING);
    start_watching(queue, TIMER_NEVER);
    queue->failures = 0;
    bool goes_on = handed_over || queue->sought > 0;
    queue->handovers = goes_on ? queue->handovers + 1 : 0;
    queue->contended = queue->contended && goes_on;
    queue->need_ns = goes_on ? queue->need_ns : 0;
    if (queue->sought > 0 && !handed_over)
        queue->handovers += streak_length(queue) / 2 - 1;
    /* The streak begins now. How long the lock was held before does not matter. */
    if (queue->handovers <= 1)
        queue->streak_ns = now_ns;
    /* Only needed with waiters: one that joins an empty queue discards all observations. */
    if (queue->length > 0)
        assume_held(queue, until_ns, now_ns);
}

/* The pause after a streak. It is long enough for the far waiter that needs the lock to be free for
 * the longest time, but at most backoff_max, because a contention hint may be false. */
static int64_t pause_ns(struct queue *queue)
{
    int64_t min_ns = queue->rules->backoff_min_ns;
    int64_t max_ns = queue->rules->backoff_max_ns;
    int64_t least_ns = min(max(queue->need_ns, min_ns), max_ns);
    return draw_ns(queue, least_ns, min(least_ns + min_ns, max_ns));
}

static bool streak_is_over(const struct queue *queue, int64_t now_ns)
{
    if (queue->handovers == 0)
        return false;
    if (now_ns - queue->streak_ns >= QUEUE_STREAK_NS)
        return true;
    return (queue->contended || queue->rules->shared_names) &&
           queue->handovers >= streak_length(queue);
}

void queue_on_contention(struct queue *queue, int64_t need_ns)
{
    queue->contended = true;
    queue->need_ns = max(queue->need_ns, need_ns);
}

void queue_on_sought(struct queue *queue, int64_t need_ns, int64_t now_ns)
{
    if (need_ns == 0) {
        if (queue->sought > 0)
            queue->sought--;
        return;
    }
    queue->sought = (uint8_t)queue->rules->round.node_count;
    queue->sought_ns = now_ns + QUEUE_SOUGHT_NS;
    queue_on_contention(queue, need_ns);
}

bool queue_yields(const struct queue *queue, int64_t now_ns)
{
    return queue->sought > 0 && queue->yielded && queue->phase == QUEUE_PAUSING &&
           now_ns < queue->acquire_ns;
}

bool queue_may_hand_over(const struct queue *queue, int64_t now_ns)
{
    return queue->length > 0 && queue->phase == QUEUE_WATCHING && !streak_is_over(queue, now_ns);
}

void queue_on_released(struct queue *queue, int64_t now_ns)
{
    queue->acquire_again = true;
    queue->sought_ns = now_ns + QUEUE_SOUGHT_NS;
    if (queue->phase != QUEUE_WATCHING)
        return;
    if (streak_is_over(queue, now_ns)) {
        queue->handovers = 0;
        queue->streak_ns = now_ns;
        queue->yielded = true;
        pause_until(queue, now_ns + pause_ns(queue));
    } else {
        queue->acquire_ns = now_ns;
    }
}

/* --- what to do next --- */

/*
 * Will at least one report come, whichever quorum becomes free? Only a master on which the key is
 * held can report that it is free. Any quorum contains at least one of node_count - quorum + 1
 * masters, so it is enough if that many masters report. A master with a key probe under way counts
 * as well: when it has answered, this function is called again.
 */
static bool reports_suffice(const struct queue *queue)
{
    const struct engine_rules *rules = queue->rules;
    uint32_t reporting = (queue->held & queue->tracked) | queue->probing;
    return nodes_count(reporting) > rules->round.node_count - rules->round.quorum;
}

static uint32_t nodes_to_probe(struct queue *queue, uint32_t reachable, int64_t now_ns)
{
    /*
     * The key may have become free on more masters than those that report it. So when a master is
     * probed because of its report, the masters that cannot report are probed as well.
     */
    bool reported = (queue->changed & reachable & ~queue->probing) != 0;
    uint32_t nodes = reported ? queue->changed | ~queue->tracked : queue->changed;
    if (now_ns < queue->quiet_ns) {
        if (nodes != 0 || queue->probe_ns < queue->quiet_ns)
            queue->probe_ns = queue->quiet_ns;
        return 0;
    }
    if (now_ns >= queue->probe_ns) {
        if (reports_suffice(queue)) {
            queue->probe_ns = TIMER_NEVER;
        } else {
            nodes |= ~queue->tracked;
            queue->probe_ns = now_ns + draw_ns(queue, QUEUE_POLL_NS / 2, QUEUE_POLL_NS);
        }
    }
    /* Nodes that cannot be probed now are probed later. */
    if (queue->changed & ~reachable)
        probe_soon(queue, now_ns);
    return nodes & reachable & ~queue->probing;
}

enum queue_want queue_next(struct queue *queue, uint32_t reachable, int64_t now_ns, uint32_t *nodes)
{
    *nodes = 0;
    if (queue->length == 0 || queue->phase == QUEUE_ACQUIRING)
        return QUEUE_REST;
    /* If a LOCK without WAIT is first, there are no waiters before it, and pauses do not apply to
     * it. */
    if (now_ns >= queue->acquire_ns || TAILQ_FIRST(&queue->waiters)->timed_out)
        return QUEUE_ACQUIRE;
    if (queue->phase == QUEUE_PAUSING)
        return QUEUE_REST;
    if (now_ns >= free_ns(queue))
        return QUEUE_ACQUIRE;
    *nodes = nodes_to_probe(queue, reachable, now_ns);
    queue->probing |= *nodes;
    queue->reported |= *nodes & queue->changed;
    queue->changed &= ~*nodes;
    if (!reports_suffice(queue))
        probe_soon(queue, now_ns);
    return *nodes != 0 ? QUEUE_PROBE : QUEUE_REST;
}

int64_t queue_wake_ns(const struct queue *queue)
{
    if (queue->length == 0 || queue->phase == QUEUE_ACQUIRING)
        return TIMER_NEVER;
    if (queue->phase == QUEUE_PAUSING)
        return queue->acquire_ns;
    return min(min(queue->acquire_ns, queue->probe_ns), free_ns(queue));
}
