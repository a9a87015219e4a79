#include "engine/guard/clock_trust.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/units.h"

/* Limits of the numbers in a clock entry, so that their sums and differences do not overflow. */
#define ENTRY_TIME_MAX   (INT64_MAX / 4)
#define ENTRY_OFFSET_MAX (INT64_MAX / 4 * 3)

/* At most one log line in this time, in case a clock jumps all the time. */
#define STEP_LOG_NS (10 * NS_PER_S)

/* Stop trusting the clock: nothing is known of it before now_ns, when it shows time_us. A step
 * forward that is not confirmed yet can still be confirmed: CLOCK_STEPPED does not change. */
static void untrust(struct clock_trust *clock, const struct guard_periods *periods, int64_t now_ns,
                    int64_t time_us)
{
    if (clock->state == CLOCK_TRUSTED)
        clock->state = CLOCK_UNTRUSTED;
    clock->entry_left = false;
    clock->trusted_from_ns = now_ns + periods->quarantine_ns;
    clock->first_time_us = time_us;
    clock->steady_ns = 0;
}

static void announce(struct clock_trust *clock, int64_t now_ns)
{
    clock->step_unannounced_ns = now_ns;
    clock->entry_left = false;
}

static void step_forward(struct clock_trust *clock, const struct guard_periods *periods,
                         int64_t now_ns, int64_t time_us)
{
    untrust(clock, periods, now_ns, time_us);
    clock->stepped_ns = now_ns;
    clock->stepped_until_ns = now_ns + periods->quarantine_ns;
    clock->state = CLOCK_STEPPED;
    announce(clock, now_ns);
}

/* A step back makes keys live longer, which is safe. But it has to be announced. Bounds that were
 * left on the master before would fit again once the clock has stepped forward to where it was, and
 * would hide that step. */
static void step_back(struct clock_trust *clock, int64_t back_ns, int64_t now_ns)
{
    announce(clock, now_ns);
    /* A step is announced and logged even if its visible size is about zero. */
    back_ns = max(back_ns, 1);
    clock->back_ns = back_ns < INT64_MAX - clock->back_ns ? clock->back_ns + back_ns : INT64_MAX;
}

static bool is_step(enum monitor_result result)
{
    return result == MONITOR_STEPPED || result == MONITOR_STEPPED_BACK;
}

/* Returns true if the sample confirms a step forward. */
static bool on_steady(struct clock_trust *clock, const struct monitor_sample *sample)
{
    bool confirmed = clock->state == CLOCK_STEPPED && sample->sent_ns >= clock->stepped_ns;
    clock->steady_ns = sample->sent_ns;
    clock->steady_time_us = sample->time_us;
    if (confirmed)
        clock->state = CLOCK_UNTRUSTED;
    if (clock->state == CLOCK_UNTRUSTED && sample->received_ns >= clock->trusted_from_ns)
        clock->state = CLOCK_TRUSTED;
    return confirmed;
}

void clock_drop_step(struct clock_trust *clock)
{
    if (clock->state == CLOCK_STEPPED)
        clock->state = CLOCK_UNTRUSTED;
}

struct clock_result clock_on_sample(struct clock_trust *clock, const struct guard_periods *periods,
                                    const struct monitor_sample *sample)
{
    int64_t now_ns = sample->received_ns;
    bool begins = !clock->monitor.begun || clock->monitor.loose;
    /* Twice the interval, because a heartbeat of a healthy daemon may be late. */
    bool away =
        clock->monitor.begun && sample->sent_ns - clock->sampled_ns > 2 * periods->heartbeat_ns;
    bool announced_since = clock->known_step_ns > clock->sampled_ns;
    int64_t low_ns = clock->monitor.low_ns;
    struct clock_result result = {
        .result = clock_monitor_take(&clock->monitor, &periods->drift, sample),
    };
    if (begins && !clock->monitor.loose && result.result == MONITOR_STEADY)
        untrust(clock, periods, now_ns, sample->time_us);
    switch (result.result) {
    case MONITOR_STEADY:
        result.confirmed = on_steady(clock, sample);
        break;
    case MONITOR_STEPPED:
        step_forward(clock, periods, now_ns, sample->time_us);
        break;
    case MONITOR_STEPPED_BACK:
        clock_drop_step(clock);
        step_back(clock, low_ns - clock->monitor.low_ns, now_ns);
        break;
    case MONITOR_LOST:
        untrust(clock, periods, now_ns, sample->time_us);
        break;
    case MONITOR_UNCLEAR:
        return result;
    }
    /* Store when the sample was sent, not when its answer was read: if the daemon was stopped in
     * between, it reads the answer late. */
    clock->sampled_ns = sample->sent_ns;
    clock->sampled_time_us = sample->time_us;
    /* Other daemons may have seen a step while this one took no samples. A later known_step_ns
     * shows that one was announced. */
    if (away)
        clock->unmonitored_since_ns = sample->sent_ns;
    if (away && announced_since)
        untrust(clock, periods, now_ns, sample->time_us);
    result.heartbeat = away || is_step(result.result);
    return result;
}

struct clock_result clock_begin_anew(struct clock_trust *clock, const struct guard_periods *periods,
                                     const struct monitor_sample *sample)
{
    clock->monitor = (struct clock_monitor){.begun = false};
    untrust(clock, periods, sample->received_ns, sample->time_us);
    return clock_on_sample(clock, periods, sample);
}

/* A step was announced on the master. Bounds from before it are void, and the next sample gives new
 * ones. If this daemon took no samples for a while, it may have missed the step, and locks that it
 * counts on may be gone; then it stops trusting the clock. */
static void learn_of_step(struct clock_trust *clock, const struct guard_periods *periods,
                          const char *step, int64_t now_ns)
{
    snprintf(clock->known_step, sizeof(clock->known_step), "%s", step);
    clock->known_step_ns = now_ns;
    clock->entry_left = false;
    if (clock->unmonitored_since_ns != 0)
        untrust(clock, periods, now_ns, clock->sampled_time_us);
}

bool clock_on_heartbeat(struct clock_trust *clock, const struct guard_periods *periods,
                        const char *left, const char *step, int64_t sent_ns, int64_t now_ns)
{
    bool announced = strcmp(left, CLOCK_STEP_ANNOUNCED) == 0;
    bool news = strcmp(step, clock->known_step) != 0;
    clock->entry_left = clock->entry_left || (left[0] != '\0' && !announced);
    if (news)
        learn_of_step(clock, periods, step, now_ns);
    if (announced && sent_ns >= clock->step_unannounced_ns)
        clock->step_unannounced_ns = 0;
    if (sent_ns >= clock->unmonitored_since_ns)
        clock->unmonitored_since_ns = 0;
    return news;
}

/* Use the attestation of a daemon that trusts the clock, on whatever host it runs. */
static bool take_attestation(struct clock_trust *clock, const struct guard_periods *periods,
                             const char *attestation)
{
    int64_t time_us = 0;
    int64_t hidden_us = 0;
    return sscanf(attestation, "%" SCNd64 ":%" SCNd64, &time_us, &hidden_us) == 2 &&
           time_us > clock->first_time_us && hidden_us >= 0 && hidden_us < INT64_MAX / 1000 &&
           clock_monitor_inherit(&clock->monitor, &periods->drift, hidden_us * 1000);
}

/* Parse the clock entry, which a daemon of this host has left that trusts the clock. Returns false
 * if the entry is of no use. */
static bool parse_entry(const struct clock_trust *clock, const char *entry,
                        struct clock_monitor *earlier)
{
    int len = 0;
    *earlier = (struct clock_monitor){.begun = true};
    if (sscanf(entry, "%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%n",
               &earlier->at_ns, &earlier->low_ns, &earlier->high_ns, &earlier->floor_ns,
               &earlier->tight_ns, &len) != 5 ||
        strcmp(entry + len, clock->known_step) != 0)
        return false;
    /* An entry with impossible numbers is forged. */
    const int64_t times[] = {earlier->at_ns, earlier->tight_ns};
    const int64_t offsets[] = {earlier->low_ns, earlier->high_ns, earlier->floor_ns};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i] < 0 || times[i] > ENTRY_TIME_MAX)
            return false;
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
        if (offsets[i] < -ENTRY_OFFSET_MAX || offsets[i] > ENTRY_OFFSET_MAX)
            return false;
    return true;
}

struct clock_result clock_inherit(struct clock_trust *clock, const struct guard_periods *periods,
                                  const char *attestation, const char *entry, int64_t now_ns)
{
    struct clock_result result = {.result = MONITOR_UNCLEAR};
    struct clock_monitor earlier;
    if (clock->state == CLOCK_TRUSTED || clock->steady_ns == 0 || now_ns < clock->stepped_until_ns)
        return result;
    if (take_attestation(clock, periods, attestation))
        result.result = MONITOR_STEADY;
    else if (parse_entry(clock, entry, &earlier))
        result.result = clock_monitor_resume(&clock->monitor, &periods->drift, &earlier);
    switch (result.result) {
    case MONITOR_STEADY:
        clock->state = CLOCK_TRUSTED;
        break;
    case MONITOR_STEPPED:
        step_forward(clock, periods, now_ns, clock->steady_time_us);
        break;
    case MONITOR_STEPPED_BACK:
        clock->state = CLOCK_TRUSTED;
        step_back(clock, earlier.low_ns - clock->monitor.low_ns, now_ns);
        break;
    case MONITOR_UNCLEAR:
    case MONITOR_LOST:
        break;
    }
    result.heartbeat = is_step(result.result);
    return result;
}

void clock_on_suspect(struct clock_trust *clock, const struct guard_periods *periods,
                      int64_t now_ns)
{
    untrust(clock, periods, now_ns, INT64_MAX);
    clock->state = CLOCK_UNTRUSTED;
    announce(clock, now_ns);
}

void clock_override(struct clock_trust *clock)
{
    if (clock->state == CLOCK_UNTRUSTED)
        clock->state = CLOCK_TRUSTED;
}

/* Bounds from before this daemon learned of the last step may be older than the step, so they do
 * not count. */
bool clock_has_bounds(const struct clock_trust *clock, int64_t now_ns)
{
    return clock->state == CLOCK_TRUSTED && clock->steady_ns != 0 && clock->known_step[0] != '\0' &&
           clock->steady_ns >= clock->known_step_ns && clock->step_unannounced_ns == 0 &&
           clock->unmonitored_since_ns == 0 && now_ns >= clock->stepped_until_ns;
}

void clock_describe(const struct clock_trust *clock, bool has_bounds, char entry[GUARD_ENTRY_MAX],
                    char attestation[GUARD_ATTESTATION_MAX])
{
    const struct clock_monitor *monitor = &clock->monitor;
    entry[0] = attestation[0] = '\0';
    if (clock->step_unannounced_ns != 0) {
        memcpy(entry, CLOCK_STEP_ANNOUNCED, sizeof(CLOCK_STEP_ANNOUNCED));
        return;
    }
    if (!has_bounds)
        return;
    int64_t hidden_ns = clock_monitor_hidden_ns(monitor, clock->steady_ns, clock->steady_time_us);
    snprintf(entry, GUARD_ENTRY_MAX,
             "%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64 ":%s", monitor->at_ns,
             monitor->low_ns, monitor->high_ns, monitor->floor_ns, monitor->tight_ns,
             clock->known_step);
    snprintf(attestation, GUARD_ATTESTATION_MAX, "%" PRId64 ":%" PRId64, clock->steady_time_us,
             hidden_ns / 1000 + 1);
}

int64_t clock_take_step_back(struct clock_trust *clock, int64_t now_ns)
{
    int64_t back_ns = clock->back_ns;
    if (back_ns == 0 || (clock->back_taken_ns != 0 && now_ns - clock->back_taken_ns < STEP_LOG_NS))
        return 0;
    clock->back_ns = 0;
    clock->back_taken_ns = now_ns;
    return back_ns;
}
