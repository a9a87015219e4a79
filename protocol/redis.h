/*
 * The commands that redlockd sends to a master, and the meaning of their replies for a round. Pure:
 * commands are written to a buffer of the caller, and a parsed reply becomes a struct answer.
 *
 *     acquire   SET <key> <token> NX PX <ttl>          the paper's canonical command
 *     fenced    EVALSHA fence.lua <key> <its fence> <token> <ttl> <ballot> <fence_ttl>
 *     swap      EVALSHA swap.lua <key> <old token> <token> <ttl> <daemon>
 *               EVALSHA swap.lua <key> <its fence> <old token> <token> <ttl> <daemon> <ballot>
 *                                <fence_ttl>           hand over from one holder to the next
 *     release   EVALSHA release.lua <key> <token> <max_ttl>
 *                                                      compare and delete; limit the TTL of another
 *                                                      token to max_ttl
 *               EVALSHA release.lua <key> <token> <max_ttl> <daemon>
 *                                                      also leave a contention hint of this daemon
 *               DELIFEQ <key> <token>                  the server's compare and delete: Valkey 9
 *               DELEX <key> IFEQ <token>               the server's compare and delete: Redis 8.4
 *     releases  EVALSHA releases.lua <keys> <tokens>   several releases, without limiting TTLs
 *     extend    EVALSHA extend.lua <key> <token> <ttl> compare and extend, never shorten
 *     backfill  SET <key> <token> NX PX <time left>    after a quorum, on masters without the key
 *     freeze    EVALSHA freeze.lua <key> <frozen token>
 *                                                      compare and set: no more extensions
 *     status    EVALSHA status.lua <key>
 *     key probe EVALSHA status.lua <key> <max_ttl> <daemon> [<token>]
 *                                                      also leave a contention hint of this daemon,
 *                                                      unless the key holds the token, which this
 *                                                      daemon has granted
 */
#ifndef PROTOCOL_REDIS_H
#define PROTOCOL_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/reason.h"

enum __attribute__((packed)) redis_command {
    REDIS_ACQUIRE,
    REDIS_ACQUIRE_FENCED,
    REDIS_SWAP,
    REDIS_RELEASE,
    REDIS_EXTEND,
    REDIS_BACKFILL,
    REDIS_STATUS,
    REDIS_KEY_PROBE,
    REDIS_FREEZE,
};

/* How to send a command: a script by its SHA1; a script in full, after NOSCRIPT, which also loads
 * it; or, for REDIS_RELEASE only, the server's own command. */
enum redis_form { REDIS_BY_SHA1, REDIS_IN_FULL, REDIS_DELIFEQ, REDIS_DELEX };

static inline bool redis_is_native(enum redis_form form)
{
    return form == REDIS_DELIFEQ || form == REDIS_DELEX;
}

/* Prefix of the key in which a master keeps the largest ballot that it has voted for; the key of
 * the lock follows. Ballots are below REDIS_BALLOT_END, so that Lua and JavaScript represent them
 * exactly.
 */
#define REDIS_FENCE_PREFIX "redlockd:fence:"
#define REDIS_BALLOT_END   (INT64_C(1) << 53)

/* Prefix of the key in which a far waiter leaves its contention hint (status.lua); the key of the
 * lock follows. */
#define REDIS_FAR_PREFIX "redlockd:far:"

/* The length of a daemon id and of a script's SHA1, and the longest time for which a far waiter can
 * need the lock to be free, which is limited to four digits. */
enum { REDIS_DAEMON = 16, REDIS_SHA1 = 40, REDIS_NEED_MAX_MS = 9999 };

/* The arguments of one command. */
struct redis_call {
    enum redis_command command;
    const char *key; /* with its prefix */
    size_t key_len;
    /* LIMIT_TOKEN bytes; unused for REDIS_STATUS. REDIS_KEY_PROBE: the token that this daemon has
     * granted, or NULL. REDIS_FREEZE: the frozen token. */
    const char *token;
    /* At least 1; unused for REDIS_STATUS and REDIS_FREEZE. REDIS_RELEASE, REDIS_KEY_PROBE:
     * max_ttl. */
    int64_t ttl_ms;
    int64_t ballot;        /* REDIS_ACQUIRE_FENCED, REDIS_SWAP; 0: REDIS_SWAP without a fence */
    int64_t fence_ttl_ms;  /* if there is a ballot */
    const char *old_token; /* REDIS_SWAP: LIMIT_TOKEN bytes */
    /* REDIS_SWAP, REDIS_KEY_PROBE, REDIS_RELEASE: the id of this daemon, REDIS_DAEMON bytes;
     * REDIS_RELEASE: NULL to leave no contention hint */
    const char *daemon;
    /* REDIS_KEY_PROBE, REDIS_RELEASE: how long a far waiter of this daemon needs the lock to be
     * free, at most REDIS_NEED_MAX_MS; 0 if this daemon has no far waiter */
    int64_t need_ms;
};

/* Bytes of the longest command in any form: the longest script, its arguments, and their framing.
 */
enum { REDIS_COMMAND_MAX = 5120 };

/* Write the command as RESP to buf, which must hold REDIS_COMMAND_MAX bytes. Returns its length. */
size_t redis_format(const struct redis_call *call, enum redis_form form, char *buf);

/* Write a GET of the contention hint that a far waiter left for this key. buf must hold
 * REDIS_COMMAND_MAX bytes. Returns the length of the command. */
size_t redis_format_far(const char *key, size_t key_len, char *buf);

/* One release of a batch. */
struct redis_release {
    const char *key;
    size_t key_len;
    const char *token; /* LIMIT_TOKEN bytes */
};

/* Bytes of a batch of LIMIT_BATCH releases, in either form. Any other command is shorter. */
enum { REDIS_RELEASES_MAX = REDIS_COMMAND_MAX + LIMIT_BATCH * (LIMIT_KEY + LIMIT_TOKEN + 16) };

/* Write one command for several releases, all with different keys, to buf, which must hold
 * REDIS_RELEASES_MAX bytes. Returns its length. */
size_t redis_format_releases(const struct redis_release *releases, size_t count,
                             enum redis_form form, char *buf);

/* Write a command from its words. Returns the length of the command. The caller makes sure that it
 * fits in `size` bytes. */
size_t redis_format_words(const char *const *words, const size_t *lens, size_t count, char *buf,
                          size_t size);

/* All scripts. A link loads them when it comes up. The guard uses the last two. */
#define REDIS_SCRIPT_TABLE(X)                                                                      \
    X(RELEASE)                                                                                     \
    X(RELEASES) X(EXTEND) X(STATUS) X(FENCE) X(SWAP) X(FREEZE) X(WRITE_RECORD) X(HEARTBEAT)

enum redis_script {
#define X(name) REDIS_SCRIPT_##name,
    REDIS_SCRIPT_TABLE(X)
#undef X
        REDIS_SCRIPT_COUNT
};
const char *redis_script_text(unsigned index);
const char *redis_script_sha1(unsigned index);

/* A parsed reply of Redis. It has room only for replies that redlockd expects: of nested arrays, it
 * keeps only the beginning. Strings are views that are valid until the next reply. */
enum resp_kind {
    RESP_STATUS,
    RESP_ERROR,
    RESP_STRING,
    RESP_INTEGER,
    RESP_NIL,
    RESP_ARRAY,
};

enum { RESP_ITEMS = 3 };

struct redis_reply {
    enum resp_kind kind;
    int64_t integer;
    const char *str;
    size_t len;
    /* The first RESP_ITEMS items of an array; item_count counts all. */
    struct resp_item {
        enum resp_kind kind;
        int64_t integer;
        const char *str;
        size_t len;
    } items[RESP_ITEMS];
    size_t item_count;
    /* Of a nested array: its first item, NULL if that is not a string, and the number of items. */
    const char *nested_str;
    size_t nested_len;
    size_t nested_count;
};

/* The meaning of a master's reply for the token of the round. */
enum __attribute__((packed)) answer_kind {
    ANSWER_YES,    /* the token held or now holds the key: acquired, extended, deleted, frozen */
    ANSWER_ABSENT, /* the key does not exist */
    ANSWER_HELD,   /* the key has another value */
    ANSWER_OUTBID, /* the key does not exist, but its fence is at least as great as the ballot */
    ANSWER_FAILED, /* unknown; the reason says why */
};

struct answer {
    enum answer_kind kind;
    enum reason reason; /* ANSWER_FAILED */
    int64_t pttl_ms;    /* ANSWER_HELD: remaining TTL; -1 if unknown, infinite, or many decades */
    uint64_t holder;    /* ANSWER_HELD: redis_holder() of the value; 0 if unknown */
    int64_t ballot;     /* ANSWER_OUTBID: the fence on the master */
    /* REDIS_SWAP: the result for the old token, independent of the new one. YES: released; ABSENT:
     * no key; HELD: the key had another value; FAILED: unknown. */
    enum answer_kind released;
    bool contended;   /* REDIS_SWAP: another daemon has left a contention hint */
    uint16_t need_ms; /* REDIS_SWAP, contended: the need of a far waiter; 0 if there is none */
};

/* Parse a ballot; -1 if the digits are not a valid one. */
int64_t redis_ballot(const char *digits, size_t len);

/* From the reply to redis_format_far(): how long a far waiter of a daemon other than `daemon`
 * (REDIS_DAEMON bytes) needs the lock to be free; 0 if there is none. */
int64_t redis_far_need_ms(const struct redis_reply *reply, const char *daemon);

/* Whether the reply is +OK. */
bool redis_is_ok(const struct redis_reply *reply);

/* Interpret a reply. An invalid reply is ANSWER_FAILED with REASON_GARBAGE. */
struct answer redis_answer(enum redis_command command, const struct redis_reply *reply);

/* The cheapest form of REDIS_RELEASE that a server with this INFO supports. */
enum redis_form redis_release_form(const char *info, size_t len);

/* Interpret the reply to DELIFEQ or DELEX. ABSENT: there is no key, or it has another value, which
 * can be the frozen token. After ABSENT or FAILED, the caller can learn more with release.lua. */
enum answer_kind redis_deleted(const struct redis_reply *reply);

/* Whether the reply to a batch of releases is YES for all of them. */
bool redis_all_released(const struct redis_reply *reply);

/* Otherwise: the result of the release at `index`, from the reply to a batch of `count` releases:
 * YES, ABSENT, or FAILED if the release must be sent again on its own. */
enum answer_kind redis_released(const struct redis_reply *reply, size_t count, size_t index);

/* The fingerprint of a lock from the value of its key. A token and its frozen forms have the same.
 */
uint64_t redis_holder(const char *value, size_t len);

/* A hash of the bytes, never 0. */
uint64_t redis_fingerprint(const char *value, size_t len);

/*
 * Find the value of a field of INFO ("run_id" of "run_id:1234...\r\n"). Returns a view into info
 * and its length, or NULL if there is no such field.
 */
const char *redis_info_field(const char *info, size_t len, const char *field, size_t *value_len);

/* Find a field in a reply to INFO. redis_info() returns the value of the field, or NULL if there is
 * no such field or the reply is not a string. redis_info_is() returns whether the field has this
 * value. redis_info_number() returns the value as a number; or -1 if there is no such field, or its
 * value is not a number of at most `most_digits`. */
const char *redis_info(const struct redis_reply *reply, const char *field, size_t *value_len);
bool redis_info_is(const struct redis_reply *reply, const char *field, const char *value);
int64_t redis_info_number(const struct redis_reply *reply, const char *field, size_t most_digits);

/* Whether the reply is an array whose item at this index is this string. */
bool redis_item_is(const struct redis_reply *reply, unsigned item, const char *string);

/* Parse decimal digits; -1 if there are none, other characters, or more than `most_digits`. */
int64_t redis_number(const char *digits, size_t len, size_t most_digits);

#endif
