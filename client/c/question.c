#include "client/c/question.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "protocol/token.h"

_Static_assert(REDLOCK_RESOURCE_MAX == LIMIT_RESOURCE, "of the header and the protocol");
_Static_assert(REDLOCK_TOKEN_LEN == LIMIT_TOKEN, "of the header and the protocol");
_Static_assert(REDLOCK_LABEL_MAX == LIMIT_TAG, "of the header and the protocol");

/* 1 to `most` bytes, none of them a space or a control character. */
static bool is_word(const char *text, size_t most)
{
    size_t len = text != NULL ? strnlen(text, most + 1) : 0;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return false;
    return len >= 1 && len <= most;
}

static bool take_resource(struct question *question, const char *resource, struct error *error)
{
    size_t len = resource != NULL ? strnlen(resource, LIMIT_RESOURCE + 1) : 0;
    if (len == 0 || len > LIMIT_RESOURCE)
        return error_set(error, "the name of a resource has 1 to %d bytes", LIMIT_RESOURCE);
    if (!is_word(resource, LIMIT_RESOURCE))
        return error_set(error, "the name of a resource has no spaces and control characters");
    memcpy(question->resource, resource, len + 1);
    return true;
}

static bool take_token(struct question *question, const char *token, struct error *error)
{
    size_t len = strnlen(token, LIMIT_TOKEN + 1);
    if (!token_is(token, len))
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
                      const struct redlock_lock_options *options, struct error *error)
{
    *question = (struct question){.kind = QUESTION_ACQUIRE};
    if (options != NULL) {
        question->wait_ms = options->wait_ms;
        question->fence = options->fence;
        question->hold = options->hold;
        question->linger = options->linger;
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
    *question = (struct question){.kind = kind};
    return take_resource(question, resource, error);
}

bool question_list(struct question *question, const char *listing, struct error *error)
{
    static const char *const listings[] = {"NODES", "STATS", "CLIENTS", "LOCKS", "HELP"};
    const char *text = listing != NULL ? listing : "";
    *question = (struct question){.kind = QUESTION_LIST};
    if (strcasecmp(text, "VERSION") == 0) {
        question->kind = QUESTION_VERSION;
        return true;
    }
    for (size_t i = 0; i < sizeof(listings) / sizeof(listings[0]); i++)
        if (strcasecmp(text, listings[i]) == 0)
            question->listing = listings[i];
    if (question->listing != NULL)
        return true;
    question->listing = "LOCKS";
    if (strncasecmp(text, "LOCKS ", 6) == 0)
        return take_resource(question, text + 6, error);
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
    return is_word(secret, LIMIT_SECRET);
}

/* --- lines --- */

static const char *const verbs[] = {
    [QUESTION_ACQUIRE] = "LOCK",    [QUESTION_EXTEND] = "EXTEND", [QUESTION_RELEASE] = "UNLOCK",
    [QUESTION_QUERY] = "STATUS",    [QUESTION_BREAK] = "BREAK",   [QUESTION_PING] = "PING",
    [QUESTION_PLACE] = "LOCKS",     [QUESTION_LIST] = NULL, /* question->listing */
    [QUESTION_VERSION] = "VERSION",
};

static void put_word(struct text *line, const char *word)
{
    text_string(line, word[0] != '\0' ? " " : "");
    text_string(line, word);
}

static void put_number(struct text *line, const char *before, int64_t number)
{
    text_string(line, before);
    text_number(line, number);
}

/* What a kind of question does not have is empty or zero. */
size_t question_format(const struct question *question, uint64_t id, char buf[QUESTION_LINE])
{
    struct text line = {.buf = buf, .size = QUESTION_LINE};
    const char *verb = verbs[question->kind];
    put_number(&line, "#", (int64_t)id);
    put_word(&line, verb != NULL ? verb : question->listing);
    put_word(&line, question->resource);
    put_word(&line, question->token);
    if (question->ttl_ms > 0)
        put_number(&line, " ", question->ttl_ms);
    if (question->wait_ms > 0)
        put_number(&line, " WAIT ", question->wait_ms);
    text_string(&line, question->fence ? " FENCE" : "");
    text_string(&line, question->hold ? " HOLD" : "");
    text_string(&line, question->linger ? " LINGER" : "");
    text_string(&line, "\n");
    return line.len;
}

/* A line of a tag, a verb and a word. */
static size_t format_words(const char *tag_and_verb, const char *word, char buf[QUESTION_LINE])
{
    struct text line = {.buf = buf, .size = QUESTION_LINE};
    text_string(&line, tag_and_verb);
    put_word(&line, word);
    text_string(&line, "\n");
    return line.len;
}

size_t question_format_name(const char *label, char buf[QUESTION_LINE])
{
    return format_words("#" QUESTION_NAMING " NAME", label, buf);
}

size_t question_format_secret(const char *secret, char buf[QUESTION_LINE])
{
    return format_words("#" QUESTION_SECRET " AUTH", secret, buf);
}
