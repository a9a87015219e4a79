/*
 * Compares the fake master (tests/fake/master.h) with a real one: the same bytes, sent to the fake
 * master and immediately afterwards to the real one, must give the same replies.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "engine/guard/record.h"
#include "protocol/redis.h"
#include "tests/e2e/stage.h"
#include "tests/fake/master.h"
#include "tests/prng.h"
#include "tests/runner.h"

/* The test asks the two servers one after the other, so the remaining TTLs in their replies are
 * allowed to differ by APART_MS, and the times in their records by JOIN_APART_US. */
enum {
    KEYS = 3,
    TOKENS = 5,
    FROZEN = 2,
    COMMANDS = 4000,
    APART_MS = 5000,
    JOIN_APART_US = 5000000
};

/* An end of a quarantine so far in the future that no server replaces it by a time of its own
 * clock. Both servers must therefore return it equal to the microsecond. */
#define FLOOR_US INT64_C(8000000000000000)

static struct fake_master fake;
static struct fake_session *session;
static struct stage stage;
static struct prng prng = {.state = 1};

static unsigned below(unsigned count)
{
    return prng_below(&prng, count);
}

static int64_t wall_us(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}

static redisReply *ask_fake(const char *bytes, size_t len)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    bytes_add(&session->input, bytes, len);
    fake_serve(&fake, session, wall_us());
    redisReaderFeed(reader, bytes_at(&session->output), bytes_len(&session->output));
    ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    ck_assert_ptr_nonnull(reply);
    redisReaderFree(reader);
    bytes_clear(&session->output);
    return reply;
}

static redisReply *ask_real(const char *bytes, size_t len)
{
    redisContext *context = stage.masters[0].context;
    void *reply = NULL;
    ck_assert_int_eq(redisAppendFormattedCommand(context, bytes, len), REDIS_OK);
    ck_assert_int_eq(redisGetReply(context, &reply), REDIS_OK);
    return reply;
}

/* Compares texts. Two records are allowed to differ in join_us, which depends on the time of
 * writing. */
static bool same_text(const redisReply *fake_reply, const redisReply *real_reply)
{
    const char *fake_join = strstr(fake_reply->str, " join_us=");
    const char *real_join = strstr(real_reply->str, " join_us=");
    if (fake_join == NULL || real_join == NULL)
        return strcmp(fake_reply->str, real_reply->str) == 0;
    int64_t fake_us = strtoll(fake_join + 9, NULL, 10);
    int64_t real_us = strtoll(real_join + 9, NULL, 10);
    int64_t apart_us = real_us < FLOOR_US ? JOIN_APART_US : 0;
    return fake_join - fake_reply->str == real_join - real_reply->str &&
           strncmp(fake_reply->str, real_reply->str, (size_t)(fake_join - fake_reply->str)) == 0 &&
           llabs(fake_us - real_us) <= apart_us;
}

static bool same(const redisReply *fake_reply, const redisReply *real_reply)
{
    if (fake_reply->type != real_reply->type || fake_reply->elements != real_reply->elements)
        return false;
    for (size_t i = 0; i < fake_reply->elements; i++)
        if (!same(fake_reply->element[i], real_reply->element[i]))
            return false;
    switch (fake_reply->type) {
    case REDIS_REPLY_INTEGER:
        return fake_reply->integer < 0 || real_reply->integer < 0
                   ? fake_reply->integer == real_reply->integer
                   : llabs(fake_reply->integer - real_reply->integer) < APART_MS;
    case REDIS_REPLY_ERROR:
        /* redlockd evaluates only the first word of an error. */
        return strncmp(fake_reply->str, real_reply->str, strcspn(real_reply->str, " ")) == 0;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        return same_text(fake_reply, real_reply);
    default:
        return true;
    }
}

static void expect_same(const char *bytes, size_t len)
{
    redisReply *fake_reply = ask_fake(bytes, len);
    redisReply *real_reply = ask_real(bytes, len);
    ck_assert_msg(same(fake_reply, real_reply),
                  "%.*s\nreal: type %d, %lld, %s\nfake: type %d, %lld, %s", (int)len, bytes,
                  real_reply->type, real_reply->integer,
                  real_reply->str != NULL ? real_reply->str : "-", fake_reply->type,
                  fake_reply->integer, fake_reply->str != NULL ? fake_reply->str : "-");
    freeReplyObject(fake_reply);
    freeReplyObject(real_reply);
}

static void expect_same_words(const char *const *words, size_t count)
{
    char buf[REDIS_COMMAND_MAX];
    size_t lens[21];
    ck_assert_uint_le(count, sizeof(lens) / sizeof(lens[0]));
    for (size_t i = 0; i < count; i++)
        lens[i] = strlen(words[i]);
    expect_same(buf, redis_format_words(words, lens, count, buf, sizeof(buf)));
}

/* --- commands of redlockd --- */

static const char *const tokens[TOKENS] = {
    "1111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222",
    "abcdefabcdefabcdefabcdefabcdefabcdefabcd",
    /* Frozen forms of the first token. */
    "!aaaaaaaaaaaaaaa111111111111111111111111",
    "!bbbbbbbbbbbbbbb111111111111111111111111",
};

static void try_lock_command(void)
{
    char buf[REDIS_COMMAND_MAX];
    const char key[] = {'r', (char)('0' + below(KEYS)), '\0'};
    const struct redis_call call = {
        .command = (enum redis_command)below(REDIS_FREEZE + 1),
        .key = key,
        .key_len = 2,
        .token = tokens[below(TOKENS)],
        .ttl_ms = below(4) == 0 ? 20000 : 100000 + below(400000),
        .ballot = below(2) == 0 ? 0 : INT64_C(1763640000000000) + below(50),
        .fence_ttl_ms = 1000000,
        .old_token = tokens[below(TOKENS - FROZEN)],
        .daemon = below(2) == 0 ? "0123456789abcdef" : "fedcba9876543210",
        .need_ms = below(2) == 0 ? 0 : 1 + below(below(2) == 0 ? 40 : REDIS_NEED_MAX_MS),
    };
    struct redis_call fenced = call;
    if (call.command == REDIS_ACQUIRE_FENCED && call.ballot == 0)
        fenced.ballot = 1;
    if (call.command == REDIS_RELEASE && below(2) == 0)
        fenced.daemon = NULL;
    if (call.command == REDIS_KEY_PROBE && below(2) == 0)
        fenced.token = NULL;
    if (call.command == REDIS_SWAP)
        fenced.need_ms = 0;
    expect_same(buf, redis_format(&fenced, below(4) == 0 ? REDIS_IN_FULL : REDIS_BY_SHA1, buf));
}

/* Reads a contention hint and, in half of the cases, replaces it by a malformed one, such as
 * redlockd never writes. */
static void try_malformed_value(void)
{
    static const char *const malformed[] = {"",
                                            "short",
                                            "0123456789abcdef",
                                            "0123456789abcdef-5",
                                            "0123456789abcdef1e9",
                                            "0123456789abcdef 7",
                                            "0123456789abcdef09999",
                                            "0123456789abcdef123456"};
    char name[32];
    snprintf(name, sizeof(name), "redlockd:%s:r%u", below(2) == 0 ? "waits" : "far", below(KEYS));
    expect_same_words((const char *[]){"GET", name}, 2);
    if (below(2) == 0)
        expect_same_words((const char *[]){"SET", name, malformed[below(8)], "PX", "100000"}, 5);
}

/* Releases with DELIFEQ (Valkey) or DELEX (Redis 8). If the real server lacks the command, the fake
 * one must return the same error. */
static void try_native_release(void)
{
    char buf[REDIS_COMMAND_MAX];
    const char key[] = {'r', (char)('0' + below(KEYS)), '\0'};
    const struct redis_call call = {.command = REDIS_RELEASE,
                                    .key = key,
                                    .key_len = 2,
                                    .token = tokens[below(TOKENS)],
                                    .ttl_ms = 1};
    expect_same(buf, redis_format(&call, below(2) == 0 ? REDIS_DELIFEQ : REDIS_DELEX, buf));
}

static void try_releases(void)
{
    char buf[REDIS_RELEASES_MAX];
    struct redis_release releases[KEYS];
    char keys[KEYS][2];
    unsigned count = 1 + below(KEYS);
    for (unsigned i = 0; i < count; i++) {
        keys[i][0] = 'r';
        keys[i][1] = (char)('0' + i);
        releases[i] = (struct redis_release){keys[i], 2, tokens[below(TOKENS)]};
    }
    expect_same(buf, redis_format_releases(releases, count,
                                           below(4) == 0 ? REDIS_IN_FULL : REDIS_BY_SHA1, buf));
}

static void try_record_write(void)
{
    const char *record = master_text(&stage.masters[0], "GET %s", RECORD_KEY);
    char expected[LIMIT_RECORD];
    char begin[LIMIT_RECORD];
    char floor[24];
    const struct fake_key *key = fake_find(&fake, RECORD_KEY, strlen(RECORD_KEY), wall_us());
    ck_assert_int_eq(key == NULL, record == NULL);
    /* Each server gets its own record as the expected one, because the two records differ by some
     * microseconds. */
    bool right = below(3) != 0;
    snprintf(begin, sizeof(begin),
             "redlockd/1 set=0123456789abcdef cluster=c max_ttl_ms=20000 id=%040u run_id=%040u "
             "replid=%040u evicted=0 durable=no mark=0123456789abcdef why=new quarantine_ms=1 "
             "join_us=",
             below(3), below(2), below(3));
    snprintf(floor, sizeof(floor), "%" PRId64, below(2) == 0 ? 0 : FLOOR_US);
    char run_id[LIMIT_TOKEN + 1];
    snprintf(run_id, sizeof(run_id), "%040u", below(2));
    const char *quarantine = below(3) == 0 ? "0" : "60000000";
    const char *words[] = {"EVAL",     redis_script_text(REDIS_SCRIPT_WRITE_RECORD),
                           "1",        RECORD_KEY,
                           expected,   begin,
                           quarantine, run_id,
                           floor};
    char buf[REDIS_COMMAND_MAX];
    size_t lens[9];
    redisReply *replies[2];
    for (unsigned i = 0; i < 2; i++) {
        const char *own = i == 0 ? (key != NULL ? key->value : "") : (record != NULL ? record : "");
        snprintf(expected, sizeof(expected), "%s", right ? own : "something else");
        for (size_t k = 0; k < 9; k++)
            lens[k] = strlen(words[k]);
        size_t len = redis_format_words(words, lens, 9, buf, sizeof(buf));
        replies[i] = i == 0 ? ask_fake(buf, len) : ask_real(buf, len);
    }
    ck_assert_msg(same(replies[0], replies[1]), "write_record.lua: %s\n     not: %s",
                  replies[0]->str, replies[1]->str);
    freeReplyObject(replies[0]);
    freeReplyObject(replies[1]);
}

/* Without beats on it, each server would begin them at the time of its own clock. */
static void set_beats(void)
{
    expect_same_words((const char *[]){"SET", "redlockd:beats:x", "-.5.9", "NX"}, 4);
}

static void try_heartbeat(void)
{
    static const char *const servers[] = {
        "1111111111111111111111111111111111111111 a",
        "1111111111111111111111111111111111111111 b",
        "2222222222222222222222222222222222222222 a",
    };
    static const char *const daemons[] = {"a0", "a1", "a2", "a3", "a4", "a5",
                                          "a6", "a7", "a8", "a9", "aa", "ab"};
    static const char *const attestations[] = {"", "1700000000000000:5", "9700000000000000:5"};
    set_beats();
    expect_same_words((const char *[]){"EVALSHA",
                                       redis_script_sha1(REDIS_SCRIPT_HEARTBEAT),
                                       "7",
                                       "redlockd:clock:x",
                                       "redlockd:vouch:x",
                                       "redlockd:step:x",
                                       "redlockd:beats:x",
                                       "redlockd:absent",
                                       "redlockd:name:a",
                                       "redlockd:name:b",
                                       below(2) == 0 ? "" : "1:2:3:4:5",
                                       "60000",
                                       attestations[below(3)],
                                       "60000",
                                       "60000",
                                       below(2) == 0 ? "3000" : "-1",
                                       below(2) == 0 ? "-" : "9700000000001000",
                                       daemons[below(12)],
                                       below(2) == 0 ? "" : "-.5.9",
                                       servers[below(3)],
                                       servers[below(3)]},
                      21);
}

/* Sends a heartbeat without names. */
static void heartbeat_with(const char *entry)
{
    set_beats();
    expect_same_words((const char *[]){"EVALSHA", redis_script_sha1(REDIS_SCRIPT_HEARTBEAT), "5",
                                       "redlockd:clock:x", "redlockd:vouch:x", "redlockd:step:x",
                                       "redlockd:beats:x", "redlockd:absent", entry, "60000", "",
                                       "60000", "60000", "3000", "-", "a0", ""},
                      17);
}

/* A heartbeat with the entry "-" announces a step of the clock: it writes the time of the step to
 * the server. Both servers already have a time that is ahead of their clocks, so the announcement
 * raises that time by a millisecond. Without a stored time, each server would write the time of its
 * own clock, and the replies would differ. */
static void try_heartbeat_of_a_step(void)
{
    static const char *const set[] = {"SET",  "redlockd:step:x", "9700000000000000", "NX", "PX",
                                      "60000"};
    expect_same_words(set, 6);
    heartbeat_with("-");
    expect_same_words((const char *[]){"GET", "redlockd:step:x"}, 2);
    expect_same_words((const char *[]){"GET", "redlockd:clock:x"}, 2);
    expect_same_words((const char *[]){"GET", "redlockd:vouch:x"}, 2);
    const char *step = master_text(&stage.masters[0], "GET redlockd:step:x");
    ck_assert_str_eq(step, "9700000000001000");
}

/* The daemon has seen later beats than those on the master. So the heartbeat begins new ones. */
static void try_heartbeat_after_later_beats(void)
{
    const char *const words[] = {"EVALSHA",
                                 redis_script_sha1(REDIS_SCRIPT_HEARTBEAT),
                                 "5",
                                 "redlockd:clock:x",
                                 "redlockd:vouch:x",
                                 "redlockd:step:x",
                                 "redlockd:beats:x",
                                 "redlockd:absent",
                                 "",
                                 "60000",
                                 "",
                                 "60000",
                                 "60000",
                                 "3000",
                                 "-",
                                 "a0",
                                 "-.5.12"};
    char buf[REDIS_COMMAND_MAX];
    size_t lens[17];
    expect_same_words((const char *[]){"SET", "redlockd:beats:x", "-.5.11"}, 3);
    for (unsigned i = 0; i < 17; i++)
        lens[i] = strlen(words[i]);
    size_t len = redis_format_words(words, lens, 17, buf, sizeof(buf));
    redisReply *replies[] = {ask_fake(buf, len), ask_real(buf, len)};
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_msg(strncmp(replies[i]->str, " -.1", 4) == 0, "%s", replies[i]->str);
        ck_assert_ptr_nonnull(strstr(replies[i]->str, ".1 "));
        freeReplyObject(replies[i]);
    }
    expect_same_words((const char *[]){"SET", "redlockd:beats:x", "-.5.11"}, 3);
}

/* A heartbeat removes an attestation whose time is in the future, because such an attestation was
 * written before the clock was set back. It also removes an attestation that lacks the number after
 * the colon, which says how far the clock may have stepped forward unnoticed. */
static void try_heartbeat_on_a_void_attestation(const char *attestation)
{
    const char *const set[] = {"SET", "redlockd:vouch:x", attestation, "NX", "PX", "60000"};
    static const char *const get[] = {"GET", "redlockd:vouch:x"};
    expect_same_words(set, 6);
    expect_same_words(get, 2);
    heartbeat_with("");
    expect_same_words(get, 2);
    ck_assert_ptr_null(master_text(&stage.masters[0], "GET redlockd:vouch:x"));
}

static void load_scripts(void)
{
    for (unsigned i = 0; i < REDIS_SCRIPT_COUNT; i++)
        expect_same_words((const char *[]){"SCRIPT", "LOAD", redis_script_text(i)}, 3);
}

static void try_something_else(void)
{
    static const char *const settings[] = {"appendonly", "appendfsync",
                                           "no-appendfsync-on-rewrite"};
    switch (below(11)) {
    case 0:
        fake_flush_scripts(&fake);
        masters_run(&stage.masters[0], 1, "SCRIPT FLUSH");
        break;
    case 1:
        fake_flush(&fake);
        masters_run(&stage.masters[0], 1, "FLUSHALL");
        break;
    case 2:
        expect_same_words((const char *[]){"GET", "r0"}, 2);
        break;
    case 3:
        expect_same_words((const char *[]){"EVAL", FAKE_FOREIGN_RELEASE, "1", "r1",
                                           "1111111111111111111111111111111111111111"},
                          5);
        break;
    case 4:
        expect_same_words((const char *[]){"CONFIG", "GET", settings[below(3)]}, 3);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        try_malformed_value();
        break;
    default:
        load_scripts();
        break;
    }
}

TEST(the_fake_master_replies_like_a_real_one)
{
    stage_open_masters(&stage, __func__, &(struct stage_plan){.masters = 1, .over_unix = true});
    fake_init(&fake, 1);
    const char *info = master_text(&stage.masters[0], "INFO server");
    static const char *const versions[] = {
        [REDIS_DELIFEQ] = "valkey_version:9.1.2", [REDIS_DELEX] = "redis_version:8.6.3"};
    enum redis_form form = redis_release_form(info, strlen(info));
    fake.version = form == REDIS_BY_SHA1 ? NULL : versions[form];
    session = fake_accept(&fake);
    load_scripts();
    try_heartbeat_on_a_void_attestation("9700000000000000:5");
    try_heartbeat_on_a_void_attestation("1700000000000000");
    try_heartbeat_of_a_step();
    try_heartbeat_after_later_beats();
    for (unsigned i = 0; i < COMMANDS; i++) {
        unsigned what = below(100);
        if (what < 55)
            try_lock_command();
        else if (what < 60)
            try_native_release();
        else if (what < 70)
            try_releases();
        else if (what < 85)
            try_heartbeat();
        else if (what < 97)
            try_record_write();
        else
            try_something_else();
    }
    fake_free(&fake);
    stage_close_masters(&stage);
}
