/*
 * Host names and their addresses (server/net/resolver.h).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "server/net/resolver.h"
#include "tests/nameserver.h"
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

/* Compares addresses without their ports. */
static bool is_at(const struct evutil_addrinfo *found_one, const struct resolved *where)
{
    const struct sockaddr_in *one = (const struct sockaddr_in *)(const void *)found_one->ai_addr;
    const struct sockaddr_in *other = (const struct sockaddr_in *)(const void *)&where->address;
    const struct sockaddr_in6 *one6 = (const struct sockaddr_in6 *)(const void *)found_one->ai_addr;
    const struct sockaddr_in6 *other6 = (const struct sockaddr_in6 *)(const void *)&where->address;
    if (one->sin_family != other->sin_family)
        return false;
    return one->sin_family == AF_INET
               ? one->sin_addr.s_addr == other->sin_addr.s_addr
               : memcmp(&one6->sin6_addr, &other6->sin6_addr, sizeof(one6->sin6_addr)) == 0;
}

/* Assert that resolver_choose() picks `chosen` of these addresses (NULL-terminated, in the order in
 * which they were found). The address `last` was tried before (NULL: none), and has failed or
 * not. */
static void expect(const char *const *texts, const char *last, bool failed, const char *chosen)
{
    const struct resolved none = {.len = 0};
    const struct resolved before = last != NULL ? read_address(last) : none;
    const struct resolved expected = read_address(chosen);
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
    ck_assert_msg(is_at(one, &expected), "last %s, failed %d: not %s", last != NULL ? last : "none",
                  failed, chosen);
}

TEST(addresses_take_turns_in_a_fixed_order)
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

TEST(address_that_did_not_fail_is_kept_while_the_name_has_it)
{
    static const char *const both[] = {"10.0.0.3", "10.0.0.7", NULL};
    static const char *const other[] = {"10.0.0.3", NULL};
    expect(both, "10.0.0.7", false, "10.0.0.7");
    expect(both, "10.0.0.3", false, "10.0.0.3");
    expect(other, "10.0.0.7", false, "10.0.0.3");
    expect(other, "10.0.0.1", false, "10.0.0.3");
}

TEST(single_address_is_chosen_after_every_failure)
{
    static const char *const one[] = {"10.0.0.3", NULL};
    expect(one, NULL, true, "10.0.0.3");
    expect(one, "10.0.0.3", true, "10.0.0.3");
    expect(one, "10.0.0.7", true, "10.0.0.3");
}

/* --- lookups --- */

static struct event_base *base;
static struct resolver resolver;
static struct name_lookup lookup;
static int server_fd;
static struct evdns_server_port *server;
static unsigned answers;

static void on_found(void *context, const struct evutil_addrinfo *addresses)
{
    const struct resolved here = read_address("127.0.0.1");
    ck_assert_ptr_eq(context, &answers);
    ck_assert_ptr_nonnull(addresses);
    ck_assert_uint_eq(resolver_count(addresses), 1);
    ck_assert(is_at(addresses, &here));
    answers++;
}

/* A resolver with one nameserver that does not answer yet. */
static void open_lookup(void)
{
    char address[32];
    int port;
    base = event_base_new();
    ck_assert(resolver_init(&resolver, base));
    server_fd = nameserver_open(&port);
    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    evdns_base_clear_nameservers_and_suspend(resolver.dns);
    ck_assert_int_eq(evdns_base_nameserver_ip_add(resolver.dns, address), 0);
    evdns_base_resume(resolver.dns);
    lookup = (struct name_lookup){.resolver = &resolver,
                                  .host = "somewhere.test",
                                  .port = 6379,
                                  .on_found = on_found,
                                  .context = &answers};
    answers = 0;
}

static void close_lookup(void)
{
    name_lookup_deinit(&lookup);
    resolver_settle(base);
    resolver_deinit(&resolver);
    evdns_close_server_port(server);
    event_base_free(base);
}

TEST(lookup_delivers_its_answer)
{
    open_lookup();
    name_lookup_begin(&lookup);
    ck_assert(name_lookup_has_more(&lookup));
    server = nameserver_start(base, server_fd);
    while (answers == 0)
        event_base_loop(base, EVLOOP_ONCE);
    ck_assert(!name_lookup_has_more(&lookup));
    close_lookup();
}

/* An answer that arrives after its lookup was given up is kept for the next lookup. Otherwise the
 * answers of a slow nameserver would never be used. */
TEST(late_answer_serves_the_next_lookup)
{
    open_lookup();
    name_lookup_begin(&lookup);
    name_lookup_leave(&lookup);
    server = nameserver_start(base, server_fd);
    while (lookup.query != NULL)
        event_base_loop(base, EVLOOP_ONCE);
    ck_assert_uint_eq(answers, 0);
    ck_assert(name_lookup_has_more(&lookup));
    name_lookup_begin(&lookup);
    ck_assert_uint_eq(answers, 1);
    ck_assert(!name_lookup_has_more(&lookup));
    /* An answer is used only once. */
    name_lookup_begin(&lookup);
    ck_assert_uint_eq(answers, 1);
    ck_assert_ptr_nonnull(lookup.query);
    close_lookup();
}

TEST(lookup_from_before_a_change_of_the_system_files_is_dropped)
{
    open_lookup();
    name_lookup_begin(&lookup);
    struct evdns_getaddrinfo_request *before = lookup.query;
    resolver.readings++;
    name_lookup_begin(&lookup);
    ck_assert_ptr_ne(lookup.query, before);
    server = nameserver_start(base, server_fd);
    while (answers == 0)
        event_base_loop(base, EVLOOP_ONCE);
    resolver_settle(base);
    ck_assert_uint_eq(answers, 1);
    close_lookup();
}
