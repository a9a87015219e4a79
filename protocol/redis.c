#include "protocol/redis.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "protocol/fence.h"
#include "protocol/validity.h"
#include "scripts.h"

/* What our scripts answer, beside {pttl, value}; see the .lua files. */
enum { SCRIPT_YES = -3, SCRIPT_ABSENT = -2, SCRIPT_YES_ABSENT = -4 };

/* Decades: a key that lives longer has no end for us. It fits in nanoseconds, added to any time. */
#define PTTL_MAX_MS (INT64_MAX / 4 / NS_PER_MS)

static const struct {
    const char *text;
    size_t len;
    const char *sha1;
} scripts[REDIS_SCRIPT_COUNT] = {
#define SCRIPT(name)                                                                               \
    [REDIS_SCRIPT_##name] = {SCRIPT_##name, sizeof(SCRIPT_##name) - 1, SCRIPT_##name##_SHA1}
    SCRIPT(RELEASE), SCRIPT(RELEASES), SCRIPT(EXTEND), SCRIPT(STATUS),
    SCRIPT(FENCE),   SCRIPT(SWAP),     SCRIPT(MARK),   SCRIPT(BEAT),
#undef SCRIPT
};

enum { SHA1_LEN = 40, WORDS_MAX = 10 };

/* A command must fit in its buffer whatever the key: framing takes at most 16 bytes a word. */
static_assert(sizeof(SCRIPT_RELEASE) + LIMIT_KEY + LIMIT_TOKEN + 20 + 17 * 16 < REDIS_COMMAND_MAX,
              "release.lua is too long");
static_assert(sizeof(SCRIPT_EXTEND) + LIMIT_KEY + LIMIT_TOKEN + 20 + 17 * 16 < REDIS_COMMAND_MAX,
              "extend.lua is too long");
static_assert(sizeof(SCRIPT_FENCE) + 2 * LIMIT_KEY + LIMIT_TOKEN + 80 + 17 * 16 < REDIS_COMMAND_MAX,
              "fence.lua is too long");
static_assert(sizeof(SCRIPT_SWAP) + 2 * LIMIT_KEY + 2 * LIMIT_TOKEN + 80 + 17 * 16 <
                  REDIS_COMMAND_MAX,
              "swap.lua is too long");
static_assert(sizeof(SCRIPT_RELEASES) + SHA1_LEN + 4 * 16 < 1536, "releases.lua is too long");
static_assert(sizeof(SCRIPT_STATUS) + LIMIT_KEY + LIMIT_TOKEN + 20 + 17 * 16 < REDIS_COMMAND_MAX,
              "status.lua is too long");

const char *redis_script_text(unsigned index)
{
    assert(index < REDIS_SCRIPT_COUNT);
    return scripts[index].text;
}

const char *redis_script_sha1(unsigned index)
{
    assert(index < REDIS_SCRIPT_COUNT);
    return scripts[index].sha1;
}

/* Digits of a number that is not negative; returns how many. */
static size_t put_number(char *to, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < count; i++)
        to[i] = digits[count - 1 - i];
    return count;
}

/* "*3\r\n" or "$40\r\n". */
static size_t put_header(char *to, char kind, size_t number)
{
    to[0] = kind;
    size_t len = 1 + put_number(to + 1, number);
    to[len++] = '\r';
    to[len++] = '\n';
    return len;
}

size_t redis_format_words(const char *const *words, const size_t *lens, size_t count, char *buf,
                          size_t size)
{
    size_t len = put_header(buf, '*', count);
    for (size_t i = 0; i < count; i++) {
        assert(len + lens[i] + 32 <= size);
        len += put_header(buf + len, '$', lens[i]);
        memcpy(buf + len, words[i], lens[i]);
        len += lens[i];
        buf[len++] = '\r';
        buf[len++] = '\n';
    }
    return len;
}

static enum redis_script script_of(enum redis_command command)
{
    switch (command) {
    case REDIS_RELEASE:
        return REDIS_SCRIPT_RELEASE;
    case REDIS_EXTEND:
        return REDIS_SCRIPT_EXTEND;
    case REDIS_STATUS:
        return REDIS_SCRIPT_STATUS;
    case REDIS_ACQUIRE_FENCED:
        return REDIS_SCRIPT_FENCE;
    case REDIS_SWAP:
        return REDIS_SCRIPT_SWAP;
    case REDIS_ACQUIRE:
    case REDIS_PLANT:
        break;
    }
    assert(false && "a script has this command");
    return REDIS_SCRIPT_COUNT;
}

static size_t format_set(const struct redis_call *call, char *buf)
{
    char ttl[20];
    const char *words[] = {"SET", call->key, call->token, "NX", "PX", ttl};
    size_t lens[] = {3, call->key_len, LIMIT_TOKEN, 2, 2, put_number(ttl, (uint64_t)call->ttl_ms)};
    return redis_format_words(words, lens, 6, buf, REDIS_COMMAND_MAX);
}

static size_t format_script(const struct redis_call *call, enum redis_form form, char *buf)
{
    enum redis_script script = script_of(call->command);
    const char *verb = form == REDIS_BY_SHA1 ? "EVALSHA" : "EVAL";
    const char *body = form == REDIS_BY_SHA1 ? scripts[script].sha1 : scripts[script].text;
    size_t body_len = form == REDIS_BY_SHA1 ? (size_t)SHA1_LEN : scripts[script].len;
    char ttl[20];
    size_t ttl_len = put_number(ttl, (uint64_t)call->ttl_ms);
    const char *words[WORDS_MAX] = {verb, body, "1", call->key, call->token, ttl};
    size_t lens[WORDS_MAX] = {strlen(verb), body_len, 1, call->key_len, LIMIT_TOKEN, ttl_len};
    size_t count = call->command == REDIS_STATUS ? 4 : 6;
    return redis_format_words(words, lens, count, buf, REDIS_COMMAND_MAX);
}

/* The words of a command, one after the other. */
struct words {
    const char *word[WORDS_MAX];
    size_t len[WORDS_MAX];
    size_t count;
};

static void add(struct words *words, const char *word, size_t len)
{
    assert(words->count < WORDS_MAX);
    words->word[words->count] = word;
    words->len[words->count++] = len;
}

static void add_number(struct words *words, int64_t number, char digits[20])
{
    add(words, digits, put_number(digits, (uint64_t)number));
}

/* fence.lua and swap.lua, whose fence is left out where there is none. */
static size_t format_fenced(const struct redis_call *call, enum redis_form form, char *buf)
{
    enum redis_script script = script_of(call->command);
    const size_t prefix_len = sizeof(FENCE_KEY_PREFIX) - 1;
    char fence_key[sizeof(FENCE_KEY_PREFIX) + LIMIT_KEY];
    char ttl[20];
    char ballot[20];
    char fence_ttl[20];
    bool fenced = call->ballot != 0;
    struct words words = {.count = 0};
    if (form == REDIS_BY_SHA1) {
        add(&words, "EVALSHA", 7);
        add(&words, scripts[script].sha1, SHA1_LEN);
    } else {
        add(&words, "EVAL", 4);
        add(&words, scripts[script].text, scripts[script].len);
    }
    add(&words, fenced ? "2" : "1", 1);
    add(&words, call->key, call->key_len);
    if (fenced) {
        memcpy(fence_key, FENCE_KEY_PREFIX, prefix_len);
        memcpy(fence_key + prefix_len, call->key, call->key_len);
        add(&words, fence_key, prefix_len + call->key_len);
    }
    if (call->command == REDIS_SWAP)
        add(&words, call->old_token, LIMIT_TOKEN);
    add(&words, call->token, LIMIT_TOKEN);
    add_number(&words, call->ttl_ms, ttl);
    if (fenced) {
        add_number(&words, call->ballot, ballot);
        add_number(&words, call->fence_ttl_ms, fence_ttl);
    }
    return redis_format_words(words.word, words.len, words.count, buf, REDIS_COMMAND_MAX);
}

size_t redis_format(const struct redis_call *call, enum redis_form form, char *buf)
{
    assert(call->key_len > 0);
    assert(call->key_len <= LIMIT_KEY);
    switch (call->command) {
    case REDIS_ACQUIRE:
    case REDIS_PLANT:
        assert(call->ttl_ms > 0);
        return format_set(call, buf);
    case REDIS_ACQUIRE_FENCED:
        assert(call->ttl_ms > 0);
        assert(call->ballot > 0);
        assert(call->fence_ttl_ms > 0);
        return format_fenced(call, form, buf);
    case REDIS_SWAP:
        assert(call->ttl_ms > 0);
        return format_fenced(call, form, buf);
    case REDIS_EXTEND:
    case REDIS_RELEASE:
        assert(call->ttl_ms > 0);
        return format_script(call, form, buf);
    case REDIS_STATUS:
        return format_script(call, form, buf);
    }
    assert(false && "every command has a form");
    return 0;
}

static size_t put_word(char *to, const char *word, size_t word_len)
{
    size_t len = put_header(to, '$', word_len);
    memcpy(to + len, word, word_len);
    memcpy(to + len + word_len, "\r\n", 2);
    return len + word_len + 2;
}

size_t redis_format_releases(const struct redis_release *releases, size_t count,
                             enum redis_form form, char *buf)
{
    char digits[20];
    assert(count > 0);
    assert(count <= LIMIT_TOGETHER);
    size_t len = put_header(buf, '*', 3 + 2 * count);
    if (form == REDIS_BY_SHA1) {
        len += put_word(buf + len, "EVALSHA", 7);
        len += put_word(buf + len, scripts[REDIS_SCRIPT_RELEASES].sha1, SHA1_LEN);
    } else {
        len += put_word(buf + len, "EVAL", 4);
        len += put_word(buf + len, scripts[REDIS_SCRIPT_RELEASES].text,
                        scripts[REDIS_SCRIPT_RELEASES].len);
    }
    len += put_word(buf + len, digits, put_number(digits, count));
    for (size_t i = 0; i < count; i++) {
        assert(releases[i].key_len <= LIMIT_KEY);
        len += put_word(buf + len, releases[i].key, releases[i].key_len);
    }
    for (size_t i = 0; i < count; i++)
        len += put_word(buf + len, releases[i].token, LIMIT_TOKEN);
    assert(len <= REDIS_RELEASES_MAX);
    return len;
}

static struct answer failed(enum reason reason)
{
    return (struct answer){.kind = ANSWER_FAILED, .reason = reason};
}

/* FNV-1a: only to tell apart the holders that the nodes of one round name. */
uint64_t redis_fingerprint(const char *value, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)value[i]) * 0x100000001b3;
    return hash != 0 ? hash : 1;
}

static struct answer answer_of_error(const struct redis_reply *reply)
{
    static const char wrongtype[] = "WRONGTYPE";
    /* A list or a hash under the name of the lock: somebody holds it, we cannot say until when. */
    if (reply->len >= sizeof(wrongtype) - 1 &&
        memcmp(reply->str, wrongtype, sizeof(wrongtype) - 1) == 0)
        return (struct answer){.kind = ANSWER_HELD, .pttl_ms = -1};
    return failed(reason_of_redis_error(reply->str, reply->len));
}

static struct answer answer_of_set(const struct redis_reply *reply)
{
    if (reply->kind == RESP_STATUS && reply->len == 2 && memcmp(reply->str, "OK", 2) == 0)
        return (struct answer){.kind = ANSWER_YES};
    if (reply->kind == RESP_NIL)
        return (struct answer){.kind = ANSWER_HELD, .pttl_ms = -1};
    return failed(REASON_GARBAGE);
}

static struct answer answer_of_script(const struct redis_reply *reply)
{
    if (reply->kind == RESP_INTEGER && reply->integer == SCRIPT_YES)
        return (struct answer){.kind = ANSWER_YES};
    if (reply->kind == RESP_INTEGER && reply->integer == SCRIPT_ABSENT)
        return (struct answer){.kind = ANSWER_ABSENT};
    if (reply->kind == RESP_ARRAY && reply->item_count == 2 &&
        reply->items[0].kind == RESP_INTEGER && reply->items[1].kind == RESP_STRING) {
        int64_t pttl_ms = reply->items[0].integer;
        return (struct answer){
            .kind = ANSWER_HELD,
            .pttl_ms = pttl_ms >= 0 && pttl_ms <= PTTL_MAX_MS ? pttl_ms : -1,
            .holder = redis_fingerprint(reply->items[1].str, reply->items[1].len),
        };
    }
    return failed(REASON_GARBAGE);
}

static struct answer answer_of_fenced(const struct redis_reply *reply)
{
    if (reply->kind == RESP_NIL)
        return (struct answer){.kind = ANSWER_HELD, .pttl_ms = -1};
    if (reply->kind == RESP_INTEGER && reply->integer == SCRIPT_YES)
        return (struct answer){.kind = ANSWER_YES};
    int64_t ballot = reply->kind == RESP_STRING ? fence_parse(reply->str, reply->len) : -1;
    if (ballot < 0)
        return failed(REASON_GARBAGE);
    return (struct answer){.kind = ANSWER_OUTBID, .ballot = ballot};
}

/* {-3 or -2, a ballot} is a refusal for the fence; whoever else holds it has a time to live. */
static struct answer answer_of_swap(const struct redis_reply *reply)
{
    struct answer answer = answer_of_script(reply);
    answer.released = answer.kind;
    if (reply->kind == RESP_INTEGER && reply->integer == SCRIPT_YES_ABSENT)
        return (struct answer){.kind = ANSWER_YES, .released = ANSWER_ABSENT};
    if (answer.kind != ANSWER_HELD)
        return answer.kind == ANSWER_YES ? answer
                                         : (struct answer){.kind = ANSWER_FAILED,
                                                           .reason = REASON_GARBAGE,
                                                           .released = ANSWER_FAILED};
    int64_t what = reply->items[0].integer;
    if (what != SCRIPT_YES && what != SCRIPT_ABSENT)
        return answer;
    int64_t ballot = fence_parse(reply->items[1].str, reply->items[1].len);
    answer.released = what == SCRIPT_YES ? ANSWER_YES : ANSWER_ABSENT;
    answer.kind = ballot < 0 ? ANSWER_FAILED : ANSWER_OUTBID;
    answer.reason = ballot < 0 ? REASON_GARBAGE : REASON_NONE;
    answer.ballot = ballot;
    return answer;
}

enum answer_kind redis_released(const struct redis_reply *reply, size_t count, size_t index)
{
    if (reply->kind == RESP_INTEGER && reply->integer == SCRIPT_YES)
        return ANSWER_YES;
    if (reply->kind != RESP_STRING || reply->len != count)
        return ANSWER_FAILED;
    switch (reply->str[index]) {
    case 'd':
        return ANSWER_YES;
    case 'a':
        return ANSWER_ABSENT;
    default:
        return ANSWER_FAILED;
    }
}

struct answer redis_answer(enum redis_command command, const struct redis_reply *reply)
{
    if (reply->kind == RESP_ERROR) {
        struct answer answer = answer_of_error(reply);
        answer.released = answer.kind;
        return answer;
    }
    switch (command) {
    case REDIS_ACQUIRE:
    case REDIS_PLANT:
        return answer_of_set(reply);
    case REDIS_ACQUIRE_FENCED:
        return answer_of_fenced(reply);
    case REDIS_SWAP:
        return answer_of_swap(reply);
    case REDIS_RELEASE:
    case REDIS_EXTEND:
    case REDIS_STATUS:
        return answer_of_script(reply);
    }
    assert(false && "every command has an answer");
    return failed(REASON_ERROR);
}

const char *redis_info_field(const char *info, size_t len, const char *field, size_t *value_len)
{
    size_t field_len = strlen(field);
    const char *line = info;
    const char *end = info + len;
    while (line < end) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = eol != NULL ? eol : end;
        if ((size_t)(line_end - line) > field_len && line[field_len] == ':' &&
            memcmp(line, field, field_len) == 0) {
            const char *value = line + field_len + 1;
            if (line_end > value && line_end[-1] == '\r')
                line_end--;
            *value_len = (size_t)(line_end - value);
            return value;
        }
        line = eol != NULL ? eol + 1 : end;
    }
    return NULL;
}
