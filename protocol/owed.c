#include "protocol/owed.h"

#include <assert.h>
#include <string.h>

#include "protocol/limits.h"

/* An entry: a header, the token, the key. A skip fills the end of the memory, where an entry would
 * not fit in one piece; it may be too short even for its header. */
enum { HEADER = sizeof(uint16_t), SKIP = UINT16_MAX };

void owed_init(struct owed *owed, char *memory, size_t size)
{
    assert(size >= 1024);
    assert(size <= UINT32_MAX);
    *owed = (struct owed){.memory = memory, .size = size};
}

static char *at(const struct owed *owed, uint64_t position)
{
    return owed->memory + position % owed->size;
}

static size_t until_wrap(const struct owed *owed, uint64_t position)
{
    return owed->size - (size_t)(position % owed->size);
}

/* The position of the first entry at or behind `position`, past a skip if there is one. */
static uint64_t past_skip(const struct owed *owed, uint64_t position)
{
    uint16_t key_len;
    size_t rest = until_wrap(owed, position);
    if (position == owed->tail)
        return position;
    if (rest < HEADER)
        return position + rest;
    memcpy(&key_len, at(owed, position), HEADER);
    return key_len == SKIP ? position + rest : position;
}

static uint64_t end_of(const struct owed *owed, uint64_t position)
{
    uint16_t key_len;
    memcpy(&key_len, at(owed, position), HEADER);
    assert(key_len <= LIMIT_KEY);
    return position + HEADER + LIMIT_TOKEN + key_len;
}

/* Take the oldest entry off. */
static void drop_head(struct owed *owed)
{
    assert(owed->count > 0);
    uint64_t first = past_skip(owed, owed->head);
    /* The cursor may stand before the skip that the head has passed. */
    if (owed->cursor <= first) {
        owed->cursor = end_of(owed, first);
        owed->unsent--;
    }
    owed->head = end_of(owed, first);
    owed->count--;
}

void owed_push(struct owed *owed, const char *key, size_t key_len, const char *token)
{
    assert(key_len <= LIMIT_KEY);
    uint16_t header = (uint16_t)key_len;
    size_t len = HEADER + LIMIT_TOKEN + key_len;
    size_t rest = until_wrap(owed, owed->tail);
    size_t skip = rest < len ? rest : 0;

    while (owed->tail + skip + len - owed->head > owed->size) {
        drop_head(owed);
        owed->dropped++;
        if (owed->count == 0)
            owed->head = owed->cursor = owed->tail;
    }
    if (skip >= HEADER) {
        uint16_t mark = SKIP;
        memcpy(at(owed, owed->tail), &mark, HEADER);
    }
    owed->tail += skip;
    if (owed->count == 0)
        owed->head = owed->tail;
    if (owed->unsent == 0)
        owed->cursor = owed->tail;

    char *to = at(owed, owed->tail);
    memcpy(to, &header, HEADER);
    memcpy(to + HEADER, token, LIMIT_TOKEN);
    memcpy(to + HEADER + LIMIT_TOKEN, key, key_len);
    owed->tail += len;
    owed->count++;
    owed->unsent++;
}

bool owed_next(struct owed *owed, struct owed_entry *entry)
{
    if (owed->unsent == 0)
        return false;
    uint64_t position = past_skip(owed, owed->cursor);
    const char *from = at(owed, position);
    uint16_t key_len;
    memcpy(&key_len, from, HEADER);
    entry->token = from + HEADER;
    entry->key = from + HEADER + LIMIT_TOKEN;
    entry->key_len = key_len;
    entry->end = end_of(owed, position);
    owed->cursor = entry->end;
    owed->unsent--;
    return true;
}

void owed_confirm(struct owed *owed, uint64_t end)
{
    assert(end <= owed->cursor);
    while (owed->count > 0 && owed->head < end)
        drop_head(owed);
}

void owed_put_off(struct owed *owed, uint64_t end)
{
    char key[LIMIT_KEY];
    char token[LIMIT_TOKEN];
    uint64_t first = past_skip(owed, owed->head);
    if (owed->count == 0 || end_of(owed, first) != end)
        return;
    const char *from = at(owed, first) + HEADER;
    size_t key_len = (size_t)(end - first) - HEADER - LIMIT_TOKEN;
    memcpy(token, from, LIMIT_TOKEN);
    memcpy(key, from + LIMIT_TOKEN, key_len);
    drop_head(owed);
    owed_push(owed, key, key_len, token);
}

void owed_rewind(struct owed *owed)
{
    owed->cursor = owed->head;
    owed->unsent = owed->count;
}
