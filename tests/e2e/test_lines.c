/*
 * The line protocol, byte by byte: limits, errors, line ends, and segmentation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/stage.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};

static struct stage stage;

static void setup(void)
{
    stage_open(&stage, runner_test_name, &three);
}

static void teardown(void)
{
    stage_close(&stage);
}

const struct runner_settings runner_settings = {.setup = setup, .teardown = teardown};

enum { LINE_MAX = 2048 };

/* --- errors --- */

struct wrong {
    const char *line;
    const char *reply;
};

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

static const struct wrong wrong[] = {
    {"LOCK a\x01 10s", "ERR bad-byte .*"},
    {"LOCK\ta 10s", "ERR bad-byte .*"},
    {"PING \x7f", "ERR bad-byte .*"},
    {"# PING", "ERR bad-tag .*"},
    {"#a/b PING", "ERR bad-tag .*"},
    {"#123456789012345678901234567890123 PING", "ERR bad-tag .*"},
    {"FLY me to the moon", "ERR unknown-verb .*"},
    {"LOCKS2", "ERR unknown-verb .*"},
    {"LOCK", "ERR bad-arguments .*"},
    {"LOCK a", "ERR bad-arguments .*"},
    {"LOCK a 1s b", "ERR bad-arguments .*"},
    {"UNLOCK a", "ERR bad-arguments .*"},
    {"EXTEND a " TOKEN, "ERR bad-arguments .*"},
    {"STATUS", "ERR bad-arguments .*"},
    {"PING PONG", "ERR bad-arguments .*"},
    {"NAME a/b", "ERR bad-arguments .*"},
    {"LOCK a 1s WAIT", "ERR bad-arguments WAIT needs a time, for example WAIT 30s"},
    {"LOCK a 1s FENCE 1", "ERR bad-arguments LOCK option \"1\" is unknown; LOCK takes .*"},
    {"LOCK a 1s WAIT soon", "ERR bad-time .*"},
    {"LOCK a 1s WAIT 25h", "ERR wait-range WAIT 25h must be at most 24h"},
    {"LOCK a 1s HOLD", "ERR ttl-range TTL 1s with HOLD must be between [0-9]+ms and 1m"},
    {"AUTH", "ERR bad-arguments AUTH takes <secret>"},
    {"LOCKS a b", "ERR bad-arguments LOCKS takes \\[<resource>\\]"},
    {"UNLOCK a 123", "ERR bad-token .*"},
    {"UNLOCK a 0123456789ABCDEF0123456789ABCDEF01234567", "ERR bad-token .*"},
    {"EXTEND a " TOKEN "8 1s", "ERR bad-token .*"},
    {"LOCK a soon", "ERR bad-time .*"},
    {"LOCK a 1.5s", "ERR bad-time .*"},
    {"LOCK a -1s", "ERR bad-time .*"},
    {"LOCK a +1s", "ERR bad-time .*"},
    {"LOCK a 10d", "ERR bad-time .*"},
    {"LOCK a 1234567890123456", "ERR ttl-range .*"},
    {"LOCK a 999999999999999h", "ERR ttl-range .*"},
    {"LOCK a 0", "ERR ttl-range .*"},
    {"LOCK a 1ms", "ERR ttl-range .*"},
    {"LOCK a 2h", "ERR ttl-range .*"},
    {"EXTEND a " TOKEN " 2h", "ERR ttl-range .*"},
};

TEST(a_connection_survives_each_error)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        client_expect_match(&stage.client, wrong[i].reply, "%s", wrong[i].line);
        client_expect(&stage.client, "PONG", "PING");
    }
    ck_assert_int_eq(masters_keys(stage.masters, 3), 0);
}

TEST(an_error_has_the_tag_of_its_request)
{
    client_expect_match(&stage.client, "#t1 ERR unknown-verb .*", "#t1 FLY");
    client_expect_match(&stage.client, "#t1 ERR bad-time .*", "#t1 LOCK a soon");
    client_expect_match(&stage.client, "#t1 ERR bad-byte .*", "#t1 PING \x01");
}

TEST(resource_of_257_bytes_is_refused)
{
    char resource[258];
    memset(resource, 'r', sizeof(resource) - 1);
    resource[257] = '\0';
    client_expect_match(&stage.client, "ERR bad-resource .*", "LOCK %s 10s", resource);
    client_lock(&stage.client, resource + 1, "10s");
}

TEST(nul_byte_is_refused)
{
    client_send_bytes(&stage.client, "LOCK a\0b 10s\n", 13);
    client_read_match(&stage.client, "ERR bad-byte .*");
    client_expect(&stage.client, "PONG", "PING");
}

/* --- long lines --- */

/* Sends "NAME", spaces, "x" and an LF, `len` bytes in all. */
static void send_long_line(struct client *client, size_t len)
{
    char *line = malloc(len);
    ck_assert_ptr_nonnull(line);
    memset(line, ' ', len);
    memcpy(line, "NAME", 4);
    line[len - 2] = 'x';
    line[len - 1] = '\n';
    client_send_bytes(client, line, len);
    free(line);
}

TEST(line_of_2048_bytes_is_read)
{
    send_long_line(&stage.client, LINE_MAX);
    client_read_match(&stage.client, "OK");
}

TEST(line_of_2049_bytes_is_too_long)
{
    send_long_line(&stage.client, LINE_MAX + 1);
    client_read_match(&stage.client, "ERR line-too-long .*");
    client_expect(&stage.client, "PONG", "PING");
}

TEST(a_line_of_a_megabyte_is_one_error)
{
    send_long_line(&stage.client, 1024 * 1024);
    client_read_match(&stage.client, "ERR line-too-long .*");
    client_expect(&stage.client, "PONG", "PING");
}

/* The daemon discards a long line in parts. The test puts the line end at every position near the
 * end of a part. */
TEST(the_line_after_a_long_one_is_complete)
{
    for (size_t len = 2 * LINE_MAX - 2; len <= 2 * LINE_MAX + 2; len++) {
        send_long_line(&stage.client, len);
        client_send(&stage.client, "PING\n");
        client_read_match(&stage.client, "ERR line-too-long .*");
        client_read_match(&stage.client, "PONG");
    }
}

/* --- line ends and segmentation --- */

TEST(cr_before_lf_is_dropped)
{
    client_send(&stage.client, "PING\r\nSTATUS a\r\n\r\nPING\r\n");
    client_read_match(&stage.client, "PONG");
    client_read_match(&stage.client, "FREE");
    client_read_match(&stage.client, "PONG");
}

TEST(cr_elsewhere_is_a_bad_byte)
{
    client_expect_match(&stage.client, "ERR bad-byte .*", "PING\rPING");
}

TEST(empty_lines_are_ignored)
{
    client_send(&stage.client, "\n\n   \n\r\nPING\n\n");
    client_read_match(&stage.client, "PONG");
    client_expect_match(&stage.client, "VERSION .*", "VERSION");
}

TEST(spacing_and_the_case_of_verbs_do_not_matter)
{
    client_expect(&stage.client, "PONG", "  ping  ");
    client_expect(&stage.client, "FREE", "Status   a");
    client_expect_match(&stage.client, "#T OK .*", "#T   lock   a    10s");
    client_expect(&stage.client, "FREE", "STATUS A");
}

/* The PONG of another connection shows that the daemon has read the first part. */
TEST(a_request_can_be_split_at_every_byte)
{
    struct client other;
    static const char request[] = "#tag STATUS resource\r\n";
    daemon_connect(&stage.daemon, &other);
    for (size_t i = 1; i < sizeof(request) - 1; i++) {
        client_send_bytes(&stage.client, request, i);
        client_expect(&other, "PONG", "PING");
        client_send(&stage.client, request + i);
        client_read_match(&stage.client, "#tag FREE");
    }
    client_close(&other);
}

TEST(a_request_can_arrive_byte_by_byte)
{
    struct client other;
    static const char request[] = "LOCK resource 10s\n";
    daemon_connect(&stage.daemon, &other);
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        ck_assert(!client_has_line(&stage.client));
        client_send_bytes(&stage.client, request + i, 1);
        client_expect(&other, "PONG", "PING");
    }
    client_read_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+ -");
    client_close(&other);
}
