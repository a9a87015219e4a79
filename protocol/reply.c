#include "protocol/reply.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "protocol/text.h"

/* A reply that is being written. An array of RESP has its header in the first ARRAY_HEADER bytes,
 * written last. Every other form is a line: the words are separated by spaces. */
struct line {
    struct text text;
    enum dialect dialect;
    bool is_array;
    unsigned fields; /* of an array */
};

enum { ARRAY_HEADER = sizeof("*9\r\n") - 1 };

/* The size excludes the end of the line, so that it always fits. */
static struct line begin(const char *tag, size_t tag_len, char *buf)
{
    struct line line = {.text = {.buf = buf, .size = LIMIT_REPLY - 1}};
    if (tag != NULL) {
        assert(tag_len <= LIMIT_TAG);
        text_byte(&line.text, '#');
        text_bytes(&line.text, tag, tag_len);
        text_byte(&line.text, ' ');
    }
    return line;
}

/* kind: '+', '-' or '*'. */
static struct line begin_resp(enum dialect dialect, char kind, char *buf)
{
    struct line line = {.text = {.buf = buf, .size = LIMIT_REPLY - 2}, .dialect = dialect};
    line.is_array = kind == '*';
    if (line.is_array)
        line.text.len = ARRAY_HEADER;
    else
        text_byte(&line.text, kind);
    return line;
}

static size_t end(struct line *line)
{
    struct text *text = &line->text;
    if (line->is_array) {
        const char header[] = {'*', (char)('0' + line->fields), '\r', '\n'};
        assert(line->fields <= 9);
        assert(text->len < text->size);
        memcpy(text->buf, header, ARRAY_HEADER);
        return text->len;
    }
    if (line->dialect != DIALECT_LINE)
        text->buf[text->len++] = '\r';
    text->buf[text->len++] = '\n';
    return text->len;
}

/* Write the outcome, the first word of the reply. */
static void put_outcome(struct line *line, enum outcome outcome)
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
    if (line->is_array) {
        line->fields++;
        resp_bulk(&line->text, words[outcome].letters, words[outcome].len);
        return;
    }
    /* Copying all sixteen bytes is one move. What is written next overwrites the padding. */
    const size_t all = sizeof(words[outcome].letters);
    text_bytes(&line->text, words[outcome].letters, all);
    line->text.len -= all - words[outcome].len;
}

static void put_word(struct line *line, const char *word, size_t len)
{
    if (line->is_array) {
        line->fields++;
        resp_bulk(&line->text, word, len);
        return;
    }
    text_byte(&line->text, ' ');
    text_bytes(&line->text, word, len);
}

static void put_number(struct line *line, int64_t number)
{
    if (line->is_array) {
        line->fields++;
        resp_integer(&line->text, number);
        return;
    }
    text_byte(&line->text, ' ');
    text_number(&line->text, number);
}

static void put_no_fence(struct line *line)
{
    if (line->is_array) {
        line->fields++;
        resp_null(&line->text, line->dialect);
        return;
    }
    text_string(&line->text, " -");
}

static void put_granted(struct line *line, const struct reply *reply)
{
    if (reply->token == NULL)
        return;
    put_word(line, reply->token, LIMIT_TOKEN);
    put_number(line, reply->validity_ms);
    put_number(line, reply->elapsed_ms);
    if (reply->fence > 0)
        put_number(line, reply->fence);
    else if (reply->fence == 0)
        put_no_fence(line);
    if (reply->slot != NULL)
        put_word(line, reply->slot, reply->slot_len);
}

static void put_slots(struct line *line, const struct reply *reply)
{
    if (reply->slots == 0)
        return;
    put_number(line, reply->held);
    if (line->is_array) {
        put_number(line, reply->slots);
        return;
    }
    text_byte(&line->text, '/');
    text_number(&line->text, reply->slots);
}

/* The rest of an error, in every dialect. */
static void put_nodes(struct line *line, const struct reply *reply)
{
    struct text *text = &line->text;
    put_number(line, reply->voting);
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

static void put_reply(struct line *line, const struct reply *reply)
{
    put_outcome(line, reply->outcome);
    switch (reply->outcome) {
    case OUTCOME_OK:
        put_granted(line, reply);
        break;
    case OUTCOME_HELD:
        put_number(line, reply->hint_ms);
        put_slots(line, reply);
        break;
    case OUTCOME_FREE:
        put_slots(line, reply);
        break;
    case OUTCOME_NOQUORUM:
        put_nodes(line, reply);
        break;
    case OUTCOME_LATE:
        put_number(line, reply->elapsed_ms);
        break;
    case OUTCOME_LIMIT:
        put_word(line, reply->limit, strlen(reply->limit));
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
    struct line line = begin(tag, tag_len, buf);
    put_reply(&line, reply);
    return end(&line);
}

/* The first byte of the reply in RESP. */
static char resp_kind(const struct reply *reply)
{
    switch (reply->outcome) {
    case OUTCOME_OK:
        return reply->token != NULL ? '*' : '+';
    case OUTCOME_FREE:
        return reply->slots > 0 ? '*' : '+';
    case OUTCOME_HELD:
        return '*';
    case OUTCOME_NOQUORUM:
    case OUTCOME_LATE:
    case OUTCOME_LIMIT:
    case OUTCOME_SHUTDOWN:
        return '-';
    case OUTCOME_GONE:
    case OUTCOME_OUTBID:
        break;
    }
    return '+';
}

size_t reply_format_resp(const struct reply *reply, enum dialect dialect, char *buf)
{
    struct line line = begin_resp(dialect, resp_kind(reply), buf);
    put_reply(&line, reply);
    return end(&line);
}

size_t reply_format_resp_grant(const char *token, bool slot, char *buf)
{
    struct line line = begin_resp(DIALECT_RESP3, '*', buf);
    put_outcome(&line, OUTCOME_OK);
    put_word(&line, token, LIMIT_TOKEN);
    line.fields += slot ? 4 : 3; /* validity, elapsed time, fence, and the name of the slot */
    return end(&line);
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
    struct line line = begin(NULL, 0, buf);
    text_string(&line.text, "! ");
    text_string(&line.text, push_word(push));
    put_word(&line, push->resource, push->resource_len);
    put_word(&line, push->token, LIMIT_TOKEN);
    text_byte(&line.text, ' ');
    put_cause(&line.text, push);
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
    struct line line = begin(tag, tag_len, buf);
    text_string(&line.text, "ERR ");
    text_string(&line.text, code);
    text_byte(&line.text, ' ');
    text_string(&line.text, text);
    return end(&line);
}

size_t reply_format_line(const char *text, size_t len, const char *tag, size_t tag_len, char *buf)
{
    struct line line = begin(tag, tag_len, buf);
    text_bytes(&line.text, text, len);
    return end(&line);
}

size_t reply_format_resp_error(const char *word, const char *code, const char *text, char *buf)
{
    struct line line = begin_resp(DIALECT_RESP2, '-', buf);
    text_string(&line.text, word);
    if (code != NULL)
        put_word(&line, code, strlen(code));
    put_word(&line, text, strlen(text));
    return end(&line);
}

size_t reply_format_resp_simple(const char *text, size_t len, char *buf)
{
    struct line line = begin_resp(DIALECT_RESP2, '+', buf);
    text_bytes(&line.text, text, len);
    return end(&line);
}
