#include "server/admin/monitor.h"

#include <assert.h>
#include <string.h>

void monitor_init(struct monitor *monitor, int64_t now_ns)
{
    memset(monitor, 0, sizeof(*monitor));
    for (unsigned i = 0; i < LIMIT_NODES; i++)
        monitor->no_vote_ns[i] = now_ns;
}

void monitor_take(struct monitor *monitor, const struct monitor_sample *sample)
{
    memmove(monitor->samples + 1, monitor->samples, sizeof(monitor->samples) - sizeof(*sample));
    monitor->samples[0] = *sample;
    if (monitor->sample_count < MONITOR_SAMPLES)
        monitor->sample_count++;
}

const struct monitor_sample *monitor_ago(const struct monitor *monitor, unsigned seconds)
{
    return seconds < monitor->sample_count ? &monitor->samples[seconds] : NULL;
}

double monitor_grants_a_second(const struct monitor *monitor, unsigned seconds)
{
    if (monitor->sample_count < 2)
        return 0;
    unsigned back = seconds < monitor->sample_count ? seconds : monitor->sample_count - 1;
    uint64_t granted = monitor_ago(monitor, 0)->granted - monitor_ago(monitor, back)->granted;
    return (double)granted / back;
}

void monitor_on_lost(struct monitor *monitor, const char *resource, size_t resource_len,
                     const char *client, unsigned loss, int64_t wall_ns)
{
    struct monitor_loss *to = monitor->losses;
    assert(resource_len <= LIMIT_RESOURCE);
    memmove(to + 1, to, sizeof(monitor->losses) - sizeof(*to));
    *to = (struct monitor_loss){.wall_ns = wall_ns, .loss = loss, .resource_len = resource_len};
    memcpy(to->resource, resource, resource_len);
    strncpy(to->client, client, LIMIT_TAG);
    if (monitor->loss_count < MONITOR_LOSSES)
        monitor->loss_count++;
}

const struct monitor_loss *monitor_loss(const struct monitor *monitor, unsigned others)
{
    return others < monitor->loss_count ? &monitor->losses[others] : NULL;
}

void monitor_on_vote(struct monitor *monitor, unsigned node, enum reason reason, int64_t now_ns)
{
    assert(node < LIMIT_NODES);
    if (reason == REASON_NONE)
        monitor->no_vote_ns[node] = 0;
    else if (monitor->no_vote_ns[node] == 0)
        monitor->no_vote_ns[node] = now_ns;
}
