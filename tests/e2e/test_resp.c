/*
 * RESP, the protocol of Redis clients, with real masters: the reply to every command, the order of
 * replies, and input that is no command.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "protocol/limits.h"
#include "tests/e2e/process.h"
#include "tests/e2e/resp_client.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

static const struct stage_plan three = {
    .masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}};

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

/* --- requests and their replies --- */

/* A command and the pattern of its reply. */
struct example {
    const char *command;
    const char *reply;
};

/* The same in RESP2 and RESP3. */
static const struct example common[] = {
    {"LOCK a", "-ERR bad-arguments LOCK takes <resource> <ttl> .*"},
    {"lock a 1ms", "-ERR ttl-range TTL 1ms must be between [0-9]+ms and 1m"},
    {"LOCK a soon", "-ERR bad-time .*"},
    {"LOCK a 10s WAIT 25h", "-ERR wait-range WAIT 25h must be at most 24h"},
    {"LOCK a 10s LINGER", "-ERR bad-arguments LINGER needs HOLD; write HOLD LINGER"},
    {"LOCK a 10s SLOTS 1001", "-ERR slots-range .*"},
    {"UNLOCK a x", "-ERR bad-token .*"},
    {"UNLOCK a " TOKEN, "\\+GONE"},
    {"EXTEND a " TOKEN " 10s", "\\+GONE"},
    {"STATUS a", "\\+FREE"},
    {"STATUS a SLOTS 4", "\\*3 \\$4 FREE :0 :4"},
    {"PING", "\\+PONG"},
    {"PING hello", "\\$5 hello"},
    {"ECHO hello", "\\$5 hello"},
    {"ECHO", "-ERR bad-arguments ECHO takes <message>"},
    {"NAME worker", "\\+OK"},
    {"CLIENT GETNAME", "\\$6 worker"},
    {"CLIENT SETNAME porter", "\\+OK"},
    {"client getname", "\\$6 porter"},
    {"CLIENT SETNAME host(a,b)", "\\+OK"},
    {"CLIENT GETNAME", "\\$9 host_a_b_"},
    {"CLIENT ID", ":[0-9]+"},
    {"CLIENT INFO", "\\$[0-9]+ id=[0-9]+ addr=.* name=host_a_b_ age=[0-9]+ idle=0 .* resp=[23]\n"},
    {"CLIENT SETINFO LIB-NAME x", "\\+OK"},
    {"CLIENT NO-EVICT on", "\\+OK"},
    {"CLIENT NO-TOUCH on", "\\+OK"},
    {"CLIENT KILL x", "-ERR bad-arguments CLIENT takes .*"},
    {"SELECT 0", "\\+OK"},
    {"SELECT 1", "-ERR bad-arguments redlockd has no databases: SELECT takes 0 only"},
    {"VERSION", "\\+VERSION 1 redlockd/.*"},
    {"HELP", "\\*[0-9]+ \\$[0-9]+ LOCK <resource> <ttl> .*"},
    {"COMMAND COUNT", ":[0-9]+"},
    {"COMMAND LIST", "-ERR bad-arguments COMMAND takes .*"},
    {"INFO replication", "\\$[0-9]+ # Replication\r\nrole:master\r\n"},
    {"INFO nothing", "\\$0 "},
    {"INFO", "\\$[0-9]+ # Server\r\nredlockd_version:.*\r\nloading:0\r\n.*\r\nquorum:2\r\n"},
    {"LOCKS none", "\\*0"},
    {"HELLO 4", "-NOPROTO unsupported protocol version: HELLO takes 2 or 3"},
    {"HELLO 3 SETNAME", "-ERR bad-arguments HELLO takes .*"},
    {"AUTH", "-ERR bad-arguments AUTH takes \\[<user>\\] <secret>"},
    {"AUTH some secret", "\\+OK"},
    {"GET a", "-ERR unknown command 'GET': redlockd is a lock manager, HELP lists its commands"},
    {"SUBSCRIBE a", "-ERR unknown command 'SUBSCRIBE': .*"},
    {"#tag PING", "-ERR bad-tag RESP has no tags: replies come in the order of commands"},
};

static const struct example resp2[] = {
    {"COMMAND INFO lock get", "\\*2 \\*10 \\$4 lock :-3 \\*1 \\$5 write :1 :1 :1 .* \\$-1"},
    {"COMMAND DOCS status", "\\*2 \\$6 status \\*8 \\$7 summary .*"},
    {"NODES", "\\*3 \\*22 \\$4 node \\$1 a \\$3 url .* \\$4 vote \\$3 yes \\$6 reason \\$-1 .*"},
    {"STATS", "\\*5 \\*[0-9]+ \\$7 subject \\$6 daemon .* \\$7 clients :2 .*"},
    {"CLIENTS", "\\*2 \\*16 \\$6 client :[0-9]+ \\$4 name \\$9 host_a_b_ .*"},
    {"LOCK hold 10s HOLD", "-ERR bad-arguments HOLD needs RESP3, .*; send HELLO 3 first"},
    {"LOCK hold 10s HOLD LINGER", "-ERR bad-arguments HOLD needs RESP3, .*"},
};

static const struct example resp3[] = {
    {"COMMAND INFO lock get", "\\*2 \\*10 \\$4 lock :-3 \\*1 \\$5 write :1 :1 :1 .* _"},
    {"COMMAND DOCS status", "%1 \\$6 status %4 \\$7 summary .*"},
    {"NODES", "\\*3 %11 \\$4 node \\$1 a \\$3 url .* \\$4 vote \\$3 yes \\$6 reason _ .*"},
    {"STATS", "\\*5 %[0-9]+ \\$7 subject \\$6 daemon .* \\$7 clients :2 .*"},
    {"CLIENTS", "\\*2 %8 \\$6 client :[0-9]+ \\$4 name \\$9 host_a_b_ .*"},
    {"LOCK hold 10s HOLD", RESP_GRANT_3},
    {"HELLO 2", "-ERR bad-arguments this connection has a HOLD, which needs HELLO 3; .*"},
};

static void run_examples(struct resp_client *resp, const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        resp_expect_match(resp, examples[i].reply, "%s", examples[i].command);
}

/* The life of a lock, from another connection's point of view as well. */
static void run_lock(struct resp_client *resp, bool is_3)
{
    resp_send(resp, "LOCK a 10s");
    resp_read_match(resp, is_3 ? RESP_GRANT_3 : RESP_GRANT_2);
    struct grant grant = resp_grant(resp);
    resp_expect_match(resp, "\\*2 \\$4 HELD :[0-9]+", "LOCK a 10s");
    resp_expect_match(resp, "\\*2 \\$4 HELD :[0-9]+", "LOCK a 10s WAIT 20ms");
    resp_expect_match(resp, "\\*2 \\$4 HELD :[0-9]+", "STATUS a");
    resp_expect_match(resp, "\\*4 \\$2 OK \\$40 [0-9a-f]{40} :[0-9]+ :[0-9]+", "EXTEND a %s 20s",
                      grant.token);
    resp_expect_match(resp,
                      is_3 ? "\\*1 %10 \\$8 resource \\$1 a .* \\$5 slots _"
                           : "\\*1 \\*20 \\$8 resource \\$1 a .* \\$5 slots \\$-1",
                      "LOCKS a");
    resp_expect(resp, "+OK", "UNLOCK a %s", grant.token);
    resp_expect_match(resp, "\\*5 \\$2 OK \\$40 [0-9a-f]{40} :[0-9]+ :[0-9]+ :[1-9][0-9]+",
                      "LOCK a 10s FENCE");
    resp_expect(resp, "+OK", "UNLOCK a %s", resp_grant(resp).token);
    resp_expect_match(resp, "\\*6 \\$2 OK \\$40 [0-9a-f]{40} :[0-9]+ :[0-9]+ (_|\\$-1) \\$3 a#1",
                      "LOCK a 10s SLOTS 1");
    grant = resp_grant(resp);
    resp_expect_match(resp, "\\*4 \\$4 HELD :[0-9]+ :1 :1", "STATUS a SLOTS 1");
    resp_expect(resp, "+OK", "UNLOCK a#1 %s", grant.token);
}

static void greet(struct resp_client *resp, bool is_3)
{
    if (is_3)
        resp_expect_match(resp,
                          "%7 \\$6 server \\$8 redlockd \\$7 version .* \\$5 proto :3 \\$2 id "
                          ":[0-9]+ .* \\$4 role \\$6 master \\$7 modules \\*0",
                          "HELLO 3");
    else
        resp_expect_match(resp, "\\*14 \\$6 server \\$8 redlockd .* \\$5 proto :2 .*", "HELLO");
}

TEST_LOOP(every_command_has_its_reply, 0, 4)
{
    bool over_tcp = _i % 2 == 0;
    bool is_3 = _i / 2 == 1;
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    if (over_tcp)
        resp_connect_tcp(&resp, &stage);
    else
        resp_connect_unix(&resp, &stage);
    greet(&resp, is_3);
    run_lock(&resp, is_3);
    run_examples(&resp, common, sizeof(common) / sizeof(common[0]));
    if (is_3)
        run_examples(&resp, resp3, sizeof(resp3) / sizeof(resp3[0]));
    else
        run_examples(&resp, resp2, sizeof(resp2) / sizeof(resp2[0]));
    resp_lock(&resp, "broken", "10s");
    if (over_tcp)
        resp_expect_match(&resp, "-NOPERM BREAK requires .*", "BREAK broken");
    else
        resp_expect(&resp, "+OK", "BREAK broken");
    resp_expect(&resp, "+OK", "QUIT");
    resp_expect_end(&resp);
    resp_close(&resp);
    stage_close(&stage);
}

TEST(the_replies_over_tls_are_the_same)
{
    struct stage stage;
    struct resp_client resp;
    tls_stage_open(&stage, __func__);
    for (int is_3 = 0; is_3 <= 1; is_3++) {
        resp_connect_tls(&resp, &stage);
        greet(&resp, is_3 != 0);
        run_lock(&resp, is_3 != 0);
        run_examples(&resp, common, sizeof(common) / sizeof(common[0]));
        resp_expect(&resp, "+OK", "QUIT");
        resp_expect_end(&resp);
        resp_close(&resp);
    }
    stage_close(&stage);
}

/* Without masters, the outcomes are errors with the text of the line. */
TEST(outcomes_of_failure_are_errors)
{
    static const char *const requests[] = {"LOCK a 10s", "STATUS a", "EXTEND a " TOKEN " 10s",
                                           "UNLOCK a " TOKEN};
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    resp_connect_tcp(&resp, &stage);
    for (unsigned i = 0; i < 3; i++)
        master_kill(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=no", 3);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        resp_expect_match(&resp, "-NOQUORUM 0/3 need=2 a:[a-z-]+ b:[a-z-]+ c:[a-z-]+", "%s",
                          requests[i]);
    resp_close(&resp);
    stage_close(&stage);
}

/* --- order --- */

TEST(later_commands_run_while_an_earlier_one_waits_and_replies_are_in_order)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "LOCK b 60s");
    resp_send(&resp, "STATUS c");
    resp_send(&resp, "PING");
    resp_send(&resp, "LOCK a 60s WAIT 20ms");
    /* The LOCK of b has been granted although the LOCK before it still waits. */
    stage_wait_key(&stage, "redlock:b", 3);
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_expect_match(&stage.client, "HELD .*", "STATUS b");
    ck_assert(!client_has_input(&resp.client));
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    resp_read_match(&resp, RESP_GRANT_2);
    resp_read_match(&resp, RESP_GRANT_2);
    resp_read_equal(&resp, "+FREE");
    resp_read_equal(&resp, "+PONG");
    resp_read_match(&resp, "\\*2 \\$4 HELD :[0-9]+");
    resp_close(&resp);
    stage_close(&stage);
}

/* A client can have this many requests pending. The next one waits, with all after it. At the
 * half-close, the pending LOCKs are undone, and so is the next LOCK. */
TEST(the_command_after_1024_pending_ones_waits)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__,
               &(struct stage_plan){.masters = 3,
                                    .over_unix = true,
                                    .daemon = {.tcp_host = "127.0.0.1",
                                               .yaml = "limits: {waiters_per_resource: 2000}\n"}});
    client_lock(&stage.client, "a", "60s");
    resp_connect_tcp(&resp, &stage);
    for (unsigned i = 0; i < LIMIT_CLIENT_REQUESTS; i++)
        resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "LOCK b 60s");
    resp_send(&resp, "STATUS b");
    stage_wait_stats(&stage.client, " waiting=1024 ");
    client_expect(&stage.client, "FREE", "STATUS b");
    client_half_close(&resp.client);
    for (unsigned i = 0; i < LIMIT_CLIENT_REQUESTS + 1; i++)
        resp_read_prefix(&resp, "-ERR bad-arguments the client ended the connection before");
    resp_read_equal(&resp, "+FREE");
    resp_expect_end(&resp);
    resp_close(&resp);
    client_expect(&stage.client, "FREE", "STATUS b");
    stage_close(&stage);
}

TEST(quit_waits_for_the_earlier_replies)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "QUIT");
    resp_send(&resp, "PING");
    stage_wait_stats(&stage.client, " waiting=1 ");
    ck_assert(!client_has_input(&resp.client));
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    resp_read_match(&resp, RESP_GRANT_2);
    resp_read_equal(&resp, "+OK");
    resp_expect_end(&resp);
    resp_close(&resp);
    /* Without HOLD, the lock outlives its connection. */
    client_expect_match(&stage.client, "HELD .*", "STATUS a");
    stage_close(&stage);
}

/* HELLO, AUTH and RESET change how later replies look and what later commands may do. */
TEST(hello_auth_and_reset_wait_for_the_earlier_replies)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    resp_connect_tcp(&resp, &stage);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "HELLO 3");
    resp_send(&resp, "CLIENT GETNAME");
    stage_wait_stats(&stage.client, " waiting=1 ");
    ck_assert(!client_has_input(&resp.client));
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    resp_read_match(&resp, RESP_GRANT_2);
    grant = resp_grant(&resp);
    resp_read_prefix(&resp, "%7 ");
    resp_read_equal(&resp, "_");
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "AUTH secret");
    resp_send(&resp, "CLIENT SETNAME me");
    resp_send(&resp, "RESET");
    resp_send(&resp, "CLIENT GETNAME");
    stage_wait_stats(&stage.client, " waiting=1 ");
    ck_assert(!client_has_input(&resp.client));
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    resp_read_match(&resp, RESP_GRANT_3);
    resp_read_equal(&resp, "+OK");
    resp_read_equal(&resp, "+OK");
    resp_read_equal(&resp, "+RESET");
    resp_read_equal(&resp, "$-1");
    resp_close(&resp);
    stage_close(&stage);
}

/* The replies that wait exceed the amount that the daemon keeps. It then takes no more commands,
 * instead of dropping the client. */
TEST(many_replies_that_wait_for_an_earlier_one_arrive)
{
    enum { LISTINGS = 150 };
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    for (unsigned i = 0; i < LISTINGS; i++)
        resp_send(&resp, "HELP");
    resp_send(&resp, "PING");
    stage_wait_stats(&stage.client, " waiting=1 ");
    ck_assert(!client_has_input(&resp.client));
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    resp_read_match(&resp, RESP_GRANT_2);
    for (unsigned i = 0; i < LISTINGS; i++)
        resp_read_prefix(&resp, "*15 ");
    resp_read_equal(&resp, "+PONG");
    resp_close(&resp);
    stage_close(&stage);
}

/* Reads up to the reply to PING, without a look at the other replies. */
static void skip_to_pong(struct resp_client *resp)
{
    static const char pong[] = "\n+PONG\r\n";
    const size_t pong_len = sizeof(pong) - 1;
    char buf[4096];
    size_t len = 0;
    while (len < pong_len || memcmp(buf + len - pong_len, pong, pong_len) != 0) {
        struct pollfd readable = {.fd = resp->client.fd, .events = POLLIN};
        size_t keep = len < pong_len ? len : pong_len;
        memmove(buf, buf + len - keep, keep);
        ck_assert_int_eq(poll(&readable, 1, 30000), 1);
        ssize_t got = recv(resp->client.fd, buf + keep, sizeof(buf) - keep, 0);
        ck_assert_int_gt(got, 0);
        len = keep + (size_t)got;
    }
}

/* A listing leaves room for the replies to all pending commands. The client cannot read before the
 * first of them is answered. */
TEST(a_listing_leaves_room_for_the_replies_to_pending_commands)
{
    enum { LOCKS = 1000, NAME = 250 };
    struct stage stage;
    struct resp_client resp;
    static struct grant grants[LOCKS];
    char slot[NAME + 3];
    stage_open(&stage, __func__, &three);
    resp_connect_tcp(&resp, &stage);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(slot, sizeof(slot), "%0*d#1", NAME, i);
        grants[i] = client_lock(&stage.client, slot, "60s");
        resp_send(&resp, "LOCK %0*d 60s WAIT 1h SLOTS 1", NAME, i);
    }
    /* 120 KiB: with 8 KiB more, the daemon would take no further command. */
    for (int i = 0; i < 60; i++)
        resp_send(&resp, "ECHO %02000d", i);
    resp_send(&resp, "LOCKS");
    resp_send(&resp, "PING");
    stage_wait_stats(&stage.client, " waiting=1000 ");
    for (int i = LOCKS - 1; i >= 0; i--)
        client_expect(&stage.client, "OK", "UNLOCK %0*d#1 %s", NAME, i, grants[i].token);
    skip_to_pong(&resp);
    resp_close(&resp);
    stage_close(&stage);
}

/* --- input that is no command --- */

static const struct example garbage[] = {
    {"PING\r\n", "-ERR Protocol error: a command must begin with \\*"},
    {"\rPING\r\n", "-ERR Protocol error: a command must begin with \\*"},
    {"\nPING\r\n", "-ERR Protocol error: a command must begin with \\*"},
    {"*1\r\n:5\r\n", "-ERR Protocol error: a command must be an array of bulk strings"},
    {"*1\r\n+PING\r\n", "-ERR Protocol error: .*"},
    {"*1\r\n*1\r\n$4\r\nPING\r\n",
     "-ERR Protocol error: a command must be an array of bulk strings"},
    {"*1\r\n$-1\r\n", "-ERR Protocol error: a word must not be null"},
    {"*1\r\n$3\r\nPING\r\n", "-ERR Protocol error: a bulk string is longer than its length"},
    {"*1366\r\n", "-ERR Protocol error: a command must have at most 8192 bytes"},
    {"*2000000000\r\n", "-ERR Protocol error: .*"},
    {"*-2\r\n", "-ERR Protocol error: .*"},
    {"*x\r\n", "-ERR Protocol error: .*"},
    {"*1\r\n$x\r\n", "-ERR Protocol error: .*"},
    {"*1\r\n$-7\r\n", "-ERR Protocol error: .*"},
};

/* After the first command has decided for RESP, each of these ends the connection. */
TEST(a_protocol_error_ends_the_connection_after_the_earlier_replies)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        struct grant grant = client_lock(&stage.client, "a", "60s");
        resp_connect_tcp(&resp, &stage);
        resp_send(&resp, "LOCK a 60s WAIT 1h");
        resp_send(&resp, "PING");
        resp_send_raw(&resp, garbage[i].command);
        stage_wait_stats(&stage.client, " waiting=1 ");
        ck_assert(!client_has_input(&resp.client));
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
        resp_read_match(&resp, RESP_GRANT_2);
        grant = resp_grant(&resp);
        resp_read_equal(&resp, "+PONG");
        resp_read_match(&resp, garbage[i].reply);
        resp_expect_end(&resp);
        resp_close(&resp);
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    }
    stage_close(&stage);
}

/* Words that are too long together are the client's mistake, but the daemon can skip them. */
TEST(a_command_that_is_too_long_is_refused_and_skipped)
{
    char word[2049];
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    resp_connect_tcp(&resp, &stage);
    memset(word, 'x', sizeof(word));
    word[sizeof(word) - 1] = '\0';
    resp_expect(&resp,
                "-ERR line-too-long the words of a command, with a space between them, must be "
                "shorter than 2048 bytes",
                "LOCK %s 10s", word);
    resp_expect(&resp, "+PONG", "PING");
    word[257] = '\0';
    resp_expect_match(&resp, "-ERR bad-resource .*", "LOCK %s 10s", word);
    /* Empty commands have no reply. */
    resp_send_raw(&resp, "*0\r\n*-1\r\n");
    resp_expect(&resp, "+PONG", "PING");
    /* So have empty lines, which redis-cli --pipe sends. The daemon reads this one in two parts. */
    resp_send_raw(&resp, "\r\n\r\n*1\r\n$4\r\nPING\r\n\r");
    resp_read_equal(&resp, "+PONG");
    resp_send_raw(&resp, "\n*1\r\n$4\r\nPING\r\n");
    resp_read_equal(&resp, "+PONG");
    /* A word may be empty or contain spaces, unlike in a line. A resource may not. */
    resp_send_raw(&resp, "*3\r\n$4\r\nLOCK\r\n$3\r\na b\r\n$3\r\n10s\r\n");
    resp_read_match(&resp, "-ERR bad-byte byte 2 of word 2 is 0x20; .*");
    resp_send_raw(&resp, "*3\r\n$4\r\nLOCK\r\n$0\r\n\r\n$3\r\n10s\r\n");
    resp_read_equal(&resp, "-ERR bad-arguments word 2 is empty");
    resp_send_raw(&resp, "*3\r\n$4\r\nLOCK\r\n$2\r\n\r\n\r\n$3\r\n10s\r\n");
    resp_read_match(&resp, "-ERR bad-byte .*");
    resp_close(&resp);
    stage_close(&stage);
}

/* Only the first byte of a connection decides for RESP. */
TEST(a_line_connection_stays_one)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    client_expect(&stage.client, "PONG", "PING");
    client_send(&stage.client, "*1\r\n$4\r\nPING\r\n");
    client_read_match(&stage.client, "ERR unknown-verb .*");
    client_read_match(&stage.client, "ERR unknown-verb .*");
    client_read_match(&stage.client, "PONG");
    client_expect_match(&stage.client, "ERR unknown-verb .*", "HELLO 3");
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+ -", "LOCK a 10s HOLD");
    client_expect(&stage.client, "BYE", "QUIT");
    client_close(&stage.client);
    daemon_connect(&stage.daemon, &stage.client);
    /* An empty line, and a space, decide for lines. */
    client_send(&stage.client, "\n*1\r\n");
    client_read_match(&stage.client, "ERR unknown-verb .*");
    stage_close(&stage);
}

/* --- the end of a connection, and of the daemon --- */

TEST(a_half_closed_client_gets_every_reply_and_its_lock_is_undone)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    client_lock(&stage.client, "a", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "PING");
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "STATUS b");
    resp_send(&resp, "PING");
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_half_close(&resp.client);
    resp_read_equal(&resp, "+PONG");
    resp_read_match(&resp, "-ERR bad-arguments the client ended the connection before .*");
    resp_read_equal(&resp, "+FREE");
    resp_read_equal(&resp, "+PONG");
    resp_expect_end(&resp);
    resp_close(&resp);
    stage_wait_stats(&stage.client, " waiting=0 ");
    stage_close(&stage);
}

/* The daemon reads the LOCK and the half-close in one pass. */
TEST(a_lock_sent_with_a_half_close_is_never_granted)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    for (unsigned i = 0; i < 20; i++) {
        resp_connect_tcp(&resp, &stage);
        resp_expect(&resp, "+PONG", "PING");
        kill(stage.daemon.pid, SIGSTOP);
        resp_send(&resp, "LOCK a 60s");
        client_half_close(&resp.client);
        kill(stage.daemon.pid, SIGCONT);
        resp_read_match(&resp, "-ERR bad-arguments .*");
        resp_expect_end(&resp);
        resp_close(&resp);
    }
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

static void half_close(struct client *client)
{
    client_half_close(client);
}

TEST_LOOP(a_waiting_lock_of_a_client_that_left_is_undone, 0, 3)
{
    static void (*const ends[])(struct client *) = {client_close, client_reset, half_close};
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "QUIT"); /* waits for the LOCK, so the end of the connection comes first */
    stage_wait_stats(&stage.client, " waiting=1 ");
    ends[_i](&resp.client);
    stage_wait_stats(&stage.client, " waiting=0 ");
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

TEST(an_unfinished_command_is_not_executed)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "PING");
    resp_send_raw(&resp, "*3\r\n$4\r\nLOCK\r\n$1\r\na\r\n$3\r\n60s\r");
    client_half_close(&resp.client);
    resp_read_equal(&resp, "+PONG");
    resp_expect_end(&resp);
    resp_close(&resp);
    ck_assert_int_eq(masters_keys(stage.masters, 3), 0);
    stage_close(&stage);
}

TEST(a_lock_outlives_a_restart_of_the_daemon)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    resp_connect_tcp(&resp, &stage);
    struct grant grant = resp_lock(&resp, "a", "60s");
    stage_wait_key(&stage, "redlock:a", 3);
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    resp_expect_end(&resp);
    resp_close(&resp);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    resp_connect_tcp(&resp, &stage);
    resp_expect_match(&resp, "\\*2 \\$4 HELD :[0-9]+", "LOCK a 10s");
    resp_expect(&resp, "+OK", "UNLOCK a %s", grant.token);
    resp_close(&resp);
    stage_close(&stage);
}

/* A pending LOCK is answered before the daemon ends. */
TEST(a_stopping_daemon_answers_the_pending_commands_in_order)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(&stage, __func__, &three);
    client_lock(&stage.client, "a", "60s");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "LOCK a 60s WAIT 1h");
    resp_send(&resp, "PING");
    stage_wait_stats(&stage.client, " waiting=1 ");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    resp_read_equal(&resp, "-SHUTDOWN");
    resp_read_equal(&resp, "+PONG");
    resp_expect_end(&resp);
    resp_close(&resp);
    stage_close_masters(&stage);
}
