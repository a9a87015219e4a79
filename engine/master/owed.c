#include "engine/master/owed.h"

#include <assert.h>
#include <string.h>

/* An entry: the length of the key, when it was first refused (0: not yet), the token, the key. A
 * skip in place of that length fills the end of the memory, where an entry would not fit in one
 * piece; it may be too short even for that. */
enum { HEADER = sizeof(uint16_t), FIXED = HEADER + sizeof(int64_t) + LIMIT_TOKEN };
enum { SKIP = UINT16_MAX };

void owed_init(struct owed *owed, char *memory, size_t size)
{
    assert(size >= OWED_SIZE_MIN);
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
    return position + FIXED + key_len;
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

static void push(struct owed *owed, const char *key, size_t key_len, const char *token,
                 int64_t refused_ns)
{
    assert(key_len <= LIMIT_KEY);
    uint16_t header = (uint16_t)key_len;
    size_t len = FIXED + key_len;
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
    memcpy(to + HEADER, &refused_ns, sizeof(refused_ns));
    memcpy(to + FIXED - LIMIT_TOKEN, token, LIMIT_TOKEN);
    memcpy(to + FIXED, key, key_len);
    owed->tail += len;
    owed->count++;
    owed->unsent++;
}

void owed_push(struct owed *owed, const char *key, size_t key_len, const char *token)
{
    push(owed, key, key_len, token, 0);
}

bool owed_next(struct owed *owed, struct owed_entry *entry)
{
    if (owed->unsent == 0)
        return false;
    uint64_t position = past_skip(owed, owed->cursor);
    const char *from = at(owed, position);
    uint16_t key_len;
    memcpy(&key_len, from, HEADER);
    entry->token = from + FIXED - LIMIT_TOKEN;
    entry->key = from + FIXED;
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

void owed_put_off(struct owed *owed, uint64_t end, int64_t patience_ns, int64_t now_ns)
{
    char key[LIMIT_KEY];
    char token[LIMIT_TOKEN];
    int64_t refused_ns;
    uint64_t first = past_skip(owed, owed->head);
    if (owed->count == 0 || end_of(owed, first) != end)
        return;
    const char *from = at(owed, first);
    size_t key_len = (size_t)(end - first) - FIXED;
    memcpy(&refused_ns, from + HEADER, sizeof(refused_ns));
    memcpy(token, from + FIXED - LIMIT_TOKEN, LIMIT_TOKEN);
    memcpy(key, from + FIXED, key_len);
    drop_head(owed);
    if (refused_ns == 0)
        push(owed, key, key_len, token, now_ns);
    else if (now_ns - refused_ns < patience_ns)
        push(owed, key, key_len, token, refused_ns);
    else
        owed->dropped++;
}

void owed_rewind(struct owed *owed)
{
    owed->cursor = owed->head;
    owed->unsent = owed->count;
}
