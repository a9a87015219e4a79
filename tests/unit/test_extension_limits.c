/*
 * engine/locks/extension_limits.h: the limits on extensions of one token.
 */
#include "engine/locks/extension_limits.h"

#include <stdio.h>

#include "protocol/limits.h"
#include "protocol/units.h"
#include "tests/runner.h"

static const struct engine_rules rules = {.max_extensions = 2, .max_hold_ns = 100 * NS_PER_S};
static struct extension_limits limits;

static void open_table(void)
{
    ck_assert(extension_limits_init(&limits, &rules));
}

static void close_table(void)
{
    extension_limits_deinit(&limits);
}

const struct runner_settings runner_settings = {.setup = open_table, .teardown = close_table};

static const char *token(unsigned number)
{
    static char text[LIMIT_TOKEN + 1];
    snprintf(text, sizeof(text), "%040u", number);
    return text;
}

static const char *refused(unsigned number, int64_t ttl_s, int64_t now_s)
{
    const char *limit =
        extension_limits_refuse(&limits, token(number), ttl_s * NS_PER_S, now_s * NS_PER_S);
    return limit != NULL ? limit : "-";
}

TEST(number_of_extensions_is_limited)
{
    ck_assert_str_eq(refused(1, 10, 0), "-");
    extension_limits_count(&limits, token(1), 0);
    ck_assert_str_eq(refused(1, 10, 0), "-");
    extension_limits_count(&limits, token(1), 0);
    ck_assert_str_eq(refused(1, 10, 0), "extensions");
    ck_assert_str_eq(refused(2, 10, 0), "-");
}

TEST(time_counts_from_the_first_extension)
{
    ck_assert_str_eq(refused(1, 101, 7), "hold");
    ck_assert_str_eq(refused(1, 100, 7), "-");
    extension_limits_count(&limits, token(1), 7 * NS_PER_S);
    ck_assert_str_eq(refused(1, 10, 97), "-");
    ck_assert_str_eq(refused(1, 11, 97), "hold");
}

TEST(forgotten_token_starts_counting_again)
{
    extension_limits_count(&limits, token(1), 0);
    extension_limits_count(&limits, token(1), 0);
    extension_limits_forget(&limits, token(1));
    extension_limits_forget(&limits, token(1));
    ck_assert_str_eq(refused(1, 10, 0), "-");
    ck_assert_uint_eq(limits.pool.in_use, 0);
}

TEST(token_with_a_pending_release_is_not_extended)
{
    extension_limits_count(&limits, token(1), 0);
    ck_assert(!extension_limits_ended(&limits, token(1)));
    extension_limits_end(&limits, token(1), 0);
    /* An extension that was in flight succeeds after the token has ended. */
    extension_limits_count(&limits, token(1), 0);
    ck_assert(extension_limits_ended(&limits, token(1)));
    extension_limits_end(&limits, token(2), 0);
    ck_assert(extension_limits_ended(&limits, token(2)));
    ck_assert(!extension_limits_ended(&limits, token(3)));
    extension_limits_forget(&limits, token(1));
    extension_limits_count(&limits, token(1), 0);
    ck_assert(!extension_limits_ended(&limits, token(1)));
}

TEST(full_table_evicts_the_token_extended_longest_ago)
{
    for (unsigned i = 0; i < LIMIT_EXTENDED; i++)
        extension_limits_count(&limits, token(i), 0);
    extension_limits_count(&limits, token(0), 0);
    ck_assert_str_eq(refused(0, 10, 0), "extensions");
    extension_limits_count(&limits, token(LIMIT_EXTENDED), 0);
    ck_assert_uint_eq(limits.pool.in_use, LIMIT_EXTENDED);
    ck_assert_str_eq(refused(0, 10, 0), "extensions");
    ck_assert_str_eq(refused(1, 99, 90), "-");
    ck_assert_str_eq(refused(2, 99, 90), "hold");
}

TEST(full_table_evicts_tokens_with_pending_releases_last)
{
    for (unsigned i = 0; i < LIMIT_EXTENDED; i++)
        extension_limits_count(&limits, token(i), 0);
    extension_limits_end(&limits, token(0), 0);
    extension_limits_count(&limits, token(LIMIT_EXTENDED), 0);
    ck_assert(extension_limits_ended(&limits, token(0)));
}
