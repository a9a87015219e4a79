#include "tests/unit/hold_fixture.h"

#include <check.h>
#include <stdio.h>

char token[LIMIT_TOKEN + 1];

void expect_push(const char *what, const char *reason)
{
    cluster_expect(&w, "! %s a %s %s", what, token, reason);
}

void hold(const char *line)
{
    cluster_submit(&w, "%s", line);
    snprintf(token, sizeof(token), "%s", cluster_token(cluster_take_reply(&w)));
    ck_assert_uint_eq(w.client.hold_count, 1);
}

void expect_held(void)
{
    ck_assert_uint_ge(cluster_count(&w, "a"), 3);
    for (unsigned i = 0; i < 5; i++)
        if (cluster_value(&w, i, "a") != NULL)
            ck_assert_str_eq(cluster_value(&w, i, "a"), token);
}

int64_t remaining_ttl_ms(void)
{
    int64_t remaining_ttl_ms = 0;
    for (unsigned i = 0; i < 5; i++) {
        const struct fake_key *key =
            fake_find(&w.masters[i].redis, "a", 1, cluster_clock_us(&w, i));
        int64_t left_ms = key != NULL ? key->ends_ms - cluster_clock_us(&w, i) / 1000 : 0;
        remaining_ttl_ms = left_ms > remaining_ttl_ms ? left_ms : remaining_ttl_ms;
    }
    return remaining_ttl_ms;
}
