#include "protocol/reply.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "protocol/text.h"

/* A copy of these functions is made for lines and another for arrays, each without what it does not
 * need. Otherwise lines would pay 1 % more instructions of the daemon. */
#define INLINE __attribute__((always_inline)) inline

/* How the words of a reply are separated: by spaces, or as the values of a RESP array. */
struct form {
    bool is_array;
    enum dialect dialect;
};

static const struct form as_line = {false, DIALECT_LINE};

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

/* A line of RESP: an error ('-') or a simple string ('+'). */
static struct text begin_resp(char kind, char *buf)
{
    struct text line = {.buf = buf, .size = LIMIT_REPLY - 2};
    text_byte(&line, kind);
    return line;
}

static size_t end_resp(struct text *line)
{
    line->buf[line->len++] = '\r';
    return end(line);
}

/* Write the outcome, the first word of the reply. */
static INLINE void put_outcome(struct text *text, struct form form, enum outcome outcome)
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
    if (form.is_array) {
        resp_bulk(text, words[outcome].letters, words[outcome].len);
        return;
    }
    /* Copying all sixteen bytes is one move. What is written next overwrites the padding. */
    const size_t all = sizeof(words[outcome].letters);
    text_bytes(text, words[outcome].letters, all);
    text->len -= all - words[outcome].len;
}

static INLINE void put_word(struct text *text, struct form form, const char *word, size_t len)
{
    if (form.is_array) {
        resp_bulk(text, word, len);
        return;
    }
    text_byte(text, ' ');
    text_bytes(text, word, len);
}

static INLINE void put_number(struct text *text, struct form form, int64_t number)
{
    if (form.is_array) {
        resp_integer(text, number);
        return;
    }
    text_byte(text, ' ');
    text_number(text, number);
}

static INLINE void put_granted(struct text *text, struct form form, const struct reply *reply)
{
    if (reply->token == NULL)
        return;
    put_word(text, form, reply->token, LIMIT_TOKEN);
    put_number(text, form, reply->validity_ms);
    put_number(text, form, reply->elapsed_ms);
    if (reply->fence > 0)
        put_number(text, form, reply->fence);
    else if (reply->fence == 0 && form.is_array)
        resp_null(text, form.dialect);
    else if (reply->fence == 0)
        text_string(text, " -");
    if (reply->slot != NULL)
        put_word(text, form, reply->slot, reply->slot_len);
}

static INLINE void put_slots(struct text *text, struct form form, const struct reply *reply)
{
    if (reply->slots == 0)
        return;
    put_number(text, form, reply->held);
    if (form.is_array) {
        resp_integer(text, reply->slots);
        return;
    }
    text_byte(text, '/');
    text_number(text, reply->slots);
}

/* NOQUORUM is a line in every dialect. */
static void put_nodes(struct text *text, const struct reply *reply)
{
    put_number(text, as_line, reply->voting);
    text_byte(text, '/');
    text_number(text, reply->node_count);
    text_string(text, " need=");
    text_number(text, reply->quorum);
    for (unsigned i = 0; i < reply->node_count; i++) {
        if (reply->node_reasons[i] == REASON_NONE)
            continue;
        text_byte(text, ' ');
        text_string(text, reply->node_names[i]);
        text_byte(text, ':');
        text_string(text, reason_word(reply->node_reasons[i]));
    }
}

/* Inlined, so that what a line does not need is left out of its copy: lines pay nothing for RESP.
 */
__attribute__((always_inline)) static inline void put_reply(struct text *text, struct form form,
                                                            const struct reply *reply)
{
    put_outcome(text, form, reply->outcome);
    switch (reply->outcome) {
    case OUTCOME_OK:
        put_granted(text, form, reply);
        break;
    case OUTCOME_HELD:
        put_number(text, form, reply->hint_ms);
        put_slots(text, form, reply);
        break;
    case OUTCOME_FREE:
        put_slots(text, form, reply);
        break;
    case OUTCOME_NOQUORUM:
        put_nodes(text, reply);
        break;
    case OUTCOME_LATE:
        put_number(text, form, reply->elapsed_ms);
        break;
    case OUTCOME_LIMIT:
        text_byte(text, ' ');
        text_string(text, reply->limit);
        break;
    case OUTCOME_OUTBID:
        assert(false && "OUTBID is not a reply");
        break;
    case OUTCOME_GONE:
    case OUTCOME_SHUTDOWN:
        break;
    }
}

size_t reply_format(const struct reply *reply, const char *tag, size_t tag_len, char *buf)
{
    struct text line = begin(tag, tag_len, buf);
    put_reply(&line, as_line, reply);
    return end(&line);
}

static bool is_error(enum outcome outcome)
{
    return outcome == OUTCOME_NOQUORUM || outcome == OUTCOME_LATE || outcome == OUTCOME_LIMIT ||
           outcome == OUTCOME_SHUTDOWN;
}

/* The number of words of a reply that is no error. */
static size_t count_words(const struct reply *reply)
{
    size_t slots = reply->slots > 0 ? 2 : 0;
    if (reply->outcome == OUTCOME_HELD)
        return 2 + slots;
    if (reply->outcome == OUTCOME_OK && reply->token != NULL)
        return 4u + (reply->fence >= 0) + (reply->slot != NULL);
    return 1 + slots;
}

size_t reply_format_resp(const struct reply *reply, enum dialect dialect, char *buf)
{
    const size_t words = count_words(reply);
    if (is_error(reply->outcome) || words == 1) {
        struct text line = begin_resp(is_error(reply->outcome) ? '-' : '+', buf);
        put_reply(&line, as_line, reply);
        return end_resp(&line);
    }
    const struct form form = {true, dialect};
    struct text text = {.buf = buf, .size = LIMIT_REPLY};
    resp_array(&text, words);
    put_reply(&text, form, reply);
    assert(text.len < text.size);
    return text.len;
}

/* --- messages that answer no request --- */

/* LOST <resource> <token> <reason>, or WARN <resource> <token> <node>:<reason>. */
static const char *push_word(const struct push *push)
{
    return push->kind == PUSH_LOST ? "LOST" : "WARN";
}

static void put_cause(struct text *text, const struct push *push)
{
    if (push->node != NULL) {
        text_string(text, push->node);
        text_byte(text, ':');
    }
    text_string(text, push->reason);
}

size_t reply_format_push(const struct push *push, char *buf)
{
    struct text line = begin(NULL, 0, buf);
    text_string(&line, "! ");
    text_string(&line, push_word(push));
    put_word(&line, as_line, push->resource, push->resource_len);
    put_word(&line, as_line, push->token, LIMIT_TOKEN);
    text_byte(&line, ' ');
    put_cause(&line, push);
    return end(&line);
}

size_t reply_format_push_resp(const struct push *push, char *buf)
{
    char cause_buf[2 * LIMIT_NODE_NAME]; /* a name and a word */
    struct text cause = {.buf = cause_buf, .size = sizeof(cause_buf)};
    struct text text = {.buf = buf, .size = LIMIT_REPLY};
    put_cause(&cause, push);
    resp_push(&text, 4);
    resp_string(&text, push_word(push));
    resp_bulk(&text, push->resource, push->resource_len);
    resp_bulk(&text, push->token, LIMIT_TOKEN);
    resp_bulk(&text, cause.buf, cause.len);
    assert(text.len < text.size);
    return text.len;
}

/* --- other lines --- */

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

size_t reply_format_resp_error(const char *word, const char *code, const char *text, char *buf)
{
    struct text line = begin_resp('-', buf);
    text_string(&line, word);
    if (code != NULL)
        put_word(&line, as_line, code, strlen(code));
    put_word(&line, as_line, text, strlen(text));
    return end_resp(&line);
}

size_t reply_format_resp_simple(const char *text, size_t len, char *buf)
{
    struct text line = begin_resp('+', buf);
    text_bytes(&line, text, len);
    return end_resp(&line);
}
