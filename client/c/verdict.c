#include "client/c/verdict.h"

#include <string.h>

#include "protocol/limits.h"
#include "protocol/token.h"
#include "protocol/units.h"

/* As many as fit whatever they are. */
enum { DIGITS_MAX = 18 };

bool answer_is(struct word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

/* Take the next word, up to a space, off the text. False: there is none, or an empty one. */
static bool take(struct word *text, struct word *word)
{
    const char *space = text->len > 0 ? memchr(text->at, ' ', text->len) : NULL;
    size_t len = space != NULL ? (size_t)(space - text->at) : text->len;
    size_t taken = space != NULL ? len + 1 : len;
    *word = (struct word){text->at, len};
    *text = (struct word){text->at + taken, text->len - taken};
    return len > 0;
}

bool answer_number(struct word word, int64_t most, int64_t *number)
{
    *number = 0;
    if (word.len == 0 || word.len > DIGITS_MAX || (word.len > 1 && word.at[0] == '0'))
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9')
            return false;
        *number = *number * 10 + (word.at[i] - '0');
    }
    return *number <= most;
}

static bool take_number(struct word *text, int64_t most, int64_t *number)
{
    struct word word;
    return take(text, &word) && answer_number(word, most, number);
}

/* Words that mean the same to whatever they answer, and what they can answer at all. */
enum {
    ACQUIRE = 1 << QUESTION_ACQUIRE,
    EXTEND = 1 << QUESTION_EXTEND,
    RELEASE = 1 << QUESTION_RELEASE,
    QUERY = 1 << QUESTION_QUERY,
    BREAK = 1 << QUESTION_BREAK,
    PING = 1 << QUESTION_PING,
    PLACE = 1 << QUESTION_PLACE,
    LIST = 1 << QUESTION_LIST,
    VERSION = 1 << QUESTION_VERSION,
    VOTED = ACQUIRE | EXTEND | RELEASE | QUERY | BREAK,
    ALL = VOTED | PING | PLACE | LIST | VERSION,
};

static const struct meaning {
    const char *word;
    unsigned answers;
    enum redlock_status status;
    const char *why;
} meanings[ANSWER_OTHER + 1] = {
    /* These have functions of their own. */
    [ANSWER_HELD] = {.word = "HELD"},
    [ANSWER_LATE] = {.word = "LATE"},
    [ANSWER_PUSH] = {.word = "!"},
    [ANSWER_OK] = {"OK", RELEASE | BREAK, REDLOCK_OK, ""},
    [ANSWER_GONE] = {"GONE", EXTEND | RELEASE, REDLOCK_GONE,
                     "it is not held by this token any more"},
    [ANSWER_FREE] = {"FREE", QUERY | BREAK, REDLOCK_FREE, "nobody holds it"},
    [ANSWER_NOQUORUM] = {"NOQUORUM", VOTED, REDLOCK_NOQUORUM, "too few masters could vote"},
    [ANSWER_LIMIT] = {"LIMIT", ALL, REDLOCK_LIMIT, "a limit of the daemon is met"},
    [ANSWER_SHUTDOWN] = {"SHUTDOWN", ALL, REDLOCK_SHUTDOWN, "the daemon is stopping"},
    [ANSWER_DENIED] = {"DENIED", ALL, REDLOCK_DENIED, "the daemon does not allow it"},
    [ANSWER_ERR] = {"ERR", ALL, REDLOCK_REFUSED, "the daemon finds it wrong"},
    [ANSWER_PONG] = {"PONG", PING, REDLOCK_OK, ""},
    [ANSWER_VERSION] = {"VERSION", VERSION, REDLOCK_OK, ""},
    [ANSWER_END] = {"END", PLACE | LIST, REDLOCK_OK, ""},
};

static enum answer_word find(struct word word)
{
    unsigned found = 0;
    while (found < ANSWER_OTHER && !answer_is(word, meanings[found].word))
        found++;
    return (enum answer_word)found;
}

bool answer_read(const char *line, size_t len, struct answer *answer)
{
    *answer = (struct answer){.body = {line, len}};
    if (len >= LIMIT_REPLY)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            return false;
    struct word first;
    if (len > 0 && line[0] == '#') {
        if (!take(&answer->body, &answer->tag) || answer->tag.len < 2 ||
            answer->tag.len > 1 + LIMIT_TAG)
            return false;
        answer->tag = (struct word){answer->tag.at + 1, answer->tag.len - 1};
    }
    answer->rest = answer->body;
    if (!take(&answer->rest, &first))
        return false;
    answer->first = find(first);
    return true;
}

/* A number beyond it is none that a daemon gives (docs/protocol.txt). */
#define FENCE_MAX ((INT64_C(1) << 53) - 1)

/* --- in words --- */

/* Of a peer: what is not plain ASCII might be anything to a terminal. */
static void put_plain(struct text *text, struct word word)
{
    for (size_t i = 0; i < word.len; i++)
        text_byte(text, (unsigned char)word.at[i] < 0x80 ? word.at[i] : '?');
}

static enum verdict decide(struct redlock_event *event, enum redlock_status status,
                           struct text *text, const char *why, struct word details)
{
    event->status = status;
    text_string(text, why);
    text_string(text, details.len > 0 ? ": " : "");
    put_plain(text, details);
    return VERDICT_FINAL;
}

static const struct word nothing;

/* --- grants --- */

static int64_t deadline_of(const struct moments *moments, int64_t validity_ms, int64_t elapsed_ms)
{
    int64_t passed_ns = moments->received_ns - moments->sent_ns;
    int64_t granted_ns = moments->received_ns;
    /* Compared before it is multiplied, so that nothing overflows. */
    if (elapsed_ms <= passed_ns / NS_PER_MS)
        granted_ns = moments->sent_ns + elapsed_ms * NS_PER_MS;
    return granted_ns + validity_ms * NS_PER_MS;
}

/* A fence may come unasked: a daemon can be told to give one always. */
static bool take_fence(struct word *rest, bool asked, int64_t *fence)
{
    struct word word;
    if (!take(rest, &word))
        return false;
    if (answer_is(word, "-"))
        return !asked;
    return answer_number(word, FENCE_MAX, fence) && *fence > 0;
}

/* "<token> <validity_ms> <elapsed_ms>", and what follows. */
static enum verdict grant(const struct question *question, const struct moments *moments,
                          struct word rest, struct redlock_event *event, struct text *text)
{
    bool extends = question->kind == QUESTION_EXTEND;
    struct redlock_lock lock = extends ? question->earlier : (struct redlock_lock){0};
    struct word token;
    int64_t validity_ms;
    int64_t elapsed_ms;
    if (!take(&rest, &token) || !token_is(token.at, token.len) ||
        (extends && !answer_is(token, question->token)) ||
        !take_number(&rest, question->ttl_ms, &validity_ms) ||
        !take_number(&rest, ANSWER_MS_MAX, &elapsed_ms))
        return VERDICT_GARBLED;
    if (!extends && !take_fence(&rest, question->fence, &lock.fence))
        return VERDICT_GARBLED;

    int64_t deadline_ns = deadline_of(moments, validity_ms, elapsed_ms);
    memcpy(lock.resource, question->resource, sizeof(lock.resource));
    memcpy(lock.token, token.at, token.len);
    lock.token[token.len] = '\0';
    lock.ttl_ms = question->ttl_ms;
    lock.hold = extends ? lock.hold : question->hold;
    /* An extension never shortens, so what was promised before stands. */
    if (lock.deadline_ns < deadline_ns)
        lock.deadline_ns = deadline_ns;
    event->lock = lock;
    if (deadline_ns > moments->now_ns)
        return decide(event, REDLOCK_OK, text, "", nothing);
    return decide(event, REDLOCK_LATE, text, "it was granted, but nothing is left of it", nothing);
}

/* --- the others --- */

/* For people: "850 ms", "29.9 s". */
static void put_time(struct text *text, int64_t ms)
{
    if (ms < 1000) {
        text_number(text, ms);
        text_string(text, " ms");
        return;
    }
    text_number(text, ms / 1000);
    text_string(text, ".");
    text_number(text, ms / 100 % 10);
    text_string(text, " s");
}

static enum verdict held(const struct question *question, struct word rest,
                         struct redlock_event *event, struct text *text)
{
    static const char unbroken[] =
        "it has changed hands, or is no lock of redlockd, and is left alone";
    struct word word;
    if (!take(&rest, &word))
        return VERDICT_GARBLED;
    if (answer_is(word, "-1"))
        event->hint_ms = -1;
    else if (!answer_number(word, ANSWER_MS_MAX, &event->hint_ms))
        return VERDICT_GARBLED;
    if (question->kind == QUESTION_BREAK)
        return decide(event, REDLOCK_HELD, text, unbroken, nothing);
    decide(event, REDLOCK_HELD, text, "somebody else holds it", nothing);
    if (event->hint_ms >= 0) {
        text_string(text, ", for the next ");
        put_time(text, event->hint_ms);
    }
    return VERDICT_FINAL;
}

/* The wait in line is part of that time. */
static enum verdict late(struct word rest, struct redlock_event *event, struct text *text)
{
    int64_t elapsed_ms;
    if (!take_number(&rest, ANSWER_MS_MAX, &elapsed_ms))
        return VERDICT_GARBLED;
    decide(event, REDLOCK_LATE, text, "the masters granted it too late, after ", nothing);
    put_time(text, elapsed_ms);
    return VERDICT_FINAL;
}

/* The line of the listing that is about the resource has "place=<n>", or "place=-". */
static enum verdict place(const struct question *question, struct word body,
                          struct redlock_event *event)
{
    struct word word;
    bool ours = false;
    while (take(&body, &word)) {
        if (word.len > 9 && memcmp(word.at, "resource=", 9) == 0)
            ours = answer_is((struct word){word.at + 9, word.len - 9}, question->resource);
        if (!ours || word.len < 6 || memcmp(word.at, "place=", 6) != 0)
            continue;
        struct word number = {word.at + 6, word.len - 6};
        int64_t found = 0;
        if (!answer_is(number, "-") && (!answer_number(number, UINT32_MAX, &found) || found == 0))
            return VERDICT_GARBLED;
        event->place = (unsigned)found;
    }
    return VERDICT_MORE;
}

enum verdict verdict_on(const struct question *question, const struct moments *moments,
                        const struct answer *answer, struct redlock_event *event, struct text *text)
{
    const struct meaning *meaning = &meanings[answer->first];
    unsigned asked = 1u << question->kind;
    if (answer->first == ANSWER_OK && (asked & (ACQUIRE | EXTEND)) != 0)
        return grant(question, moments, answer->rest, event, text);
    if (answer->first == ANSWER_HELD && (asked & (ACQUIRE | QUERY | BREAK)) != 0)
        return held(question, answer->rest, event, text);
    if (answer->first == ANSWER_LATE && (asked & (ACQUIRE | EXTEND)) != 0)
        return late(answer->rest, event, text);
    if ((asked & meaning->answers) != 0) {
        bool said = meaning->status == REDLOCK_OK;
        return decide(event, meaning->status, text, meaning->why, said ? nothing : answer->rest);
    }
    if (asked == PLACE)
        return place(question, answer->body, event);
    return asked == LIST ? VERDICT_MORE : VERDICT_GARBLED;
}

bool verdict_is_farewell(const struct answer *answer, bool to_auth, enum redlock_status *status,
                         struct text *text)
{
    struct redlock_event event;
    const struct meaning *meaning = &meanings[answer->first];
    if (answer->first != ANSWER_LIMIT && answer->first != ANSWER_SHUTDOWN &&
        answer->first != ANSWER_DENIED && !(to_auth && answer->first == ANSWER_ERR))
        return false;
    decide(&event, meaning->status, text, meaning->why, answer->rest);
    *status = meaning->status;
    return true;
}

enum push verdict_on_push(const struct answer *answer, struct word *token, struct word *reason)
{
    struct word rest = answer->rest;
    struct word word;
    if (!take(&rest, &word))
        return PUSH_IS_GARBLED;
    bool lost = answer_is(word, "LOST");
    if (!lost && !answer_is(word, "WARN"))
        return PUSH_IS_UNKNOWN;
    if (!take(&rest, &word) || !take(&rest, token) || !token_is(token->at, token->len) ||
        !take(&rest, reason))
        return PUSH_IS_GARBLED;
    return lost ? PUSH_IS_LOST : PUSH_IS_WARN;
}
