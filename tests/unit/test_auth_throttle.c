/*
 * The auth throttle: which client addresses share a limit, and how many wrong secrets each may try.
 */
#include <string.h>

#include "server/clients/auth_throttle.h"
#include "tests/runner.h"

#define S INT64_C(1000000000)

static struct auth_throttle auth_throttle;

static struct client_address host(unsigned char last)
{
    const unsigned char address[4] = {10, 0, 0, last};
    return client_address_of_ipv4(address);
}

static void begin(void)
{
    auth_throttle_init(&auth_throttle, 42);
}

const struct runner_settings runner_settings = {.setup = begin};

/* --- client addresses --- */

static bool same(struct client_address a, struct client_address b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

TEST(addresses_of_one_client_are_equal)
{
    unsigned char one[16] = {0xfd, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
    unsigned char same_network[16] = {0xfd, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9};
    unsigned char other[16] = {0xfd, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1};
    unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7};
    ck_assert(same(client_address_of_ipv6(one), client_address_of_ipv6(same_network)));
    ck_assert(!same(client_address_of_ipv6(one), client_address_of_ipv6(other)));
    ck_assert(same(client_address_of_ipv6(mapped), host(7)));
    ck_assert(!same(host(7), host(8)));
    ck_assert(same(client_address_of_user(1000), client_address_of_user(1000)));
    ck_assert(!same(client_address_of_user(1000), client_address_of_user(1001)));
}

/* --- auth throttle --- */

TEST(auth_throttle_allows_a_burst_and_then_one_try_per_second)
{
    struct client_address client_address = host(1);
    int64_t now_ns = 1000 * S;
    for (uint64_t i = 1; i <= AUTH_THROTTLE_BURST; i++) {
        ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &client_address, now_ns), 0);
        enum auth_throttle_news news =
            auth_throttle_note(&auth_throttle, &client_address, i, now_ns);
        ck_assert_int_eq(news, i == 1                     ? AUTH_THROTTLE_FIRST
                               : i == AUTH_THROTTLE_BURST ? AUTH_THROTTLE_SPENT
                                                          : AUTH_THROTTLE_NOTHING);
    }
    ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &client_address, now_ns), S);
    ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &client_address, now_ns + S - 1), 1);
    ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &client_address, now_ns + S), 0);
    auth_throttle_note(&auth_throttle, &client_address, 100, now_ns + S);
    ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &client_address, now_ns + S), S);
    /* After a quiet time the whole burst is available again. */
    now_ns += 100 * S;
    ck_assert_int_eq(auth_throttle_note(&auth_throttle, &client_address, 101, now_ns),
                     AUTH_THROTTLE_FIRST);
    for (uint64_t i = 1; i < AUTH_THROTTLE_BURST; i++) {
        ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &client_address, now_ns), 0);
        auth_throttle_note(&auth_throttle, &client_address, 200 + i, now_ns);
    }
    ck_assert_int_gt(auth_throttle_wait_ns(&auth_throttle, &client_address, now_ns), 0);
}

TEST(wrong_secrets_from_one_address_do_not_throttle_another)
{
    struct client_address guilty = host(1);
    struct client_address innocent = host(2);
    for (uint64_t i = 1; i <= 3 * AUTH_THROTTLE_BURST; i++)
        auth_throttle_note(&auth_throttle, &guilty, i, S);
    ck_assert_int_gt(auth_throttle_wait_ns(&auth_throttle, &guilty, S), 0);
    ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &innocent, S), 0);
}

/* The throttle remembers the last AUTH_THROTTLE_SEEN wrong secrets of an address. A misconfigured
 * client that repeats them does not use up its burst. */
TEST(repeating_a_wrong_secret_costs_nothing)
{
    struct client_address client_address = host(1);
    for (unsigned i = 0; i < 10 * AUTH_THROTTLE_BURST; i++) {
        auth_throttle_note(&auth_throttle, &client_address, 1 + i % AUTH_THROTTLE_SEEN, S);
        ck_assert_int_eq(auth_throttle_wait_ns(&auth_throttle, &client_address, S), 0);
    }
    for (uint64_t i = 10; i < 10 + AUTH_THROTTLE_BURST - AUTH_THROTTLE_SEEN; i++)
        auth_throttle_note(&auth_throttle, &client_address, i, S);
    ck_assert_int_gt(auth_throttle_wait_ns(&auth_throttle, &client_address, S), 0);
}

/* Many addresses with a wrong secret or two each do not evict an address that has used up its
 * burst. */
TEST(addresses_with_the_most_wrong_secrets_are_kept_longest)
{
    struct client_address worst = host(1);
    for (uint64_t i = 1; i <= AUTH_THROTTLE_BURST; i++)
        auth_throttle_note(&auth_throttle, &worst, i, S);
    for (uint32_t uid = 0; uid < 20 * LIMIT_AUTH_THROTTLES; uid++) {
        struct client_address other = client_address_of_user(uid);
        auth_throttle_note(&auth_throttle, &other, 1, S + 1);
    }
    ck_assert_int_gt(auth_throttle_wait_ns(&auth_throttle, &worst, S + 1), 0);
}
