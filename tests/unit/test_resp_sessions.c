/*
 * Sessions that speak RESP (server/clients/).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/internal.h"
#include "protocol/units.h"
#include "tests/runner.h"
#include "tests/unit/session_fixture.h"

const struct runner_settings runner_settings = {.setup = open_fixture, .teardown = close_fixture};

enum { RESP_MAX = 512 * 1024 };

/* The RESP command of these words. */
static const char *command(const char *words)
{
    static char bytes[LIMIT_LINE + 64];
    size_t len = 0;
    unsigned count = 1;
    for (const char *at = words; *at != '\0'; at++)
        count += *at == ' ';
    len += (size_t)snprintf(bytes, sizeof(bytes), "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        int word = (int)strcspn(words, " ");
        len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "$%d\r\n%.*s\r\n", word, word,
                                words);
        words += word + 1;
    }
    return bytes;
}

static void say_command(unsigned index, const char *words)
{
    say(index, command(words));
}

/* In one write: the kernel takes only a few hundred. */
static void say_commands(unsigned index, const char *words, unsigned count)
{
    const size_t len = strlen(command(words));
    char *all = malloc(count * len + 1);
    ck_assert_ptr_nonnull(all);
    for (unsigned i = 0; i < count; i++)
        memcpy(all + i * len, command(words), len + 1);
    say(index, all);
    free(all);
}

static const struct session *first_session(void)
{
    return LIST_FIRST(&fixture.clients.sessions);
}

/* What client 0 has received so far. */
static struct replies {
    size_t len;
    char text[RESP_MAX + 1];
} replies;

static void read_replies(void)
{
    ssize_t len = read(fixture.peers[0], replies.text + replies.len, RESP_MAX - replies.len);
    replies.len += len > 0 ? (size_t)len : 0;
    replies.text[replies.len] = '\0';
}

/* Runs passes until client 0 has received `len` bytes. */
static void expect_bytes(size_t len)
{
    for (unsigned passes = 0; replies.len < len; passes++) {
        run_pass();
        read_replies();
        ck_assert_msg(passes < 1000, "only \"%.500s\"", replies.text);
    }
}

static void expect_replies(const char *text)
{
    expect_bytes(strlen(text));
    ck_assert_str_eq(replies.text, text);
}

static void expect_end(void)
{
    for (unsigned passes = 0; fixture.clients.session_count > 0; passes++) {
        run_pass();
        read_replies();
        ck_assert_uint_lt(passes, 1000);
    }
    read_replies();
}

#define LOCK_THAT_WAITS "LOCK a 1s WAIT 1h"
#define NOT_LOCKED      "-NOQUORUM 0/3 need=2 a:connecting b:connecting c:connecting\r\n"

/* Ends the wait of every LOCK_THAT_WAITS. */
static void end_waits(void)
{
    virtual_ns += 3600 * NS_PER_S + NS_PER_S;
    engine_catch_up(fixture.clients.engine, virtual_ns);
}

TEST(the_first_byte_decides_what_a_connection_speaks)
{
    connect_clients(2);
    say(0, "*1\r\n");
    say(1, "PING\n*1\r\n");
    run_pass();
    say(0, "$4\r\nPING\r\nPING\r\n");
    expect_replies("+PONG\r\n-ERR Protocol error: a command must begin with *\r\n");
    ck_assert_str_eq(heard(1),
                     "PONG\nERR unknown-verb unknown verb \"*1\"; send HELP for a list\n");
}

/* Not the first byte after a long line was cut. */
TEST(the_rest_of_a_long_line_decides_nothing)
{
    char line[LIMIT_LINE + 1];
    connect_clients(1);
    memset(line, 'x', LIMIT_LINE);
    memcpy(line, "NAME ", 5);
    line[LIMIT_LINE] = '\0';
    say(0, line);
    expect_replies("ERR line-too-long a line must be at most 2048 bytes\n");
    say(0, "*1\r\nPING\n");
    expect_replies("ERR line-too-long a line must be at most 2048 bytes\nPONG\n");
}

TEST(a_command_in_single_bytes_is_answered)
{
    connect_clients(1);
    for (const char *at = command("ECHO hello"); *at != '\0'; at++) {
        ck_assert_uint_eq(replies.len, 0);
        ck_assert_int_eq(write(fixture.peers[0], at, 1), 1);
        run_pass();
        run_pass();
        read_replies();
    }
    expect_replies("$5\r\nhello\r\n");
}

/* No pass takes more than the budget of commands, and the last ones need no new input. */
TEST(commands_beyond_the_budget_wait_for_the_next_pass)
{
    enum { PINGS = 1000 };
    const uint64_t *pings = &fixture.clients.requests[VERB_PING];
    connect_clients(1);
    say_commands(0, "PING", PINGS);
    for (unsigned passes = 0; *pings < PINGS; passes++) {
        uint64_t before = *pings;
        run_pass();
        ck_assert_uint_le(*pings - before, LIMIT_READ_BUDGET_ALONE);
        ck_assert_uint_lt(passes, PINGS / LIMIT_READ_BUDGET + 10);
    }
    expect_bytes(PINGS * strlen("+PONG\r\n"));
}

/* The reader sees COMMAND_BYTES of the input at once, and the event loop reports it only once. */
TEST(long_commands_of_one_read_are_all_taken)
{
    enum { COUNT = 15, WORD = 1000 };
    char words[WORD + 8] = "ECHO ";
    char reply[WORD + 16];
    connect_clients(1);
    memset(words + 5, 'w', WORD);
    words[5 + WORD] = '\0';
    int reply_len = snprintf(reply, sizeof(reply), "$%d\r\n%s\r\n", WORD, words + 5);
    ck_assert_uint_gt(COUNT * strlen(command(words)), COMMAND_BYTES);
    ck_assert_uint_lt(COUNT * strlen(command(words)), LIMIT_CLIENT_INPUT);
    say_commands(0, words, COUNT);
    expect_bytes(COUNT * (size_t)reply_len);
    for (unsigned i = 0; i < COUNT; i++)
        ck_assert_mem_eq(replies.text + i * (size_t)reply_len, reply, (size_t)reply_len);
}

TEST(later_replies_wait_for_the_reply_to_an_earlier_command)
{
    connect_clients(1);
    say_command(0, LOCK_THAT_WAITS);
    say_command(0, "PING");
    say_command(0, LOCK_THAT_WAITS);
    say_command(0, "ECHO a");
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass();
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 1);
    read_replies();
    ck_assert_str_eq(replies.text, "");
    ck_assert_uint_eq(first_session()->replies.pending, 2);
    end_waits();
    expect_replies(NOT_LOCKED "+PONG\r\n" NOT_LOCKED "$1\r\na\r\n");
}

/* HELLO changes the connection, so it waits, and the commands after it with it. The session is not
 * read meanwhile. */
TEST_LOOP(a_command_that_waits_stops_the_reading, 0, 4)
{
    static const char *const exclusive[] = {"HELLO 2", "AUTH secret", "RESET", "QUIT"};
    static const char *const answers[] = {NULL, "+OK\r\n", "+RESET\r\n", "+OK\r\n"};
    connect_clients(1);
    const struct session *session = first_session();
    bool quits = strcmp(exclusive[_i], "QUIT") == 0;
    say_command(0, LOCK_THAT_WAITS);
    say_command(0, exclusive[_i]);
    say_command(0, "PING");
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass();
    ck_assert(session->commands_wait);
    ck_assert(!session->stream.reading);
    ck_assert_uint_eq(fixture.clients.requests[VERB_PING], 0);
    /* What comes now stays in the socket. */
    say_command(0, "PING");
    run_pass();
    end_waits();
    if (quits) {
        expect_end();
        ck_assert_str_eq(replies.text, NOT_LOCKED "+OK\r\n");
    } else if (answers[_i] != NULL) {
        char expected[256];
        snprintf(expected, sizeof(expected), NOT_LOCKED "%s+PONG\r\n+PONG\r\n", answers[_i]);
        expect_replies(expected);
    } else {
        for (unsigned passes = 0; strstr(replies.text, "+PONG\r\n+PONG\r\n") == NULL; passes++) {
            run_pass();
            read_replies();
            ck_assert_uint_lt(passes, 100);
        }
        ck_assert_mem_eq(replies.text, NOT_LOCKED "*14\r\n", strlen(NOT_LOCKED) + 5);
    }
    ck_assert(quits || session->stream.reading);
}

/* Only the kept replies are limited: the client does nothing wrong, so it is not dropped. */
TEST(commands_wait_while_many_replies_are_kept)
{
    enum { COUNT = 200, WORD = 2000 };
    char words[WORD + 8] = "ECHO ";
    size_t sent = 0;
    connect_clients(1);
    const struct session *session = first_session();
    memset(words + 5, 'w', WORD);
    const size_t reply_len = strlen("$2000\r\n\r\n") + WORD;
    const size_t len = strlen(command(words));
    say_command(0, LOCK_THAT_WAITS);
    for (unsigned passes = 0; passes < 1000; passes++) {
        /* The socket takes whole commands only, as long as there is room. */
        if (sent < COUNT && write(fixture.peers[0], command(words), len) == (ssize_t)len)
            sent++;
        run_pass();
        ck_assert_uint_le(session->replies.kept, LIMIT_CLIENT_OUTPUT / 2 + reply_len);
    }
    ck_assert_uint_eq(fixture.clients.session_count, 1);
    ck_assert(session->commands_wait);
    ck_assert_uint_gt(session->replies.kept, LIMIT_CLIENT_OUTPUT / 2);
    end_waits();
    expect_bytes(strlen(NOT_LOCKED) + sent * reply_len);
    ck_assert_uint_eq(session->replies.kept, 0);
    ck_assert_uint_eq(replies.len, strlen(NOT_LOCKED) + sent * reply_len);
}

/* In the second run the end is a reset: the client has not read a reply. */
TEST_LOOP(a_client_that_leaves_while_its_command_waits_leaves_its_queue, 0, 2)
{
    bool by_reset = _i == 1;
    connect_clients(1);
    if (by_reset)
        say_command(0, "PING");
    say_command(0, LOCK_THAT_WAITS);
    say_command(0, "HELLO 3");
    for (unsigned passes = 0; passes < 5; passes++)
        run_pass();
    ck_assert_uint_eq(engine_view(fixture.clients.engine).waiting, 1);
    close(fixture.peers[0]);
    fixture.peers[0] = -1;
    for (unsigned passes = 0; fixture.clients.session_count > 0; passes++) {
        run_pass();
        ck_assert_uint_lt(passes, 10);
    }
    ck_assert_uint_eq(engine_view(fixture.clients.engine).waiting, 0);
}

/* As in the line protocol: LOCKs are undone, and all other commands get their replies. What is left
 * of an incomplete command is discarded. */
TEST(every_command_before_a_half_close_is_answered)
{
    enum { PINGS = 200 };
    static char expected[PINGS * 8 + 512];
    size_t len = 0;
    connect_clients(1);
    say_command(0, LOCK_THAT_WAITS);
    say_commands(0, "PING", PINGS);
    say_command(0, "RESET");
    say(0, "*1\r\n$4\r\nPI");
    shutdown(fixture.peers[0], SHUT_WR);
    expect_end();
    len +=
        (size_t)snprintf(expected, sizeof(expected),
                         "-ERR bad-arguments the client ended the connection before the reply to "
                         "this LOCK, so the lock is released; keep the connection open until "
                         "the reply\r\n");
    for (unsigned i = 0; i < PINGS; i++)
        len += (size_t)snprintf(expected + len, sizeof(expected) - len, "+PONG\r\n");
    snprintf(expected + len, sizeof(expected) - len, "+RESET\r\n");
    ck_assert_str_eq(replies.text, expected);
}

TEST(garbage_is_answered_after_all_earlier_commands)
{
    connect_clients(1);
    say_command(0, LOCK_THAT_WAITS);
    say_command(0, "PING");
    say(0, "garbage");
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass();
    ck_assert_uint_eq(fixture.clients.session_count, 1);
    end_waits();
    expect_end();
    ck_assert_str_eq(replies.text, NOT_LOCKED "+PONG\r\n-ERR Protocol error: a command "
                                              "must begin with *\r\n");
}

/* None of them ends the connection. */
TEST(wrong_commands_have_their_errors)
{
    static const struct {
        const char *words;
        const char *reply;
    } rows[] = {
        {"GET x",
         "-ERR unknown command 'GET': redlockd is a lock manager, HELP lists its commands"},
        {"abcdefghijklmnopqrstuvwxyz0123456789",
         "-ERR unknown command 'abcdefghijklmnopqrstuvwxyz012345': redlockd is a lock manager, "
         "HELP lists its commands"},
        {"\"\\",
         "-ERR unknown command '\\x22\\x5c': redlockd is a lock manager, HELP lists its commands"},
        {"a\r\n+OK",
         "-ERR bad-byte byte 2 of word 1 is 0x0d; spaces and control characters are not allowed"},
        {"LOCK a 1s HOLD",
         "-ERR bad-arguments HOLD needs RESP3, because LOST is a push message; send HELLO 3 first"},
        {"PING", "+PONG"},
    };
    char expected[256];
    char words[LIMIT_LINE + 8] = "ECHO ";
    connect_clients(1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        replies.len = 0;
        say_command(0, rows[i].words);
        snprintf(expected, sizeof(expected), "%s\r\n", rows[i].reply);
        expect_replies(expected);
    }
    memset(words + 5, 'w', LIMIT_LINE - 3); /* with ECHO, one byte too many */
    replies.len = 0;
    say(0, "*0\r\n*-1\r\n");
    say_command(0, words);
    say_command(0, "PING");
    expect_replies("-ERR line-too-long the words of a command, with a space between them, must "
                   "be shorter than 2048 bytes\r\n+PONG\r\n");
}

/* Further commands wait until the client has ended its side, and are answered then. */
TEST(as_many_commands_are_pending_as_the_limit_allows)
{
    enum { COUNT = LIMIT_CLIENT_REQUESTS + 100 };
    unsigned undone = 0;
    connect_clients(1);
    const struct session *session = first_session();
    for (unsigned i = 0; i < COUNT; i++) {
        char words[64];
        snprintf(words, sizeof(words), "LOCK r%u 1s WAIT 1h", i);
        say_command(0, words);
        run_pass();
        ck_assert_uint_le(session->replies.pending, LIMIT_CLIENT_REQUESTS);
    }
    for (unsigned passes = 0; passes < 10; passes++)
        run_pass();
    ck_assert_uint_eq(session->replies.pending, LIMIT_CLIENT_REQUESTS);
    ck_assert_uint_eq(replies.len, 0);
    shutdown(fixture.peers[0], SHUT_WR);
    expect_end();
    for (const char *at = replies.text; (at = strstr(at, "-ERR bad-arguments the")) != NULL; at++)
        undone++;
    ck_assert_uint_eq(undone, COUNT);
}

static const char secret[] = "c0ffee00c0ffee00c0ffee00c0ffee00";

static void assert_wiped(void)
{
    const struct command_reader *reader = &fixture.clients.commands;
    ck_assert_ptr_null(memmem(fixture.streams.scratch, LIMIT_NODE_IO, secret, 16));
    ck_assert_ptr_null(memmem(reader, sizeof(*reader), secret, 16));
}

static void connect_with_users(void)
{
    fixture.clients.auth.open = false;
    connect_clients(1);
}

/* The daemon notices the end of the connection before it has time to read the first byte. */
TEST(a_client_that_ends_early_gets_its_dialect)
{
    connect_clients(1);
    fixture.clients.turns.crowded = true;
    say_command(0, "PING");
    shutdown(fixture.peers[0], SHUT_WR);
    expect_replies("+PONG\r\n");
}

TEST(reset_gives_no_more_time_to_authenticate)
{
    connect_with_users();
    virtual_ns += fixture.config->limits.auth_timeout_ns / 2;
    say_command(0, "RESET");
    expect_replies("+RESET\r\n");
    ck_assert_uint_eq(fixture.clients.auth.pending_count, 1);
    virtual_ns += fixture.config->limits.auth_timeout_ns / 2;
    clients_apply_config(&fixture.clients, CLIENTS); /* sets the timer, which is due now */
    expect_end();
    ck_assert_str_eq(replies.text, "+RESET\r\n-DENIED not authenticated in time\r\n");
}

/* No copy of a secret stays in the buffers that all sessions share, also if it comes in pieces. */
TEST_LOOP(secrets_of_commands_are_wiped, 0, 2)
{
    char words[64];
    connect_with_users();
    snprintf(words, sizeof(words), "AUTH %s", secret);
    const char *bytes = command(words);
    size_t cut = _i == 0 ? 0 : strlen(bytes) - 5;
    ck_assert_int_eq(write(fixture.peers[0], bytes, cut), (ssize_t)cut);
    run_pass();
    say(0, bytes + cut);
    expect_replies("-WRONGPASS wrong secret\r\n");
    assert_wiped();
}

/* A client that has authenticated sends no secret, except after RESET. */
TEST(secrets_after_reset_are_wiped)
{
    char words[64];
    char bytes[128];
    connect_with_users();
    say_command(0, "PING");
    expect_replies("+PONG\r\n");
    LIST_FIRST(&fixture.clients.sessions)->identity.state = AUTH_BY_SECRET;
    fixture.clients.auth.pending_count = 0;
    TAILQ_INIT(&fixture.clients.auth.pending);
    snprintf(words, sizeof(words), "AUTH %s", secret);
    int len = snprintf(bytes, sizeof(bytes), "%s", command("RESET"));
    snprintf(bytes + len, sizeof(bytes) - (size_t)len, "%s", command(words));
    say(0, bytes);
    expect_replies("+PONG\r\n+RESET\r\n-WRONGPASS wrong secret\r\n");
    assert_wiped();
}
