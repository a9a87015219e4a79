#include "protocol/reply.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "protocol/text.h"

/* The size excludes one byte, so that the LF always fits. */
static struct text begin(const char *tag, size_t tag_len, char *buf)
{
    struct text line = {.buf = buf, .size = LIMIT_REPLY - 1};
    if (tag != NULL) {
        assert(tag_len <= LIMIT_TAG);
        text_byte(&line, '#');
        text_bytes(&line, tag, tag_len);
        text_byte(&line, ' ');
    }
    return line;
}

static size_t end(struct text *line)
{
    line->buf[line->len++] = '\n';
    return line->len;
}

/* Write the outcome, the first word of the reply. */
static void put_word(struct text *line, enum outcome outcome)
{
    static const struct {
        char letters[16];
        size_t len;
    } words[] = {
#define X(name, word) [name] = {word, sizeof(word) - 1},
        OUTCOME_TABLE(X)
#undef X
    };
    static_assert(2 + LIMIT_TAG + sizeof(words[0].letters) < LIMIT_REPLY,
                  "the outcome fits after the longest tag");
    /* Copying all sixteen bytes is one move. What is written next overwrites the padding. */
    const size_t all = sizeof(words[outcome].letters);
    text_bytes(line, words[outcome].letters, all);
    line->len -= all - words[outcome].len;
}

static void put_number(struct text *line, int64_t number)
{
    text_byte(line, ' ');
    text_number(line, number);
}

static void put_granted(struct text *line, const struct reply *reply)
{
    if (reply->token == NULL)
        return;
    text_byte(line, ' ');
    text_bytes(line, reply->token, LIMIT_TOKEN);
    put_number(line, reply->validity_ms);
    put_number(line, reply->elapsed_ms);
    if (reply->fence > 0)
        put_number(line, reply->fence);
    else if (reply->fence == 0)
        text_string(line, " -");
    if (reply->slot != NULL) {
        text_byte(line, ' ');
        text_bytes(line, reply->slot, reply->slot_len);
    }
}

static void put_slots(struct text *line, const struct reply *reply)
{
    if (reply->slots == 0)
        return;
    put_number(line, reply->held);
    text_byte(line, '/');
    text_number(line, reply->slots);
}

static void put_nodes(struct text *line, const struct reply *reply)
{
    put_number(line, reply->voting);
    text_byte(line, '/');
    text_number(line, reply->node_count);
    text_string(line, " need=");
    text_number(line, reply->quorum);
    for (unsigned i = 0; i < reply->node_count; i++) {
        if (reply->node_reasons[i] == REASON_NONE)
            continue;
        text_byte(line, ' ');
        text_string(line, reply->node_names[i]);
        text_byte(line, ':');
        text_string(line, reason_word(reply->node_reasons[i]));
    }
}

size_t reply_format(const struct reply *reply, const char *tag, size_t tag_len, char *buf)
{
    struct text line = begin(tag, tag_len, buf);
    put_word(&line, reply->outcome);
    switch (reply->outcome) {
    case OUTCOME_OK:
        put_granted(&line, reply);
        break;
    case OUTCOME_HELD:
        put_number(&line, reply->hint_ms);
        put_slots(&line, reply);
        break;
    case OUTCOME_FREE:
        put_slots(&line, reply);
        break;
    case OUTCOME_NOQUORUM:
        put_nodes(&line, reply);
        break;
    case OUTCOME_LATE:
        put_number(&line, reply->elapsed_ms);
        break;
    case OUTCOME_LIMIT:
        text_byte(&line, ' ');
        text_string(&line, reply->limit);
        break;
    case OUTCOME_OUTBID:
        assert(false && "OUTBID is not a reply");
        break;
    case OUTCOME_GONE:
    case OUTCOME_SHUTDOWN:
        break;
    }
    return end(&line);
}

size_t reply_format_push(const struct push *push, char *buf)
{
    struct text line = begin(NULL, 0, buf);
    text_string(&line, push->kind == PUSH_LOST ? "! LOST " : "! WARN ");
    text_bytes(&line, push->resource, push->resource_len);
    text_byte(&line, ' ');
    text_bytes(&line, push->token, LIMIT_TOKEN);
    text_byte(&line, ' ');
    if (push->node != NULL) {
        text_string(&line, push->node);
        text_byte(&line, ':');
    }
    text_string(&line, push->reason);
    return end(&line);
}

size_t reply_format_error(const char *code, const char *text, const char *tag, size_t tag_len,
                          char *buf)
{
    struct text line = begin(tag, tag_len, buf);
    text_string(&line, "ERR ");
    text_string(&line, code);
    text_byte(&line, ' ');
    text_string(&line, text);
    return end(&line);
}

size_t reply_format_line(const char *text, size_t len, const char *tag, size_t tag_len, char *buf)
{
    struct text line = begin(tag, tag_len, buf);
    text_bytes(&line, text, len);
    return end(&line);
}
