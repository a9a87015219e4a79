#include "client/c/question.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "client/c/answer.h"

_Static_assert(REDLOCK_RESOURCE_MAX == LIMIT_RESOURCE, "of the header and the protocol");
_Static_assert(REDLOCK_TOKEN_LEN == LIMIT_TOKEN, "of the header and the protocol");
_Static_assert(REDLOCK_LABEL_MAX == LIMIT_TAG, "of the header and the protocol");

static bool take_resource(struct question *question, const char *resource, struct error *error)
{
    size_t len = resource != NULL ? strnlen(resource, LIMIT_RESOURCE + 1) : 0;
    if (len == 0 || len > LIMIT_RESOURCE)
        return error_set(error, "the name of a resource has 1 to %d bytes", LIMIT_RESOURCE);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)resource[i] <= ' ' || resource[i] == 0x7f)
            return error_set(error, "the name of a resource has no spaces and control characters");
    memcpy(question->resource, resource, len + 1);
    return true;
}

static bool take_token(struct question *question, const char *token, struct error *error)
{
    size_t len = strnlen(token, LIMIT_TOKEN + 1);
    if (!answer_token((struct word){token, len}))
        return error_set(error, "a token is %d hex digits in lower case", LIMIT_TOKEN);
    memcpy(question->token, token, len + 1);
    return true;
}

static bool take_ttl(struct question *question, int64_t ttl_ms, struct error *error)
{
    question->ttl_ms = ttl_ms;
    if (ttl_ms < 1 || ttl_ms > QUESTION_TTL_MAX_MS)
        return error_set(error, "a time to live is 1 to %" PRId64 " ms", QUESTION_TTL_MAX_MS);
    return true;
}

bool question_acquire(struct question *question, const char *resource, int64_t ttl_ms,
                      const struct redlock_wish *wish, struct error *error)
{
    *question = (struct question){.kind = QUESTION_ACQUIRE};
    if (wish != NULL) {
        question->wait_ms = wish->wait_ms;
        question->fence = wish->fence;
        question->hold = wish->hold;
        question->linger = wish->linger;
    }
    if (question->linger && !question->hold)
        return error_set(error, "a lock lingers only with hold");
    if (question->wait_ms < 0 || question->wait_ms > LIMIT_WAIT_MS)
        return error_set(error, "a wait is 0 to %d ms", LIMIT_WAIT_MS);
    return take_resource(question, resource, error) && take_ttl(question, ttl_ms, error);
}

bool question_extend(struct question *question, const struct redlock_lock *lock, int64_t ttl_ms,
                     struct error *error)
{
    *question = (struct question){.kind = QUESTION_EXTEND, .earlier = *lock};
    return take_resource(question, lock->resource, error) &&
           take_token(question, lock->token, error) && take_ttl(question, ttl_ms, error);
}

bool question_release(struct question *question, const char *resource, const char *token,
                      struct error *error)
{
    *question = (struct question){.kind = QUESTION_RELEASE};
    return take_resource(question, resource, error) && take_token(question, token, error);
}

bool question_about(struct question *question, enum question_kind kind, const char *resource,
                    struct error *error)
{
    *question = (struct question){.kind = kind, .listing = "LOCKS"};
    return take_resource(question, resource, error);
}

bool question_list(struct question *question, const char *listing, struct error *error)
{
    static const char *const verbs[] = {"NODES", "STATS", "CLIENTS", "LOCKS", "HELP"};
    *question = (struct question){.kind = QUESTION_LIST};
    if (listing != NULL && strcasecmp(listing, "VERSION") == 0) {
        question->kind = QUESTION_VERSION;
        return true;
    }
    for (size_t i = 0; listing != NULL && i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcasecmp(listing, verbs[i]) == 0)
            question->listing = verbs[i];
    if (question->listing != NULL)
        return true;
    question->listing = "LOCKS";
    if (listing != NULL && strncasecmp(listing, "LOCKS ", 6) == 0)
        return take_resource(question, listing + 6, error);
    return error_set(error, "a listing is NODES, STATS, CLIENTS, LOCKS, LOCKS <resource>, HELP or "
                            "VERSION");
}

bool question_label_is_fine(const char *label)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    size_t len = label != NULL ? strnlen(label, LIMIT_TAG + 1) : 0;
    return len >= 1 && len <= LIMIT_TAG && strspn(label, allowed) == len;
}

bool question_secret_is_fine(const char *secret)
{
    size_t len = secret != NULL ? strnlen(secret, LIMIT_SECRET + 1) : 0;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)secret[i] <= ' ' || secret[i] == 0x7f)
            return false;
    return len >= 1 && len <= LIMIT_SECRET;
}

/* --- lines --- */

static void put_words(struct text *line, const char *verb, const char *first, const char *second)
{
    text_string(line, verb);
    if (first[0] != '\0')
        text_string(line, " ");
    text_string(line, first);
    if (second[0] != '\0')
        text_string(line, " ");
    text_string(line, second);
}

static void put_number(struct text *line, const char *before, int64_t number)
{
    text_string(line, before);
    text_number(line, number);
}

size_t question_format(const struct question *question, uint64_t id, char buf[QUESTION_LINE])
{
    struct text line = {.buf = buf, .size = QUESTION_LINE};
    put_number(&line, "#", (int64_t)id);
    text_string(&line, " ");
    switch (question->kind) {
    case QUESTION_ACQUIRE:
        put_words(&line, "LOCK", question->resource, "");
        put_number(&line, " ", question->ttl_ms);
        if (question->wait_ms > 0)
            put_number(&line, " WAIT ", question->wait_ms);
        text_string(&line, question->fence ? " FENCE" : "");
        text_string(&line, question->hold ? " HOLD" : "");
        text_string(&line, question->linger ? " LINGER" : "");
        break;
    case QUESTION_EXTEND:
        put_words(&line, "EXTEND", question->resource, question->token);
        put_number(&line, " ", question->ttl_ms);
        break;
    case QUESTION_RELEASE:
        put_words(&line, "UNLOCK", question->resource, question->token);
        break;
    case QUESTION_QUERY:
        put_words(&line, "STATUS", question->resource, "");
        break;
    case QUESTION_BREAK:
        put_words(&line, "BREAK", question->resource, "");
        break;
    case QUESTION_PING:
        text_string(&line, "PING");
        break;
    case QUESTION_PLACE:
    case QUESTION_LIST:
        put_words(&line, question->listing, question->resource, "");
        break;
    case QUESTION_VERSION:
        text_string(&line, "VERSION");
        break;
    }
    text_string(&line, "\n");
    return line.len;
}

size_t question_format_name(const char *label, char buf[QUESTION_LINE])
{
    struct text line = {.buf = buf, .size = QUESTION_LINE};
    put_words(&line, "#" QUESTION_NAMING " NAME", label, "");
    text_string(&line, "\n");
    return line.len;
}

size_t question_format_secret(const char *secret, char buf[QUESTION_LINE])
{
    struct text line = {.buf = buf, .size = QUESTION_LINE};
    put_words(&line, "#" QUESTION_SECRET " AUTH", secret, "");
    text_string(&line, "\n");
    return line.len;
}
