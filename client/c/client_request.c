#include "client/c/client_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol/token.h"

_Static_assert(REDLOCK_RESOURCE_MAX == LIMIT_RESOURCE, "redlock.h and limits.h must agree");
_Static_assert(REDLOCK_TOKEN_LEN == LIMIT_TOKEN, "redlock.h and limits.h must agree");
_Static_assert(REDLOCK_LABEL_MAX == LIMIT_TAG, "redlock.h and limits.h must agree");

/* 1 to `most` bytes, none of them a space or a control character. */
static bool is_word(const char *text, size_t most)
{
    size_t len = text != NULL ? strnlen(text, most + 1) : 0;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return false;
    return len >= 1 && len <= most;
}

static bool take_resource(struct client_request *request, const char *resource, struct error *error)
{
    size_t len = resource != NULL ? strnlen(resource, LIMIT_RESOURCE + 1) : 0;
    if (len == 0 || len > LIMIT_RESOURCE)
        return error_set(error, "the resource name must have 1 to %d bytes", LIMIT_RESOURCE);
    if (!is_word(resource, LIMIT_RESOURCE))
        return error_set(error, "the resource name must not contain spaces or control characters");
    memcpy(request->resource, resource, len + 1);
    return true;
}

static bool take_token(struct client_request *request, const char *token, struct error *error)
{
    size_t len = strnlen(token, LIMIT_TOKEN + 1);
    if (!token_is(token, len))
        return error_set(error, "the token must be %d lower-case hex digits", LIMIT_TOKEN);
    memcpy(request->token, token, len + 1);
    return true;
}

static bool take_ttl(struct client_request *request, int64_t ttl_ms, struct error *error)
{
    request->ttl_ms = ttl_ms;
    if (ttl_ms < 1 || ttl_ms > CLIENT_REQUEST_TTL_MAX_MS)
        return error_set(error, "the TTL must be between 1 and %" PRId64 " ms",
                         CLIENT_REQUEST_TTL_MAX_MS);
    return true;
}

/* The names of the slots must not be too long either. */
static bool take_slots(struct client_request *request, const char *resource, unsigned slots,
                       struct error *error)
{
    char suffix[16];
    request->slots = slots;
    int len = snprintf(suffix, sizeof(suffix), "#%u", slots);
    if (slots > LIMIT_SLOTS)
        return error_set(error, "slots must be between 1 and %d", LIMIT_SLOTS);
    if (slots > 0 && resource != NULL && strlen(resource) + (size_t)len > LIMIT_RESOURCE)
        return error_set(error,
                         "with %u slots, the resource name must have at most %d bytes, because %s "
                         "is appended",
                         slots, LIMIT_RESOURCE - len, suffix);
    return true;
}

bool client_request_acquire(struct client_request *request, const char *resource, int64_t ttl_ms,
                            const struct redlock_lock_options *options, struct error *error)
{
    *request = (struct client_request){.kind = CLIENT_REQUEST_ACQUIRE};
    if (options != NULL) {
        request->wait_ms = options->wait_ms;
        request->fence = options->fence;
        request->hold = options->hold;
        request->linger = options->linger;
        if (!take_slots(request, resource, options->slots, error))
            return false;
    }
    if (request->linger && !request->hold)
        return error_set(error, "linger requires hold");
    if (request->wait_ms < 0 || request->wait_ms > LIMIT_WAIT_MS)
        return error_set(error, "the wait must be between 0 and %d ms", LIMIT_WAIT_MS);
    return take_resource(request, resource, error) && take_ttl(request, ttl_ms, error);
}

bool client_request_extend(struct client_request *request, const struct redlock_lock *lock,
                           int64_t ttl_ms, struct error *error)
{
    *request = (struct client_request){.kind = CLIENT_REQUEST_EXTEND, .earlier = *lock};
    return take_resource(request, lock->resource, error) &&
           take_token(request, lock->token, error) && take_ttl(request, ttl_ms, error);
}

bool client_request_release(struct client_request *request, const char *resource, const char *token,
                            struct error *error)
{
    *request = (struct client_request){.kind = CLIENT_REQUEST_RELEASE};
    return take_resource(request, resource, error) && take_token(request, token, error);
}

bool client_request_about(struct client_request *request, enum client_request_kind kind,
                          const char *resource, struct error *error)
{
    *request = (struct client_request){.kind = kind};
    return take_resource(request, resource, error);
}

bool client_request_query_slots(struct client_request *request, const char *resource,
                                unsigned slots, struct error *error)
{
    *request = (struct client_request){.kind = CLIENT_REQUEST_QUERY};
    if (slots == 0)
        return error_set(error, "slots must be between 1 and %d", LIMIT_SLOTS);
    return take_slots(request, resource, slots, error) && take_resource(request, resource, error);
}

bool client_request_list(struct client_request *request, const char *listing, struct error *error)
{
    static const char *const listings[] = {"NODES", "STATS", "CLIENTS", "LOCKS", "HELP"};
    const char *text = listing != NULL ? listing : "";
    *request = (struct client_request){.kind = CLIENT_REQUEST_LIST};
    if (strcasecmp(text, "VERSION") == 0) {
        request->kind = CLIENT_REQUEST_VERSION;
        return true;
    }
    for (size_t i = 0; i < sizeof(listings) / sizeof(listings[0]); i++)
        if (strcasecmp(text, listings[i]) == 0)
            request->listing = listings[i];
    if (request->listing != NULL)
        return true;
    request->listing = "LOCKS";
    if (strncasecmp(text, "LOCKS ", 6) == 0)
        return take_resource(request, text + 6, error);
    return error_set(error, "the listing must be NODES, STATS, CLIENTS, LOCKS, LOCKS <resource>, "
                            "HELP or VERSION");
}

bool client_request_label_is_fine(const char *label)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    size_t len = label != NULL ? strnlen(label, LIMIT_TAG + 1) : 0;
    return len >= 1 && len <= LIMIT_TAG && strspn(label, allowed) == len;
}

bool client_request_secret_is_fine(const char *secret)
{
    return is_word(secret, LIMIT_SECRET);
}

/* --- lines --- */

static const char *const verbs[] = {
    [CLIENT_REQUEST_ACQUIRE] = "LOCK",    [CLIENT_REQUEST_EXTEND] = "EXTEND",
    [CLIENT_REQUEST_RELEASE] = "UNLOCK",  [CLIENT_REQUEST_QUERY] = "STATUS",
    [CLIENT_REQUEST_BREAK] = "BREAK",     [CLIENT_REQUEST_PING] = "PING",
    [CLIENT_REQUEST_PLACE] = "LOCKS",     [CLIENT_REQUEST_LIST] = NULL, /* request->listing */
    [CLIENT_REQUEST_VERSION] = "VERSION",
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

/* Fields that a kind of request does not use are empty or zero, and add nothing to the line. */
size_t client_request_format(const struct client_request *request, uint64_t id,
                             char buf[CLIENT_REQUEST_LINE])
{
    struct text line = {.buf = buf, .size = CLIENT_REQUEST_LINE};
    const char *verb = verbs[request->kind];
    put_number(&line, "#", (int64_t)id);
    put_word(&line, verb != NULL ? verb : request->listing);
    put_word(&line, request->resource);
    put_word(&line, request->token);
    if (request->ttl_ms > 0)
        put_number(&line, " ", request->ttl_ms);
    if (request->slots > 0)
        put_number(&line, " SLOTS ", request->slots);
    if (request->wait_ms > 0)
        put_number(&line, " WAIT ", request->wait_ms);
    text_string(&line, request->fence ? " FENCE" : "");
    text_string(&line, request->hold ? " HOLD" : "");
    text_string(&line, request->linger ? " LINGER" : "");
    text_string(&line, "\n");
    return line.len;
}

/* Formats a tag, a verb and one word. */
static size_t format_words(const char *tag_and_verb, const char *word,
                           char buf[CLIENT_REQUEST_LINE])
{
    struct text line = {.buf = buf, .size = CLIENT_REQUEST_LINE};
    text_string(&line, tag_and_verb);
    put_word(&line, word);
    text_string(&line, "\n");
    return line.len;
}

size_t client_request_format_name(const char *label, char buf[CLIENT_REQUEST_LINE])
{
    return format_words("#" CLIENT_REQUEST_NAMING " NAME", label, buf);
}

size_t client_request_format_secret(const char *secret, char buf[CLIENT_REQUEST_LINE])
{
    return format_words("#" CLIENT_REQUEST_SECRET " AUTH", secret, buf);
}
