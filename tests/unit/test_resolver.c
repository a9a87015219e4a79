/*
 * Which of the addresses of a name to connect to: see server/resolver.h.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "server/resolver.h"
#include "tests/runner.h"

enum { FOUND_MAX = 4 };

static struct resolved given[FOUND_MAX];
static struct evutil_addrinfo found[FOUND_MAX];

static struct resolved read_address(const char *text)
{
    struct resolved resolved = {.len = 0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&resolved.address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&resolved.address;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        resolved.len = sizeof(*v4);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
        resolved.len = sizeof(*v6);
    }
    return resolved;
}

/* Of these, in the order in which they were found, up to a NULL. */
static void expect(const char *const *texts, const char *last, bool failed, const char *chosen)
{
    const struct resolved none = {.len = 0};
    const struct resolved before = last != NULL ? read_address(last) : none;
    const struct resolved wanted = read_address(chosen);
    for (size_t i = 0; texts[i] != NULL; i++) {
        ck_assert_uint_lt(i, FOUND_MAX);
        given[i] = read_address(texts[i]);
        found[i] = (struct evutil_addrinfo){.ai_addr = (struct sockaddr *)&given[i].address,
                                            .ai_addrlen = given[i].len};
        if (i > 0)
            found[i - 1].ai_next = &found[i];
    }
    const struct evutil_addrinfo *one = resolver_choose(found, &before, failed);
    ck_assert_ptr_nonnull(one);
    ck_assert_msg(memcmp(one->ai_addr, &wanted.address, wanted.len) == 0,
                  "last %s, failed %d: not %s", last != NULL ? last : "none", failed, chosen);
}

START_TEST(each_has_its_turn_whatever_the_order_they_were_found_in)
{
    static const char *const orders[][FOUND_MAX] = {{"::1", "10.0.0.7", "10.0.0.3", NULL},
                                                    {"10.0.0.3", "::1", "10.0.0.7", NULL}};
    for (size_t i = 0; i < 2; i++) {
        expect(orders[i], NULL, true, "10.0.0.3");
        expect(orders[i], "10.0.0.3", true, "10.0.0.7");
        expect(orders[i], "10.0.0.7", true, "::1");
        expect(orders[i], "::1", true, "10.0.0.3");
    }
}
END_TEST

START_TEST(one_that_did_not_fail_is_kept_while_the_name_has_it)
{
    static const char *const both[] = {"10.0.0.3", "10.0.0.7", NULL};
    static const char *const other[] = {"10.0.0.3", NULL};
    expect(both, "10.0.0.7", false, "10.0.0.7");
    expect(both, "10.0.0.3", false, "10.0.0.3");
    expect(other, "10.0.0.7", false, "10.0.0.3");
    expect(other, "10.0.0.1", false, "10.0.0.3");
}
END_TEST

START_TEST(a_name_with_one_address_has_no_other)
{
    static const char *const one[] = {"10.0.0.3", NULL};
    expect(one, NULL, true, "10.0.0.3");
    expect(one, "10.0.0.3", true, "10.0.0.3");
    expect(one, "10.0.0.7", true, "10.0.0.3");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("resolver");
    TCase *tests = tcase_create("choice");
    tcase_add_test(tests, each_has_its_turn_whatever_the_order_they_were_found_in);
    tcase_add_test(tests, one_that_did_not_fail_is_kept_while_the_name_has_it);
    tcase_add_test(tests, a_name_with_one_address_has_no_other);
    suite_add_tcase(suite, tests);
    return suite;
}
