#include "client/c/client_result.h"

#include <string.h>

#include "protocol/limits.h"
#include "protocol/token.h"
#include "protocol/units.h"

/* Any number of this many digits fits in an int64_t. */
enum { DIGITS_MAX = 18 };

bool client_reply_is(struct word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

/* Takes the next word, up to a space, off the text. False: the text or the word is empty. */
static bool take(struct word *text, struct word *word)
{
    const char *space = text->len > 0 ? memchr(text->at, ' ', text->len) : NULL;
    size_t len = space != NULL ? (size_t)(space - text->at) : text->len;
    size_t taken = space != NULL ? len + 1 : len;
    *word = (struct word){text->at, len};
    *text = (struct word){text->at + taken, text->len - taken};
    return len > 0;
}

bool client_reply_number(struct word word, int64_t most, int64_t *number)
{
    uint64_t all = 0;
    bool fine = word.len > 0 && word.len <= DIGITS_MAX && (word.len == 1 || word.at[0] != '0') &&
                text_take_number(word.at, word.len, &all) == word.len;
    *number = fine ? (int64_t)all : 0;
    return fine && *number <= most;
}

static bool take_number(struct word *text, int64_t most, int64_t *number)
{
    struct word word;
    return take(text, &word) && client_reply_number(word, most, number);
}

/* Sets of request kinds, for the table of words below. */
enum {
    ACQUIRE = 1 << CLIENT_REQUEST_ACQUIRE,
    EXTEND = 1 << CLIENT_REQUEST_EXTEND,
    RELEASE = 1 << CLIENT_REQUEST_RELEASE,
    QUERY = 1 << CLIENT_REQUEST_QUERY,
    BREAK = 1 << CLIENT_REQUEST_BREAK,
    PING = 1 << CLIENT_REQUEST_PING,
    PLACE = 1 << CLIENT_REQUEST_PLACE,
    LIST = 1 << CLIENT_REQUEST_LIST,
    VERSION = 1 << CLIENT_REQUEST_VERSION,
    VOTED = ACQUIRE | EXTEND | RELEASE | QUERY | BREAK,
    ALL = VOTED | PING | PLACE | LIST | VERSION,
};

/* Words that mean the same to every request that they can answer. */
static const struct meaning {
    const char *word;
    unsigned answers; /* the kinds of request that the word can answer */
    enum redlock_status status;
    const char *why; /* error message */
} meanings[REPLY_OTHER + 1] = {
    /* Words that are handled by functions below. */
    [REPLY_HELD] = {.word = "HELD"},
    [REPLY_LATE] = {.word = "LATE"},
    [REPLY_PUSH] = {.word = "!"},
    [REPLY_OK] = {"OK", RELEASE | BREAK, REDLOCK_OK, ""},
    [REPLY_GONE] = {"GONE", EXTEND | RELEASE, REDLOCK_GONE, "this token no longer holds the lock"},
    [REPLY_FREE] = {"FREE", QUERY | BREAK, REDLOCK_FREE, "no client holds the lock"},
    [REPLY_NOQUORUM] = {"NOQUORUM", VOTED, REDLOCK_NOQUORUM, "too few masters could vote"},
    [REPLY_LIMIT] = {"LIMIT", ALL, REDLOCK_LIMIT, "a limit of the daemon is reached"},
    [REPLY_SHUTDOWN] = {"SHUTDOWN", ALL, REDLOCK_SHUTDOWN, "the daemon is stopping"},
    [REPLY_DENIED] = {"DENIED", ALL, REDLOCK_DENIED, "access denied"},
    [REPLY_ERR] = {"ERR", ALL, REDLOCK_REFUSED, "redlockd rejected the request"},
    [REPLY_PONG] = {"PONG", PING, REDLOCK_OK, ""},
    [REPLY_VERSION] = {"VERSION", VERSION, REDLOCK_OK, ""},
    [REPLY_END] = {"END", PLACE | LIST, REDLOCK_OK, ""},
};

static enum client_reply_word find(struct word word)
{
    unsigned found = 0;
    while (found < REPLY_OTHER && !client_reply_is(word, meanings[found].word))
        found++;
    return (enum client_reply_word)found;
}

bool client_reply_read(const char *line, size_t len, struct client_reply *answer)
{
    *answer = (struct client_reply){.body = {line, len}};
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

/* The greatest fencing token that a daemon gives (docs/protocol.txt). */
#define FENCE_MAX ((INT64_C(1) << 53) - 1)

/* --- messages --- */

/* Replaces bytes that are not ASCII: the text comes from the peer, and a program can print it on a
 * terminal. */
static void put_plain(struct text *text, struct word word)
{
    for (size_t i = 0; i < word.len; i++)
        text_byte(text, (unsigned char)word.at[i] < 0x80 ? word.at[i] : '?');
}

static enum client_result decide(struct redlock_event *event, enum redlock_status status,
                                 struct text *text, const char *why, struct word details)
{
    event->status = status;
    text_string(text, why);
    text_string(text, details.len > 0 ? ": " : "");
    put_plain(text, details);
    return RESULT_FINAL;
}

static const struct word nothing;

/* --- grants --- */

static int64_t deadline_of(const struct moments *moments, int64_t validity_ms, int64_t elapsed_ms)
{
    int64_t passed_ns = moments->received_ns - moments->sent_ns;
    int64_t granted_ns = moments->received_ns;
    /* Compare before multiplying, so that nothing overflows. */
    if (elapsed_ms <= passed_ns / NS_PER_MS)
        granted_ns = moments->sent_ns + elapsed_ms * NS_PER_MS;
    return granted_ns + validity_ms * NS_PER_MS;
}

/* The daemon can be configured to give a fencing token with every lock. So a fencing token is valid
 * even if the caller did not ask for one. */
static bool take_fence(struct word *rest, bool asked, int64_t *fence)
{
    struct word word;
    if (!take(rest, &word))
        return false;
    if (client_reply_is(word, "-"))
        return !asked;
    return client_reply_number(word, FENCE_MAX, fence) && *fence > 0;
}

/* With SLOTS, the name of the granted slot comes last: "<resource>#<number>". */
static bool take_slot(const struct client_request *request, struct word *rest, char *resource)
{
    size_t len = strlen(request->resource);
    struct word word;
    int64_t number;
    if (!take(rest, &word) || word.len < len + 2 || word.len > LIMIT_RESOURCE ||
        memcmp(word.at, request->resource, len) != 0 || word.at[len] != '#' ||
        !client_reply_number((struct word){word.at + len + 1, word.len - len - 1},
                             (int64_t)request->slots, &number) ||
        number == 0)
        return false;
    memcpy(resource, word.at, word.len);
    resource[word.len] = '\0';
    return true;
}

/* OK to LOCK or EXTEND: "<token> <validity_ms> <elapsed_ms>", for LOCK followed by the fence and,
 * with SLOTS, by the slot. */
static enum client_result grant(const struct client_request *request, const struct moments *moments,
                                struct word rest, struct redlock_event *event, struct text *text)
{
    bool extends = request->kind == CLIENT_REQUEST_EXTEND;
    struct redlock_lock lock = extends ? request->earlier : (struct redlock_lock){0};
    struct word token;
    int64_t validity_ms;
    int64_t elapsed_ms;
    if (!take(&rest, &token) || !token_is(token.at, token.len) ||
        (extends && !client_reply_is(token, request->token)) ||
        !take_number(&rest, request->ttl_ms, &validity_ms) ||
        !take_number(&rest, REPLY_MS_MAX, &elapsed_ms))
        return RESULT_GARBLED;
    if (!extends && !take_fence(&rest, request->fence, &lock.fence))
        return RESULT_GARBLED;

    int64_t deadline_ns = deadline_of(moments, validity_ms, elapsed_ms);
    memcpy(lock.resource, request->resource, sizeof(lock.resource));
    if (request->slots > 0 && !take_slot(request, &rest, lock.resource))
        return RESULT_GARBLED;
    memcpy(lock.token, token.at, token.len);
    lock.token[token.len] = '\0';
    lock.ttl_ms = request->ttl_ms;
    lock.hold = extends ? lock.hold : request->hold;
    /* An extension never shortens a lock, so the old deadline stays valid if it is later. */
    lock.deadline_ns = max(lock.deadline_ns, deadline_ns);
    event->lock = lock;
    if (deadline_ns > moments->now_ns)
        return decide(event, REDLOCK_OK, text, "", nothing);
    return decide(event, REDLOCK_LATE, text, "the lock was granted too late: no validity is left",
                  nothing);
}

/* --- other answers --- */

/* Formats a duration for messages: "850 ms", "29.9 s". */
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

/* With SLOTS, STATUS says how many slots are held: "<held>/<slots>". */
static bool take_held(const struct client_request *request, struct word *rest, unsigned *held)
{
    struct word word;
    int64_t number;
    int64_t slots;
    if (request->kind != CLIENT_REQUEST_QUERY || request->slots == 0)
        return true;
    const char *slash = take(rest, &word) ? memchr(word.at, '/', word.len) : NULL;
    if (slash == NULL)
        return false;
    size_t len = (size_t)(slash - word.at);
    if (!client_reply_number((struct word){word.at, len}, request->slots, &number) ||
        !client_reply_number((struct word){slash + 1, word.len - len - 1}, request->slots, &slots))
        return false;
    *held = (unsigned)number;
    return slots == request->slots;
}

static enum client_result held(const struct client_request *request, struct word rest,
                               struct redlock_event *event, struct text *text)
{
    static const char unbroken[] =
        "not released: the lock changed hands meanwhile, or is not a lock of redlockd";
    struct word word;
    if (!take(&rest, &word))
        return RESULT_GARBLED;
    if (client_reply_is(word, "-1"))
        event->hint_ms = -1;
    else if (!client_reply_number(word, REPLY_MS_MAX, &event->hint_ms))
        return RESULT_GARBLED;
    if (!take_held(request, &rest, &event->held))
        return RESULT_GARBLED;
    if (request->kind == CLIENT_REQUEST_BREAK)
        return decide(event, REDLOCK_HELD, text, unbroken, nothing);
    const char *why = "another client holds the lock";
    if (request->slots > 0)
        why = request->kind == CLIENT_REQUEST_QUERY ? "all slots are held" : "no slot was free";
    decide(event, REDLOCK_HELD, text, why, nothing);
    if (event->hint_ms >= 0) {
        text_string(text, request->slots > 0 ? "; the first expires in " : "; it expires in ");
        put_time(text, event->hint_ms);
        text_string(text, " at the earliest");
    }
    return RESULT_FINAL;
}

static enum client_result slots_free(const struct client_request *request, struct word rest,
                                     struct redlock_event *event, struct text *text)
{
    if (!take_held(request, &rest, &event->held))
        return RESULT_GARBLED;
    return decide(event, REDLOCK_FREE, text, "not all slots are held", nothing);
}

/* "LATE <elapsed_ms>". The time includes the wait in the queue. */
static enum client_result late(struct word rest, struct redlock_event *event, struct text *text)
{
    int64_t elapsed_ms;
    if (!take_number(&rest, REPLY_MS_MAX, &elapsed_ms))
        return RESULT_GARBLED;
    decide(event, REDLOCK_LATE, text, "the masters granted the lock too late, after ", nothing);
    put_time(text, elapsed_ms);
    return RESULT_FINAL;
}

/* A line of LOCKS. The line of the requested resource has "place=<n>" or "place=-". */
static enum client_result place(const struct client_request *request, struct word body,
                                struct redlock_event *event)
{
    struct word word;
    bool matches = false;
    while (take(&body, &word)) {
        if (word.len > 9 && memcmp(word.at, "resource=", 9) == 0)
            matches = client_reply_is((struct word){word.at + 9, word.len - 9}, request->resource);
        if (!matches || word.len < 6 || memcmp(word.at, "place=", 6) != 0)
            continue;
        struct word number = {word.at + 6, word.len - 6};
        int64_t found = 0;
        if (!client_reply_is(number, "-") &&
            (!client_reply_number(number, UINT32_MAX, &found) || found == 0))
            return RESULT_GARBLED;
        event->place = (unsigned)found;
    }
    return RESULT_MORE;
}

/* The limits that a holder meets without having asked for too much at once. */
static const char *explain_limit(struct word limit)
{
    if (client_reply_is(limit, "hold"))
        return "the lock was held for as long as the daemon allows (max_hold)";
    if (client_reply_is(limit, "extensions"))
        return "the lock was extended as often as the daemon allows (max_extensions)";
    return meanings[REPLY_LIMIT].why;
}

enum client_result client_result_of(const struct client_request *request,
                                    const struct moments *moments,
                                    const struct client_reply *answer, struct redlock_event *event,
                                    struct text *text)
{
    const struct meaning *meaning = &meanings[answer->first];
    unsigned asked = 1u << request->kind;
    if (answer->first == REPLY_OK && (asked & (ACQUIRE | EXTEND)) != 0)
        return grant(request, moments, answer->rest, event, text);
    if (answer->first == REPLY_HELD && (asked & (ACQUIRE | QUERY | BREAK)) != 0)
        return held(request, answer->rest, event, text);
    if (answer->first == REPLY_FREE && request->slots > 0 && asked == QUERY)
        return slots_free(request, answer->rest, event, text);
    if (answer->first == REPLY_LATE && (asked & (ACQUIRE | EXTEND)) != 0)
        return late(answer->rest, event, text);
    if ((asked & meaning->answers) != 0) {
        bool is_ok = meaning->status == REDLOCK_OK;
        const char *why = answer->first == REPLY_LIMIT ? explain_limit(answer->rest) : meaning->why;
        return decide(event, meaning->status, text, why, is_ok ? nothing : answer->rest);
    }
    if (asked == PLACE)
        return place(request, answer->body, event);
    return asked == LIST ? RESULT_MORE : RESULT_GARBLED;
}

bool client_result_is_closing_error(const struct client_reply *answer, bool to_auth,
                                    enum redlock_status *status, struct text *text)
{
    struct redlock_event event;
    const struct meaning *meaning = &meanings[answer->first];
    if (answer->first != REPLY_LIMIT && answer->first != REPLY_SHUTDOWN &&
        answer->first != REPLY_DENIED && !(to_auth && answer->first == REPLY_ERR))
        return false;
    decide(&event, meaning->status, text, meaning->why, answer->rest);
    *status = meaning->status;
    return true;
}

enum push client_result_of_push(const struct client_reply *answer, struct word *token,
                                struct word *reason)
{
    struct word rest = answer->rest;
    struct word word;
    if (!take(&rest, &word))
        return PUSH_IS_GARBLED;
    bool lost = client_reply_is(word, "LOST");
    if (!lost && !client_reply_is(word, "WARN"))
        return PUSH_IS_UNKNOWN;
    if (!take(&rest, &word) || !take(&rest, token) || !token_is(token->at, token->len) ||
        !take(&rest, reason))
        return PUSH_IS_GARBLED;
    return lost ? PUSH_IS_LOST : PUSH_IS_WARN;
}
