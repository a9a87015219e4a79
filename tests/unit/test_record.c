/*
 * engine/guard/record.h: the text of a master's record.
 */
#include "engine/guard/record.h"

#include <stdio.h>
#include <string.h>

#include "protocol/units.h"
#include "tests/runner.h"

static const struct record sample = {
    .set_id = "0123456789abcdef",
    .cluster = "main",
    .max_ttl_ms = 60000,
    .id = "3333333333333333333333333333333333333333",
    .run_id = "1111111111111111111111111111111111111111",
    .replid = "2222222222222222222222222222222222222222",
    .evicted = 7,
    .durable = true,
    .quarantine_id = 0x0123456789abcdef,
    .why = REASON_RESTARTED,
    .quarantine_ms = 60611,
    .join_us = 1763640000123456,
};

static size_t write_sample(char *buf)
{
    size_t len = record_format(&sample, buf);
    return len + (size_t)sprintf(buf + len, "1763640000123456");
}

TEST(record_is_read_as_it_was_written)
{
    char text[LIMIT_RECORD];
    struct record record;
    memset(&record, 0, sizeof(record));
    ck_assert(record_parse(text, write_sample(text), &record));
    ck_assert_str_eq(record.set_id, sample.set_id);
    ck_assert_str_eq(record.cluster, sample.cluster);
    ck_assert_str_eq(record.id, sample.id);
    ck_assert_str_eq(record.run_id, sample.run_id);
    ck_assert_str_eq(record.replid, sample.replid);
    ck_assert_int_eq(record.max_ttl_ms, sample.max_ttl_ms);
    ck_assert_int_eq(record.evicted, sample.evicted);
    ck_assert(record.durable);
    ck_assert_uint_eq(record.quarantine_id, sample.quarantine_id);
    ck_assert_int_eq(record.why, sample.why);
    ck_assert_int_eq(record.quarantine_ms, sample.quarantine_ms);
    ck_assert_int_eq(record.join_us, sample.join_us);
}

TEST(longest_record_fits)
{
    struct record longest = sample;
    char text[LIMIT_RECORD];
    memset(longest.cluster, 'c', LIMIT_CLUSTER_NAME);
    longest.cluster[LIMIT_CLUSTER_NAME] = '\0';
    longest.max_ttl_ms = longest.quarantine_ms = RECORD_QUARANTINE_MAX_MS;
    longest.evicted = 999999999999999;
    for (enum reason why = 0; why < REASON_COUNT; why++) {
        longest.why = why;
        ck_assert_uint_lt(record_format(&longest, text), LIMIT_RECORD - 20);
    }
}

TEST(truncated_record_is_refused)
{
    char text[LIMIT_RECORD];
    struct record record;
    size_t len = write_sample(text);
    /* A record that is cut inside its last number still parses. That does no harm, because the
     * daemon also compares records byte for byte. */
    size_t number = len - strlen("1763640000123456");
    for (size_t cut = 0; cut <= number; cut++)
        ck_assert_msg(!record_parse(text, cut, &record), "cut to %zu", cut);
}

static const char *const malformed[] = {
    "",
    " ",
    "hello",
    "redlockd/2 set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1",
    "redlockd/1 set=0123456789abcdef0 cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=-1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1 more=1",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1763640000123456789",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=172800001 join_us=1",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdeg why=new quarantine_ms=1 join_us=1",
    "redlockd/1  set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1",
    "redlockd/1set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms= 1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new\nquarantine_ms=1 join_us=1",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=1 id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1 ",
    "redlockd/1 set=0123456789abcdef cluster=main max_ttl_ms=1x id=1 run_id=1 replid=2 evicted=0 "
    "durable=no mark=0123456789abcdef why=new quarantine_ms=1 join_us=1",
};

TEST_ROWS(malformed_record_is_refused, malformed)
{
    struct record record;
    ck_assert(!record_parse(malformed[_i], strlen(malformed[_i]), &record));
}

TEST(record_with_arbitrary_bytes_is_refused)
{
    struct record record;
    char text[2 * LIMIT_RECORD];
    memset(text, 'x', sizeof(text));
    ck_assert(!record_parse(text, sizeof(text), &record));
    size_t len = write_sample(text);
    text[20] = '\0';
    ck_assert(!record_parse(text, len, &record));
}

#define RULES(name, names, count, ttl_s, ppm, margin_ms, fence_s)                                  \
    {                                                                                              \
        .cluster = (name), .node_names = names, .node_count = (count),                             \
        .max_ttl_ns = (ttl_s)*NS_PER_S, .drift = {(ppm), (margin_ms)*NS_PER_MS},                   \
        .fence_ttl_ns = (fence_s)*NS_PER_S                                                         \
    }
#define NAMES(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const struct {
    struct guard_rules rules;
    bool same; /* the set id equals that of the first row */
} sets[] = {
    {RULES("main", NAMES("a", "b", "c"), 3, 60, 10000, 10, 3600), true},
    {RULES("main", NAMES("c", "a", "b"), 3, 60, 10000, 10, 3600), true},
    {RULES("side", NAMES("a", "b", "c"), 3, 60, 10000, 10, 3600), false},
    {RULES("main", NAMES("a", "b", "d"), 3, 60, 10000, 10, 3600), false},
    {RULES("main", NAMES("a", "b", "c"), 2, 60, 10000, 10, 3600), false},
    {RULES("main", NAMES("a", "b", "c"), 3, 40, 10000, 10, 3600), false},
    {RULES("main", NAMES("a", "b", "c"), 3, 60, 10001, 10, 3600), false},
    {RULES("main", NAMES("a", "b", "c"), 3, 60, 10000, 11, 3600), false},
    {RULES("main", NAMES("a", "b", "c"), 3, 60, 10000, 10, 3601), false},
};

TEST_ROWS(set_id_depends_on_the_set_but_not_on_the_order, sets)
{
    char first[RECORD_SET_ID + 1];
    char other[RECORD_SET_ID + 1];
    record_set_id(&sets[0].rules, first);
    ck_assert_uint_eq(strlen(first), RECORD_SET_ID);
    record_set_id(&sets[_i].rules, other);
    ck_assert_int_eq(strcmp(first, other) == 0, sets[_i].same);
}
