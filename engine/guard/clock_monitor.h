/*
 * Watching a master's clock, so that a step of it does not end locks early unseen. Pure.
 *
 * A sample is a TIME that was asked for at sent_ns and answered at received_ns, both on our own
 * clock: the master read its clock somewhere in between, so the offset (its clock minus ours) lies
 * between what follows from either end:
 *
 *     low  = time - received        high = time - sent
 *
 * Three numbers are kept from one sample to the next: the tightest low and high bound of the
 * offset, which widen as time passes, and the floor: the lowest that the offset may have been
 * before, as far as drift does not explain the difference. Keys expire early by as much as the
 * offset grows; so
 *
 *     high - floor within the share of the margin    nothing can have been lost: STEADY
 *     low above the high bound, the same widened     it has grown beyond any drift: STEPPED
 *     anything else, a slow answer as a rule         cannot tell: UNCLEAR, ask again
 *
 * The floor outlasts everything but a proven step forward: it is kept when the clock steps back,
 * and an observer that begins to watch takes over what the one before it may have missed. Otherwise
 * two steps would each use up the whole margin.
 *
 * What a STEADY sample may hide is three quarters of the margin, an eighth that drift may explain,
 * and the drift from one sample to the next; the whole margin is subtracted from every validity.
 */
#ifndef ENGINE_GUARD_CLOCK_MONITOR_H
#define ENGINE_GUARD_CLOCK_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"

struct watch {
    bool begun;
    bool loose;    /* with a slow answer, after a step: the next quick one is a better beginning */
    int64_t at_ns; /* when the last sample was received; what follows is as of then */
    int64_t low_ns;
    int64_t high_ns;
    int64_t floor_ns;
    int64_t tight_ns; /* when the floor last followed a sample: drift is allowed for since then */
    unsigned unclear; /* tight samples in a row that were not steady */
};

enum watch_verdict {
    WATCH_STEADY,
    WATCH_UNCLEAR,
    WATCH_STEPPED,      /* forward: begun anew */
    WATCH_STEPPED_BACK, /* found by a quick answer; keys live longer, which is safe: begun anew, but
                           for the floor */
    WATCH_LOST,         /* unclear for too long, though the answers are quick: begun anew */
};

struct watch_sample {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t time_us; /* the master's clock, as TIME gives it */
};

/* A sample is tight if its answer took half the margin at most. The first one, which has to be
 * tight, gives STEADY and nothing to compare with; and so does the first tight one after a watch
 * has begun anew with a slow answer, unless it shows a further step. */
enum watch_verdict watch_take(struct watch *watch, const struct drift *drift,
                              const struct watch_sample *sample);

/*
 * By how much at most the offset had grown, since it was lowest, when the last steady sample was
 * taken: sent at sent_ns, and answered with time_us. Drift aside, that is how much earlier than it
 * should a key may end that was set before.
 */
int64_t watch_hidden_ns(const struct watch *watch, int64_t sent_ns, int64_t time_us);

/*
 * Another observer of the same clock attests its watch_hidden_ns() for a sample later than the
 * first one of this watch. What it may have missed and what this one may miss add up, so the floor
 * goes down by that much. False, and nothing is changed, if that leaves no room in the margin.
 */
bool watch_inherit(struct watch *watch, const struct drift *drift, int64_t hidden_ns);

/*
 * Does this watch, just begun, go on where the other one, of the same clocks, left off? STEADY: it
 * does, and now knows what the other knew. STEPPED, STEPPED_BACK: there was a step in between.
 * UNCLEAR: it cannot be told.
 */
enum watch_verdict watch_resume(struct watch *watch, const struct drift *drift,
                                const struct watch *earlier);

#endif
