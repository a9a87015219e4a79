/*
 * One request line of the protocol -> struct request. Pure: no clock, no socket, no malloc.
 *
 * A line is handed over without its LF and CR. Words are separated by one or more spaces; a request
 * may begin with "#tag ". Verbs and options are case-insensitive, everything else is taken byte for
 * byte (docs/protocol.txt).
 */
#ifndef PROTOCOL_REQUEST_H
#define PROTOCOL_REQUEST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/text.h"

#define VERB_TABLE(X)                                                                              \
    X(VERB_LOCK, "LOCK", "<resource> <ttl> [WAIT <time>] [FENCE] [HOLD [LINGER]]",                 \
      "acquire the lock for <ttl>")                                                                \
    X(VERB_UNLOCK, "UNLOCK", "<resource> <token>", "release the lock on every master")             \
    X(VERB_EXTEND, "EXTEND", "<resource> <token> <ttl>",                                           \
      "make the lock live at least <ttl> from now")                                                \
    X(VERB_STATUS, "STATUS", "<resource>",                                                         \
      "ask a quorum of the masters whether a client holds the lock")                               \
    X(VERB_BREAK, "BREAK", "<resource>", "release the lock by force, whichever client holds it")   \
    X(VERB_NAME, "NAME", "<label>", "name this connection, for CLIENTS and the log")               \
    X(VERB_AUTH, "AUTH", "<secret>", "authenticate this connection")                               \
    X(VERB_NODES, "NODES", "", "list the Redis masters")                                           \
    X(VERB_STATS, "STATS", "", "list the counters")                                                \
    X(VERB_LOCKS, "LOCKS", "[<resource>]", "list the locks and the queues of this daemon")         \
    X(VERB_CLIENTS, "CLIENTS", "", "list the connections")                                         \
    X(VERB_PING, "PING", "", "answer PONG")                                                        \
    X(VERB_VERSION, "VERSION", "", "answer the version of the protocol and of the daemon")         \
    X(VERB_HELP, "HELP", "", "list the verbs")                                                     \
    X(VERB_QUIT, "QUIT", "", "answer BYE and close the connection")

enum verb {
#define X(name, word, usage, text) name,
    VERB_TABLE(X)
#undef X
        VERB_COUNT
};

/* What is wrong with a line: the code of its ERR reply. */
#define REQUEST_ERROR_TABLE(X)                                                                     \
    X(REQUEST_LINE_TOO_LONG, "line-too-long")                                                      \
    X(REQUEST_BAD_BYTE, "bad-byte")                                                                \
    X(REQUEST_BAD_TAG, "bad-tag")                                                                  \
    X(REQUEST_UNKNOWN_VERB, "unknown-verb")                                                        \
    X(REQUEST_BAD_ARGUMENTS, "bad-arguments")                                                      \
    X(REQUEST_BAD_RESOURCE, "bad-resource")                                                        \
    X(REQUEST_BAD_TOKEN, "bad-token")                                                              \
    X(REQUEST_BAD_TIME, "bad-time")                                                                \
    X(REQUEST_TTL_RANGE, "ttl-range")                                                              \
    X(REQUEST_WAIT_RANGE, "wait-range")

enum request_error {
    REQUEST_FINE,  /* *request is filled */
    REQUEST_EMPTY, /* nothing but spaces: ignore the line */
#define X(name, word) name,
    REQUEST_ERROR_TABLE(X)
#undef X
        REQUEST_ERRORS /* how many there are, the first two included */
};

/* The word of an error ("bad-tag"), for its ERR reply; the error is one of REQUEST_ERROR_TABLE. */
const char *request_error_word(enum request_error error);

/* A verb's name and its arguments, for HELP and error texts. */
const char *verb_word(enum verb verb);
const char *verb_usage(enum verb verb);
const char *verb_text(enum verb verb);

/*
 * What of the configuration bears on a line. The key prefix is needed because no lock key may begin
 * with "redlockd:", where redlockd keeps its own records.
 */
struct request_limits {
    int64_t ttl_min_ms;
    int64_t ttl_max_ms;
    int64_t hold_ttl_min_ms; /* with HOLD */
    const char *key_prefix;
    size_t key_prefix_len;
};

static_assert(LIMIT_LINE <= UINT16_MAX, "the lengths in a request");

/* Pointers are views into the line, without a final NUL, and live as long as it does. All of it is
 * cleared for each line, so it is small. */
struct request {
    enum verb verb;
    bool fence;  /* LOCK: with a fencing token */
    bool hold;   /* LOCK: for as long as the connection lives */
    bool linger; /* LOCK with HOLD: the end of the connection alone does not release it */
    uint16_t tag_len;
    uint16_t resource_len;
    uint16_t label_len;
    uint16_t secret_len;
    const char *tag; /* NULL without one; without the '#' */
    const char *resource;
    const char *token; /* LIMIT_TOKEN lower-case hex digits */
    const char *label;
    const char *secret; /* AUTH: never to be quoted or logged */
    int64_t ttl_ms;
    int64_t wait_ms; /* LOCK: 0 without WAIT */
};

/*
 * Parse one line of len bytes. LIMIT_LINE counts the LF, so a line of LIMIT_LINE bytes without it
 * is REQUEST_LINE_TOO_LONG: its first LIMIT_LINE bytes stand for the whole.
 *
 * On an error the tag is still set where the line began with a good one, so that the ERR reply can
 * carry it; error->text says what was wrong and what would be right, for example
 * "LOCK takes <resource> <ttl>; 1 word was given". A word of the client is quoted only in escaped
 * and shortened form, a token never.
 */
enum request_error request_parse(const char *line, size_t len, const struct request_limits *limits,
                                 struct request *request, struct error *error);

/*
 * The tag at the start of a line that may be cut off or bad otherwise: sets tag and tag_len, NULL
 * and 0 if it does not start with a good one followed by a space.
 */
void request_tag(const char *line, size_t len, struct request *request);

/* Digits with an optional unit -> milliseconds. REQUEST_FINE, or REQUEST_BAD_TIME, or
 * REQUEST_TTL_RANGE: it is longer than any bound there is. */
enum request_error request_parse_time(const char *word, size_t len, int64_t *ms);

#endif
