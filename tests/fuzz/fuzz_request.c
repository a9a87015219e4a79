/*
 * Fuzzes the parser of requests with any bytes as a line of a client. An accepted request is within
 * its limits, has no pointer to bytes outside of the line, and stays the same if it is formatted
 * and parsed again. A refused request has a printable error. A connection that has not
 * authenticated is allowed AUTH and requests without a resource only, and AUTH finds a user only by
 * the exact secret.
 */
#include <assert.h>
#include <string.h>

#include "config/acl.h"
#include "protocol/foreign.h"
#include "protocol/request.h"
#include "protocol/text.h"
#include "server/clients/users.h"
#include "tests/fuzz/fuzz.h"

#define PREFIX(text) .key_prefix = (text), .key_prefix_len = sizeof(text) - 1

/* With the prefixes "" and "redlock", a name of a resource can make a key that begins with
 * "redlockd:", like redlockd's own keys. Such names must be refused. */
static const struct request_limits limits[] = {
    {.ttl_min_ms = 20, .ttl_max_ms = 60000, .hold_ttl_min_ms = 200, PREFIX("")},
    {.ttl_min_ms = 1, .ttl_max_ms = 24 * 3600000, .hold_ttl_min_ms = 1, PREFIX("redlock")},
    {.ttl_min_ms = 60000, .ttl_max_ms = 60000, .hold_ttl_min_ms = 60000, PREFIX("redlock:")},
};

static bool is_within(const char *view, size_t view_len, const char *line, size_t len)
{
    return view >= line && view_len <= len && (size_t)(view - line) <= len - view_len;
}

/* A word has no spaces and no control characters. */
static bool is_word(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)at[i] <= ' ' || at[i] == 0x7f)
            return false;
    return len > 0;
}

static void check_error(enum request_error code, const struct error *error)
{
    const char *end = memchr(error->text, '\0', sizeof(error->text));
    assert(end != NULL);
    assert(end > error->text);
    assert(end[-1] != '.' || end - error->text == sizeof(error->text) - 1);
    for (const char *at = error->text; at < end; at++) {
        assert(*at >= 0x20);
        assert(*at < 0x7f);
    }
    assert(strlen(request_error_word(code)) > 0);
}

static void check_label(const char *at, size_t at_len, const char *line, size_t len)
{
    assert(is_within(at, at_len, line, len));
    assert(is_word(at, at_len));
    assert(at_len <= LIMIT_TAG);
}

static void check_resource(const struct request *request, const struct request_limits *bounds,
                           const char *line, size_t len)
{
    char key[LIMIT_KEY + 1];
    struct text text = {.buf = key, .size = LIMIT_KEY};
    assert(is_within(request->resource, request->resource_len, line, len));
    assert(is_word(request->resource, request->resource_len));
    assert(request->resource_len <= LIMIT_RESOURCE);
    text_bytes(&text, bounds->key_prefix, bounds->key_prefix_len);
    text_bytes(&text, request->resource, request->resource_len);
    key[text.len] = '\0';
    assert(strncmp(key, "redlockd:", 9) != 0);
}

static void check_ttl(const struct request *request, const struct request_limits *bounds)
{
    assert(request->ttl_ms >= bounds->ttl_min_ms);
    assert(request->ttl_ms <= bounds->ttl_max_ms);
    assert(!request->hold || request->ttl_ms >= bounds->hold_ttl_min_ms);
    assert(!request->linger || request->hold);
    assert(request->wait_ms >= 0);
    assert(request->wait_ms <= LIMIT_WAIT_MS);
}

static void check_token(const struct request *request, const char *line, size_t len)
{
    assert(is_within(request->token, LIMIT_TOKEN, line, len));
    for (size_t i = 0; i < LIMIT_TOKEN; i++)
        assert(strchr("0123456789abcdef", request->token[i]) != NULL);
}

static void check_request(const struct request *request, const struct request_limits *bounds,
                          const char *line, size_t len)
{
    assert(request->verb < VERB_COUNT);
    switch (request->verb) {
    case VERB_LOCK:
        check_resource(request, bounds, line, len);
        check_ttl(request, bounds);
        break;
    case VERB_EXTEND:
        check_ttl(request, bounds);
        check_token(request, line, len);
        check_resource(request, bounds, line, len);
        break;
    case VERB_UNLOCK:
        check_token(request, line, len);
        check_resource(request, bounds, line, len);
        break;
    case VERB_STATUS:
    case VERB_BREAK:
        check_resource(request, bounds, line, len);
        break;
    case VERB_LOCKS:
        if (request->resource != NULL)
            check_resource(request, bounds, line, len);
        else
            assert(request->resource_len == 0);
        assert(request->token == NULL);
        break;
    case VERB_NAME:
        check_label(request->label, request->label_len, line, len);
        break;
    case VERB_AUTH:
        assert(is_within(request->secret, request->secret_len, line, len));
        assert(is_word(request->secret, request->secret_len));
        assert(request->secret_len <= LIMIT_SECRET);
        assert(request->resource == NULL);
        break;
    case VERB_COUNT:
        assert(false && "server/clients/session.c takes it for a bug");
    case VERB_NODES:
    case VERB_STATS:
    case VERB_CLIENTS:
    case VERB_PING:
    case VERB_VERSION:
    case VERB_HELP:
    case VERB_QUIT:
        assert(request->resource == NULL);
        assert(request->token == NULL);
        break;
    }
}

static void put(struct text *line, const char *word, size_t len)
{
    text_string(line, line->len > 0 ? " " : "");
    text_bytes(line, word, len);
}

/* Format the request with single spaces and plain numbers. */
static size_t write_plain(const struct request *request, char *buf, size_t size)
{
    struct text line = {.buf = buf, .size = size};
    if (request->tag != NULL) {
        text_string(&line, "#");
        text_bytes(&line, request->tag, request->tag_len);
    }
    put(&line, verb_word(request->verb), strlen(verb_word(request->verb)));
    if (request->resource != NULL)
        put(&line, request->resource, request->resource_len);
    if (request->token != NULL)
        put(&line, request->token, LIMIT_TOKEN);
    if (request->label != NULL)
        put(&line, request->label, request->label_len);
    if (request->secret != NULL)
        put(&line, request->secret, request->secret_len);
    if (request->ttl_ms > 0) {
        text_string(&line, " ");
        text_number(&line, request->ttl_ms);
    }
    if (request->wait_ms > 0) {
        text_string(&line, " WAIT ");
        text_number(&line, request->wait_ms);
    }
    text_string(&line, request->linger ? " LINGER" : "");
    text_string(&line, request->hold ? " HOLD" : "");
    text_string(&line, request->fence ? " FENCE" : "");
    return line.len;
}

static bool same_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return (a == NULL) == (b == NULL) && a_len == b_len && (a == NULL || memcmp(a, b, a_len) == 0);
}

static void check_reparsed(const struct request *request, const struct request_limits *bounds)
{
    char line[LIMIT_LINE];
    struct request again;
    struct error error;
    size_t len = write_plain(request, line, sizeof(line));
    assert(request_parse(line, len, bounds, &again, &error) == REQUEST_FINE);
    assert(again.verb == request->verb);
    assert(again.ttl_ms == request->ttl_ms);
    assert(again.wait_ms == request->wait_ms);
    assert(again.fence == request->fence);
    assert(again.hold == request->hold);
    assert(again.linger == request->linger);
    assert(same_bytes(again.tag, again.tag_len, request->tag, request->tag_len));
    assert(
        same_bytes(again.resource, again.resource_len, request->resource, request->resource_len));
    assert(same_bytes(again.label, again.label_len, request->label, request->label_len));
    assert(same_bytes(again.secret, again.secret_len, request->secret, request->secret_len));
    assert(same_bytes(again.token, LIMIT_TOKEN, request->token, LIMIT_TOKEN));
}

/* --- authentication --- */

static const struct acl no_user;

/* Two users: one with a secret that the fuzzer will not guess, one with a uid. Made once. */
static const struct users *users(void)
{
    static char secret[] = "c0ffee00c0ffee00c0ffee00c0ffee00";
    static char name[] = "ci";
    static char prefix[] = "";
    static struct config_user list[] = {
        {.name = name, .secret = secret, .prefixes = {prefix}, .prefix_count = 1, .verbs = ~0u},
        {.name = name, .uids = {0}, .uid_count = 1, .verbs = ~0u},
    };
    static const struct config_users config = {list, 2};
    static const unsigned char key[USERS_DIGEST] = {7};
    static struct users made;
    if (made.list == NULL)
        assert(users_init(&made, &config, key));
    return &made;
}

static void check_handshake(const struct request *request)
{
    uint64_t fingerprint = 0;
    if (request->verb == VERB_AUTH) {
        bool right = request->secret_len == 32 &&
                     memcmp(request->secret, "c0ffee00c0ffee00c0ffee00c0ffee00", 32) == 0;
        const struct user *user =
            users_by_secret(users(), request->secret, request->secret_len, &fingerprint);
        assert((user != NULL) == right);
        assert(fingerprint != 0);
        assert(user == NULL || user->has_secret);
    }
    bool may =
        acl_check(&no_user, request->verb, request->resource, request->resource_len) == ACL_YES;
    assert(!may || (request->resource == NULL && request->token == NULL));
    assert(!may || request->verb == VERB_AUTH || request->verb == VERB_PING ||
           request->verb == VERB_VERSION || request->verb == VERB_HELP ||
           request->verb == VERB_QUIT);
}

static void check_line(const char *line, size_t len, const struct request_limits *bounds)
{
    struct request request;
    struct error error;
    memset(&error, '?', sizeof(error));
    enum request_error code = request_parse(line, len, bounds, &request, &error);
    if (request.tag != NULL)
        check_label(request.tag, request.tag_len, line, len);
    else
        assert(request.tag_len == 0);
    assert((code == REQUEST_LINE_TOO_LONG) == (len >= LIMIT_LINE));
    if (code == REQUEST_FINE) {
        check_request(&request, bounds, line, len);
        check_reparsed(&request, bounds);
        check_handshake(&request);
    } else if (code == REQUEST_EMPTY) {
        for (size_t i = 0; i < len; i++)
            assert(line[i] == ' ');
    } else {
        check_error(code, &error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *line = (const char *)bytes;
    struct request request;
    int64_t ms = 0;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        check_line(line, len, &limits[i]);
    request_tag(line, len, &request);
    if (request.tag != NULL)
        check_label(request.tag, request.tag_len, line, len);
    (void)foreign_protocol(line, len);
    if (request_parse_time(line, len, &ms) == REQUEST_FINE) {
        assert(ms >= 0);
        assert(ms <= INT64_MAX / 1000000);
    }
    return 0;
}
