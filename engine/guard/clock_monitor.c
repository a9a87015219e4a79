#include "engine/guard/clock_monitor.h"

#include <assert.h>

#include "engine/guard/rules.h"

/* TIME counts whole microseconds, so the clock may have been almost one further. */
enum { TIME_NS = 1000 };

/* As many unclear answers in a row, quick ones, mean that waiting does not help. */
enum { UNCLEAR_MAX = 5 };

/*
 * A clock that NTP steers drifts by at most 500 ppm. One that drifts by more than this is found
 * out, although a validity pays for the whole clock_drift_rate.
 */
enum { WATCHED_DRIFT_PPM = 1000 };

/* How far the offset may have drifted in this time. */
static int64_t drifted_ns(const struct drift *drift, int64_t duration_ns)
{
    const struct drift watched = {.rate_ppm = min(drift->rate_ppm, WATCHED_DRIFT_PPM)};
    return drift_of(&watched, max(duration_ns, 0));
}

/* The same for the floor: no more than an eighth of the margin, however long ago. */
static int64_t allowed_ns(const struct drift *drift, int64_t duration_ns)
{
    return min(drifted_ns(drift, duration_ns), drift->margin_ns / 8);
}

static bool is_steady(const struct drift *drift, int64_t high_ns, int64_t floor_ns)
{
    return high_ns <= floor_ns + drift->margin_ns / 4 * 3;
}

/* A watch that begins with this sample. */
static struct watch begun(const struct drift *drift, const struct watch_sample *sample)
{
    int64_t time_ns = sample->time_us * 1000;
    return (struct watch){
        .begun = true,
        /* Its answer has to be quick: half the margin. */
        .loose = sample->received_ns - sample->sent_ns > drift->margin_ns / 2,
        .at_ns = sample->received_ns,
        .low_ns = time_ns - sample->received_ns,
        .high_ns = time_ns + TIME_NS - sample->sent_ns,
        .floor_ns = time_ns - sample->received_ns,
        .tight_ns = sample->received_ns,
    };
}

/* The watch as it would be at now_ns without any sample in between. */
static struct watch widened(const struct watch *watch, const struct drift *drift, int64_t now_ns)
{
    struct watch then = *watch;
    int64_t passed_ns = now_ns - watch->at_ns;
    then.at_ns = now_ns;
    then.low_ns -= drifted_ns(drift, passed_ns);
    then.high_ns += drifted_ns(drift, passed_ns);
    return then;
}

static void follow(struct watch *watch, const struct watch *then, const struct watch *fresh,
                   int64_t risen_ns)
{
    watch->at_ns = fresh->at_ns;
    watch->low_ns = max(then->low_ns, fresh->low_ns);
    watch->high_ns = min(then->high_ns, fresh->high_ns);
    /* A step too small to matter has left the old bounds: believe the sample. */
    if (watch->low_ns > watch->high_ns) {
        watch->low_ns = fresh->low_ns;
        watch->high_ns = fresh->high_ns;
    }
    if (!fresh->loose) {
        watch->floor_ns = min(risen_ns, watch->low_ns);
        watch->tight_ns = fresh->at_ns;
    }
    watch->unclear = 0;
}

enum watch_verdict watch_take(struct watch *watch, const struct drift *drift,
                              const struct watch_sample *sample)
{
    assert(sample->sent_ns <= sample->received_ns);
    const struct watch fresh = begun(drift, sample);
    bool tight = !fresh.loose;
    if (!watch->begun) {
        if (tight)
            *watch = fresh;
        return tight ? WATCH_STEADY : WATCH_UNCLEAR;
    }
    bool anew = watch->loose && tight;
    assert(watch->at_ns <= sample->received_ns);
    const struct watch then = widened(watch, drift, fresh.at_ns);
    int64_t risen_ns = watch->floor_ns + allowed_ns(drift, fresh.at_ns - watch->tight_ns);
    if (fresh.high_ns < then.low_ns && tight) {
        *watch = fresh;
        /* Keys that were set when the offset was lowest are still there. */
        watch->floor_ns = min(risen_ns, fresh.floor_ns);
        return WATCH_STEPPED_BACK;
    }
    if (!anew && fresh.high_ns >= then.low_ns && is_steady(drift, fresh.high_ns, risen_ns)) {
        follow(watch, &then, &fresh, risen_ns);
        return WATCH_STEADY;
    }
    if (fresh.low_ns > then.high_ns) {
        *watch = fresh;
        return WATCH_STEPPED;
    }
    if (anew) {
        *watch = fresh;
        return WATCH_STEADY;
    }
    if (tight && ++watch->unclear >= UNCLEAR_MAX) {
        *watch = fresh;
        return WATCH_LOST;
    }
    return WATCH_UNCLEAR;
}

int64_t watch_hidden_ns(const struct watch *watch, int64_t sent_ns, int64_t time_us)
{
    return time_us * 1000 + TIME_NS - sent_ns - watch->floor_ns;
}

bool watch_inherit(struct watch *watch, const struct drift *drift, int64_t hidden_ns)
{
    assert(watch->begun);
    /* A daemon with a steady sample attests no more than that, nor less than nothing. */
    if (hidden_ns < 0 || hidden_ns > drift->margin_ns)
        return false;
    int64_t floor_ns = watch->floor_ns - hidden_ns;
    if (!is_steady(drift, watch->high_ns, floor_ns))
        return false;
    watch->floor_ns = floor_ns;
    return true;
}

enum watch_verdict watch_resume(struct watch *watch, const struct drift *drift,
                                const struct watch *earlier)
{
    assert(watch->begun);
    int64_t passed_ns = watch->at_ns - earlier->at_ns;
    if (!earlier->begun || passed_ns < 0)
        return WATCH_UNCLEAR;
    int64_t floor_ns = earlier->floor_ns + allowed_ns(drift, watch->at_ns - earlier->tight_ns);
    if (watch->high_ns < earlier->low_ns - drifted_ns(drift, passed_ns)) {
        watch->floor_ns = min(watch->floor_ns, floor_ns);
        return WATCH_STEPPED_BACK;
    }
    if (is_steady(drift, watch->high_ns, floor_ns)) {
        watch->floor_ns = min(watch->floor_ns, floor_ns);
        return WATCH_STEADY;
    }
    bool stepped = watch->low_ns > earlier->high_ns + drifted_ns(drift, passed_ns);
    return stepped ? WATCH_STEPPED : WATCH_UNCLEAR;
}
