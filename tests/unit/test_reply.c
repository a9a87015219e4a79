/*
 * protocol/reply.h, protocol/text.h and server/log.h: the exact bytes of replies, in the line
 * protocol and in RESP, and of log lines.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/reply.h"
#include "protocol/text.h"
#include "protocol/units.h"
#include "server/log.h"
#include "tests/runner.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

static char buf[LIMIT_REPLY];

static void assert_line(size_t len, const char *expected)
{
    ck_assert_uint_eq(len, strlen(expected));
    ck_assert_mem_eq(buf, expected, len);
}

TEST(each_outcome_has_its_line)
{
    static const char *const names[] = {"a", "b", "c"};
    static const enum reason reasons[] = {REASON_NONE, REASON_TIMEOUT, REASON_REFUSED};
    const struct {
        struct reply reply;
        const char *line;
    } rows[] = {
        {{.outcome = OUTCOME_OK}, "OK\n"},
        {{.outcome = OUTCOME_OK, .token = TOKEN, .validity_ms = 9890, .elapsed_ms = 3, .fence = -1},
         "OK " TOKEN " 9890 3\n"},
        {{.outcome = OUTCOME_OK, .token = TOKEN, .validity_ms = 1}, "OK " TOKEN " 1 0 -\n"},
        {{.outcome = OUTCOME_OK, .token = TOKEN, .validity_ms = 1, .fence = 7},
         "OK " TOKEN " 1 0 7\n"},
        {{.outcome = OUTCOME_GONE}, "GONE\n"},
        {{.outcome = OUTCOME_HELD, .hint_ms = -1}, "HELD -1\n"},
        {{.outcome = OUTCOME_HELD, .hint_ms = INT64_MAX}, "HELD 9223372036854775807\n"},
        {{.outcome = OUTCOME_FREE}, "FREE\n"},
        {{.outcome = OUTCOME_LATE, .elapsed_ms = 77}, "LATE 77\n"},
        {{.outcome = OUTCOME_LIMIT, .limit = "requests"}, "LIMIT requests\n"},
        {{.outcome = OUTCOME_SHUTDOWN}, "SHUTDOWN\n"},
        {{.outcome = OUTCOME_NOQUORUM,
          .voting = 1,
          .quorum = 2,
          .node_count = 3,
          .node_names = names,
          .node_reasons = reasons},
         "NOQUORUM 1/3 need=2 b:timeout c:refused\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char tagged[256];
        assert_line(reply_format(&rows[i].reply, NULL, 0, buf), rows[i].line);
        snprintf(tagged, sizeof(tagged), "#t1 %s", rows[i].line);
        assert_line(reply_format(&rows[i].reply, "t1", 2, buf), tagged);
    }
}

TEST(errors_and_listing_lines_carry_tags)
{
    assert_line(reply_format_error("bad-tag", "no", NULL, 0, buf), "ERR bad-tag no\n");
    assert_line(reply_format_error("bad-tag", "no", "x", 1, buf), "#x ERR bad-tag no\n");
    assert_line(reply_format_line("PONG", 4, "x", 1, buf), "#x PONG\n");
}

TEST(overlong_line_is_truncated_and_terminated)
{
    char words[3 * LIMIT_REPLY];
    memset(words, 'w', sizeof(words));
    ck_assert_uint_eq(reply_format_line(words, sizeof(words), NULL, 0, buf), LIMIT_REPLY);
    ck_assert_int_eq(buf[LIMIT_REPLY - 1], '\n');
}

TEST(longest_noquorum_reply_fits)
{
    const char *names[LIMIT_NODES];
    enum reason reasons[LIMIT_NODES];
    enum reason longest = REASON_NONE;
    for (unsigned i = 0; i < REASON_COUNT; i++)
        if (strlen(reason_word(i)) > strlen(reason_word(longest)))
            longest = i;
    for (unsigned i = 0; i < LIMIT_NODES; i++) {
        names[i] = "abcdefghijklmnopqrstuvwxyz012345";
        reasons[i] = longest;
    }
    struct reply reply = {.outcome = OUTCOME_NOQUORUM,
                          .quorum = 8,
                          .node_count = LIMIT_NODES,
                          .node_names = names,
                          .node_reasons = reasons};
    size_t len = reply_format(&reply, "abcdefghijklmnopqrstuvwxyz012345", 32, buf);
    ck_assert_uint_lt(len, LIMIT_REPLY);
    ck_assert_int_eq(buf[len - 1], '\n');
    ck_assert_mem_eq(buf + len - 1 - strlen(reason_word(longest)), reason_word(longest),
                     strlen(reason_word(longest)));
    ck_assert_uint_le(reply_format_resp(&reply, DIALECT_RESP3, buf), LIMIT_RESP_REPLY);
    /* Such replies to all pending commands have room, after those of the last command taken. */
    ck_assert_uint_le(LIMIT_CLIENT_OUTPUT / 2 + 4 * LIMIT_REPLY +
                          LIMIT_CLIENT_REQUESTS * LIMIT_RESP_REPLY,
                      LIMIT_RESP_OUTPUT);
}

/* --- RESP --- */

TEST(each_outcome_has_its_resp_reply)
{
    static const char *const names[] = {"a", "b", "c"};
    static const enum reason reasons[] = {REASON_NONE, REASON_TIMEOUT, REASON_REFUSED};
    const struct {
        struct reply reply;
        const char *resp2;
        const char *resp3; /* NULL: as in RESP2 */
    } rows[] = {
        {{.outcome = OUTCOME_OK}, "+OK\r\n", NULL},
        {{.outcome = OUTCOME_OK, .token = TOKEN, .validity_ms = 9890, .elapsed_ms = 3, .fence = -1},
         "*4\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:9890\r\n:3\r\n",
         NULL},
        {{.outcome = OUTCOME_OK, .token = TOKEN, .validity_ms = 1},
         "*5\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:1\r\n:0\r\n$-1\r\n",
         "*5\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:1\r\n:0\r\n_\r\n"},
        {{.outcome = OUTCOME_OK, .token = TOKEN, .validity_ms = 1, .fence = 7},
         "*5\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:1\r\n:0\r\n:7\r\n",
         NULL},
        {{.outcome = OUTCOME_OK,
          .token = TOKEN,
          .validity_ms = INT64_MAX,
          .fence = INT64_MAX,
          .slot = "a#12",
          .slot_len = 4},
         "*6\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:9223372036854775807\r\n:0\r\n"
         ":9223372036854775807\r\n$4\r\na#12\r\n",
         NULL},
        {{.outcome = OUTCOME_OK, .token = TOKEN, .validity_ms = 1, .slot = "a#1", .slot_len = 3},
         "*6\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:1\r\n:0\r\n$-1\r\n$3\r\na#1\r\n",
         "*6\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:1\r\n:0\r\n_\r\n$3\r\na#1\r\n"},
        {{.outcome = OUTCOME_GONE}, "+GONE\r\n", NULL},
        {{.outcome = OUTCOME_HELD, .hint_ms = -1}, "*2\r\n$4\r\nHELD\r\n:-1\r\n", NULL},
        {{.outcome = OUTCOME_HELD, .hint_ms = 5, .held = 3, .slots = 3},
         "*4\r\n$4\r\nHELD\r\n:5\r\n:3\r\n:3\r\n",
         NULL},
        {{.outcome = OUTCOME_FREE}, "+FREE\r\n", NULL},
        {{.outcome = OUTCOME_FREE, .held = 0, .slots = 1000},
         "*3\r\n$4\r\nFREE\r\n:0\r\n:1000\r\n",
         NULL},
        {{.outcome = OUTCOME_LATE, .elapsed_ms = 77}, "-LATE 77\r\n", NULL},
        {{.outcome = OUTCOME_LIMIT, .limit = "requests"}, "-LIMIT requests\r\n", NULL},
        {{.outcome = OUTCOME_SHUTDOWN}, "-SHUTDOWN\r\n", NULL},
        {{.outcome = OUTCOME_NOQUORUM,
          .voting = 1,
          .quorum = 2,
          .node_count = 3,
          .node_names = names,
          .node_reasons = reasons},
         "-NOQUORUM 1/3 need=2 b:timeout c:refused\r\n",
         NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *resp3 = rows[i].resp3 != NULL ? rows[i].resp3 : rows[i].resp2;
        assert_line(reply_format_resp(&rows[i].reply, DIALECT_RESP2, buf), rows[i].resp2);
        assert_line(reply_format_resp(&rows[i].reply, DIALECT_RESP3, buf), resp3);
    }
}

TEST(resp_errors_and_texts_are_exact)
{
    assert_line(reply_format_resp_error("ERR", "bad-time", "no time", buf),
                "-ERR bad-time no time\r\n");
    assert_line(reply_format_resp_error("NOAUTH", NULL, "who", buf), "-NOAUTH who\r\n");
    assert_line(reply_format_resp_simple("PONG", 4, buf), "+PONG\r\n");
}

TEST(overlong_resp_lines_are_cut_and_terminated)
{
    char words[3 * LIMIT_REPLY];
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    ck_assert_uint_eq(reply_format_resp_error("ERR", "code", words, buf), LIMIT_REPLY);
    ck_assert_mem_eq(buf + LIMIT_REPLY - 3, "w\r\n", 3);
    ck_assert_uint_eq(reply_format_resp_simple(words, sizeof(words), buf), LIMIT_REPLY);
    ck_assert_mem_eq(buf + LIMIT_REPLY - 3, "w\r\n", 3);
}

TEST(pushes_are_lines_or_resp3_messages)
{
    struct push push = {.kind = PUSH_LOST,
                        .resource = "deploy",
                        .resource_len = 6,
                        .token = TOKEN,
                        .reason = "gone"};
    assert_line(reply_format_push(&push, buf), "! LOST deploy " TOKEN " gone\n");
    assert_line(reply_format_push_resp(&push, buf),
                ">4\r\n$4\r\nLOST\r\n$6\r\ndeploy\r\n$40\r\n" TOKEN "\r\n$4\r\ngone\r\n");
    push.kind = PUSH_WARN;
    push.node = "b";
    push.reason = "timeout";
    assert_line(reply_format_push(&push, buf), "! WARN deploy " TOKEN " b:timeout\n");
    assert_line(reply_format_push_resp(&push, buf),
                ">4\r\n$4\r\nWARN\r\n$6\r\ndeploy\r\n$40\r\n" TOKEN "\r\n$9\r\nb:timeout\r\n");
}

/* The last byte of the buffer stays unused, which shows that nothing was cut. */
TEST(longest_resp_replies_fit)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz012345";
    char resource[LIMIT_RESOURCE];
    char whole[512];
    const char *names[LIMIT_NODES];
    enum reason reasons[LIMIT_NODES];
    memset(resource, 'r', sizeof(resource));
    for (unsigned i = 0; i < LIMIT_NODES; i++) {
        names[i] = name;
        reasons[i] = REASON_DISCONNECTED;
    }
    const struct reply noquorum = {.outcome = OUTCOME_NOQUORUM,
                                   .quorum = 8,
                                   .node_count = LIMIT_NODES,
                                   .node_names = names,
                                   .node_reasons = reasons};
    size_t len = reply_format_resp(&noquorum, DIALECT_RESP2, buf);
    ck_assert_uint_lt(len, LIMIT_REPLY);
    ck_assert_mem_eq(buf + len - 15, ":disconnected\r\n", 15);
    const struct reply granted = {.outcome = OUTCOME_OK,
                                  .token = TOKEN,
                                  .validity_ms = INT64_MIN,
                                  .elapsed_ms = INT64_MIN,
                                  .slot = resource,
                                  .slot_len = LIMIT_RESOURCE};
    snprintf(whole, sizeof(whole),
             "*6\r\n$2\r\nOK\r\n$40\r\n" TOKEN "\r\n:%ld\r\n:%ld\r\n$-1\r\n$256\r\n%.*s\r\n",
             (long)INT64_MIN, (long)INT64_MIN, LIMIT_RESOURCE, resource);
    assert_line(reply_format_resp(&granted, DIALECT_RESP2, buf), whole);
    const struct push push = {.kind = PUSH_WARN,
                              .resource = resource,
                              .resource_len = LIMIT_RESOURCE,
                              .token = TOKEN,
                              .node = name,
                              .reason = reason_word(REASON_DISCONNECTED)};
    snprintf(whole, sizeof(whole),
             ">4\r\n$4\r\nWARN\r\n$256\r\n%.*s\r\n$40\r\n" TOKEN "\r\n$45\r\n%s:disconnected\r\n",
             LIMIT_RESOURCE, resource, name);
    assert_line(reply_format_push_resp(&push, buf), whole);
}

TEST(resp_values_are_exact)
{
    struct text text = {.buf = buf, .size = sizeof(buf)};
    resp_array(&text, 0);
    resp_map(&text, DIALECT_RESP2, 3);
    resp_map(&text, DIALECT_RESP3, 3);
    resp_push(&text, 4);
    resp_bulk(&text, "a\r\n\0b", 5);
    resp_string(&text, "");
    resp_integer(&text, INT64_MIN);
    resp_null(&text, DIALECT_RESP2);
    resp_null(&text, DIALECT_RESP3);
    static const char expected[] = "*0\r\n*6\r\n%3\r\n>4\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n"
                                   ":-9223372036854775808\r\n$-1\r\n_\r\n";
    ck_assert_uint_eq(text.len, sizeof(expected) - 1);
    ck_assert_mem_eq(buf, expected, text.len);
}

/* --- numbers --- */

TEST(numbers_and_durations_are_exact)
{
    char room[256];
    struct text text = {.buf = room, .size = sizeof(room)};
    text_number(&text, INT64_MIN);
    text_string(&text, " ");
    text_number(&text, 0);
    text_string(&text, " ");
    text_duration(&text, 7200000 * NS_PER_MS);
    text_string(&text, " ");
    text_duration(&text, 90000 * NS_PER_MS);
    text_string(&text, " ");
    text_duration(&text, 120000 * NS_PER_MS);
    text_string(&text, " ");
    text_duration(&text, 1 * NS_PER_MS);
    text_quoted(&text, "a\"\x01long", 7, 3);
    ck_assert_uint_eq(text.len, strlen("-9223372036854775808 0 2h 90s 2m 1ms\"a\\x22\\x01...\""));
    ck_assert_mem_eq(room, "-9223372036854775808 0 2h 90s 2m 1ms\"a\\x22\\x01...\"", text.len);
}

/* --- the log --- */

static char log_buf[LOG_LINE_MAX];
static const int64_t wall_ns = 1795237200123456789;

TEST(text_log_line_has_time_level_event_and_fields)
{
    size_t len = log_format(CONFIG_LOG_TEXT, wall_ns, CONFIG_LOG_INFO, "listening",
                            LOG_FIELDS(log_text("address", "tcp://127.0.0.1:7335"),
                                       log_number("n", -5), log_text("why", "no luck")),
                            log_buf);
    const char *expected = "2026-11-21T05:00:00.123Z info listening "
                           "address=tcp://127.0.0.1:7335 n=-5 why=\"no luck\"\n";
    ck_assert_uint_eq(len, strlen(expected));
    ck_assert_mem_eq(log_buf, expected, len);
}

TEST(json_log_line_is_one_object)
{
    size_t len = log_format(CONFIG_LOG_JSON, wall_ns, CONFIG_LOG_ERROR, "x",
                            LOG_FIELDS(log_text("a", "b"), log_number("n", 1)), log_buf);
    const char *expected = "{\"time\":\"2026-11-21T05:00:00.123Z\",\"level\":\"error\","
                           "\"event\":\"x\",\"a\":\"b\",\"n\":1}\n";
    ck_assert_uint_eq(len, strlen(expected));
    ck_assert_mem_eq(log_buf, expected, len);
}

TEST(untrusted_bytes_cannot_forge_a_log_line)
{
    size_t len = log_format(CONFIG_LOG_TEXT, wall_ns, CONFIG_LOG_INFO, "x",
                            LOG_FIELDS(log_bytes("v", "a\nb\"\\\xff\0", 7)), log_buf);
    ck_assert_ptr_nonnull(memmem(log_buf, len, "v=\"a\\x0ab\\\"\\\\\\xff\\x00\"\n", 23));
    len = log_format(CONFIG_LOG_JSON, wall_ns, CONFIG_LOG_INFO, "x",
                     LOG_FIELDS(log_bytes("v", "\n\xff", 2)), log_buf);
    ck_assert_ptr_nonnull(memmem(log_buf, len, "\"v\":\"\\u000a\\u00ff\"}\n", 20));
}

TEST(json_log_line_keeps_valid_utf8)
{
    static const struct {
        const char *name;
        const char *written;
    } names[] = {
        {"caf\xc3\xa9", "\"v\":\"caf\xc3\xa9\"}\n"},
        {"\xe2\x98\x83\xf0\x9f\x94\x92", "\"v\":\"\xe2\x98\x83\xf0\x9f\x94\x92\"}\n"},
        /* Invalid UTF-8, half a character, and an encoded control character. */
        {"\xe9", "\"v\":\"\\u00e9\"}\n"},
        {"\xe2\x98", "\"v\":\"\\u00e2\\u0098\"}\n"},
        {"\xc2\x9b", "\"v\":\"\\u009b\"}\n"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = log_format(CONFIG_LOG_JSON, wall_ns, CONFIG_LOG_INFO, "x",
                                LOG_FIELDS(log_text("v", names[i].name)), log_buf);
        size_t written = strlen(names[i].written);
        ck_assert_uint_ge(len, written);
        ck_assert_mem_eq(log_buf + len - written, names[i].written, written);
    }
}

TEST(log_line_length_is_limited)
{
    char words[2 * LOG_LINE_MAX];
    memset(words, '\n', sizeof(words));
    struct log_field field = log_bytes("v", words, sizeof(words));
    size_t len =
        log_format(CONFIG_LOG_TEXT, wall_ns, CONFIG_LOG_INFO, "x",
                   LOG_FIELDS(field, field, field, field, field, field, field, field), log_buf);
    ck_assert_uint_le(len, LOG_LINE_MAX);
    ck_assert_int_eq(log_buf[len - 1], '\n');
    ck_assert_ptr_eq(memchr(log_buf, '\n', len), log_buf + len - 1);
}
