#include "engine/master/owed.h"

#include <assert.h>
#include <string.h>

static struct owed_entry *at(const struct owed *owed, uint64_t position)
{
    return &owed->entries[position % owed->size];
}

static void drop_first(struct owed *owed)
{
    assert(owed->count > 0);
    owed->first++;
    owed->count--;
    if (owed->unsent > owed->count)
        owed->unsent = owed->count;
}

void owed_push(struct owed *owed, const char *key, size_t key_len, const char *token)
{
    assert(key_len <= LIMIT_KEY);
    if (owed->count == owed->size) {
        drop_first(owed);
        owed->dropped++;
    }
    /* From the beginning of the memory: what was never needed at once is never touched. */
    if (owed->count == 0)
        owed->first += owed->size - owed->first % owed->size;
    struct owed_entry *entry = at(owed, owed->first + owed->count);
    entry->refused_ns = 0;
    entry->key_len = (uint16_t)key_len;
    memcpy(entry->token, token, LIMIT_TOKEN);
    memcpy(entry->key, key, key_len);
    owed->count++;
    owed->unsent++;
}

const struct owed_entry *owed_next(struct owed *owed, uint64_t *position)
{
    if (owed->unsent == 0)
        return NULL;
    *position = owed->first + owed->count - owed->unsent;
    owed->unsent--;
    return at(owed, *position);
}

void owed_confirm(struct owed *owed, uint64_t position)
{
    while (owed->count > 0 && owed->first <= position)
        drop_first(owed);
}

void owed_put_off(struct owed *owed, uint64_t position, int64_t patience_ns, int64_t now_ns)
{
    if (owed->count == 0 || owed->first != position)
        return;
    const struct owed_entry refused = *at(owed, position);
    drop_first(owed);
    if (refused.refused_ns != 0 && now_ns - refused.refused_ns >= patience_ns) {
        owed->dropped++;
        return;
    }
    owed_push(owed, refused.key, refused.key_len, refused.token);
    at(owed, owed->first + owed->count - 1)->refused_ns =
        refused.refused_ns != 0 ? refused.refused_ns : now_ns;
}

void owed_rewind(struct owed *owed)
{
    owed->unsent = owed->count;
}
