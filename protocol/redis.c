#include "protocol/redis.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "protocol/text.h"
#include "protocol/token.h"
#include "protocol/units.h"
#include "scripts.h"

/* The integer replies of the scripts; see the .lua files. */
enum {
    SCRIPT_YES = -3,
    SCRIPT_ABSENT = -2,
    SCRIPT_YES_ABSENT = -4,
    SCRIPT_YES_CONTENDED = -5,
    SCRIPT_YES_ABSENT_CONTENDED = -6,
    /* The smallest contended reply: swap.lua subtracts twice the need in milliseconds. */
    SCRIPT_CONTENDED_LAST = SCRIPT_YES_ABSENT_CONTENDED - 2 * REDIS_NEED_MAX_MS,
};

/* A TTL above this limit, which is several decades, counts as infinite. Any TTL below it, in
 * nanoseconds, can be added to a time without overflow. */
#define PTTL_MAX_MS (INT64_MAX / 4 / NS_PER_MS)

enum { BALLOT_DIGITS = 16, NEED_DIGITS = 4 };
_Static_assert(REDIS_NEED_MAX_MS == 9999, "the largest number of NEED_DIGITS digits");

/* Bytes of the longest arguments that follow a script in a command, with their RESP framing. The
 * keys and tokens of releases.lua are not included: REDIS_RELEASES_MAX adds them. */
enum { ARGUMENTS_MAX = 2 * LIMIT_KEY + 2 * LIMIT_TOKEN + REDIS_DAEMON + 80 + 18 * 16 };
#define X(name)                                                                                    \
    static_assert(sizeof(SCRIPT_##name) + ARGUMENTS_MAX < REDIS_COMMAND_MAX,                       \
                  "every script fits in a command");
REDIS_SCRIPT_TABLE(X)
#undef X

static const struct {
    const char *text;
    size_t len;
    const char *sha1;
} scripts[REDIS_SCRIPT_COUNT] = {
#define X(name) {SCRIPT_##name, sizeof(SCRIPT_##name) - 1, SCRIPT_##name##_SHA1},
    REDIS_SCRIPT_TABLE(X)
#undef X
};

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

/* --- writing words: each function returns the end of what it has written --- */

static char *put_bytes(char *to, const char *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return to + len;
}

/* Inline: the compiler knows the length of a literal and replaces the copy by a few moves. */
static inline char *put_text(char *to, const char *text)
{
    return put_bytes(to, text, strlen(text));
}

/* Write "*3\r\n" or "$40\r\n". */
static char *put_header(char *to, char kind, size_t number)
{
    *to++ = kind;
    to += text_digits(number, to);
    return put_text(to, "\r\n");
}

static char *put_word(char *to, const char *word, size_t len)
{
    to = put_header(to, '$', len);
    to = put_bytes(to, word, len);
    return put_text(to, "\r\n");
}

static char *put_token(char *to, const char *token)
{
    static_assert(LIMIT_TOKEN == 40, "put_token() writes $40");
    to = put_text(to, "$40\r\n");
    to = put_bytes(to, token, LIMIT_TOKEN);
    return put_text(to, "\r\n");
}

static char *put_number(char *to, int64_t number)
{
    char digits[TEXT_DIGITS];
    return put_word(to, digits, text_digits((uint64_t)number, digits));
}

size_t redis_format_words(const char *const *words, const size_t *lens, size_t count, char *buf,
                          size_t size)
{
    char *at = put_header(buf, '*', count);
    for (size_t i = 0; i < count; i++) {
        assert((size_t)(at - buf) + lens[i] + 32 <= size);
        at = put_word(at, words[i], lens[i]);
    }
    return (size_t)(at - buf);
}

/* --- the commands of rounds --- */

/* The script that carries out each command. The other commands do not use a script. */
static const enum redis_script script_of[] = {
    [REDIS_ACQUIRE_FENCED] = REDIS_SCRIPT_FENCE, [REDIS_SWAP] = REDIS_SCRIPT_SWAP,
    [REDIS_RELEASE] = REDIS_SCRIPT_RELEASE,      [REDIS_EXTEND] = REDIS_SCRIPT_EXTEND,
    [REDIS_STATUS] = REDIS_SCRIPT_STATUS,        [REDIS_KEY_PROBE] = REDIS_SCRIPT_STATUS,
    [REDIS_FREEZE] = REDIS_SCRIPT_FREEZE,
};

static size_t format_set(const struct redis_call *call, char *buf)
{
    char *at = put_text(buf, "*6\r\n$3\r\nSET\r\n");
    at = put_word(at, call->key, call->key_len);
    at = put_token(at, call->token);
    at = put_text(at, "$2\r\nNX\r\n$2\r\nPX\r\n");
    at = put_number(at, call->ttl_ms);
    return (size_t)(at - buf);
}

static char *put_script(char *at, enum redis_script script, enum redis_form form)
{
    if (form == REDIS_IN_FULL)
        return put_word(put_text(at, "$4\r\nEVAL\r\n"), scripts[script].text, scripts[script].len);
    at = put_text(at, "$7\r\nEVALSHA\r\n$40\r\n");
    at = put_bytes(at, scripts[script].sha1, REDIS_SHA1);
    return put_text(at, "\r\n");
}

/* Write a key of redlockd's own: a prefix, followed by the key of the lock. */
static inline char *put_own_key(char *at, const char *prefix, const char *key, size_t key_len)
{
    at = put_header(at, '$', strlen(prefix) + key_len);
    at = put_text(at, prefix);
    at = put_bytes(at, key, key_len);
    return put_text(at, "\r\n");
}

static char *put_daemon(char *at, const struct redis_call *call)
{
    char word[REDIS_DAEMON + TEXT_DIGITS];
    size_t len = REDIS_DAEMON;
    assert(call->need_ms <= REDIS_NEED_MAX_MS);
    assert(call->need_ms == 0 || call->command != REDIS_SWAP);
    memcpy(word, call->daemon, REDIS_DAEMON);
    if (call->need_ms > 0)
        len += text_digits((uint64_t)call->need_ms, word + len);
    return put_word(at, word, len);
}

/* Write EVALSHA <script> 1 <key> <token> <ttl>, or the variant of it that the command needs. */
static size_t format_script(const struct redis_call *call, enum redis_form form, char *buf)
{
    bool status = call->command == REDIS_STATUS;
    bool key_probe = call->command == REDIS_KEY_PROBE;
    bool swap = call->command == REDIS_SWAP;
    bool named = swap || key_probe || (call->command == REDIS_RELEASE && call->daemon != NULL);
    bool fenced = call->ballot != 0 && (swap || call->command == REDIS_ACQUIRE_FENCED);
    bool has_token = !status && !key_probe;
    bool has_ttl = !status && call->command != REDIS_FREEZE;
    bool excepts = key_probe && call->token != NULL;
    char *at =
        put_header(buf, '*', 4u + swap + has_token + has_ttl + named + excepts + 3u * fenced);
    at = put_script(at, script_of[call->command], form);
    at = put_text(at, fenced ? "$1\r\n2\r\n" : "$1\r\n1\r\n");
    at = put_word(at, call->key, call->key_len);
    if (fenced)
        at = put_own_key(at, REDIS_FENCE_PREFIX, call->key, call->key_len);
    if (swap)
        at = put_token(at, call->old_token);
    if (has_token)
        at = put_token(at, call->token);
    if (has_ttl)
        at = put_number(at, call->ttl_ms);
    if (named)
        at = put_daemon(at, call);
    if (excepts)
        at = put_token(at, call->token);
    if (fenced) {
        at = put_number(at, call->ballot);
        at = put_number(at, call->fence_ttl_ms);
    }
    return (size_t)(at - buf);
}

static size_t format_delete(const struct redis_call *call, enum redis_form form, char *buf)
{
    bool delex = form == REDIS_DELEX;
    char *at = put_text(buf, delex ? "*4\r\n$5\r\nDELEX\r\n" : "*3\r\n$7\r\nDELIFEQ\r\n");
    at = put_word(at, call->key, call->key_len);
    if (delex)
        at = put_text(at, "$4\r\nIFEQ\r\n");
    at = put_token(at, call->token);
    return (size_t)(at - buf);
}

size_t redis_format(const struct redis_call *call, enum redis_form form, char *buf)
{
    assert(call->key_len > 0);
    assert(call->key_len <= LIMIT_KEY);
    if (redis_is_native(form)) {
        assert(call->command == REDIS_RELEASE);
        return format_delete(call, form, buf);
    }
    assert(call->ttl_ms > 0 || call->command == REDIS_STATUS || call->command == REDIS_FREEZE);
    assert(call->ballot > 0 || call->command != REDIS_ACQUIRE_FENCED);
    assert(call->fence_ttl_ms > 0 || call->command != REDIS_ACQUIRE_FENCED);
    bool set = call->command == REDIS_ACQUIRE || call->command == REDIS_BACKFILL;
    return set ? format_set(call, buf) : format_script(call, form, buf);
}

size_t redis_format_far(const char *key, size_t key_len, char *buf)
{
    assert(key_len <= LIMIT_KEY);
    char *at = put_text(buf, "*2\r\n$3\r\nGET\r\n");
    return (size_t)(put_own_key(at, REDIS_FAR_PREFIX, key, key_len) - buf);
}

size_t redis_format_releases(const struct redis_release *releases, size_t count,
                             enum redis_form form, char *buf)
{
    assert(count > 0);
    assert(count <= LIMIT_BATCH);
    char *at = put_header(buf, '*', 3 + 2 * count);
    at = put_script(at, REDIS_SCRIPT_RELEASES, form);
    at = put_number(at, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        assert(releases[i].key_len <= LIMIT_KEY);
        at = put_word(at, releases[i].key, releases[i].key_len);
    }
    for (size_t i = 0; i < count; i++)
        at = put_token(at, releases[i].token);
    assert(at - buf <= REDIS_RELEASES_MAX);
    return (size_t)(at - buf);
}

/* --- replies --- */

static struct answer failed(enum reason reason)
{
    return (struct answer){.kind = ANSWER_FAILED, .reason = reason, .released = ANSWER_FAILED};
}

/* FNV-1a is sufficient: it only tells apart the values that the masters of one round report. */
uint64_t redis_fingerprint(const char *value, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)value[i]) * 0x100000001b3;
    return hash != 0 ? hash : 1;
}

uint64_t redis_holder(const char *value, size_t len)
{
    if (token_is(value, len) || token_is_frozen(value, len))
        return redis_fingerprint(value + TOKEN_KEPT, len - TOKEN_KEPT);
    return redis_fingerprint(value, len);
}

static struct answer answer_of_error(const struct redis_reply *reply)
{
    static const char wrongtype[] = "WRONGTYPE";
    /* The key is a list, a hash or the like. It counts as held, with an unknown TTL. */
    if (reply->len >= sizeof(wrongtype) - 1 &&
        memcmp(reply->str, wrongtype, sizeof(wrongtype) - 1) == 0)
        return (struct answer){.kind = ANSWER_HELD, .pttl_ms = -1, .released = ANSWER_HELD};
    return failed(reason_of_redis_error(reply->str, reply->len));
}

int64_t redis_number(const char *digits, size_t len, size_t most_digits)
{
    uint64_t number;
    if (len == 0 || len > most_digits || text_take_number(digits, len, &number) != len)
        return -1;
    return (int64_t)number;
}

int64_t redis_ballot(const char *digits, size_t len)
{
    int64_t ballot = redis_number(digits, len, BALLOT_DIGITS);
    return ballot < REDIS_BALLOT_END ? ballot : -1;
}

int64_t redis_far_need_ms(const struct redis_reply *reply, const char *daemon)
{
    if (reply->kind != RESP_STRING || reply->len <= REDIS_DAEMON ||
        memcmp(reply->str, daemon, REDIS_DAEMON) == 0)
        return 0;
    return max(redis_number(reply->str + REDIS_DAEMON, reply->len - REDIS_DAEMON, NEED_DIGITS), 0);
}

bool redis_is_ok(const struct redis_reply *reply)
{
    return reply->kind == RESP_STATUS && reply->len == 2 && memcmp(reply->str, "OK", 2) == 0;
}

static struct answer answer_of_set(const struct redis_reply *reply)
{
    if (redis_is_ok(reply))
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
            .holder = redis_holder(reply->items[1].str, reply->items[1].len),
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
    int64_t ballot = reply->kind == RESP_STRING ? redis_ballot(reply->str, reply->len) : -1;
    if (ballot < 0)
        return failed(REASON_GARBAGE);
    return (struct answer){.kind = ANSWER_OUTBID, .ballot = ballot};
}

/* An array that begins with -3 or -2 means OUTBID, and its second item is the ballot that is stored
 * in the fence. In any other array, the first item is a TTL. */
static struct answer answer_of_swap(const struct redis_reply *reply)
{
    struct answer answer = answer_of_script(reply);
    answer.released = answer.kind;
    if (reply->kind == RESP_INTEGER && reply->integer == SCRIPT_YES_ABSENT)
        return (struct answer){.kind = ANSWER_YES, .released = ANSWER_ABSENT};
    if (reply->kind == RESP_INTEGER && reply->integer <= SCRIPT_YES_CONTENDED &&
        reply->integer >= SCRIPT_CONTENDED_LAST)
        return (struct answer){
            .kind = ANSWER_YES,
            .released = reply->integer % 2 != 0 ? ANSWER_YES : ANSWER_ABSENT,
            .contended = true,
            .need_ms = (uint16_t)((SCRIPT_YES_CONTENDED - reply->integer) / 2),
        };
    if (answer.kind != ANSWER_HELD)
        return answer.kind == ANSWER_YES ? answer : failed(REASON_GARBAGE);
    int64_t what = reply->items[0].integer;
    if (what != SCRIPT_YES && what != SCRIPT_ABSENT)
        return answer;
    int64_t ballot = redis_ballot(reply->items[1].str, reply->items[1].len);
    answer.released = what == SCRIPT_YES ? ANSWER_YES : ANSWER_ABSENT;
    answer.kind = ballot < 0 ? ANSWER_FAILED : ANSWER_OUTBID;
    answer.reason = ballot < 0 ? REASON_GARBAGE : REASON_NONE;
    answer.ballot = ballot;
    return answer;
}

enum answer_kind redis_deleted(const struct redis_reply *reply)
{
    if (reply->kind != RESP_INTEGER || reply->integer < 0 || reply->integer > 1)
        return ANSWER_FAILED;
    return reply->integer == 1 ? ANSWER_YES : ANSWER_ABSENT;
}

bool redis_all_released(const struct redis_reply *reply)
{
    return reply->kind == RESP_INTEGER && reply->integer == SCRIPT_YES;
}

enum answer_kind redis_released(const struct redis_reply *reply, size_t count, size_t index)
{
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
    if (reply->kind == RESP_ERROR)
        return answer_of_error(reply);
    switch (command) {
    case REDIS_ACQUIRE:
    case REDIS_BACKFILL:
        return answer_of_set(reply);
    case REDIS_ACQUIRE_FENCED:
        return answer_of_fenced(reply);
    case REDIS_SWAP:
        return answer_of_swap(reply);
    case REDIS_RELEASE:
    case REDIS_EXTEND:
    case REDIS_STATUS:
    case REDIS_KEY_PROBE:
    case REDIS_FREEZE:
        return answer_of_script(reply);
    }
    assert(false && "the switch has every command");
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

const char *redis_info(const struct redis_reply *reply, const char *field, size_t *value_len)
{
    return reply->kind == RESP_STRING ? redis_info_field(reply->str, reply->len, field, value_len)
                                      : NULL;
}

bool redis_info_is(const struct redis_reply *reply, const char *field, const char *value)
{
    size_t len;
    const char *found = redis_info(reply, field, &len);
    return found != NULL && len == strlen(value) && memcmp(found, value, len) == 0;
}

int64_t redis_info_number(const struct redis_reply *reply, const char *field, size_t most_digits)
{
    size_t len;
    const char *found = redis_info(reply, field, &len);
    return found != NULL ? redis_number(found, len, most_digits) : -1;
}

bool redis_item_is(const struct redis_reply *reply, unsigned item, const char *string)
{
    return reply->kind == RESP_ARRAY && reply->item_count > item &&
           reply->items[item].kind == RESP_STRING && reply->items[item].len == strlen(string) &&
           memcmp(reply->items[item].str, string, strlen(string)) == 0;
}

/* Whether the version in this field of INFO is "<major>.<minor>" or later. */
static bool is_since(const char *info, size_t len, const char *field, unsigned major,
                     unsigned minor)
{
    uint64_t parts[2] = {0, 0};
    size_t value_len = 0;
    const char *value = redis_info_field(info, len, field, &value_len);
    if (value == NULL)
        return false;
    size_t digits = text_take_number(value, value_len, &parts[0]);
    if (digits < value_len && value[digits] == '.')
        text_take_number(value + digits + 1, value_len - digits - 1, &parts[1]);
    return parts[0] > major || (parts[0] == major && parts[1] >= minor);
}

/* Valkey also has a redis_version, the version of Redis that it is compatible with. */
enum redis_form redis_release_form(const char *info, size_t len)
{
    if (is_since(info, len, "valkey_version", 9, 0))
        return REDIS_DELIFEQ;
    return is_since(info, len, "redis_version", 8, 4) ? REDIS_DELEX : REDIS_BY_SHA1;
}
