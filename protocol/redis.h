/*
 * The commands redlockd sends to a Redis master, and what their replies mean to a round. Pure:
 * bytes into a buffer of the caller, a parsed reply into an answer.
 *
 *     acquire   SET <key> <token> NX PX <ttl>          (the paper's canonical command)
 *     fenced    EVALSHA fence.lua <key> <its fence> <token> <ttl> <ballot> <fence_ttl>
 *     swap      EVALSHA swap.lua <key> <old token> <token> <ttl> <daemon>
 *               EVALSHA swap.lua <key> <its fence> <old token> <token> <ttl> <daemon> <ballot>
 *                                <fence_ttl>           from one holder to the next
 *     release   EVALSHA release.lua <key> <token> <max_ttl>
 *                                                      compare and delete; trim a stranger's token
 *               EVALSHA release.lua <key> <token> <max_ttl> <daemon>
 *                                                      ... or leave word that this daemon wants it
 *               DELIFEQ <key> <token>            compare and delete by the server itself: Valkey 9
 *               DELEX <key> IFEQ <token>         the same: Redis 8.4
 *     releases  EVALSHA releases.lua <keys> <tokens>   the same for many, but for the trimming
 *     extend    EVALSHA extend.lua <key> <token> <ttl> compare and prolong, never shorten
 *     backfill     SET <key> <token> NX PX <time left>    after a quorum, where the key is missing
 *     freeze    EVALSHA freeze.lua <key> <frozen token>
 *                                                      compare and set: no more extensions
 *     status    EVALSHA status.lua <key>
 *     look      EVALSHA status.lua <key> <max_ttl> <daemon> [<token>]
 *                                                      and leave word that this daemon wants it,
 *                                                      unless that is whom it has granted it to
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

/* A script by its SHA1, or in full where the master answered NOSCRIPT (which also loads it); or,
 * for REDIS_RELEASE only, the server's own command in its place. */
enum redis_form { REDIS_BY_SHA1, REDIS_IN_FULL, REDIS_DELIFEQ, REDIS_DELEX };

static inline bool redis_is_native(enum redis_form form)
{
    return form == REDIS_DELIFEQ || form == REDIS_DELEX;
}

/* Where a master keeps the largest ballot it has voted for, followed by the key of the lock; and
 * the end of all ballots: Lua and JavaScript hold what is below exactly. */
#define REDIS_FENCE_PREFIX "redlockd:fence:"
#define REDIS_BALLOT_END   (INT64_C(1) << 53)

/* Where a waiter that is far leaves its contention hint (status.lua), followed by the key of the
 * lock. */
#define REDIS_FAR_PREFIX "redlockd:far:"

/* Daemons tell each other apart by so many characters. What they need has four digits. */
enum { REDIS_DAEMON = 16, REDIS_NEED_MAX_MS = 9999 };

/* One command's arguments; the key bears its prefix. */
struct redis_call {
    enum redis_command command;
    const char *key;
    size_t key_len;
    /* LIMIT_TOKEN bytes; not for REDIS_STATUS; REDIS_KEY_PROBE: or NULL; REDIS_FREEZE: the frozen
     * one */
    const char *token;
    /* At least 1; REDIS_RELEASE, REDIS_KEY_PROBE: max_ttl; not for REDIS_STATUS and REDIS_FREEZE */
    int64_t ttl_ms;
    int64_t ballot; /* REDIS_ACQUIRE_FENCED; REDIS_SWAP: 0 without a fence */
    int64_t fence_ttl_ms;
    const char *old_token; /* REDIS_SWAP: LIMIT_TOKEN bytes */
    /* REDIS_DAEMON bytes, its own. REDIS_SWAP, REDIS_KEY_PROBE; REDIS_RELEASE: NULL to leave no
     * word */
    const char *daemon;
    /* How long the lock has to be free for a waiter of it; 0: no longer than usual.
     * REDIS_KEY_PROBE, REDIS_RELEASE; at most REDIS_NEED_MAX_MS. */
    int64_t need_ms;
};

/* Room for any command in any form: the longest script, a key, and their framing. */
enum { REDIS_COMMAND_MAX = 4096 };

/* Write the command as Redis protocol into buf (REDIS_COMMAND_MAX bytes); returns its length. */
size_t redis_format(const struct redis_call *call, enum redis_form form, char *buf);

/* GET of the contention hint that a far waiter left for this key; as redis_format(). */
size_t redis_format_far(const char *key, size_t key_len, char *buf);

/* What one of many releases is about. */
struct redis_release {
    const char *key;
    size_t key_len;
    const char *token; /* LIMIT_TOKEN bytes */
};

/* Room for LIMIT_BATCH of them, in either form; and so for any command. */
enum { REDIS_RELEASES_MAX = REDIS_COMMAND_MAX + LIMIT_BATCH * (LIMIT_KEY + LIMIT_TOKEN + 16) };

/* Write one command for all of them, no key twice, into buf (REDIS_RELEASES_MAX bytes); returns its
 * length. */
size_t redis_format_releases(const struct redis_release *releases, size_t count,
                             enum redis_form form, char *buf);

/* Write any command made of words, for the greeting of a link; returns its length, at most size.
 * The caller knows that it fits. */
size_t redis_format_words(const char *const *words, const size_t *lens, size_t count, char *buf,
                          size_t size);

/* The scripts, to be loaded when a link comes up. The last two are the guard's. */
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

/* A reply of Redis as the reader of a link hands it over. Only what redlockd asks for has a place:
 * of nested arrays only the begin. Strings are views that live until the next reply. */
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
    /* The first items of an array; item_count may be larger than what is kept. */
    struct resp_item {
        enum resp_kind kind;
        int64_t integer;
        const char *str;
        size_t len;
    } items[RESP_ITEMS];
    size_t item_count;
    /* Of an array inside of that: how many items it has, and the first, NULL if that is no string.
     */
    const char *nested_str;
    size_t nested_len;
    size_t nested_count;
};

/* What a master's reply says about the token. */
enum __attribute__((packed)) answer_kind {
    ANSWER_YES, /* acquired, prolonged, deleted, backfilled, frozen: the token held (or now holds)
                   the key */
    ANSWER_ABSENT, /* there was no key */
    ANSWER_HELD,   /* the key holds something else */
    ANSWER_OUTBID, /* there was no key, but a fence at least as great as the ballot */
    ANSWER_FAILED, /* the master could not say; see reason */
};

struct answer {
    enum answer_kind kind;
    enum reason reason; /* ANSWER_FAILED */
    int64_t pttl_ms;    /* ANSWER_HELD: time to live left, -1 unknown, none, or decades */
    uint64_t holder;    /* ANSWER_HELD: a fingerprint of the lock, 0 unknown */
    int64_t ballot;     /* ANSWER_OUTBID: that fence */
    /* REDIS_SWAP: what became of the old token, whatever became of the new one: YES it was there,
     * and is there no more; ABSENT; HELD somebody else is; FAILED. */
    enum answer_kind released;
    bool contended;   /* REDIS_SWAP: another daemon waits for it ... */
    uint16_t need_ms; /* ... and needs it to be free for so long; 0: no longer than usual */
};

/* The ballot in the reply of a master; -1 if these digits are none. */
int64_t redis_ballot(const char *digits, size_t len);

/* How long a far waiter of another daemon than this one (REDIS_DAEMON bytes) needs the lock to be
 * free, as the reply to redis_format_far() says; 0: there is none. */
int64_t redis_far_need_ms(const struct redis_reply *reply, const char *daemon);

/* Is it the OK of a SET? */
bool redis_is_ok(const struct redis_reply *reply);

/* Any reply of any master gives an answer: what makes no sense is FAILED with REASON_GARBAGE. */
struct answer redis_answer(enum redis_command command, const struct redis_reply *reply);

/* The form in which a server with this INFO takes a release best. */
enum redis_form redis_release_form(const char *info, size_t len);

/* What its own command has answered: YES; ABSENT where there is no key or it holds another value,
 * which may be the frozen form of the token; or FAILED. release.lua knows more of the last two. */
enum answer_kind redis_deleted(const struct redis_reply *reply);

/* What the reply to `count` releases says about the one at `index`: YES, ABSENT, or FAILED where it
 * has to be asked for alone. */
enum answer_kind redis_released(const struct redis_reply *reply, size_t count, size_t index);

/* Is it YES for all of them? */
bool redis_all_released(const struct redis_reply *reply);

/* What `holder` is for this value: a token and its frozen forms are one holder. */
uint64_t redis_holder(const char *value, size_t len);

/* The fingerprint of some bytes, never 0. */
uint64_t redis_fingerprint(const char *value, size_t len);

/*
 * Find the value of a field of INFO ("run_id" of "run_id:1234...\r\n"). Returns NULL without one;
 * otherwise a view into info, and its length.
 */
const char *redis_info_field(const char *info, size_t len, const char *field, size_t *value_len);

/* The same of a reply, and NULL where it is no string; is the value this; and its number, or -1. */
const char *redis_info(const struct redis_reply *reply, const char *field, size_t *value_len);
bool redis_info_is(const struct redis_reply *reply, const char *field, const char *value);
int64_t redis_info_number(const struct redis_reply *reply, const char *field, size_t most_digits);

/* Has the reply, an array, this string in this place? */
bool redis_item_is(const struct redis_reply *reply, unsigned item, const char *string);

/* The number that these decimal digits are; -1 if they are none, or more than so many. */
int64_t redis_number(const char *digits, size_t len, size_t most_digits);

#endif
