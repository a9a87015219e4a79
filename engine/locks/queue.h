/*
 * Who waits for a resource in this daemon, in which order, and what is to be done about it. Pure.
 *
 * However many wait, only the first in line is tried for, by one round at a time:
 *
 *                    ask                       granted
 *     WATCHING ---------------> ACQUIRING -------------------------> WATCHING (the next in line)
 *        ^  it is free, or        |  held            -> WATCHING
 *        |  should be by now      |  collided,       -> PAUSING
 *        +---- PAUSING <----------+  no quorum
 *
 * While it watches, it knows on which nodes the key is free, or until when it is held, as far as
 * masters have told: with the undo of a round that was refused, or when they were looked at. A
 * master that tracks the key reports its next change (engine/master/tracker.h), and is looked at
 * again then. What is seen grants nothing: it only says when a round is worth its while.
 *
 * A collision is a split vote: no client has a quorum. The client pauses for a random time, longer
 * after each. So does one that a few refuse while votes of others fail: their undo shows the key as
 * free on a quorum, and without a pause round would follow round for nothing.
 *
 * While others of this daemon wait, a lock goes from one to the next without being free in between.
 * When a turn of hand-overs is over it is really released, and the queue pauses, so that other
 * daemons get their turn. How long a turn and a pause are depends on the word that other daemons
 * have left on the masters. Where a far daemon has left word, and no client waits here, the lock is
 * sought: each grant counts as half a turn. docs/algorithm.md, "Handing over", has the reasons.
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

/* A turn, where another daemon has left word, and always where other libraries, which leave none,
 * share the names; where that daemon is far; and where no daemon has left word. */
enum { QUEUE_STREAK_HANDOVERS = 20, QUEUE_FAR_HANDOVERS = 6 };
#define QUEUE_STREAK_NS (5 * NS_PER_S)

/* How long a resource that a far waiter seeks is kept while no client of this daemon uses it. */
#define QUEUE_SOUGHT_NS (2 * NS_PER_S)

/* How long after a grant through this daemon the masters are left alone: who holds it tells us
 * itself, in all likelihood. */
#define QUEUE_QUIET_NS (100 * NS_PER_MS)

/* How often the masters are looked at that do not track: at random from half of it. */
#define QUEUE_POLL_NS (500 * NS_PER_MS)

/* After so many reports in a row that were for nothing, masters are looked at no more often than if
 * they did not report. Ends of a key that differ by less than this are the same. */
enum { QUEUE_IDLE_REPORTS = 10 };
#define QUEUE_SAME_NS (5 * NS_PER_MS)

/* One that waits; lies inside of its request. */
struct waiter {
    TAILQ_ENTRY(waiter) line;
    bool timed_out;             /* its wait is over; it only hears of the round that is under way */
    struct timer wait_deadline; /* of the owner: when its wait is over */
};

TAILQ_HEAD(waiter_line, waiter);

enum __attribute__((packed)) queue_phase { QUEUE_WATCHING, QUEUE_ACQUIRING, QUEUE_PAUSING };

/* What is needed where nobody waits comes first, in 64 bytes, and what is long and rarely needed
 * last: there is one of these for each lock. */
struct queue {
    const struct engine_rules *rules;
    struct waiter_line line;
    unsigned length;
    unsigned timed_out; /* of them */
    enum queue_phase phase;
    bool acquire_again; /* ACQUIRING: it was released meanwhile */
    bool contended;     /* somebody else wants it, as was heard in this turn */
    uint8_t sought;     /* a far waiter seeks it, until so many more masters know of none */
    bool yielded;       /* PAUSING: after a turn */
    int64_t acquire_ns; /* WATCHING: ask then, whatever is known; PAUSING: not before */

    int64_t streak_ns;  /* when the first hand-over of this turn was */
    unsigned handovers; /* in a row */
    unsigned failures;  /* rounds in a row after which it paused */
    uint32_t random;

    /* The key, as far as is known. Sets of nodes. */
    uint32_t free;
    uint32_t held;
    uint32_t tracked;              /* will tell of the next change */
    uint32_t changed;              /* have told of one, and are to be looked at */
    uint32_t probing;              /* are being looked at */
    uint32_t reported;             /* ... because they told of a change */
    unsigned idle_reports;         /* reports in a row that were for nothing */
    int64_t probe_ns;              /* when to look at those that do not track */
    int64_t quiet_ns;              /* ... and the earliest to look at any */
    int64_t sought_ns;             /* sought: until then, if no client here takes it meanwhile */
    int64_t need_ns;               /* the most that somebody else needs it to be free, this turn */
    uint64_t holder;               /* of the last that was seen, a fingerprint */
    int64_t until_ns[LIMIT_NODES]; /* of the held: when it ends; INT64_MAX if that is not known */
};

void queue_init(struct queue *queue, const struct engine_rules *rules, uint32_t seed);

/* At the end of the line. */
void queue_join(struct queue *queue, struct waiter *waiter, int64_t now_ns);

/* Wherever it stands in it: it was granted the lock, or waits no longer. */
void queue_leave(struct queue *queue, struct waiter *waiter);

/* Its wait is over, but a round is under way. */
void queue_note_timed_out(struct queue *queue, struct waiter *waiter);

/* What is to be done now? */
enum queue_want {
    QUEUE_REST,    /* nothing, until queue_wake_ns() or something happens */
    QUEUE_ACQUIRE, /* start a round for the first in line */
    QUEUE_PROBE,   /* look at these nodes; which then counts as done */
};

/* reachable: the nodes that can be looked at. */
enum queue_want queue_next(struct queue *queue, uint32_t reachable, int64_t now_ns,
                           uint32_t *nodes);
int64_t queue_wake_ns(const struct queue *queue);

/* A round has started for the first in line. */
void queue_on_acquiring(struct queue *queue);

enum queue_outcome {
    QUEUE_HELD,     /* somebody has a quorum */
    QUEUE_COLLIDED, /* nobody has, as far as votes have counted */
    QUEUE_FAILED,   /* no quorum of masters */
    QUEUE_AGAIN,    /* another has to follow at once: the first in line has left, or was outbid, or
                       it was too late for it alone */
};

/* ... and ended, without a grant. */
void queue_on_outcome(struct queue *queue, enum queue_outcome outcome, int64_t now_ns);

/* It was granted through this daemon, to end at until_ns at the latest; handed over by one who had
 * it before, or after it was free. */
void queue_on_granted(struct queue *queue, bool handed_over, int64_t until_ns, int64_t now_ns);

/* Somebody else of this daemon has it, or has had it extended; until then at the latest. */
void queue_on_held(struct queue *queue, int64_t until_ns, int64_t now_ns);

/* A node has told who holds the key: with an undo, or when it was looked at. */
struct observation {
    bool held;
    int64_t pttl_ms; /* of one that is held: its time to live, -1 unknown */
    uint64_t holder; /* likewise: a fingerprint of the value */
    bool tracked;    /* it will tell of the next change */
};
void queue_on_observed(struct queue *queue, unsigned node, const struct observation *seen,
                       int64_t now_ns);

/* A look has brought nothing. */
void queue_on_unobserved(struct queue *queue, unsigned node);

/* A node tells of a change; or it tracks only from now on. */
void queue_on_changed(struct queue *queue, unsigned node);

/* A node will not tell of changes any more. */
void queue_on_untracked(struct queue *queue, unsigned node, int64_t now_ns);

/* It was handed over, and another daemon waits for it, which needs it to be free for so long; 0: no
 * longer than usual. */
void queue_on_contention(struct queue *queue, int64_t need_ns);

/* It was released while no client here waited, and one master says for how long a far waiter of
 * another daemon needs it to be free; 0: that master knows of none, but others may. */
void queue_on_sought(struct queue *queue, int64_t need_ns, int64_t now_ns);

/* Is this a pause for a far waiter? Then a LOCK without WAIT is refused too. */
bool queue_yields(const struct queue *queue, int64_t now_ns);

/* The lock was released through this daemon. */
void queue_on_released(struct queue *queue, int64_t now_ns);

/* May a lock that is being released be handed over to the first in line? */
bool queue_may_hand_over(const struct queue *queue, int64_t now_ns);

/* For HELD: when a quorum can be free at the earliest, in milliseconds from now; -1 unknown. */
int64_t queue_hint_ms(const struct queue *queue, int64_t now_ns);

#endif
