#include "engine/guard/clock_monitor.h"

#include <assert.h>

#include "protocol/units.h"

/* TIME returns whole microseconds, so the clock may show almost one microsecond more. */
enum { TIME_NS = 1000 };

/* After this many quick but unclear answers in a row, further samples do not help. */
enum { UNCLEAR_MAX = 5 };

/*
 * A clock that NTP steers drifts by at most 500 ppm, so two such clocks drift apart by at most
 * 1000 ppm. From one sample to the next, the monitor allows this much, or clock_drift_rate if that
 * is less. So it detects clocks that drift faster. Each validity is nevertheless reduced by the
 * whole clock_drift_rate.
 */
enum { WATCHED_DRIFT_PPM = 1000 };

/* How far the offset may have drifted in this time. */
static int64_t drifted_ns(const struct drift *drift, int64_t duration_ns)
{
    const struct drift watched = {.rate_ppm = min(drift->rate_ppm, WATCHED_DRIFT_PPM)};
    return drift_of(&watched, max(duration_ns, 0));
}

/* The drift that the floor allows for: at most an eighth of the margin, however long the time. */
static int64_t allowed_ns(const struct drift *drift, int64_t duration_ns)
{
    return min(drifted_ns(drift, duration_ns), drift->margin_ns / 8);
}

static bool is_steady(const struct drift *drift, int64_t high_ns, int64_t floor_ns)
{
    return high_ns <= floor_ns + drift->margin_ns / 4 * 3;
}

/* A monitor that begins with this sample. */
static struct clock_monitor begin_with(const struct drift *drift,
                                       const struct monitor_sample *sample)
{
    int64_t time_ns = sample->time_us * 1000;
    return (struct clock_monitor){
        .begun = true,
        /* A tight answer takes at most half the margin. */
        .loose = sample->received_ns - sample->sent_ns > drift->margin_ns / 2,
        .at_ns = sample->received_ns,
        .low_ns = time_ns - sample->received_ns,
        .high_ns = time_ns + TIME_NS - sample->sent_ns,
        .floor_ns = time_ns - sample->received_ns,
        .tight_ns = sample->received_ns,
    };
}

/* What the monitor knows at now_ns without another sample: the bounds are wider. */
static struct clock_monitor widen(const struct clock_monitor *monitor, const struct drift *drift,
                                  int64_t now_ns)
{
    struct clock_monitor then = *monitor;
    int64_t passed_ns = now_ns - monitor->at_ns;
    then.at_ns = now_ns;
    then.low_ns -= drifted_ns(drift, passed_ns);
    then.high_ns += drifted_ns(drift, passed_ns);
    return then;
}

/* Update the monitor by a STEADY sample. then: the monitor widened to the time of the sample.
 * fresh: a monitor that begins with the sample. risen_ns: the floor plus the drift allowed for
 * it. */
static void follow_sample(struct clock_monitor *monitor, const struct clock_monitor *then,
                          const struct clock_monitor *fresh, int64_t risen_ns)
{
    monitor->at_ns = fresh->at_ns;
    monitor->low_ns = max(then->low_ns, fresh->low_ns);
    monitor->high_ns = min(then->high_ns, fresh->high_ns);
    /* A step that is too small to matter has made the old bounds wrong. Use the bounds of the
     * sample. */
    if (monitor->low_ns > monitor->high_ns) {
        monitor->low_ns = fresh->low_ns;
        monitor->high_ns = fresh->high_ns;
    }
    if (!fresh->loose) {
        monitor->floor_ns = min(risen_ns, monitor->low_ns);
        monitor->tight_ns = fresh->at_ns;
    }
    monitor->unclear = 0;
}

enum monitor_result clock_monitor_take(struct clock_monitor *monitor, const struct drift *drift,
                                       const struct monitor_sample *sample)
{
    assert(sample->sent_ns <= sample->received_ns);
    const struct clock_monitor fresh = begin_with(drift, sample);
    bool tight = !fresh.loose;
    if (!monitor->begun) {
        if (tight)
            *monitor = fresh;
        return tight ? MONITOR_STEADY : MONITOR_UNCLEAR;
    }
    bool anew = monitor->loose && tight;
    assert(monitor->at_ns <= sample->received_ns);
    const struct clock_monitor then = widen(monitor, drift, fresh.at_ns);
    int64_t risen_ns = monitor->floor_ns + allowed_ns(drift, fresh.at_ns - monitor->tight_ns);
    if (fresh.high_ns < then.low_ns && tight) {
        *monitor = fresh;
        /* Keys that were set when the offset was lowest may still exist. So a step back may lower
         * the floor, but never raises it by more than the allowed drift. */
        monitor->floor_ns = min(risen_ns, fresh.floor_ns);
        return MONITOR_STEPPED_BACK;
    }
    if (!anew && fresh.high_ns >= then.low_ns && is_steady(drift, fresh.high_ns, risen_ns)) {
        follow_sample(monitor, &then, &fresh, risen_ns);
        return MONITOR_STEADY;
    }
    if (fresh.low_ns > then.high_ns) {
        *monitor = fresh;
        return MONITOR_STEPPED;
    }
    if (anew) {
        *monitor = fresh;
        return MONITOR_STEADY;
    }
    if (tight && ++monitor->unclear >= UNCLEAR_MAX) {
        *monitor = fresh;
        return MONITOR_LOST;
    }
    return MONITOR_UNCLEAR;
}

int64_t clock_monitor_hidden_ns(const struct clock_monitor *monitor, int64_t sent_ns,
                                int64_t time_us)
{
    return time_us * 1000 + TIME_NS - sent_ns - monitor->floor_ns;
}

bool clock_monitor_inherit(struct clock_monitor *monitor, const struct drift *drift,
                           int64_t hidden_ns)
{
    assert(monitor->begun);
    /* A daemon with a STEADY sample attests a value between zero and the margin. Any other value is
     * wrong. */
    if (hidden_ns < 0 || hidden_ns > drift->margin_ns)
        return false;
    int64_t floor_ns = monitor->floor_ns - hidden_ns;
    if (!is_steady(drift, monitor->high_ns, floor_ns))
        return false;
    monitor->floor_ns = floor_ns;
    return true;
}

enum monitor_result clock_monitor_resume(struct clock_monitor *monitor, const struct drift *drift,
                                         const struct clock_monitor *earlier)
{
    assert(monitor->begun);
    int64_t passed_ns = monitor->at_ns - earlier->at_ns;
    if (!earlier->begun || passed_ns < 0)
        return MONITOR_UNCLEAR;
    int64_t floor_ns = earlier->floor_ns + allowed_ns(drift, monitor->at_ns - earlier->tight_ns);
    if (monitor->high_ns < earlier->low_ns - drifted_ns(drift, passed_ns)) {
        monitor->floor_ns = min(monitor->floor_ns, floor_ns);
        return MONITOR_STEPPED_BACK;
    }
    if (is_steady(drift, monitor->high_ns, floor_ns)) {
        monitor->floor_ns = min(monitor->floor_ns, floor_ns);
        return MONITOR_STEADY;
    }
    bool stepped = monitor->low_ns > earlier->high_ns + drifted_ns(drift, passed_ns);
    return stepped ? MONITOR_STEPPED : MONITOR_UNCLEAR;
}
