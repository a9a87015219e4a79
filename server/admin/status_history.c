#include "server/admin/status_history.h"

#include <assert.h>
#include <string.h>

void status_history_init(struct status_history *history, int64_t now_ns)
{
    memset(history, 0, sizeof(*history));
    for (unsigned i = 0; i < LIMIT_NODES; i++)
        history->no_vote_ns[i] = now_ns;
}

void status_history_take(struct status_history *history, const struct status_history_sample *sample)
{
    memmove(history->samples + 1, history->samples, sizeof(history->samples) - sizeof(*sample));
    history->samples[0] = *sample;
    if (history->sample_count < STATUS_HISTORY_SAMPLES)
        history->sample_count++;
}

const struct status_history_sample *status_history_ago(const struct status_history *history,
                                                       unsigned seconds)
{
    return seconds < history->sample_count ? &history->samples[seconds] : NULL;
}

double status_history_grants_a_second(const struct status_history *history, unsigned seconds)
{
    if (history->sample_count < 2)
        return 0;
    unsigned back = seconds < history->sample_count ? seconds : history->sample_count - 1;
    uint64_t granted =
        status_history_ago(history, 0)->granted - status_history_ago(history, back)->granted;
    return (double)granted / back;
}

void status_history_on_lost(struct status_history *history, const char *resource,
                            size_t resource_len, const char *client, unsigned loss, int64_t wall_ns)
{
    struct status_history_loss *to = history->losses;
    assert(resource_len <= LIMIT_RESOURCE);
    memmove(to + 1, to, sizeof(history->losses) - sizeof(*to));
    *to = (struct status_history_loss){
        .wall_ns = wall_ns, .loss = loss, .resource_len = resource_len};
    memcpy(to->resource, resource, resource_len);
    strncpy(to->client, client, LIMIT_TAG);
    if (history->loss_count < STATUS_HISTORY_LOSSES)
        history->loss_count++;
}

const struct status_history_loss *status_history_loss(const struct status_history *history,
                                                      unsigned others)
{
    return others < history->loss_count ? &history->losses[others] : NULL;
}

void status_history_on_vote(struct status_history *history, unsigned node, enum reason reason,
                            int64_t now_ns)
{
    assert(node < LIMIT_NODES);
    if (reason == REASON_NONE)
        history->no_vote_ns[node] = 0;
    else if (history->no_vote_ns[node] == 0)
        history->no_vote_ns[node] = now_ns;
}
