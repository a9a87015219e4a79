/*
 * server/masters/resp.h: the parts of a reply that struct redis_reply has room for, and the parts
 * that are only counted.
 */
#include <hiredis/read.h>
#include <stdio.h>
#include <string.h>

#include "server/masters/resp.h"
#include "tests/replies.h"
#include "tests/runner.h"

static struct resp resp;

static void setup(void)
{
    ck_assert(resp_init(&resp));
}

static void teardown(void)
{
    resp_deinit(&resp);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

static const struct redis_reply *read_reply(const char *bytes)
{
    resp_feed(&resp, bytes, strlen(bytes));
    ck_assert_int_eq(resp_next(&resp), RESP_REPLY);
    return resp.reply;
}

TEST(tracking_message_has_its_key)
{
    const struct redis_reply *reply =
        read_reply("*3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n*1\r\n$9\r\nredlock:a\r\n");
    ck_assert_int_eq(reply->kind, RESP_ARRAY);
    ck_assert_uint_eq(reply->item_count, 3);
    ck_assert_mem_eq(reply->items[0].str, "message", 7);
    ck_assert_int_eq(reply->items[2].kind, RESP_ARRAY);
    ck_assert_uint_eq(reply->nested_count, 1);
    ck_assert_uint_eq(reply->nested_len, 9);
    ck_assert_mem_eq(reply->nested_str, "redlock:a", 9);
    reply = read_reply("*3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n*-1\r\n");
    ck_assert_int_eq(reply->items[2].kind, RESP_NIL);
    ck_assert_uint_eq(reply->nested_count, 0);
}

/* Unexpected content does not leave the key of the previous reply in place: a number, no string, an
 * empty array, and a string one or two arrays deeper than the key. */
TEST(other_nested_values_have_no_key)
{
    static const char *const insides[] = {":5\r\n", "$-1\r\n", "*0\r\n", "*1\r\n$1\r\nx\r\n",
                                          "*1\r\n*1\r\n$1\r\nx\r\n"};
    char bytes[256];
    for (size_t i = 0; i < sizeof(insides) / sizeof(insides[0]); i++) {
        read_reply("*3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n*1\r\n$9\r\nredlock:a\r\n");
        snprintf(bytes, sizeof(bytes), "*3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n*1\r\n%s", insides[i]);
        const struct redis_reply *reply = read_reply(bytes);
        ck_assert_uint_eq(reply->nested_count, 1);
        ck_assert_ptr_null(reply->nested_str);
    }
    /* If the first item is a nested array, the items after it keep their places. */
    const struct redis_reply *reply = read_reply("*3\r\n*1\r\n$1\r\nx\r\n:1\r\n:2\r\n");
    ck_assert_int_eq(reply->items[0].kind, RESP_ARRAY);
    ck_assert_int_eq(reply->items[1].integer, 1);
    ck_assert_int_eq(reply->items[2].kind, RESP_INTEGER);
    ck_assert_int_eq(reply->items[2].integer, 2);
}

TEST(items_without_room_are_counted)
{
    const struct redis_reply *reply = read_reply("*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n$1\r\nx\r\n");
    ck_assert_uint_eq(reply->item_count, 5);
    ck_assert_int_eq(reply->items[2].integer, 3);
    reply = read_reply("*2\r\n:7\r\n$2\r\nab\r\n");
    ck_assert_uint_eq(reply->item_count, 2);
    ck_assert_mem_eq(reply->items[1].str, "ab", 2);
}

/* A partial reply on the old connection must not count as the beginning of a reply on the new
 * one. */
TEST(new_connection_starts_with_an_empty_reader)
{
    const char *begin = "*3\r\n*1\r\n$1\r\nx\r\n*1\r\n$9\r\nredlock:a\r\n$9\r\nredl";
    resp_feed(&resp, begin, strlen(begin));
    ck_assert_int_eq(resp_next(&resp), RESP_MORE);
    ck_assert(resp_reset(&resp));
    const struct redis_reply *reply = read_reply("*2\r\n:1\r\n*1\r\n:2\r\n");
    ck_assert_ptr_null(reply->nested_str);
    ck_assert_uint_eq(resp.text_len, 0);
    ck_assert_int_eq(read_reply("+OK\r\n")->kind, RESP_STATUS);
    ck_assert_int_eq(read_reply("+OK\r\n+OK\r\n+OK\r\n")->kind, RESP_STATUS);
    ck_assert_uint_eq(resp.repeats, 2);
    ck_assert(resp_reset(&resp));
    ck_assert_int_eq(resp_next(&resp), RESP_MORE);
}

/* Feed the bytes in two pieces, and compare each reply with that of hiredis. */
static void split_at(const char *bytes, size_t at, unsigned expected)
{
    struct resp twin;
    unsigned count = 0;
    ck_assert(resp_init(&twin));
    enum replies_compared compared = replies_compare(&resp, &twin, bytes, at, &count);
    if (compared == REPLIES_SAME)
        compared = replies_compare(&resp, &twin, bytes + at, strlen(bytes) - at, &count);
    ck_assert_int_ne(compared, REPLIES_DIFFER);
    ck_assert_uint_eq(count, expected);
    resp_deinit(&twin);
    ck_assert(resp_reset(&resp));
}

/* resp.c recognizes the most frequent replies by comparing their bytes, without hiredis. The
 * results must equal those of hiredis wherever the bytes are split. */
TEST(replies_recognized_by_their_bytes_equal_those_of_hiredis)
{
    static const struct {
        const char *bytes;
        unsigned replies;
    } rows[] = {
        {"+OK\r\n:-3\r\n:-2\r\n$-1\r\n", 4},
        {"+OK\r\n:-4\r\n+OK\r\n:-12\r\n:-2\r\n:1\r\n$-1\r\n", 7},
        {"+OK\r\n+OK\r\n+OK\r\n+OK\r\n$-1\r\n$-1\r\n:-3\r\n+OK\r\n+OK\r\n", 9},
        {"*4\r\n+OK\r\n:-3\r\n:-2\r\n$-1\r\n+OK\r\n", 2},
        {"*2\r\n*1\r\n$-1\r\n:-3\r\n:-2\r\n", 2},
        {"$5\r\n+OK\r\n\r\n:-3\r\n$0\r\n\r\n$-1\r\n", 4},
        {"$12\r\n$-1\r\n:-3\r\n:-\r\n:-2\r\n", 2},
        {"-ERR no\r\n+OK\r\n+OKAY\r\n+O\r\n+ok\r\n$-1\r\n", 6},
        {"*-1\r\n$-1\r\n*0\r\n:-3\r\n", 4},
        {"+OK\r\n?\r\n+OK\r\n", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t at = 0; at <= strlen(rows[i].bytes); at++)
            split_at(rows[i].bytes, at, rows[i].replies);
}

/* Bytes that have been read stay in the buffer of hiredis until its parser is called again. Replies
 * that are recognized without hiredis must not pile up in that buffer. */
TEST(recognized_replies_leave_no_bytes_in_the_reader)
{
    for (unsigned i = 0; i < 10000; i++) {
        read_reply(i % 3 == 0 ? "+OK\r\n" : ":-3\r\n");
        if (i % 100 == 0)
            ck_assert_int_eq(resp_next(&resp), RESP_MORE);
        ck_assert_uint_lt(resp.reader->len, 2048);
    }
}
