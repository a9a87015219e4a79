/*
 * The default TTL of `redlock`, shortened to the limit that the daemon names
 * (client/cli/retry_policy.h).
 */
#include "client/cli/retry_policy.h"
#include "tests/runner.h"

TEST(ttl_is_shortened_to_the_limit_in_the_error)
{
    static const struct {
        const char *message;
        int64_t ttl_ms; /* 30000: unchanged */
    } rows[] = {
        {"redlockd rejected the request: ttl-range TTL 30s must be between 13ms and 10s", 10000},
        {"redlockd rejected the request: ttl-range TTL 30s must be between 13ms and 10s.", 10000},
        {"ttl-range TTL must be between 13ms and 10s", 10000},
        {"ttl-range TTL 30s with HOLD must be between 186ms and 1500ms", 1500},
        {"ttl-range HOLD needs a TTL of at least 186ms, but max_ttl is 100ms; lock without HOLD",
         100},
        {"ttl-range TTL 3ms must be between 13ms and 1m", 30000},
        {"ttl-range TTL 3ms must be between 13ms and 30s", 30000},
        {"ttl-range", 30000},
        {"ttl-range 0s 5 7x", 30000},
        {"wait-range WAIT 25h must be at most 10s", 30000},
        {"", 30000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ttl_ms = 30000;
        bool shortened = ttl_shorten(rows[i].message, &ttl_ms);
        ck_assert_msg(ttl_ms == rows[i].ttl_ms, "%s: %lld", rows[i].message, (long long)ttl_ms);
        ck_assert_int_eq(shortened, ttl_ms != 30000);
    }
}
