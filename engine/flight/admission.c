#include "engine/flight/admission.h"

#include <string.h>

void admission_init(struct admission *admission, int64_t node_timeout_ns)
{
    memset(admission, 0, sizeof(*admission));
    admission->node_timeout_ns = node_timeout_ns;
    admission->limit = LIMIT_ADMISSION_START;
    admission->shortest_ns = admission->shortest_before_ns = INT64_MAX;
    admission->period_ends_ns = -2 * ADMISSION_PERIOD_NS;
}

static void set_limit(struct admission *admission, unsigned limit)
{
    if (limit < LIMIT_ADMISSION_MIN)
        limit = LIMIT_ADMISSION_MIN;
    admission->limit = limit < LIMIT_ADMISSION_MAX ? limit : LIMIT_ADMISSION_MAX;
}

/* A new period: reduce the limit, so that the queues on the way to the masters drain and the
 * latency without them can be measured. That is not needed if few rounds are in flight, or after a
 * pause of a period or more, in which the limit did not matter. */
static void begin_period(struct admission *admission, bool tight, int64_t latency_ns,
                         int64_t now_ns)
{
    bool after_pause = now_ns >= admission->period_ends_ns + ADMISSION_PERIOD_NS;
    admission->shortest_before_ns = after_pause ? INT64_MAX : admission->shortest_ns;
    admission->shortest_ns = latency_ns;
    admission->period_ends_ns = now_ns + ADMISSION_PERIOD_NS;
    if (after_pause || !tight)
        return;
    set_limit(admission, admission->limit / 8);
    admission->steady_ns = now_ns + latency_ns;
}

/* Set the limit to the number of rounds in flight times target_ns / latency_ns, but to at least
 * half of that number. */
static void shrink(struct admission *admission, unsigned in_flight, int64_t latency_ns,
                   int64_t target_ns, int64_t now_ns)
{
    int64_t kept_ns = max(target_ns, latency_ns / 2);
    unsigned from = in_flight < admission->limit ? in_flight : admission->limit;
    set_limit(admission, (unsigned)(from * kept_ns / latency_ns));
    admission->steady_ns = now_ns + latency_ns;
}

void admission_adapt(struct admission *admission, int64_t latency_ns, int64_t distance_ns,
                     int64_t now_ns)
{
    unsigned settled = admission->settled;
    unsigned in_flight = admission->in_flight + settled; /* the most in this pass */
    bool tight = in_flight > admission->limit / 2;
    admission->settled = 0;
    if (latency_ns == INT64_MAX)
        return;
    if (now_ns >= admission->period_ends_ns) {
        begin_period(admission, tight, latency_ns, now_ns);
        return;
    }
    admission->shortest_ns = min(admission->shortest_ns, latency_ns);
    int64_t base_ns = min(distance_ns, min(admission->shortest_ns, admission->shortest_before_ns));
    int64_t allowance_ns = admission->node_timeout_ns / 4;
    /* With far masters, the target stays a quarter of node_timeout below node_timeout, because
     * latencies vary. */
    int64_t target_ns = min(base_ns + allowance_ns, 3 * allowance_ns);
    if (now_ns < admission->steady_ns)
        return;
    if (latency_ns > target_ns) {
        shrink(admission, in_flight, latency_ns, target_ns, now_ns);
    } else if (tight && latency_ns < target_ns - allowance_ns / 2) {
        set_limit(admission, admission->limit + settled);
    }
}
