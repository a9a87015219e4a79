/*
 * Monitors a master's clock, so that a step which makes locks end early is noticed. Pure.
 *
 * A sample is a TIME sent at sent_ns and answered at received_ns, both on the daemon's clock. The
 * master read its clock somewhere in between, so the offset (its clock minus ours) lies between two
 * bounds:
 *
 *     low  = time - received        high = time - sent
 *
 * The monitor keeps three numbers from one sample to the next. Two are the tightest low and high
 * bound of the offset, which widen as time passes. The third is the floor: the lowest value that
 * the offset may have had before, as far as drift does not explain the difference. Keys expire
 * early by as much as the offset grows. Therefore
 *
 *     high - floor within the share of the margin    nothing can have been lost: STEADY
 *     low above the high bound, the same widened     it has grown beyond any drift: STEPPED
 *     anything else, usually a slow answer           cannot tell: UNCLEAR, sample again
 *
 * Only a proven step forward resets the floor. The monitor keeps the floor when the clock steps
 * back, and a new observer takes over what the previous one may have missed. Otherwise two steps
 * could each use up the whole margin.
 *
 * A STEADY sample may hide three quarters of the margin, an eighth that drift may explain, and the
 * drift from one sample to the next. The whole margin is subtracted from every validity.
 */
#ifndef ENGINE_GUARD_CLOCK_MONITOR_H
#define ENGINE_GUARD_CLOCK_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"

struct clock_monitor {
    bool begun;
    bool loose;    /* begun with a slow answer after a step; the next quick one is a better start */
    int64_t at_ns; /* receipt of the last sample; the fields below are as of then */
    int64_t low_ns;
    int64_t high_ns;
    int64_t floor_ns;
    int64_t tight_ns; /* when the floor last followed a sample; drift is allowed for since then */
    unsigned unclear; /* tight samples in a row that were not steady */
};

enum monitor_result {
    MONITOR_STEADY,
    MONITOR_UNCLEAR,
    MONITOR_STEPPED, /* forward step; the monitor has begun anew */
    /* Back step, found by a quick answer. Keys live longer, which is safe. The monitor has begun
     * anew, except for the floor. */
    MONITOR_STEPPED_BACK,
    MONITOR_LOST, /* unclear for too long despite quick answers; the monitor has begun anew */
};

struct monitor_sample {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t time_us; /* the master's clock, from TIME */
};

/*
 * A sample is tight if its answer took at most half the margin. The first sample must be tight; it
 * gives STEADY, because there is nothing to compare it with. The first tight sample after a monitor
 * has begun anew with a slow answer also gives STEADY, unless it shows a further step.
 */
enum monitor_result clock_monitor_take(struct clock_monitor *monitor, const struct drift *drift,
                                       const struct monitor_sample *sample);

/*
 * The most by which the offset can have grown, since it was lowest, when the last steady sample was
 * taken: sent at sent_ns, and answered with time_us. Apart from drift, a key set before that may
 * end this much too early.
 */
int64_t clock_monitor_hidden_ns(const struct clock_monitor *monitor, int64_t sent_ns,
                                int64_t time_us);

/*
 * Another observer of the same clock attests its clock_monitor_hidden_ns() for a sample later than
 * this monitor's first one. What the other observer may have missed and what this one may miss add
 * up, so the floor is lowered by that much. Returns false, and changes nothing, if the margin has
 * no room for it.
 */
bool clock_monitor_inherit(struct clock_monitor *monitor, const struct drift *drift,
                           int64_t hidden_ns);

/*
 * Can this monitor, just begun, continue where an earlier one of the same clocks stopped? STEADY:
 * it can, and has taken over what the earlier one knew. STEPPED, STEPPED_BACK: the clock has
 * stepped in between. UNCLEAR: cannot tell.
 */
enum monitor_result clock_monitor_resume(struct clock_monitor *monitor, const struct drift *drift,
                                         const struct clock_monitor *earlier);

#endif
