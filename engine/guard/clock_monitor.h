/*
 * Monitors a master's clock, to notice a step that makes locks end early. Pure.
 *
 * A sample is a TIME command that was sent at sent_ns and answered at received_ns, both on the
 * daemon's clock. The master read its clock at some moment between the two. So the offset, which is
 * the master's clock minus ours, lies between two bounds:
 *
 *     low  = time - received        high = time - sent
 *
 * The monitor keeps three numbers from one sample to the next. Two are the tightest low and high
 * bound of the offset so far; they widen as time passes. The third is the floor: the lowest value
 * that the offset may have had before, raised by what drift can explain. Keys end early by as much
 * as the offset has grown. Therefore a new sample gives one of these results:
 *
 *     high is below the widened low bound                    less than any drift: STEPPED_BACK
 *     high - floor is within three quarters of the margin    nothing can have been lost: STEADY
 *     low is above the widened high bound                    more growth than any drift: STEPPED
 *     anything else, usually because of a slow answer        not known: UNCLEAR, sample again
 *
 * Only a tight sample, one with a quick answer, can give STEPPED_BACK. Several tight samples in a
 * row that give UNCLEAR mean that the monitor has lost track of the clock: LOST.
 *
 * Only a proven step forward, or a loss of track, resets the floor. If the monitor then begins anew
 * with a slow answer, the next tight sample resets the floor once more. A step back raises the
 * floor by no more than the allowed drift, and an observer that takes over from another one lowers
 * its floor by what that one may have missed. Otherwise two steps could each use up the whole
 * margin.
 *
 * The margin is clock_drift_margin. A STEADY result may hide growth of three quarters of the
 * margin, growth of another eighth that the floor takes for drift, and the drift from one sample to
 * the next. The whole margin is subtracted from every validity.
 */
#ifndef ENGINE_GUARD_CLOCK_MONITOR_H
#define ENGINE_GUARD_CLOCK_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/round/validity.h"

struct clock_monitor {
    bool begun;
    bool loose; /* begun anew with a slow answer; the next tight sample is a better start */
    /* When the last sample that was not UNCLEAR was received. The bounds are as of then. */
    int64_t at_ns;
    int64_t low_ns;
    int64_t high_ns;
    int64_t floor_ns;
    /* When a tight sample last updated the floor; drift is allowed for since then. */
    int64_t tight_ns;
    unsigned unclear; /* number of tight samples in a row that were not STEADY */
};

enum monitor_result {
    MONITOR_STEADY,
    MONITOR_UNCLEAR,
    MONITOR_STEPPED, /* a step forward; the monitor has begun anew */
    /* A step back, found by a tight sample. Keys live longer, which is safe. The monitor has begun
     * anew; the floor may be lower, but has not risen by more than the allowed drift. */
    MONITOR_STEPPED_BACK,
    /* Several tight samples in a row were UNCLEAR; the monitor has begun anew. */
    MONITOR_LOST,
};

struct monitor_sample {
    int64_t sent_ns;
    int64_t received_ns;
    int64_t time_us; /* the master's clock, from TIME */
};

/*
 * Take a sample. A sample is tight if its answer took at most half the margin. The first sample
 * must be tight. It gives STEADY, because there is nothing to compare it with. If the monitor has
 * begun anew with a slow answer, the next tight sample also gives STEADY, unless it shows another
 * step.
 */
enum monitor_result clock_monitor_take(struct clock_monitor *monitor, const struct drift *drift,
                                       const struct monitor_sample *sample);

/*
 * The most by which the offset can have grown from its lowest value until the last STEADY sample,
 * which was sent at sent_ns and answered with time_us. A key that was set before may end early by
 * this much, apart from drift.
 */
int64_t clock_monitor_hidden_ns(const struct clock_monitor *monitor, int64_t sent_ns,
                                int64_t time_us);

/*
 * Take over from another observer of the same clock. The other observer attests its
 * clock_monitor_hidden_ns() for a sample that is later than the first sample of this monitor. What
 * the other observer may have missed and what this one may miss add up, so the floor is lowered by
 * hidden_ns. Returns false, and changes nothing, if the margin is too small for that.
 */
bool clock_monitor_inherit(struct clock_monitor *monitor, const struct drift *drift,
                           int64_t hidden_ns);

/*
 * This monitor has just begun. Can it continue where an earlier monitor of the same two clocks
 * stopped? STEADY: it can, and has taken over the floor of the earlier one. STEPPED, STEPPED_BACK:
 * the clock has stepped in between. UNCLEAR: not known.
 */
enum monitor_result clock_monitor_resume(struct clock_monitor *monitor, const struct drift *drift,
                                         const struct clock_monitor *earlier);

#endif
