/*
 * Parses one request line into struct request. Pure: no clock, no socket, no malloc.
 *
 * The caller removes LF and CR. The words of a line are separated by one or more spaces; a line may
 * begin with "#tag ". Verbs and options are case-insensitive, everything else is taken byte for
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
    X(VERB_LOCK, "LOCK", "<resource> <ttl> [SLOTS <n>] [WAIT <time>] [FENCE] [HOLD [LINGER]]",     \
      "acquire the lock, or one of its n slots, for <ttl>")                                        \
    X(VERB_UNLOCK, "UNLOCK", "<resource> <token>", "release the lock on every master")             \
    X(VERB_EXTEND, "EXTEND", "<resource> <token> <ttl>",                                           \
      "make the lock live at least <ttl> from now")                                                \
    X(VERB_STATUS, "STATUS", "<resource> [SLOTS <n>]",                                             \
      "ask a quorum of the masters whether a client holds the lock, or how many slots are held")   \
    X(VERB_BREAK, "BREAK", "<resource>", "release the lock by force, whichever client holds it")   \
    X(VERB_NAME, "NAME", "<label>", "name this connection, for CLIENTS and the log")               \
    X(VERB_AUTH, "AUTH", "<secret>", "authenticate this connection")                               \
    X(VERB_NODES, "NODES", "", "list the Redis masters")                                           \
    X(VERB_STATS, "STATS", "", "list the counters")                                                \
    X(VERB_LOCKS, "LOCKS", "[<resource>]", "list the locks and the queues of this daemon")         \
    X(VERB_CLIENTS, "CLIENTS", "", "list the connections")                                         \
    X(VERB_PING, "PING", "", "reply PONG")                                                         \
    X(VERB_VERSION, "VERSION", "", "reply with the version of the protocol and of the daemon")     \
    X(VERB_HELP, "HELP", "", "list the verbs")                                                     \
    X(VERB_QUIT, "QUIT", "", "close the connection after a last reply")

enum verb {
#define X(name, word, usage, text) name,
    VERB_TABLE(X)
#undef X
        VERB_COUNT
};

/* Why a line is rejected, and the code of its ERR reply. */
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
    X(REQUEST_WAIT_RANGE, "wait-range")                                                            \
    X(REQUEST_SLOTS_RANGE, "slots-range")

enum request_error {
    REQUEST_FINE,  /* the request is valid */
    REQUEST_EMPTY, /* only spaces: ignore the line */
#define X(name, word) name,
    REQUEST_ERROR_TABLE(X)
#undef X
        REQUEST_ERRORS /* the number of values above */
};

/* The code in an ERR reply, for example "bad-tag". The error must be one of REQUEST_ERROR_TABLE. */
const char *request_error_word(enum request_error error);

/* A verb's name, its arguments and its description, for HELP and error texts. */
const char *verb_word(enum verb verb);
const char *verb_usage(enum verb verb);
const char *verb_text(enum verb verb);

/* How many words may follow a verb. */
struct verb_arguments {
    unsigned least;
    unsigned most;
};

struct verb_arguments verb_arguments(enum verb verb);

/*
 * The configuration values that limit a request. The parser needs the key prefix because keys that
 * begin with "redlockd:" are reserved for redlockd's own records.
 */
struct request_limits {
    int64_t ttl_min_ms;
    int64_t ttl_max_ms;
    int64_t hold_ttl_min_ms; /* minimum for a LOCK with HOLD */
    const char *key_prefix;
    size_t key_prefix_len;
};

/* The longest request is #<tag> LOCK <resource> <ttl> SLOTS <n> WAIT <time> FENCE HOLD LINGER.
 * There is room for one word more, so that an error can quote it. */
enum { REQUEST_WORDS_MAX = 12 };

struct request_word {
    const char *at;
    size_t len;
};

struct request_words {
    struct request_word word[REQUEST_WORDS_MAX];
    unsigned count; /* of all words of the request; only the first REQUEST_WORDS_MAX are kept */
};

static_assert(LIMIT_LINE <= UINT16_MAX, "uint16_t holds the length of any word");

/*
 * A parsed request. Its pointers are views into the line, without a final NUL, and are valid as
 * long as the line. The struct is kept small because the parser clears it for each line.
 */
struct request {
    enum verb verb;
    bool fence;  /* LOCK: FENCE was given */
    bool hold;   /* LOCK: HOLD was given */
    bool linger; /* LOCK: LINGER was given, and so was HOLD */
    uint16_t tag_len;
    uint16_t resource_len;
    uint16_t label_len;
    uint16_t secret_len;
    uint16_t slots;  /* LOCK, STATUS: the number after SLOTS; 0 if SLOTS was not given */
    const char *tag; /* excludes the '#'; NULL if the request has none */
    const char *resource;
    const char *token; /* LIMIT_TOKEN lower-case hex digits */
    const char *label;
    const char *secret; /* AUTH: must not be quoted or logged */
    int64_t ttl_ms;
    int64_t wait_ms; /* LOCK: 0 if WAIT was not given */
};

/*
 * Parse one line of len bytes. LIMIT_LINE includes the LF, so a line of LIMIT_LINE bytes without LF
 * is REQUEST_LINE_TOO_LONG. Of a longer line, the caller needs to pass only the first LIMIT_LINE
 * bytes.
 *
 * On an error, error->text says what is wrong and what would be right, for example
 * "UNLOCK takes <resource> <token>". The text can quote a word of the client, escaped and
 * shortened. It never quotes a token or a secret. If the line begins with a valid tag, the tag is
 * set even on an error, so that the ERR reply can carry it.
 */
enum request_error request_parse(const char *line, size_t len, const struct request_limits *limits,
                                 struct request *request, struct error *error);

/* Check the words of a RESP command, which can contain any bytes. If the result is REQUEST_FINE,
 * the words separated by spaces are a line. */
enum request_error request_check_words(const struct request_words *words, struct error *error);

/* Whether the word is this name, in upper or lower case. */
bool request_word_is(const struct request_word *word, const char *name);

/* Whether the byte can be part of a label or tag. */
bool request_is_label_byte(char byte);

/*
 * Read only the tag of a line. The rest of the line is allowed to be incomplete or invalid. Sets
 * tag and tag_len, to NULL and 0 if the line does not begin with a valid tag and a space.
 */
void request_tag(const char *line, size_t len, struct request *request);

/* Parse digits with an optional unit as milliseconds. Returns REQUEST_FINE, REQUEST_BAD_TIME, or
 * REQUEST_TTL_RANGE if the time exceeds every limit of the protocol. */
enum request_error request_parse_time(const char *word, size_t len, int64_t *ms);

#endif
