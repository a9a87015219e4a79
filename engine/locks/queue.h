/*
 * The queue of waiters for one resource in this daemon: their order, and what to do next for them.
 * Pure.
 *
 * However many waiters there are, the daemon acquires only for the first one, one round at a time:
 *
 *     WATCHING  -> ACQUIRING   the first waiter has joined; or the lock was released through this
 *                              daemon; or the key is free on a quorum, or should be by now
 *     ACQUIRING -> WATCHING    the lock is granted, and the queue watches for the next waiter; or
 *                              another client holds the lock; or the next round is to start at
 *                              once (QUEUE_AGAIN)
 *     ACQUIRING -> PAUSING     after a collision, or without a quorum
 *     WATCHING  -> PAUSING     the lock is released at the end of a hand-over streak
 *     PAUSING   -> ACQUIRING   the pause has ended, and a quorum may have votes; see
 *                              queue_timer_rest_until_ns()
 *
 * While the queue watches, it notes on which nodes the key is free, and until when other nodes hold
 * the key. It learns this from the undo of a refused round and from key probes. A master that
 * tracks the key reports the next change of the key (engine/master/tracker.h); then the daemon
 * probes the key there again. An observation grants nothing. It only suggests when to run a round.
 *
 * A collision is a split vote: no client has a quorum. The queue then pauses for a random time that
 * grows with each collision. It also pauses after a round that a few masters refused while votes of
 * other masters did not count. The undo of such a round shows the key as free on a quorum, so
 * without the pause the daemon would run one useless round after the other.
 *
 * While clients of this daemon wait, the lock goes from one to the next without being free in
 * between. At the end of a hand-over streak, the daemon really releases the lock and the queue
 * pauses, so that other daemons get their turn. The lengths of the streak and of the pause depend
 * on the contention hints that other daemons have left on the masters.
 *
 * Without waiters in this daemon there are no hand-overs. If a far waiter of another daemon has
 * left a hint in that case, the lock is "sought", and each grant through this daemon counts as half
 * a streak. docs/design/algorithm.md, "Handing over", has the reasons.
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
 * QUEUE_STREAK_HANDOVERS: the hand-overs in a streak once another daemon has left a contention
 * hint. With shared names this limit always applies, because other libraries leave no hints.
 * QUEUE_FAR_HANDOVERS applies instead if that daemon is far. QUEUE_STREAK_NS limits every streak,
 * with or without a hint.
 */
enum { QUEUE_STREAK_HANDOVERS = 20, QUEUE_FAR_HANDOVERS = 6 };
#define QUEUE_STREAK_NS (5 * NS_PER_S)

/* For this time, a resource that a far waiter seeks is kept although no client of this daemon uses
 * it. */
#define QUEUE_SOUGHT_NS (2 * NS_PER_S)

/* How long the daemon sends no key probes after it has granted the lock itself: most likely the
 * holder releases the lock through this daemon. */
#define QUEUE_QUIET_NS (100 * NS_PER_MS)

/* The longest interval between key probes of masters that do not report changes. The shortest is
 * half of it. */
#define QUEUE_POLL_NS (500 * NS_PER_MS)

/* The waiters of a queue are numbered no more often than this. */
#define QUEUE_NUMBER_NS (500 * NS_PER_MS)

/* QUEUE_IDLE_REPORTS: after this many useless reports in a row, masters are probed no more often
 * than without reports. A report is useless if the probe after it shows the same holder and the
 * same end of the key. Ends that differ by less than QUEUE_SAME_NS count as the same. */
enum { QUEUE_IDLE_REPORTS = 10 };
#define QUEUE_SAME_NS (5 * NS_PER_MS)

/* A LOCK in the queue, part of its pending request. A LOCK without WAIT is in the queue too, while
 * a round runs for it or for another request. A seeker waits in the queue for LOCKs with SLOTS. */
struct waiter {
    TAILQ_ENTRY(waiter) entry;
    bool seeks; /* it is part of a seeker (engine/locks/semaphore.h), and not of a LOCK */
    /* The waiter gets the result of the round under way, or of the next one, and then leaves: its
     * wait is over, or the LOCK has no WAIT. */
    bool timed_out;
    unsigned number; /* greater than that of each waiter before it: see queue_position() */
    TAILQ_ENTRY(waiter) timed_out_entry;
    /* End of the wait, or of the wait for a round to start; the lock manager sets it. */
    struct timer wait_deadline;
};

TAILQ_HEAD(waiter_list, waiter);

enum __attribute__((packed)) queue_phase { QUEUE_WATCHING, QUEUE_ACQUIRING, QUEUE_PAUSING };

/* There is one queue for each resource, so there can be many. The fields that a queue without
 * waiters needs come first, in 128 bytes. The fields that are long and rarely needed come last. */
struct queue {
    const struct engine_rules *rules;
    struct waiter_list waiters;
    unsigned length;
    unsigned timed_out; /* number of waiters with timed_out, which timed_out_waiters lists */
    enum queue_phase phase;
    bool acquire_again; /* ACQUIRING: the lock was released meanwhile */
    bool contended;     /* another daemon left a contention hint during this streak */
    /* How many replies without a hint it takes until the far waiter is presumed gone; 0: the lock
     * is not sought. */
    uint8_t sought;
    bool yielded;       /* PAUSING: the pause follows a streak and is for other daemons */
    int64_t acquire_ns; /* WATCHING: start a round then in any case; PAUSING: end of the pause */

    int64_t streak_ns;  /* when the streak began */
    unsigned handovers; /* hand-overs in this streak */
    unsigned failures;  /* number of rounds in a row after which the queue paused */
    uint32_t random;    /* state of the random generator */

    /* What is known about the key. The next six fields are sets of nodes. */
    uint32_t free;
    uint32_t held;
    uint32_t tracked;      /* nodes that will report the next change */
    uint32_t changed;      /* nodes that have reported a change and need a probe */
    uint32_t probing;      /* nodes with a key probe under way */
    uint32_t reported;     /* nodes whose key probe under way is due to a report */
    unsigned idle_reports; /* number of useless reports in a row */
    int64_t probe_ns;      /* when to probe the nodes that do not report changes */
    int64_t quiet_ns;      /* no probes before this time */
    int64_t sought_ns;     /* while sought: when that state ends unless the lock is used here */
    /* The longest time for which a far waiter needs the lock to be free, in this streak. */
    int64_t need_ns;
    uint64_t holder;                      /* fingerprint of the last holder observed */
    int64_t numbered_ns;                  /* when the waiters were last numbered */
    struct waiter_list timed_out_waiters; /* in the order of their time-outs */
    int64_t until_ns[LIMIT_NODES]; /* for nodes in `held`: end of the key; INT64_MAX: not known */
};

/* seed: for the random pauses. rules must outlive the queue. */
void queue_init(struct queue *queue, const struct engine_rules *rules, uint32_t seed);

/* Append the waiter. waiter->seeks is set by the caller. */
void queue_join(struct queue *queue, struct waiter *waiter, int64_t now_ns);

/* For seekers (engine/locks/semaphore.h), whose LOCKs can also be granted other locks.
 * queue_probe_first(): the first waiter has just joined, and the lock is most likely held: send key
 * probes instead of starting a round. queue_probe_untracked(): also probe the nodes that will not
 * report the next change. queue_end_pause(): pauses do not apply to the first waiter. */
void queue_probe_first(struct queue *queue);
void queue_probe_untracked(struct queue *queue);
void queue_end_pause(struct queue *queue, int64_t now_ns);

/* Remove the waiter from wherever it is in the queue: it was granted the lock, or waits no
 * longer. */
void queue_leave(struct queue *queue, struct waiter *waiter);

/* The position of a waiter in the queue, counted from 1. If waiters before it have left within the
 * last QUEUE_NUMBER_NS, without having been the first, they may still be counted. A position never
 * grows. */
unsigned queue_position(struct queue *queue, const struct waiter *waiter, int64_t now_ns);

/* The same for any list whose waiters are numbered as in a queue. *numbered_ns: when they were last
 * numbered. */
unsigned waiters_position(struct waiter_list *waiters, unsigned length, int64_t *numbered_ns,
                          const struct waiter *waiter, int64_t now_ns);

/* The wait of this waiter is over while a round is under way. The waiter stays in the queue for the
 * result of that round. */
void queue_note_timed_out(struct queue *queue, struct waiter *waiter);

/* Undo queue_note_timed_out(). */
void queue_note_waiting(struct queue *queue, struct waiter *waiter);

/* The next action for the queue. */
enum queue_want {
    QUEUE_REST,    /* do nothing until queue_wake_ns() or the next event */
    QUEUE_ACQUIRE, /* start a round for the first waiter */
    QUEUE_PROBE, /* send key probes to the nodes in *nodes; the queue assumes that they are sent */
};

/* queue_next(): what to do now. reachable: the nodes that can be probed. queue_wake_ns(): when to
 * call queue_next() again if nothing happens before. */
enum queue_want queue_next(struct queue *queue, uint32_t reachable, int64_t now_ns,
                           uint32_t *nodes);
int64_t queue_wake_ns(const struct queue *queue);

/* A round has started for the first waiter. */
void queue_on_acquiring(struct queue *queue);

enum queue_outcome {
    QUEUE_HELD,     /* another client has a quorum */
    QUEUE_COLLIDED, /* no client has a quorum, as far as the votes that counted show */
    QUEUE_FAILED,   /* no quorum of the masters had a vote */
    /* Run the next round at once. Either the first waiter has left or was outbid, or its TTL is
     * shorter than a round takes. */
    QUEUE_AGAIN,
};

/* The round has ended without a grant. */
void queue_on_outcome(struct queue *queue, enum queue_outcome outcome, int64_t now_ns);

/* The lock was granted through this daemon, and its key ends at until_ns at the latest.
 * handed_over: the previous holder handed the lock over; false: the lock was free. */
void queue_on_granted(struct queue *queue, bool handed_over, int64_t until_ns, int64_t now_ns);

/* Another client of this daemon has the lock, and its key ends at until_ns at the latest. since_ns:
 * when the lock was granted or extended, or a later time. */
void queue_on_held(struct queue *queue, int64_t until_ns, int64_t since_ns);

/* What a node has said about the key, in the reply to an undo or a key probe. */
struct observation {
    bool held;
    int64_t pttl_ms; /* TTL of a held key; -1: not known */
    uint64_t holder; /* fingerprint of a held key's value */
    bool tracked;    /* the node will report the next change of the key */
};
void queue_on_observed(struct queue *queue, unsigned node, const struct observation *seen,
                       int64_t now_ns);

/* A key probe has failed. */
void queue_on_unobserved(struct queue *queue, unsigned node);

/* A node reports a change of the key. Or it may have missed one, because its tracking has only just
 * begun or it has just got its vote back. */
void queue_on_changed(struct queue *queue, unsigned node);

/* A node will no longer report changes. */
void queue_on_untracked(struct queue *queue, unsigned node, int64_t now_ns);

/* The lock was handed over, and a contention hint of another daemon was found. That daemon needs
 * the lock to be free for need_ns; 0: the usual pauses are long enough. */
void queue_on_contention(struct queue *queue, int64_t need_ns);

/* The lock was released while no client waited here, and one master has answered the far query.
 * need_ns: how long a far waiter of another daemon needs the lock to be free. 0: this master knows
 * of no far waiter, but other masters may. */
void queue_on_sought(struct queue *queue, int64_t need_ns, int64_t now_ns);

/* Does the queue pause for a far waiter? Then even a LOCK without WAIT is refused. */
bool queue_yields(const struct queue *queue, int64_t now_ns);

/* The lock was released through this daemon. */
void queue_on_released(struct queue *queue, int64_t now_ns);

/* May a lock that is being released be handed over to the first waiter? */
bool queue_may_hand_over(const struct queue *queue, int64_t now_ns);

/* Does a quorum of the masters hold the key, as far as the queue knows? */
bool queue_is_held(const struct queue *queue);

/* For HELD: milliseconds until a quorum can be free at the earliest; -1: not known. */
int64_t queue_hint_ms(const struct queue *queue, int64_t now_ns);

#endif
