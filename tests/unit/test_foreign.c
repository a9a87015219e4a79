/*
 * Clients that speak another protocol (protocol/foreign.h).
 */
#include <string.h>

#include "protocol/foreign.h"
#include "protocol/limits.h"
#include "tests/runner.h"

enum kind { OURS, HTTP, TLS, PROXY };

static const struct {
    const char *bytes;
    size_t len; /* 0: bytes is a string */
    enum kind kind;
} rows[] = {
    {"GET / HTTP/1.1\r\nHost: a\r\n", 0, HTTP},
    {"GET / HTTP/1.1\n", 0, HTTP},
    {"POST /x HTTP/1.0\r\n", 0, HTTP},
    {"#1 /x HTTP/1.1\r\n", 0, HTTP}, /* "#1" is a method that a web page can choose */
    {"PRI * HTTP/2.0\r\n", 0, HTTP},
    {"LOCK /file HTTP/1.1\r\n", 0, HTTP}, /* WebDAV has a LOCK verb */
    {"GET / HTTP/1.1", 0, OURS},          /* the line may continue */
    {"GET /\n", 0, OURS},
    {"HTTP/1.1\n", 0, OURS},
    {"\n", 0, OURS},
    {"", 0, OURS},
    /* A resource may have any name. */
    {"STATUS HTTP/x\n", 0, OURS},
    {"STATUS HTTP/1.1\n", 0, OURS},
    {"#1 STATUS HTTP/1.1\n", 0, OURS},
    {"STATUS a/HTTP/1.1\n", 0, OURS},
    {"LOCK HTTP/1.1 30s\n", 0, OURS},
    {"LOCKS HTTP/1.1\r\n", 0, OURS},
    {"\x16\x03\x01", 0, TLS},
    {"\x16", 0, TLS},
    {"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nPING\n", 0, PROXY},
    {"PROXY UNKNOWN\r\n", 0, PROXY},
    {"PROXY ", 0, PROXY},
    {"PROXY\n", 0, OURS},
    {"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", 16, PROXY},
    {"\r\n\r\nPING\n", 0, OURS},
};

TEST_ROWS(other_protocols_are_recognized_by_their_first_bytes, rows)
{
    static const char *const words[] = {"", "HTTP", "TLS", "PROXY"};
    const char *bytes = rows[_i].bytes;
    const char *why = foreign_protocol(bytes, rows[_i].len > 0 ? rows[_i].len : strlen(bytes));
    if (rows[_i].kind == OURS)
        ck_assert_msg(why == NULL, "%s is taken for another protocol: %s", bytes, why);
    else
        ck_assert_msg(why != NULL && strstr(why, words[rows[_i].kind]) != NULL, "%s: %s", bytes,
                      why != NULL ? why : "ours");
}

/* A web page chooses the path or the method, and so the length of the line. */
TEST(a_line_that_is_too_long_can_be_http)
{
    static const struct {
        const char *begin;
        enum kind kind;
    } lines[] = {
        {"POST /", HTTP}, {"#1 /", HTTP}, {"", HTTP}, {"LOCK a", OURS}, {"NAME  ", OURS},
    };
    char bytes[LIMIT_LINE];
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        memset(bytes, 'x', sizeof(bytes));
        memcpy(bytes, lines[i].begin, strlen(lines[i].begin));
        const char *why = foreign_protocol(bytes, LIMIT_LINE);
        ck_assert_msg((why != NULL) == (lines[i].kind == HTTP), "%s", lines[i].begin);
        ck_assert_ptr_null(foreign_protocol(bytes, LIMIT_LINE - 1));
    }
    memset(bytes, 'x', sizeof(bytes));
    bytes[LIMIT_LINE - 1] = ' ';
    ck_assert_ptr_nonnull(foreign_protocol(bytes, LIMIT_LINE));
}
