/*
 * config/url.h: which addresses are valid, for which use, and which are equal.
 */
#include <stdio.h>
#include <string.h>

#include "config/url.h"
#include "tests/runner.h"

static const struct {
    const char *url;
    const char *as_listen; /* the error; "" if the address is valid */
    const char *as_node;
} addresses[] = {
    {"tcp://127.0.0.1:1", "",
     "is not a redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"redis://h",
     "is not a tcp:// address; write tcp://127.0.0.1:7335 or "
     "unix:/run/redlockd/redlockd.sock",
     ""},
    {"10.0.0.1:6379",
     "is not a tcp:// address; write tcp://127.0.0.1:7335 or "
     "unix:/run/redlockd/redlockd.sock",
     "is not a redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"tls://127.0.0.1:1", "",
     "is not a redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"rediss://h",
     "is not a tcp:// address; write tcp://127.0.0.1:7335 or "
     "unix:/run/redlockd/redlockd.sock",
     ""},
    {"tls://127.0.0.1", "has no port; write tls://127.0.0.1:7337",
     "is not a redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"unix:/a@b", "", ""},
    {"unix:///a", "", ""},
    {"unix:a", "has no absolute path; write unix:/run/redlockd/redlockd.sock",
     "has no absolute path; write unix:/run/redis/redis.sock"},
    {"unix:/a b", "must not contain spaces or control characters in its path",
     "must not contain spaces or control characters in its path"},
    {"unix:", "has no absolute path; write unix:/run/redlockd/redlockd.sock",
     "has no absolute path; write unix:/run/redis/redis.sock"},
    {"unix://a", "has no absolute path; write unix:/run/redlockd/redlockd.sock",
     "has no absolute path; write unix:/run/redis/redis.sock"},
};

TEST_ROWS(address_is_valid_only_for_its_use, addresses)
{
    struct config_address address;
    struct error error = {""};
    bool valid = url_parse(addresses[_i].url, URL_LISTEN, &address, &error);
    ck_assert_str_eq(valid ? "" : error.text, addresses[_i].as_listen);
    url_free(&address);
    valid = url_parse(addresses[_i].url, URL_NODE, &address, &error);
    ck_assert_str_eq(valid ? "" : error.text, addresses[_i].as_node);
    url_free(&address);
}

TEST(client_library_refuses_tls_with_advice)
{
    struct address address;
    struct error error = {""};
    ck_assert(!address_parse("tls://127.0.0.1:7337", URL_DAEMON, &address, &error));
    ck_assert_str_eq(error.text, "requires TLS, which this library does not support; use a unix "
                                 "socket of a redlockd on this host, or the tcp:// address of a "
                                 "TLS proxy on it (stunnel)");
}

/* The text follows "tcp://" in a listen address. */
static const struct {
    const char *text;
    const char *error_text;
} hosts[] = {
    {"127.0.0.1", "has no port; write tcp://127.0.0.1:7335"},
    {"127.0.0.1:", "has an invalid port; write 1 to 65535"},
    {"127.0.0.1:0", "has an invalid port; write 1 to 65535"},
    {"127.0.0.1:65536", "has an invalid port; write 1 to 65535"},
    {"127.0.0.1:70000", "has an invalid port; write 1 to 65535"},
    {"127.0.0.1:http", "has an invalid port; write 1 to 65535"},
    {"127.0.0.1:65535", ""},
    {"127.0.0.1:1/", ""},
    {"127.0.0.1:1/0", "has text after the port; remove it"},
    {":7335", "has no host; write 127.0.0.1 for this host only, 0.0.0.0 for all interfaces"},
    {"*:7335", "has a host that is neither a name nor an address; write tcp://127.0.0.1:7335"},
    {"a b:7335", "has a host that is neither a name nor an address; write tcp://127.0.0.1:7335"},
    {"127.0.0.256:1", "has an invalid IPv4 address; write tcp://127.0.0.1:7335"},
    {"::1:7335", "has an IPv6 address without brackets; write tcp://[::1]:7335"},
    {"[::1:7335", "has no ] after the IPv6 address; write tcp://[::1]:7335"},
    {"[::1]", "has no port; write tcp://127.0.0.1:7335"},
    {"[::1]7335", "has text other than a port after the ]; write tcp://[::1]:7335"},
    {"[::g]:1", "has an invalid IPv6 address in the brackets; write tcp://[::1]:7335"},
    {"[]:1", "has an invalid IPv6 address in the brackets; write tcp://[::1]:7335"},
    {"[fe80::1%eth0]:1", ""},
    {"[fe80::1%2]:1", ""},
    {"[FE80:0::1%br-lan.7_a]:1", ""},
    {"[fe80::1%]:1", "has no interface name after the %; write [fe80::1%eth0]"},
    {"[fe80::1%eth0%1]:1", "has no interface name after the %; write [fe80::1%eth0]"},
    {"[fe80::1%e 0]:1", "has no interface name after the %; write [fe80::1%eth0]"},
    {"[fe80::1%an-interface-too-long]:1",
     "has no interface name after the %; write [fe80::1%eth0]"},
    {"[::1%lo]:1", "has a zone, but only link-local addresses (fe80::) have one; write "
                   "tcp://[::1]:7335"},
    {"[%eth0]:1", "has an invalid IPv6 address in the brackets; write tcp://[::1]:7335"},
    {"me:secret@h:1", "contains a user name or a password; write tcp://127.0.0.1:7335"},
};

TEST_ROWS(host_and_port_are_read_or_refused, hosts)
{
    char url[128];
    struct config_address address;
    struct error error = {""};
    snprintf(url, sizeof(url), "tcp://%s", hosts[_i].text);
    bool valid = url_parse(url, URL_LISTEN, &address, &error);
    ck_assert_str_eq(valid ? "" : error.text, hosts[_i].error_text);
    url_free(&address);
}

TEST(database_is_a_number_after_the_host)
{
    struct config_address address;
    struct error error;
    ck_assert(url_parse("redis://h:1/9999", URL_NODE, &address, &error));
    ck_assert_uint_eq(address.database, 9999);
    url_free(&address);
    ck_assert(!url_parse("redis://h/10000", URL_NODE, &address, &error));
    ck_assert_str_eq(error.text, "must have a database number after the /; write 0 to 9999");
    url_free(&address);
    ck_assert(!url_parse("redis://h/x", URL_NODE, &address, &error));
    url_free(&address);
}

TEST(socket_path_length_is_limited)
{
    char url[256] = "unix:/";
    struct config_address address;
    struct error error;
    memset(url + 6, 'p', 106);
    ck_assert(url_parse(url, URL_NODE, &address, &error));
    ck_assert_uint_eq(strlen(address.path), 107);
    url_free(&address);
    url[112] = 'p';
    ck_assert(!url_parse(url, URL_NODE, &address, &error));
    ck_assert_str_eq(error.text,
                     "has a path of 108 bytes; the path of a unix socket has at most 107");
    url_free(&address);
}

TEST(local_addresses_are_recognized)
{
    static const struct {
        const char *url;
        bool local;
    } rows[] = {{"tcp://127.0.0.1:1", true},
                {"tcp://127.9.9.9:1", true},
                {"tcp://LocalHost:1", true},
                {"tcp://[::1]:1", true},
                {"unix:/a", true},
                {"tcp://10.0.0.1:1", false},
                {"tcp://[fd00::1]:1", false},
                {"tcp://example:1", false},
                {"tcp://0.0.0.0:1", false},
                {"tcp://[::]:1", false},
                {"tcp://126.0.0.1:1", false},
                {"tcp://128.0.0.1:1", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_address address;
        struct error error;
        ck_assert(url_parse(rows[i].url, URL_LISTEN, &address, &error));
        ck_assert_int_eq(url_is_local(&address), rows[i].local);
        url_free(&address);
    }
}

TEST(addresses_of_the_same_endpoint_are_equal)
{
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } rows[] = {
        {"tcp://h:1", "tcp://H:1", true},
        {"tcp://h:1", "tcp://h:2", false},
        {"tcp://h:1", "tcp://i:1", false},
        {"tcp://[::1]:1", "tcp://[0:0::1]:1", true},
        {"tcp://[fe80::1%eth0]:1", "tcp://[FE80:0::1%eth0]:1", true},
        {"tcp://[fe80::1%eth0]:1", "tcp://[fe80::1%eth1]:1", false},
        {"unix:/a", "unix:///a", true},
        {"unix:/a", "unix:/A", false},
        {"unix:/a", "tcp://h:1", false},
        {"tcp://h:1", "unix:/a", false},
        {"tcp://h", "tcp://h", false /* incomplete addresses are never equal */},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_address a;
        struct config_address b;
        struct error error;
        (void)url_parse(rows[i].a, URL_LISTEN, &a, &error);
        (void)url_parse(rows[i].b, URL_LISTEN, &b, &error);
        ck_assert_int_eq(url_equal(&a, &b), rows[i].equal);
        url_free(&a);
        url_free(&b);
    }
}
