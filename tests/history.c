#include "tests/history.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void history_init(struct history *history)
{
    memset(history, 0, sizeof(*history));
}

static struct history_hold *find(const struct history *history, unsigned resource,
                                 const char *token)
{
    for (unsigned i = 0; i < history->hold_count; i++) {
        const struct history_hold *hold = &history->holds[i];
        if (hold->resource == resource && strcmp(hold->token, token) == 0)
            return (struct history_hold *)hold;
    }
    return NULL;
}

static void drop(struct history *history, struct history_hold *hold)
{
    *hold = history->holds[--history->hold_count];
}

/* True if another token holds this resource. Expired holds that the search meets are removed. */
static bool finds_other(struct history *history, unsigned resource, const char *token,
                        int64_t now_ns)
{
    for (unsigned i = 0; i < history->hold_count; i++) {
        struct history_hold *hold = &history->holds[i];
        if (hold->until_ns <= now_ns) {
            drop(history, hold);
            i--;
        } else if (hold->resource == resource && strcmp(hold->token, token) != 0) {
            history->other = *hold;
            return true;
        }
    }
    return false;
}

static void record(struct history *history, unsigned resource, const char *token, int64_t until_ns)
{
    assert(history->hold_count < HISTORY_HOLDS);
    struct history_hold *hold = &history->holds[history->hold_count++];
    hold->resource = resource;
    hold->until_ns = until_ns;
    snprintf(hold->token, sizeof(hold->token), "%s", token);
}

enum history_result history_granted(struct history *history, unsigned resource, const char *token,
                                    int64_t fence, int64_t now_ns, int64_t until_ns)
{
    assert(resource < HISTORY_RESOURCES);
    if (fence != 0 && fence <= history->fences[resource])
        return HISTORY_FENCE_FELL;
    if (until_ns > now_ns) {
        if (finds_other(history, resource, token, now_ns))
            return HISTORY_TWO_HOLDERS;
        record(history, resource, token, until_ns);
    }
    if (fence != 0)
        history->fences[resource] = fence;
    history->grants++;
    return HISTORY_FINE;
}

enum history_result history_prolonged(struct history *history, unsigned resource, const char *token,
                                      int64_t now_ns, int64_t until_ns)
{
    assert(resource < HISTORY_RESOURCES);
    if (until_ns <= now_ns)
        return HISTORY_FINE;
    if (finds_other(history, resource, token, now_ns))
        return HISTORY_TWO_HOLDERS;
    struct history_hold *hold = find(history, resource, token);
    if (hold == NULL)
        record(history, resource, token, until_ns);
    else if (hold->until_ns < until_ns)
        hold->until_ns = until_ns;
    return HISTORY_FINE;
}

void history_ended(struct history *history, unsigned resource, const char *token)
{
    struct history_hold *hold = find(history, resource, token);
    if (hold != NULL)
        drop(history, hold);
}

int64_t history_until(const struct history *history, unsigned resource, const char *token)
{
    const struct history_hold *hold = find(history, resource, token);
    return hold != NULL ? hold->until_ns : INT64_MIN;
}

const char *history_words(enum history_result result)
{
    switch (result) {
    case HISTORY_FINE:
        return NULL;
    case HISTORY_TWO_HOLDERS:
        return "two holders at once";
    case HISTORY_FENCE_FELL:
        return "a fence that does not rise";
    }
    return NULL;
}
