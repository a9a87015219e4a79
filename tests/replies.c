#include "tests/replies.h"

#include <stdbool.h>
#include <string.h>

static bool same_text(const char *one, size_t one_len, const char *other, size_t other_len)
{
    return one_len == other_len && memcmp(one, other, one_len) == 0;
}

static bool same_value(enum resp_kind kind, int64_t one, int64_t other)
{
    return kind != RESP_INTEGER || one == other;
}

static bool has_text(enum resp_kind kind)
{
    return kind == RESP_STATUS || kind == RESP_ERROR || kind == RESP_STRING;
}

static bool same_items(const struct redis_reply *one, const struct redis_reply *other)
{
    for (size_t i = 0; i < one->item_count && i < RESP_ITEMS; i++) {
        enum resp_kind kind = one->items[i].kind;
        if (kind != other->items[i].kind ||
            !same_value(kind, one->items[i].integer, other->items[i].integer))
            return false;
        if (has_text(kind) && !same_text(one->items[i].str, one->items[i].len, other->items[i].str,
                                         other->items[i].len))
            return false;
    }
    return true;
}

/* True if both replies are equal in all fields that their kinds use. */
static bool same_reply(const struct redis_reply *one, const struct redis_reply *other)
{
    if (one->kind != other->kind || !same_value(one->kind, one->integer, other->integer))
        return false;
    if (has_text(one->kind))
        return same_text(one->str, one->len, other->str, other->len);
    if (one->kind != RESP_ARRAY)
        return true;
    if (one->item_count != other->item_count || one->nested_count != other->nested_count ||
        (one->nested_str == NULL) != (other->nested_str == NULL))
        return false;
    if (one->nested_str != NULL &&
        !same_text(one->nested_str, one->nested_len, other->nested_str, other->nested_len))
        return false;
    return same_items(one, other);
}

enum replies_compared replies_compare(struct resp *resp, struct resp *twin, const char *bytes,
                                      size_t len, unsigned *count)
{
    bool skips = false;
    resp_feed(resp, bytes, len);
    for (size_t i = 0; i < len; i++) {
        resp_feed(twin, bytes + i, 1);
        enum resp_result expected = resp_next(twin);
        if (expected == RESP_MORE)
            continue;
        /* If the same reply follows again, skip every other one to test resp_skip(). */
        bool skipped = skips;
        skips = false;
        if (!skipped && resp_next(resp) != expected)
            return REPLIES_DIFFER;
        if (!skipped && resp->repeats > 0) {
            resp_skip(resp, 1);
            skips = true;
        }
        if (expected == RESP_GARBAGE)
            return REPLIES_GARBAGE;
        if (!same_reply(resp->reply, twin->reply))
            return REPLIES_DIFFER;
        (*count)++;
    }
    /* A second call without further bytes must not change the state. */
    bool more = resp_next(resp) == RESP_MORE && resp_next(resp) == RESP_MORE;
    return more ? REPLIES_SAME : REPLIES_DIFFER;
}
