/*
 * The bytes of one connection, over real kernel sockets: input and output (server/net/stream.h).
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/runner.h"
#include "tests/unit/stream_fixture.h"

const struct runner_settings runner_settings = {.setup = stream_fixture_open,
                                                .teardown = stream_fixture_close};

/* --- input --- */

TEST(lines_are_whole_wherever_they_are_split)
{
    static const char text[] = "\nPING\na somewhat longer line\n\nx\n";
    for (size_t first = 1; first < sizeof(text) - 2; first++)
        for (size_t second = first + 1; second < sizeof(text) - 1; second++) {
            struct line_user user;
            line_user_begin_pair(&user, SOCK_STREAM);
            line_user_send(&user, text, first);
            stream_fixture_pass();
            line_user_send(&user, text + first, second - first);
            stream_fixture_pass();
            line_user_send(&user, text + second, sizeof(text) - 1 - second);
            stream_fixture_pass();
            line_user_check(&user, text);
            ck_assert_uint_eq(line_user_unconsumed(&user), 0);
            line_user_end(&user);
        }
}

TEST(unconsumed_input_is_kept)
{
    struct line_user user;
    line_user_begin_pair(&user, SOCK_STREAM);
    user.lines_at_once = 2;
    line_user_send(&user, "a\nb\nc\nd\ne\nf", 11);
    stream_fixture_pass();
    line_user_check(&user, "a\nb\n");
    ck_assert_uint_eq(line_user_unconsumed(&user), 7);
    line_user_take(&user);
    line_user_check(&user, "a\nb\nc\nd\n");
    line_user_send(&user, "g\n", 2);
    stream_fixture_pass();
    line_user_check(&user, "a\nb\nc\nd\ne\nfg\n");
    ck_assert_uint_eq(line_user_unconsumed(&user), 0);
    line_user_end(&user);
}

TEST(input_over_the_limit_stays_in_the_kernel)
{
    static char bytes[3 * INPUT_MAX];
    struct line_user user;
    memset(bytes, 'x', sizeof(bytes));
    bytes[sizeof(bytes) - 1] = '\n';
    line_user_begin_pair(&user, SOCK_STREAM);
    line_user_send(&user, bytes, sizeof(bytes));
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    ck_assert_uint_eq(line_user_unconsumed(&user), INPUT_MAX);
    stream_consume(&user.stream, INPUT_MAX - 10);
    stream_set_reading(&user.stream, false);
    stream_fixture_pass();
    ck_assert_uint_eq(line_user_unconsumed(&user), 10);
    stream_set_reading(&user.stream, true);
    stream_fixture_pass();
    ck_assert_uint_eq(line_user_unconsumed(&user), INPUT_MAX);
    line_user_end(&user);
}

/* All streams share the scratch buffer. Input that a stream has not consumed, here half of a
 * secret, must not stay there. */
TEST(unconsumed_input_does_not_stay_in_the_scratch)
{
    static const char nothing[16];
    struct line_user user;
    line_user_begin_pair(&user, SOCK_STREAM);
    line_user_send(&user, "AUTH half-a-secr", 16);
    stream_fixture_pass();
    ck_assert_uint_eq(line_user_unconsumed(&user), 16);
    ck_assert_mem_eq(stream_fixture.streams.scratch, nothing, sizeof(nothing));
    /* Bytes that are appended to kept input leave nothing in the scratch buffer either. */
    line_user_send(&user, "et-of-mine\n", 11);
    stream_fixture_pass();
    line_user_check(&user, "AUTH half-a-secret-of-mine\n");
    ck_assert_mem_eq(stream_fixture.streams.scratch, nothing, sizeof(nothing));
    line_user_end(&user);
}

TEST(streams_do_not_share_input)
{
    struct line_user one;
    struct line_user two;
    line_user_begin_pair(&one, SOCK_STREAM);
    line_user_begin_pair(&two, SOCK_STREAM);
    line_user_send(&one, "first li", 8);
    line_user_send(&two, "second l", 8);
    stream_fixture_pass();
    line_user_send(&two, "ine\n", 4);
    line_user_send(&one, "ne\n", 3);
    stream_fixture_pass();
    line_user_check(&one, "first line\n");
    line_user_check(&two, "second line\n");
    line_user_end(&one);
    line_user_end(&two);
}

/* The order in which the sockets became ready does not matter. */
TEST(master_is_read_after_the_clients)
{
    struct line_user client;
    struct line_user master;
    int fds[2];
    unsigned callbacks = 0;
    line_user_begin_pair(&client, SOCK_STREAM);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    line_user_begin(&master, &stream_of_master, fds[0], fds[1]);
    client.callbacks = master.callbacks = &callbacks;
    line_user_send(&master, "reply\n", 6);
    line_user_send(&client, "request\n", 8);
    stream_fixture_pass();
    ck_assert_uint_eq(client.read_order, 1);
    ck_assert_uint_eq(master.read_order, 2);
    line_user_end(&client);
    line_user_end(&master);
}

TEST(stream_may_be_closed_in_its_own_callback)
{
    struct line_user user;
    line_user_begin_pair(&user, SOCK_STREAM);
    user.closes = true;
    stream_write(&user.stream, "x", 1);
    line_user_send(&user, "a\nb", 3);
    stream_fixture_pass();
    line_user_check(&user, "a\n");
    ck_assert(!stream_is_open(&user.stream));
    ck_assert_uint_eq(stream_fixture.streams.blocks.in_use, 0);
    line_user_end(&user);
}

/* --- output --- */

TEST(writes_of_one_pass_go_out_in_one_send)
{
    struct line_user user;
    char got[1000];
    line_user_begin_pair(&user, SOCK_SEQPACKET);
    for (unsigned i = 0; i < 100; i++)
        stream_write(&user.stream, "0123456789" + i % 10, 1);
    ck_assert_uint_eq(stream_unsent(&user.stream), 100);
    ck_assert_int_lt(recv(user.peer, got, sizeof(got), 0), 0);
    stream_fixture_pass();
    ck_assert_int_eq(recv(user.peer, got, sizeof(got), 0), 100);
    ck_assert_mem_eq(got + 90, "0123456789", 10);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    ck_assert_uint_eq(user.written, 1);
    ck_assert_uint_eq(stream_fixture.streams.blocks.in_use, 0);
    line_user_end(&user);
}

/* Write a megabyte: `at_once` bytes before the first pass, in pieces of varying lengths, and more
 * after each pass. The peer reads slowly. */
static void check_much(struct line_user *user, size_t at_once)
{
    char *sent = malloc(MUCH);
    char *got = malloc(MUCH);
    size_t written = 0;
    size_t len = 0;
    for (size_t i = 0; i < MUCH; i++)
        sent[i] = (char)(i * 31 + i / 251);
    while (written < at_once) {
        size_t piece = 1 + written % 40000;
        stream_write(&user->stream, sent + written, piece);
        written += piece;
    }
    for (unsigned passes = 0; len < MUCH && passes < 10000; passes++) {
        stream_fixture_pass();
        ck_assert(user->written == 0 || stream_unsent(&user->stream) == 0);
        user->written = 0;
        poll(&(struct pollfd){.fd = user->peer, .events = POLLIN}, 1, 1);
        ssize_t more = recv(user->peer, got + len, 5000 < MUCH - len ? 5000 : MUCH - len, 0);
        len += more > 0 ? (size_t)more : 0;
        size_t piece = MUCH - written < 12000 ? MUCH - written : 12000;
        if (piece > 0)
            stream_write(&user->stream, sent + written, piece);
        written += piece;
    }
    ck_assert_uint_eq(len, MUCH);
    ck_assert(memcmp(sent, got, MUCH) == 0);
    free(sent);
    free(got);
}

TEST(output_that_the_kernel_does_not_take_is_sent_later)
{
    struct line_user user;
    line_user_begin_pair(&user, SOCK_STREAM);
    check_much(&user, MUCH / 2);
    line_user_end(&user);
}

/* The kernel takes only a part of a block. A unix socket never does that, so this test uses TCP. */
TEST(partly_sent_block_arrives_whole)
{
    struct line_user user;
    line_user_begin_tcp(&user);
    const int small = 1;
    ck_assert_int_eq(setsockopt(user.stream.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    ck_assert_int_eq(fcntl(user.peer, F_SETFL, O_NONBLOCK), 0);
    check_much(&user, 0);
    line_user_end(&user);
}

TEST(output_survives_a_lack_of_blocks)
{
    struct line_user user;
    while (pool_take(&stream_fixture.streams.blocks) != NULL)
        ;
    line_user_begin_pair(&user, SOCK_STREAM);
    check_much(&user, MUCH / 2);
    line_user_end(&user);
}

TEST(output_for_masters_goes_first)
{
    struct line_user clients[2];
    struct line_user master;
    int fds[2];
    unsigned callbacks = 0;
    line_user_begin_pair(&clients[0], SOCK_STREAM);
    line_user_begin_pair(&clients[1], SOCK_STREAM);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    line_user_begin(&master, &stream_of_master, fds[0], fds[1]);
    clients[0].callbacks = clients[1].callbacks = master.callbacks = &callbacks;
    stream_write(&clients[0].stream, "a", 1);
    stream_write(&clients[1].stream, "b", 1);
    stream_write(&master.stream, "c", 1);
    stream_fixture_pass();
    ck_assert_uint_eq(master.write_order, 1);
    ck_assert_uint_eq(clients[0].write_order, 2);
    ck_assert_uint_eq(clients[1].write_order, 3);
    line_user_end(&clients[0]);
    line_user_end(&clients[1]);
    line_user_end(&master);
}

/* A SET that was given up must not reach its master. */
TEST(closed_stream_discards_its_unsent_output)
{
    struct line_user user;
    char got[16];
    line_user_begin_pair(&user, SOCK_STREAM);
    stream_write(&user.stream, "SET", 3);
    stream_close(&user.stream);
    stream_fixture_pass();
    ck_assert_int_eq(recv(user.peer, got, sizeof(got), 0), 0);
    ck_assert_uint_eq(stream_fixture.streams.blocks.in_use, 0);
    line_user_end(&user);
}
