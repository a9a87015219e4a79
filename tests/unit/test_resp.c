/*
 * server/resp.h: what of a reply has a place, and what has none.
 */
#include <stdio.h>
#include <string.h>

#include "server/resp.h"
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

static const struct redis_reply *read_reply(const char *bytes)
{
    resp_feed(&resp, bytes, strlen(bytes));
    ck_assert_int_eq(resp_next(&resp), RESP_REPLY);
    return &resp.reply;
}

START_TEST(a_report_of_a_change_has_its_key)
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
END_TEST

/* Whatever a master says: what was there before is not taken for it. */
START_TEST(what_is_no_key_is_none)
{
    static const char *const insides[] = {":5\r\n", "$-1\r\n", "*1\r\n$1\r\nx\r\n", "*0\r\n",
                                          "*1\r\n*1\r\n$1\r\nx\r\n"};
    char bytes[256];
    for (size_t i = 0; i < sizeof(insides) / sizeof(insides[0]); i++) {
        read_reply("*3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n*1\r\n$9\r\nredlock:a\r\n");
        snprintf(bytes, sizeof(bytes), "*3\r\n$7\r\nmessage\r\n$4\r\nchan\r\n*1\r\n%s", insides[i]);
        const struct redis_reply *reply = read_reply(bytes);
        ck_assert_uint_eq(reply->nested_count, 1);
        ck_assert_ptr_null(reply->nested_str);
    }
    /* As the first of three, it is not the key either. */
    const struct redis_reply *reply = read_reply("*3\r\n*1\r\n$1\r\nx\r\n:1\r\n:2\r\n");
    ck_assert_int_eq(reply->items[0].kind, RESP_ARRAY);
    ck_assert_int_eq(reply->items[2].kind, RESP_INTEGER);
}
END_TEST

START_TEST(items_beyond_those_with_a_place_are_counted)
{
    const struct redis_reply *reply = read_reply("*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n$1\r\nx\r\n");
    ck_assert_uint_eq(reply->item_count, 5);
    ck_assert_int_eq(reply->items[2].integer, 3);
    reply = read_reply("*2\r\n:7\r\n$2\r\nab\r\n");
    ck_assert_uint_eq(reply->item_count, 2);
    ck_assert_mem_eq(reply->items[1].str, "ab", 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("resp");
    TCase *cases = tcase_create("resp");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_report_of_a_change_has_its_key);
    tcase_add_test(cases, what_is_no_key_is_none);
    tcase_add_test(cases, items_beyond_those_with_a_place_are_counted);
    suite_add_tcase(suite, cases);
    return suite;
}
