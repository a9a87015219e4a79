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
 * and an observer that begins to monitor takes over what the one before it may have missed.
 * Otherwise two steps would each use up the whole margin.
 *
 * What a STEADY sample may hide is three quarters of the margin, an eighth that drift may explain,
 * and the drift from one sample to the next; the whole margin is subtracted from every validity.
 */
#ifndef ENGINE_GUARD_CLOCK_MONITOR_H
#define ENGINE_GUARD_CLOCK_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"

struct clock_monitor {
    bool begun;
    bool loose;    /* with a slow answer, after a step: the next quick one is a better beginning */
    int64_t at_ns; /* when the last sample was received; what follows is as of then */
    int64_t low_ns;
    int64_t high_ns;
    int64_t floor_ns;
    int64_t tight_ns; /* when the floor last followed a sample: drift is allowed for since then */
    unsigned unclear; /* tight samples in a row that were not steady */
};

enum monitor_result {
    MONITOR_STEADY,
    MONITOR_UNCLEAR,
    MONITOR_STEPPED,      /* forward: begun anew */
    MONITOR_STEPPED_BACK, /* found by a quick answer; keys live longer, which is safe: begun anew,
                           but for the floor */
    MONITOR_LOST,         /* unclear for too long, though the answers are quick: begun anew */
};

struct monitor_sample {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t time_us; /* the master's clock, as TIME gives it */
};

/* A sample is tight if its answer took half the margin at most. The first one, which has to be
 * tight, gives STEADY and nothing to compare with; and so does the first tight one after a monitor
 * has begun anew with a slow answer, unless it shows a further step. */
enum monitor_result clock_monitor_take(struct clock_monitor *monitor, const struct drift *drift,
                                       const struct monitor_sample *sample);

/*
 * By how much at most the offset had grown, since it was lowest, when the last steady sample was
 * taken: sent at sent_ns, and answered with time_us. Drift aside, that is how much earlier than it
 * should a key may end that was set before.
 */
int64_t clock_monitor_hidden_ns(const struct clock_monitor *monitor, int64_t sent_ns,
                                int64_t time_us);

/*
 * Another observer of the same clock attests its clock_monitor_hidden_ns() for a sample later than
 * the first one of this monitor. What it may have missed and what this one may miss add up, so the
 * floor goes down by that much. False, and nothing is changed, if that leaves no room in the
 * margin.
 */
bool clock_monitor_inherit(struct clock_monitor *monitor, const struct drift *drift,
                           int64_t hidden_ns);

/*
 * Does this monitor, just begun, go on where the other one, of the same clocks, left off? STEADY:
 * it does, and now knows what the other knew. STEPPED, STEPPED_BACK: there was a step in between.
 * UNCLEAR: it cannot be told.
 */
enum monitor_result clock_monitor_resume(struct clock_monitor *monitor, const struct drift *drift,
                                         const struct clock_monitor *earlier);

#endif
