#include "engine/flight/self_test.h"

#include <assert.h>
#include <string.h>

/* The TTL is long enough for all tests, and short in case the last release is refused. The
 * extension uses a longer TTL, because extend.lua sets a TTL only if that lengthens it. */
enum { TTL_MS = 2000, EXTENDED_MS = 2 * TTL_MS };

/* The tests, in the order in which they are sent. All use one key. It is acquired, extended,
 * probed, frozen, handed over and released, as rounds would do it. */
static const struct self_test {
    const char *what;
    enum redis_command command;
} tests[ENGINE_SELF_TESTS] = {
    {"SET", REDIS_ACQUIRE},
    {"extend.lua", REDIS_EXTEND},
    {"status.lua", REDIS_KEY_PROBE},
    {"freeze.lua", REDIS_FREEZE},
    {"swap.lua", REDIS_SWAP},
    {"release.lua", REDIS_RELEASE},
    {"fence.lua", REDIS_ACQUIRE_FENCED},
    {"compare-and-delete (DELIFEQ, DELEX)", REDIS_RELEASE},
    {"releases.lua", REDIS_RELEASE},
};

/* TEST_IN_FULL sends release.lua by EVAL, which pending releases and records need. All other
 * scripts are sent by EVALSHA. If a master has no compare-and-delete command of its own,
 * TEST_NATIVE runs release.lua again. */
enum { TEST_IN_FULL = 5, TEST_NATIVE = ENGINE_SELF_TESTS - 2, TEST_RELEASES };

/* The key has the prefix of locks, because an ACL may allow no other keys. It contains the id of
 * the daemon, so that two daemons do not use the same key. */
static size_t put_key(const struct flights *flights, char *key)
{
    static const char name[] = "redlockd-probe:";
    size_t len = flights->rules->key_prefix_len;
    assert(len + sizeof(name) - 1 + sizeof(flights->daemon) <= LIMIT_KEY);
    memcpy(key, flights->rules->key_prefix, len);
    memcpy(key + len, name, sizeof(name) - 1);
    len += sizeof(name) - 1;
    memcpy(key + len, flights->daemon, sizeof(flights->daemon));
    return len + sizeof(flights->daemon);
}

/* Read the name leases for all nodes that this master has. */
static void read_leases(struct flights *flights, unsigned node, int64_t now_ns)
{
    for (unsigned i = 0; i < flights->node_count; i++) {
        char key[GUARD_NAME_KEY_MAX];
        guard_name_key(&flights->guard, i, key);
        link_send_words(&flights->masters[node].link,
                        &(struct outstanding){.kind = OUTSTANDING_SELF_TEST,
                                              .test = (uint8_t)(ENGINE_SELF_TESTS + i),
                                              .sent_ns = now_ns},
                        (const char *[]){"GET", key, NULL});
    }
}

static size_t format_test(const struct redis_call *call, unsigned test, enum redis_form native,
                          char *buf)
{
    const struct redis_release release = {call->key, call->key_len, call->token};
    if (test == TEST_RELEASES)
        return redis_format_releases(&release, 1, REDIS_BY_SHA1, buf);
    return redis_format(call,
                        test == TEST_IN_FULL  ? REDIS_IN_FULL
                        : test == TEST_NATIVE ? native
                                              : REDIS_BY_SHA1,
                        buf);
}

void self_test_start(struct flights *flights, unsigned node, int64_t now_ns)
{
    char key[LIMIT_KEY];
    char tokens[2][LIMIT_TOKEN];
    char frozen[LIMIT_TOKEN];
    struct link *link = &flights->masters[node].link;
    struct redis_call call = {
        .key = key,
        .key_len = put_key(flights, key),
        .fence_ttl_ms = TTL_MS,
        .daemon = flights->daemon,
    };
    flights_make_token(flights, tokens[0]);
    flights_make_token(flights, tokens[1]);
    flights_freeze_token(flights, tokens[0], frozen);
    for (unsigned i = 0; i < ENGINE_SELF_TESTS; i++) {
        call.command = tests[i].command;
        call.ttl_ms = call.command == REDIS_EXTEND ? EXTENDED_MS : TTL_MS;
        call.token = tokens[call.command == REDIS_SWAP || call.command == REDIS_RELEASE];
        if (call.command == REDIS_FREEZE)
            call.token = frozen;
        call.old_token = tokens[0];
        call.ballot = call.command == REDIS_ACQUIRE_FENCED;
        size_t len = format_test(&call, i, link->release_form, flights->command);
        link_send(link, flights->command, len,
                  &(struct outstanding){
                      .kind = OUTSTANDING_SELF_TEST, .test = (uint8_t)i, .sent_ns = now_ns});
        /* All later releases are of the first token, which fence.lua sets again. */
        if (call.command == REDIS_RELEASE)
            memcpy(tokens[1], tokens[0], sizeof(tokens[1]));
    }
    read_leases(flights, node, now_ns);
}

void self_test_on_reply(struct flights *flights, unsigned node,
                        const struct outstanding *outstanding, const struct redis_reply *reply)
{
    enum reason refused = REASON_NONE;
    char lease[LIMIT_RECORD] = "";
    if (outstanding->test >= ENGINE_SELF_TESTS) {
        if (reply->kind == RESP_STRING && reply->len < sizeof(lease))
            memcpy(lease, reply->str, reply->len);
        flights->io->lease_found(flights->io->context, node, outstanding->test - ENGINE_SELF_TESTS,
                                 lease);
        return;
    }
    if (reply->kind == RESP_ERROR)
        refused = link_reason_of(&flights->masters[node].link, reply);
    flights->io->self_tested(flights->io->context, node, tests[outstanding->test].what, refused);
}
