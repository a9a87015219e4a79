#include "engine/master/pending_releases.h"

#include <assert.h>
#include <string.h>

static struct pending_release *entry_at(const struct pending_releases *pending_releases,
                                        uint64_t position)
{
    return &pending_releases->entries[position % pending_releases->size];
}

static void drop_oldest(struct pending_releases *pending_releases)
{
    assert(pending_releases->count > 0);
    pending_releases->first++;
    pending_releases->count--;
    if (pending_releases->unsent > pending_releases->count)
        pending_releases->unsent = pending_releases->count;
}

void pending_releases_push(struct pending_releases *pending_releases, const char *key,
                           size_t key_len, const char *token)
{
    assert(key_len <= LIMIT_KEY);
    if (pending_releases->count == pending_releases->size) {
        drop_oldest(pending_releases);
        pending_releases->dropped++;
    }
    /* An empty ring begins again at the start of its memory, so that entries further on are touched
     * only when they are needed. */
    if (pending_releases->count == 0)
        pending_releases->first +=
            pending_releases->size - pending_releases->first % pending_releases->size;
    struct pending_release *entry =
        entry_at(pending_releases, pending_releases->first + pending_releases->count);
    entry->refused_ns = 0;
    entry->key_len = (uint16_t)key_len;
    memcpy(entry->token, token, LIMIT_TOKEN);
    memcpy(entry->key, key, key_len);
    pending_releases->count++;
    pending_releases->unsent++;
}

const struct pending_release *pending_releases_next(struct pending_releases *pending_releases,
                                                    uint64_t *position)
{
    if (pending_releases->unsent == 0)
        return NULL;
    *position = pending_releases->first + pending_releases->count - pending_releases->unsent;
    pending_releases->unsent--;
    return entry_at(pending_releases, *position);
}

void pending_releases_confirm(struct pending_releases *pending_releases, uint64_t position)
{
    while (pending_releases->count > 0 && pending_releases->first <= position)
        drop_oldest(pending_releases);
}

void pending_releases_retry_later(struct pending_releases *pending_releases, uint64_t position,
                                  int64_t retry_for_ns, int64_t now_ns)
{
    if (pending_releases->count == 0 || pending_releases->first != position)
        return;
    const struct pending_release refused = *entry_at(pending_releases, position);
    drop_oldest(pending_releases);
    if (refused.refused_ns != 0 && now_ns - refused.refused_ns >= retry_for_ns) {
        pending_releases->dropped++;
        return;
    }
    pending_releases_push(pending_releases, refused.key, refused.key_len, refused.token);
    entry_at(pending_releases, pending_releases->first + pending_releases->count - 1)->refused_ns =
        refused.refused_ns != 0 ? refused.refused_ns : now_ns;
}

void pending_releases_rewind(struct pending_releases *pending_releases)
{
    pending_releases->unsent = pending_releases->count;
}
