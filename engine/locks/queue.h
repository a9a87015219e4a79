/*
 * The queue of waiters for one resource in this daemon: their order, and what to do next for them.
 * Pure.
 *
 * However many waiters there are, the daemon acquires only for the first one, one round at a time:
 *
 *                    acquire                   granted
 *     WATCHING ---------------> ACQUIRING -------------------------> WATCHING (the next waiter)
 *        ^  it is free, or        |  held            -> WATCHING
 *        |  should be by now      |  collided,       -> PAUSING
 *        +---- PAUSING <----------+  no quorum
 *
 * While the queue watches, it knows on which nodes the key is free or until when the key is held.
 * It learns this from the undo of a refused round and from key probes. A master that tracks the key
 * reports its next change (engine/master/tracker.h) and is probed again then. An observation grants
 * nothing: it only suggests when to run a round.
 *
 * A collision is a split vote: no client has a quorum. The queue then pauses for a random time that
 * grows with each collision. It also pauses after a round that only a few masters refused while
 * other votes failed: the undo of such a round shows the key as free on a quorum, so without the
 * pause the daemon would run one useless round after the other.
 *
 * While other clients of this daemon wait, the lock goes from one to the next without being free in
 * between. At the end of a hand-over streak the lock is really released and the queue pauses, so
 * that other daemons get their turn. The length of the streak and of the pause depends on the
 * contention hints that other daemons have left on the masters. A far daemon may have left a hint
 * while no client waits here. The lock is then "sought": each grant counts as half a streak.
 * docs/algorithm.md, "Handing over", has the reasons.
 */
#ifndef ENGINE_LOCKS_QUEUE_H
#define ENGINE_LOCKS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/flight/io.h"
#include "engine/timer.h"
#include "protocol/limits.h"
#include "protocol/units.h"

/*
 * Hand-overs in a streak once another daemon has left a contention hint. With shared names this
 * limit always applies, because other libraries leave no hints. QUEUE_FAR_HANDOVERS applies if that
 * daemon is far, and QUEUE_STREAK_NS if there is no hint.
 */
enum { QUEUE_STREAK_HANDOVERS = 20, QUEUE_FAR_HANDOVERS = 6 };
#define QUEUE_STREAK_NS (5 * NS_PER_S)

/* How long a resource that a far waiter seeks is kept while no client of this daemon uses it. */
#define QUEUE_SOUGHT_NS (2 * NS_PER_S)

/* How long the daemon sends no key probes after a grant through itself: most likely the holder
 * releases the lock through this daemon. */
#define QUEUE_QUIET_NS (100 * NS_PER_MS)

/* The longest interval between key probes of masters that do not track; the shortest is half of
 * it. */
#define QUEUE_POLL_NS (500 * NS_PER_MS)

/* After this many useless reports in a row, masters are probed no more often than without
 * reports. Ends of a key that differ by less than QUEUE_SAME_NS count as equal. */
enum { QUEUE_IDLE_REPORTS = 10 };
#define QUEUE_SAME_NS (5 * NS_PER_MS)

/* A waiter; part of its pending request. */
struct waiter {
    TAILQ_ENTRY(waiter) entry;
    /* The wait is over, or the LOCK has no WAIT: the waiter only gets the result of a round. */
    bool timed_out;
    struct timer wait_deadline; /* end of the wait; set by the owner */
};

TAILQ_HEAD(waiter_list, waiter);

enum __attribute__((packed)) queue_phase { QUEUE_WATCHING, QUEUE_ACQUIRING, QUEUE_PAUSING };

/* There is one queue for each lock. What a queue without waiters needs comes first, in 64 bytes;
 * what is long and rarely needed comes last. */
struct queue {
    const struct engine_rules *rules;
    struct waiter_list waiters;
    unsigned length;
    unsigned timed_out; /* waiters with timed_out */
    enum queue_phase phase;
    bool acquire_again; /* ACQUIRING: the lock was released meanwhile */
    bool contended;     /* another daemon left a contention hint during this streak */
    uint8_t sought;     /* replies without a hint until the far waiter is presumed gone; 0: none */
    bool yielded;       /* PAUSING after a streak, for other daemons */
    int64_t acquire_ns; /* WATCHING: acquire then in any case; PAUSING: end of the pause */

    int64_t streak_ns;  /* first hand-over of this streak */
    unsigned handovers; /* hand-overs in this streak */
    unsigned failures;  /* rounds in a row that led to a pause */
    uint32_t random;

    /* What is known about the key. Sets of nodes. */
    uint32_t free;
    uint32_t held;
    uint32_t tracked;      /* will report the next change */
    uint32_t changed;      /* have reported a change and need a probe */
    uint32_t probing;      /* key probe under way */
    uint32_t reported;     /* probed because of a report */
    unsigned idle_reports; /* useless reports in a row */
    int64_t probe_ns;      /* when to probe the nodes that do not track */
    int64_t quiet_ns;      /* no probes before this time */
    int64_t sought_ns;     /* sought: end of that state unless the lock is used here */
    int64_t need_ns;       /* the longest free time that another daemon needs, this streak */
    uint64_t holder;       /* fingerprint of the last holder observed */
    int64_t until_ns[LIMIT_NODES]; /* of nodes in `held`: end of the key; INT64_MAX: not known */
};

void queue_init(struct queue *queue, const struct engine_rules *rules, uint32_t seed);

/* Append the waiter. */
void queue_join(struct queue *queue, struct waiter *waiter, int64_t now_ns);

/* Remove the waiter, from any position: it was granted the lock, or waits no longer. */
void queue_leave(struct queue *queue, struct waiter *waiter);

/* The wait is over while a round is under way. The waiter stays for the result of that round. */
void queue_note_timed_out(struct queue *queue, struct waiter *waiter);

/* The next action for the queue. */
enum queue_want {
    QUEUE_REST,    /* nothing, until queue_wake_ns() or the next event */
    QUEUE_ACQUIRE, /* start a round for the first waiter */
    QUEUE_PROBE,   /* send key probes to these nodes; the queue takes them as sent */
};

/* reachable: the nodes that can be probed. */
enum queue_want queue_next(struct queue *queue, uint32_t reachable, int64_t now_ns,
                           uint32_t *nodes);
int64_t queue_wake_ns(const struct queue *queue);

/* A round has started for the first waiter. */
void queue_on_acquiring(struct queue *queue);

enum queue_outcome {
    QUEUE_HELD,     /* another client has a quorum */
    QUEUE_COLLIDED, /* no client has a quorum, as far as votes counted */
    QUEUE_FAILED,   /* no quorum of masters */
    /* Run the next round at once: the first waiter has left or was outbid, or the round took too
     * long for its TTL alone. */
    QUEUE_AGAIN,
};

/* The round has ended without a grant. */
void queue_on_outcome(struct queue *queue, enum queue_outcome outcome, int64_t now_ns);

/* The lock was granted through this daemon; its key ends at until_ns at the latest. handed_over:
 * the previous holder handed it over; otherwise it was free. */
void queue_on_granted(struct queue *queue, bool handed_over, int64_t until_ns, int64_t now_ns);

/* Another client of this daemon was granted the lock or has extended it; its key ends at
 * until_ns at the latest. */
void queue_on_held(struct queue *queue, int64_t until_ns, int64_t now_ns);

/* What a node says about the key, in the reply to an undo or a key probe. */
struct observation {
    bool held;
    int64_t pttl_ms; /* TTL of a held key; -1: not known */
    uint64_t holder; /* fingerprint of a held key's value */
    bool tracked;    /* the node will report the next change */
};
void queue_on_observed(struct queue *queue, unsigned node, const struct observation *seen,
                       int64_t now_ns);

/* A key probe has failed. */
void queue_on_unobserved(struct queue *queue, unsigned node);

/* A node reports a change, or its tracking has only just begun. */
void queue_on_changed(struct queue *queue, unsigned node);

/* A node will no longer report changes. */
void queue_on_untracked(struct queue *queue, unsigned node, int64_t now_ns);

/* The lock was handed over while another daemon waits. That daemon needs the lock to be free for
 * need_ns; 0: no longer than usual. */
void queue_on_contention(struct queue *queue, int64_t need_ns);

/* The lock was released while no client waited here. One master says how long a far waiter of
 * another daemon needs it to be free. 0: this master knows of no far waiter, but others may. */
void queue_on_sought(struct queue *queue, int64_t need_ns, int64_t now_ns);

/* Does the queue pause for a far waiter? Then a LOCK without WAIT is refused too. */
bool queue_yields(const struct queue *queue, int64_t now_ns);

/* The lock was released through this daemon. */
void queue_on_released(struct queue *queue, int64_t now_ns);

/* May a lock that is being released be handed over to the first waiter? */
bool queue_may_hand_over(const struct queue *queue, int64_t now_ns);

/* For HELD: milliseconds until a quorum can be free at the earliest; -1: not known. */
int64_t queue_hint_ms(const struct queue *queue, int64_t now_ns);

#endif
