/*
 * protocol/redis.h and engine/round/validity.h: the exact bytes of commands, the meaning of
 * replies, and the arithmetic of validity.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/round/validity.h"
#include "protocol/redis.h"
#include "protocol/token.h"
#include "protocol/units.h"
#include "tests/runner.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

static void assert_bytes(const struct redis_call *call, enum redis_form form, const char *expected)
{
    char buf[REDIS_COMMAND_MAX];
    size_t len = redis_format(call, form, buf);
    ck_assert_uint_eq(len, strlen(expected));
    ck_assert_mem_eq(buf, expected, len);
}

TEST(acquire_is_the_canonical_set_command)
{
    struct redis_call call = {REDIS_ACQUIRE, "redlock:a", 9, TOKEN, 30000, 0, 0, NULL, NULL, 0};
    assert_bytes(&call, REDIS_BY_SHA1,
                 "*6\r\n$3\r\nSET\r\n$9\r\nredlock:a\r\n$40\r\n" TOKEN
                 "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n");
    call.command = REDIS_BACKFILL;
    call.ttl_ms = 1;
    assert_bytes(&call, REDIS_BY_SHA1,
                 "*6\r\n$3\r\nSET\r\n$9\r\nredlock:a\r\n$40\r\n" TOKEN
                 "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$1\r\n1\r\n");
}

TEST(scripts_are_called_by_sha1)
{
    char expected[256];
    struct redis_call call = {REDIS_RELEASE, "k", 1, TOKEN, 60000, 0, 0, NULL, NULL, 0};
    snprintf(expected, sizeof(expected),
             "*6\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$1\r\nk\r\n$40\r\n" TOKEN
             "\r\n$5\r\n60000\r\n",
             redis_script_sha1(REDIS_SCRIPT_RELEASE));
    assert_bytes(&call, REDIS_BY_SHA1, expected);
    call.command = REDIS_EXTEND;
    call.ttl_ms = 250;
    snprintf(expected, sizeof(expected),
             "*6\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$1\r\nk\r\n$40\r\n" TOKEN
             "\r\n$3\r\n250\r\n",
             redis_script_sha1(REDIS_SCRIPT_EXTEND));
    assert_bytes(&call, REDIS_BY_SHA1, expected);
    call.command = REDIS_STATUS;
    snprintf(expected, sizeof(expected),
             "*4\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$1\r\nk\r\n",
             redis_script_sha1(REDIS_SCRIPT_STATUS));
    assert_bytes(&call, REDIS_BY_SHA1, expected);
    call.command = REDIS_FREEZE;
    snprintf(expected, sizeof(expected),
             "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$1\r\nk\r\n$40\r\n" TOKEN "\r\n",
             redis_script_sha1(REDIS_SCRIPT_FREEZE));
    assert_bytes(&call, REDIS_BY_SHA1, expected);
}

TEST(release_uses_the_servers_own_command)
{
    const struct redis_call call = {REDIS_RELEASE, "redlock:a", 9, TOKEN, 60000, 0, 0,
                                    NULL,          NULL,        0};
    assert_bytes(&call, REDIS_DELIFEQ,
                 "*3\r\n$7\r\nDELIFEQ\r\n$9\r\nredlock:a\r\n$40\r\n" TOKEN "\r\n");
    assert_bytes(&call, REDIS_DELEX,
                 "*4\r\n$5\r\nDELEX\r\n$9\r\nredlock:a\r\n$4\r\nIFEQ\r\n$40\r\n" TOKEN "\r\n");
}

TEST(version_decides_on_the_release_command)
{
    static const struct {
        const char *info;
        enum redis_form form;
    } servers[] = {
        {"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n", REDIS_BY_SHA1},
        {"redis_version:8.3.9\r\n", REDIS_BY_SHA1},
        {"redis_version:8.4.0\r\n", REDIS_DELEX},
        {"redis_version:8.10\r\n", REDIS_DELEX},
        {"redis_version:10.0.1\r\n", REDIS_DELEX},
        {"redis_version:8\r\n", REDIS_BY_SHA1},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", REDIS_BY_SHA1},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\n", REDIS_DELIFEQ},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9", REDIS_DELIFEQ},
        {"redis_version:8.x\r\n", REDIS_BY_SHA1},
        {"redis_version:\r\n", REDIS_BY_SHA1},
        {"redis_version:junk\r\n", REDIS_BY_SHA1},
        {"", REDIS_BY_SHA1},
    };
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
        ck_assert_msg(redis_release_form(servers[i].info, strlen(servers[i].info)) ==
                          servers[i].form,
                      "%s", servers[i].info);
}

TEST(answers_of_the_release_command_are_recognized)
{
    static const struct {
        struct redis_reply reply;
        enum answer_kind kind;
    } answers[] = {
        {{.kind = RESP_INTEGER, .integer = 1}, ANSWER_YES},
        {{.kind = RESP_INTEGER, .integer = 0}, ANSWER_ABSENT},
        {{.kind = RESP_INTEGER, .integer = -3}, ANSWER_FAILED},
        {{.kind = RESP_INTEGER, .integer = 2}, ANSWER_FAILED},
        {{.kind = RESP_NIL}, ANSWER_FAILED},
        {{.kind = RESP_STATUS, .str = "OK", .len = 2}, ANSWER_FAILED},
        {{.kind = RESP_ERROR, .str = "NOPERM User", .len = 11}, ANSWER_FAILED},
        {{.kind = RESP_ERROR, .str = "WRONGTYPE Operation", .len = 19}, ANSWER_FAILED},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        ck_assert_int_eq(redis_deleted(&answers[i].reply), answers[i].kind);
}

TEST(fenced_acquire_names_the_fence_key)
{
    char expected[512];
    struct redis_call call = {
        .command = REDIS_ACQUIRE_FENCED,
        .key = "redlock:a",
        .key_len = 9,
        .token = TOKEN,
        .ttl_ms = 30000,
        .ballot = 1763640000123456,
        .fence_ttl_ms = 86400000,
    };
    snprintf(expected, sizeof(expected),
             "*9\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n$9\r\nredlock:a\r\n$24\r\n"
             "redlockd:fence:redlock:a\r\n$40\r\n" TOKEN "\r\n$5\r\n30000\r\n$16\r\n"
             "1763640000123456\r\n$8\r\n86400000\r\n",
             redis_script_sha1(REDIS_SCRIPT_FENCE));
    assert_bytes(&call, REDIS_BY_SHA1, expected);
}

/* Collect the words that a command must have by the table in redis.h. Returns their number. */
static size_t words_of(const struct redis_call *call, enum redis_form form, char numbers[3][24],
                       char *fence_key, const char **words)
{
    static const enum redis_script scripts[] = {
        [REDIS_ACQUIRE_FENCED] = REDIS_SCRIPT_FENCE, [REDIS_SWAP] = REDIS_SCRIPT_SWAP,
        [REDIS_RELEASE] = REDIS_SCRIPT_RELEASE,      [REDIS_EXTEND] = REDIS_SCRIPT_EXTEND,
        [REDIS_STATUS] = REDIS_SCRIPT_STATUS,        [REDIS_KEY_PROBE] = REDIS_SCRIPT_STATUS,
        [REDIS_FREEZE] = REDIS_SCRIPT_FREEZE,
    };
    const int64_t values[3] = {call->ttl_ms, call->ballot, call->fence_ttl_ms};
    size_t count = 0;
    bool full = form == REDIS_IN_FULL;
    bool status = call->command == REDIS_STATUS;
    bool probe = call->command == REDIS_KEY_PROBE;
    bool swap = call->command == REDIS_SWAP;
    bool fenced = call->command == REDIS_ACQUIRE_FENCED || (swap && call->ballot != 0);
    for (unsigned i = 0; i < 3; i++)
        snprintf(numbers[i], sizeof(numbers[i]), "%" PRId64, values[i]);
    if (call->command == REDIS_ACQUIRE || call->command == REDIS_BACKFILL) {
        const char *set[] = {"SET", call->key, call->token, "NX", "PX", numbers[0]};
        memcpy(words, set, sizeof(set));
        return 6;
    }
    words[count++] = full ? "EVAL" : "EVALSHA";
    words[count++] = full ? redis_script_text(scripts[call->command])
                          : redis_script_sha1(scripts[call->command]);
    words[count++] = fenced ? "2" : "1";
    words[count++] = call->key;
    sprintf(fence_key, "redlockd:fence:%s", call->key);
    if (fenced)
        words[count++] = fence_key;
    if (swap)
        words[count++] = call->old_token;
    if (!status && !probe)
        words[count++] = call->token;
    if (!status && call->command != REDIS_FREEZE)
        words[count++] = numbers[0];
    if (swap || probe || (call->command == REDIS_RELEASE && call->daemon != NULL))
        words[count++] = call->daemon;
    if (probe && call->token != NULL)
        words[count++] = call->token;
    if (fenced) {
        words[count++] = numbers[1];
        words[count++] = numbers[2];
    }
    return count;
}

static void assert_words(const struct redis_call *call, enum redis_form form)
{
    char numbers[3][24];
    char fence_key[LIMIT_KEY + 32];
    const char *words[16];
    size_t lens[16];
    char expected[REDIS_COMMAND_MAX];
    char buf[REDIS_COMMAND_MAX];
    size_t count = words_of(call, form, numbers, fence_key, words);
    for (size_t i = 0; i < count; i++)
        lens[i] = strlen(words[i]);
    size_t len = redis_format_words(words, lens, count, expected, sizeof(expected));
    ck_assert_uint_eq(redis_format(call, form, buf), len);
    ck_assert_mem_eq(buf, expected, len);
}

static void try_every_command(size_t key_len, int64_t ttl_ms, int64_t ballot, int64_t fence_ttl_ms)
{
    char key[LIMIT_KEY + 1];
    memset(key, 'k', key_len);
    key[key_len] = '\0';
    for (unsigned command = 0; command <= REDIS_FREEZE; command++) {
        struct redis_call call = {
            .command = (enum redis_command)command,
            .key = key,
            .key_len = key_len,
            .token = TOKEN,
            .old_token = "89abcdef0123456789abcdef0123456789abcdef",
            .ttl_ms = ttl_ms,
            .ballot = ballot,
            .fence_ttl_ms = fence_ttl_ms,
            .daemon = "0123456789abcdef",
        };
        assert_words(&call, REDIS_BY_SHA1);
        assert_words(&call, REDIS_IN_FULL);
        if (command == REDIS_RELEASE || command == REDIS_KEY_PROBE) {
            call.daemon = command == REDIS_KEY_PROBE ? call.daemon : NULL;
            call.token = command == REDIS_KEY_PROBE ? NULL : call.token;
            assert_words(&call, REDIS_BY_SHA1);
        }
        /* A swap is fenced only if it has a ballot. A fenced acquire always has one, and all other
         * commands ignore it. */
        call.ballot = 0;
        if (command != REDIS_ACQUIRE_FENCED)
            assert_words(&call, REDIS_BY_SHA1);
    }
}

TEST(every_command_consists_of_its_words)
{
    static const size_t key_lens[] = {1, 9, 10, 84, 85, 99, 100, LIMIT_KEY};
    static const int64_t numbers[] = {1, 9, 10, 250, 60000, 1763640000123456};
    for (unsigned i = 0; i < sizeof(key_lens) / sizeof(key_lens[0]); i++)
        for (unsigned k = 0; k < 6; k++)
            try_every_command(key_lens[i], numbers[k], numbers[(k + 1) % 6], numbers[(k + 2) % 6]);
}

TEST(answers_to_a_ballot_are_recognized)
{
    struct redis_reply taken = {.kind = RESP_INTEGER, .integer = -3};
    struct redis_reply held = {.kind = RESP_NIL};
    struct redis_reply outbid = {.kind = RESP_STRING, .str = "1763640000123456", .len = 16};
    struct redis_reply absurd = {.kind = RESP_STRING, .str = "9007199254740992", .len = 16};
    ck_assert_int_eq(redis_answer(REDIS_ACQUIRE_FENCED, &taken).kind, ANSWER_YES);
    ck_assert_int_eq(redis_answer(REDIS_ACQUIRE_FENCED, &held).kind, ANSWER_HELD);
    struct answer answer = redis_answer(REDIS_ACQUIRE_FENCED, &outbid);
    ck_assert_int_eq(answer.kind, ANSWER_OUTBID);
    ck_assert_int_eq(answer.ballot, 1763640000123456);
    answer = redis_answer(REDIS_ACQUIRE_FENCED, &absurd);
    ck_assert_int_eq(answer.kind, ANSWER_FAILED);
    ck_assert_int_eq(answer.reason, REASON_GARBAGE);
}

TEST(swap_reply_tells_both_outcomes_and_contention)
{
    static const struct {
        int64_t integer;
        enum answer_kind kind;
        enum answer_kind released;
        bool contended;
        unsigned need_ms;
    } answers[] = {
        {-2, ANSWER_FAILED, ANSWER_FAILED, false, 0},
        {-3, ANSWER_YES, ANSWER_YES, false, 0},
        {-4, ANSWER_YES, ANSWER_ABSENT, false, 0},
        {-5, ANSWER_YES, ANSWER_YES, true, 0},
        {-6, ANSWER_YES, ANSWER_ABSENT, true, 0},
        {-7, ANSWER_YES, ANSWER_YES, true, 1},
        {-72, ANSWER_YES, ANSWER_ABSENT, true, 33},
        {-20003, ANSWER_YES, ANSWER_YES, true, REDIS_NEED_MAX_MS},
        {-20004, ANSWER_YES, ANSWER_ABSENT, true, REDIS_NEED_MAX_MS},
        {-20005, ANSWER_FAILED, ANSWER_FAILED, false, 0},
        {INT64_MIN, ANSWER_FAILED, ANSWER_FAILED, false, 0},
        {0, ANSWER_FAILED, ANSWER_FAILED, false, 0},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const struct redis_reply reply = {.kind = RESP_INTEGER, .integer = answers[i].integer};
        struct answer answer = redis_answer(REDIS_SWAP, &reply);
        ck_assert_int_eq(answer.kind, answers[i].kind);
        ck_assert_int_eq(answer.released, answers[i].released);
        ck_assert_int_eq(answer.contended, answers[i].contended);
        ck_assert_uint_eq(answer.need_ms, answers[i].need_ms);
    }
}

TEST(contention_hint_carries_the_daemons_need)
{
    char buf[REDIS_COMMAND_MAX];
    struct redis_call call = {.command = REDIS_KEY_PROBE,
                              .key = "k",
                              .key_len = 1,
                              .ttl_ms = 60000,
                              .daemon = "0123456789abcdef"};
    size_t len = redis_format(&call, REDIS_BY_SHA1, buf);
    ck_assert_ptr_nonnull(memmem(buf, len, "$16\r\n0123456789abcdef\r\n", 23));
    call.need_ms = 33;
    len = redis_format(&call, REDIS_BY_SHA1, buf);
    ck_assert_ptr_nonnull(memmem(buf, len, "$18\r\n0123456789abcdef33\r\n", 25));
}

TEST(longest_command_in_full_fits)
{
    char key[LIMIT_KEY];
    char buf[REDIS_COMMAND_MAX];
    memset(key, 'k', sizeof(key));
    struct redis_call call = {REDIS_EXTEND, key, sizeof(key), TOKEN, 999999999999999, 0, 0, NULL,
                              NULL,         0};
    ck_assert_uint_le(redis_format(&call, REDIS_IN_FULL, buf), sizeof(buf));
    ck_assert_ptr_nonnull(memmem(buf, sizeof(buf), "$4\r\nEVAL\r\n", 10));
    ck_assert_ptr_nonnull(memmem(buf, sizeof(buf), "999999999999999\r\n", 17));
}

static struct redis_reply text_reply(enum resp_kind kind, const char *text)
{
    return (struct redis_reply){.kind = kind, .str = text, .len = strlen(text)};
}

TEST(set_replies_ok_for_yes_and_nil_for_held)
{
    struct redis_reply ok = text_reply(RESP_STATUS, "OK");
    struct redis_reply queued = text_reply(RESP_STATUS, "QUEUED");
    struct redis_reply nil = {.kind = RESP_NIL};
    struct redis_reply number = {.kind = RESP_INTEGER, .integer = 1};
    ck_assert_int_eq(redis_answer(REDIS_ACQUIRE, &ok).kind, ANSWER_YES);
    ck_assert_int_eq(redis_answer(REDIS_BACKFILL, &ok).kind, ANSWER_YES);
    ck_assert_int_eq(redis_answer(REDIS_ACQUIRE, &nil).kind, ANSWER_HELD);
    ck_assert_int_eq(redis_answer(REDIS_ACQUIRE, &nil).pttl_ms, -1);
    ck_assert_int_eq(redis_answer(REDIS_ACQUIRE, &queued).reason, REASON_GARBAGE);
    ck_assert_int_eq(redis_answer(REDIS_ACQUIRE, &number).reason, REASON_GARBAGE);
}

TEST(scripts_reply_deleted_absent_or_the_holder)
{
    struct redis_reply deleted = {.kind = RESP_INTEGER, .integer = -3};
    struct redis_reply absent = {.kind = RESP_INTEGER, .integer = -2};
    struct redis_reply other = {.kind = RESP_INTEGER, .integer = 1};
    struct redis_reply holder = {.kind = RESP_ARRAY, .item_count = 2};
    holder.items[0].kind = RESP_INTEGER;
    holder.items[0].integer = 750;
    holder.items[1].kind = RESP_STRING;
    holder.items[1].str = "abc";
    holder.items[1].len = 3;
    ck_assert_int_eq(redis_answer(REDIS_RELEASE, &deleted).kind, ANSWER_YES);
    ck_assert_int_eq(redis_answer(REDIS_EXTEND, &absent).kind, ANSWER_ABSENT);
    ck_assert_int_eq(redis_answer(REDIS_STATUS, &other).reason, REASON_GARBAGE);
    struct answer held = redis_answer(REDIS_STATUS, &holder);
    ck_assert_int_eq(held.kind, ANSWER_HELD);
    ck_assert_int_eq(held.pttl_ms, 750);
    ck_assert_uint_eq(held.holder, redis_fingerprint("abc", 3));
    holder.items[0].integer = -1;
    ck_assert_int_eq(redis_answer(REDIS_STATUS, &holder).pttl_ms, -1);
    /* A fuzzer found this: Redis accepts TTLs that do not fit in nanoseconds. */
    holder.items[0].integer = INT64_MAX;
    ck_assert_int_eq(redis_answer(REDIS_STATUS, &holder).pttl_ms, -1);
    holder.items[1].kind = RESP_NIL;
    ck_assert_int_eq(redis_answer(REDIS_STATUS, &holder).kind, ANSWER_FAILED);
    holder.item_count = 3;
    ck_assert_int_eq(redis_answer(REDIS_STATUS, &holder).kind, ANSWER_FAILED);
}

TEST(key_of_another_type_is_held)
{
    struct redis_reply wrong = text_reply(RESP_ERROR, "WRONGTYPE Operation against a key");
    ck_assert_int_eq(redis_answer(REDIS_RELEASE, &wrong).kind, ANSWER_HELD);
    ck_assert_uint_eq(redis_answer(REDIS_RELEASE, &wrong).holder, 0);
}

TEST(errors_are_recognized_by_their_first_word)
{
    static const struct {
        const char *error;
        enum reason reason;
    } rows[] = {
        {"LOADING Redis is loading the dataset in memory", REASON_LOADING},
        {"OOM command not allowed when used memory > 'maxmemory'.", REASON_OOM},
        {"MISCONF Redis is configured to save RDB snapshots", REASON_MISCONF},
        {"READONLY You can't write against a read only replica.", REASON_READONLY},
        {"NOREPLICAS Not enough good replicas to write.", REASON_NOREPLICAS},
        {"MASTERDOWN Link with MASTER is down", REASON_MASTERDOWN},
        {"BUSY Redis is busy running a script.", REASON_BUSY},
        {"NOSCRIPT No matching script.", REASON_NOSCRIPT},
        {"NOAUTH Authentication required.", REASON_NOAUTH},
        {"WRONGPASS invalid username-password pair", REASON_WRONGPASS},
        {"NOPERM this user has no permissions", REASON_NOPERM},
        {"MOVED 3999 127.0.0.1:6381", REASON_MOVED},
        {"ASK 3999 127.0.0.1:6381", REASON_MOVED},
        {"CLUSTERDOWN Hash slot not served", REASON_CLUSTERDOWN},
        {"ERR max number of clients reached", REASON_MAXCLIENTS},
        {"ERR invalid password", REASON_WRONGPASS},
        {"ERR unknown command", REASON_ERROR},
        {"OOMPH", REASON_ERROR},
        {"OOM", REASON_OOM},
        {"", REASON_ERROR},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct redis_reply reply = text_reply(RESP_ERROR, rows[i].error);
        struct answer answer = redis_answer(REDIS_ACQUIRE, &reply);
        ck_assert_int_eq(answer.kind, ANSWER_FAILED);
        ck_assert_msg(answer.reason == rows[i].reason, "\"%s\" gave %s", rows[i].error,
                      reason_word(answer.reason));
    }
}

TEST(every_reason_has_a_unique_word_and_a_meaning)
{
    for (enum reason a = REASON_NONE; a <= REASON_ERROR; a++) {
        ck_assert_uint_gt(strlen(reason_text(a)), 3);
        for (enum reason b = REASON_NONE; b < a; b++)
            ck_assert_str_ne(reason_word(a), reason_word(b));
        ck_assert_ptr_null(strchr(reason_word(a), ' '));
    }
}

static uint64_t holder_of(const char *value)
{
    struct redis_reply reply = {.kind = RESP_ARRAY, .item_count = 2};
    reply.items[0].kind = RESP_INTEGER;
    reply.items[1].kind = RESP_STRING;
    reply.items[1].str = value;
    reply.items[1].len = strlen(value);
    return redis_answer(REDIS_STATUS, &reply).holder;
}

TEST(token_and_its_frozen_forms_have_one_holder)
{
    const unsigned char fresh[TOKEN_FRESH_BYTES] = {0xff, 1, 2, 3, 4, 5, 6, 7};
    char frozen[LIMIT_TOKEN + 1] = "";
    char again[LIMIT_TOKEN + 1] = "";
    token_freeze(TOKEN, fresh, frozen);
    token_freeze(frozen, (const unsigned char[TOKEN_FRESH_BYTES]){0}, again);
    ck_assert_int_eq(strncmp(frozen, "!f01020304050607", TOKEN_KEPT), 0);
    ck_assert_str_eq(frozen + TOKEN_KEPT, &TOKEN[TOKEN_KEPT]);
    ck_assert(token_is(TOKEN, LIMIT_TOKEN) && !token_is_frozen(TOKEN, LIMIT_TOKEN));
    ck_assert(!token_is(frozen, LIMIT_TOKEN) && token_is_frozen(frozen, LIMIT_TOKEN));
    ck_assert(token_same_lock(TOKEN, again) && token_same_lock(frozen, again));
    ck_assert_uint_eq(holder_of(TOKEN), holder_of(frozen));
    ck_assert_uint_eq(holder_of(TOKEN), holder_of(again));
    frozen[LIMIT_TOKEN - 1] = '!';
    ck_assert(!token_is_frozen(frozen, LIMIT_TOKEN));
    ck_assert(!token_is_frozen(again, LIMIT_TOKEN - 1));
    ck_assert_uint_ne(holder_of(TOKEN), holder_of(frozen));
}

TEST(fingerprints_distinguish_holders)
{
    ck_assert_uint_ne(redis_fingerprint("a", 1), redis_fingerprint("b", 1));
    ck_assert_uint_ne(redis_fingerprint("", 0), 0);
}

TEST(info_fields_match_whole_names)
{
    static const char info[] = "# Server\r\nrun_id_x:no\r\nrun_id:abc\r\nempty:\r\nlast:1";
    size_t len = 99;
    const char *value = redis_info_field(info, sizeof(info) - 1, "run_id", &len);
    ck_assert_ptr_nonnull(value);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(value, "abc", 3);
    ck_assert_ptr_nonnull(redis_info_field(info, sizeof(info) - 1, "last", &len));
    ck_assert_uint_eq(len, 1);
    ck_assert_ptr_null(redis_info_field(info, sizeof(info) - 1, "id", &len));
    ck_assert_ptr_null(redis_info_field("", 0, "id", &len));
}

TEST(drift_is_a_rate_and_a_margin_rounded_up)
{
    const struct drift drift = {.rate_ppm = 10000, .margin_ns = 10};
    ck_assert_int_eq(drift_of(&drift, 0), 10);
    ck_assert_int_eq(drift_of(&drift, 100), 11);
    ck_assert_int_eq(drift_of(&drift, 101), 12);
    ck_assert_int_eq(drift_of(&drift, 30 * NS_PER_S), 300000010);
    /* The drift of a day does not overflow. */
    ck_assert_int_eq(drift_of(&drift, 86400 * NS_PER_S), 864000000010);
}

TEST(validity_is_that_of_the_paper)
{
    const struct drift drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS};
    ck_assert_int_eq(valid_until(&drift, NS_PER_S, 500), 500 + 980 * NS_PER_MS);
}

TEST(elapsed_time_for_a_client_is_never_overstated)
{
    const struct drift drift = {.rate_ppm = 10000, .margin_ns = 10 * NS_PER_MS};
    ck_assert_int_eq(elapsed_for_client_ms(&drift, 0, 0), 0);
    ck_assert_int_eq(elapsed_for_client_ms(&drift, 0, 999999), 0);
    ck_assert_int_eq(elapsed_for_client_ms(&drift, 0, 100 * NS_PER_MS), 99);
    ck_assert_int_eq(elapsed_for_client_ms(&drift, 7, 7 + 3600 * NS_PER_S), 3564000);
}
