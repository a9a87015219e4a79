/*
 * The bytes of one connection, over real kernel sockets (server/net/stream.h).
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/net/stream.h"
#include "tests/runner.h"

enum { INPUT_MAX = 4096, MUCH = 1024 * 1024 };

struct fixture {
    struct event_base *base;
    struct streams streams;
    struct pass pass;
};

/* The user of a stream, which takes whole lines from it, and the socket of the peer. */
struct line_user {
    struct stream stream;
    int peer;
    char lines[4 * INPUT_MAX];
    size_t lines_len;
    unsigned lines_at_once; /* limit of lines per callback */
    bool closes;            /* closes the stream after the first line */
    unsigned written;
    unsigned ends;
    unsigned losses;
    unsigned *callbacks; /* number of callbacks so far, shared by all users of a test */
    unsigned write_order;
    unsigned read_order;
};

/* --- callbacks --- */

static void take_lines(struct line_user *user)
{
    for (unsigned taken = 0; taken < user->lines_at_once; taken++) {
        size_t len;
        char *bytes = stream_input(&user->stream, &len);
        const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;
        if (end == NULL)
            return;
        size_t line_len = (size_t)(end - bytes) + 1;
        ck_assert_uint_le(user->lines_len + line_len, sizeof(user->lines));
        memcpy(user->lines + user->lines_len, bytes, line_len);
        user->lines_len += line_len;
        stream_consume(&user->stream, line_len);
    }
}

static void on_input(void *context)
{
    struct line_user *user = context;
    if (user->callbacks != NULL)
        user->read_order = ++*user->callbacks;
    take_lines(user);
    if (user->closes && user->lines_len > 0)
        stream_close(&user->stream);
}

static void on_written(void *context)
{
    struct line_user *user = context;
    user->written++;
    if (user->callbacks != NULL)
        user->write_order = ++*user->callbacks;
}

static void on_end(void *context)
{
    struct line_user *user = context;
    user->ends++;
}

static void on_lost(void *context)
{
    struct line_user *user = context;
    user->losses++;
}

static const struct stream_user of_client = {
    .on_input = on_input,
    .on_written = on_written,
    .on_end = on_end,
    .on_lost = on_lost,
    .input_max = INPUT_MAX,
};

static const struct stream_user of_master = {
    .on_input = on_input,
    .on_written = on_written,
    .on_end = on_end,
    .on_lost = on_lost,
    .master = true,
    .input_max = INPUT_MAX,
};

/* --- event loop --- */

static void on_pass_end(evutil_socket_t fd, short events, void *context)
{
    struct fixture *fixture = context;
    (void)fd;
    (void)events;
    streams_flush(&fixture->streams);
    pass_ended(&fixture->pass);
}

static void set_up(struct fixture *fixture)
{
    *fixture = (struct fixture){.base = event_base_new()};
    ck_assert_ptr_nonnull(fixture->base);
    ck_assert(pass_init(&fixture->pass, fixture->base, on_pass_end, fixture));
    ck_assert(streams_init(&fixture->streams, fixture->base, &fixture->pass));
}

static void tear_down(struct fixture *fixture)
{
    streams_deinit(&fixture->streams);
    pass_deinit(&fixture->pass);
    event_base_free(fixture->base);
}

/* Run the loop once, without waiting. */
static void pass(struct fixture *fixture)
{
    event_base_loop(fixture->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void begin(struct line_user *user, struct fixture *fixture, const struct stream_user *as,
                  int fd, int peer)
{
    *user = (struct line_user){.peer = peer, .lines_at_once = 1000};
    ck_assert(stream_open(&user->stream, &fixture->streams, fd, NULL, as, user));
}

/* With SOCK_SEQPACKET, each send() of the stream is one recv() of the peer. */
static void begin_pair(struct line_user *user, struct fixture *fixture, int type)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    begin(user, fixture, &of_client, fds[0], fds[1]);
}

static void begin_tcp(struct line_user *user, struct fixture *fixture)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(where);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&where, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&where, &len), 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&where, len), 0);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    close(listener);
    begin(user, fixture, &of_client, fd, peer);
}

static void end(struct line_user *user)
{
    stream_close(&user->stream);
    if (user->peer >= 0)
        close(user->peer);
}

static void reset(struct line_user *user)
{
    const struct linger at_once = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(user->peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(user->peer);
    user->peer = -1;
}

static void send_bytes(const struct line_user *user, const char *bytes, size_t len)
{
    ck_assert_int_eq(send(user->peer, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static size_t unconsumed(struct line_user *user)
{
    size_t len;
    stream_input(&user->stream, &len);
    return len;
}

static void check_lines(const struct line_user *user, const char *lines)
{
    ck_assert_uint_eq(user->lines_len, strlen(lines));
    ck_assert_mem_eq(user->lines, lines, user->lines_len);
}

/* --- input --- */

START_TEST(lines_are_whole_wherever_they_are_split)
{
    static const char text[] = "\nPING\na somewhat longer line\n\nx\n";
    struct fixture fixture;
    set_up(&fixture);
    for (size_t first = 1; first < sizeof(text) - 2; first++)
        for (size_t second = first + 1; second < sizeof(text) - 1; second++) {
            struct line_user user;
            begin_pair(&user, &fixture, SOCK_STREAM);
            send_bytes(&user, text, first);
            pass(&fixture);
            send_bytes(&user, text + first, second - first);
            pass(&fixture);
            send_bytes(&user, text + second, sizeof(text) - 1 - second);
            pass(&fixture);
            check_lines(&user, text);
            ck_assert_uint_eq(unconsumed(&user), 0);
            end(&user);
        }
    tear_down(&fixture);
}
END_TEST

START_TEST(unconsumed_input_is_kept)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_pair(&user, &fixture, SOCK_STREAM);
    user.lines_at_once = 2;
    send_bytes(&user, "a\nb\nc\nd\ne\nf", 11);
    pass(&fixture);
    check_lines(&user, "a\nb\n");
    ck_assert_uint_eq(unconsumed(&user), 7);
    take_lines(&user);
    check_lines(&user, "a\nb\nc\nd\n");
    send_bytes(&user, "g\n", 2);
    pass(&fixture);
    check_lines(&user, "a\nb\nc\nd\ne\nfg\n");
    ck_assert_uint_eq(unconsumed(&user), 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

START_TEST(input_over_the_limit_stays_in_the_kernel)
{
    static char bytes[3 * INPUT_MAX];
    struct fixture fixture;
    struct line_user user;
    memset(bytes, 'x', sizeof(bytes));
    bytes[sizeof(bytes) - 1] = '\n';
    set_up(&fixture);
    begin_pair(&user, &fixture, SOCK_STREAM);
    send_bytes(&user, bytes, sizeof(bytes));
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    ck_assert_uint_eq(unconsumed(&user), INPUT_MAX);
    stream_consume(&user.stream, INPUT_MAX - 10);
    stream_set_reading(&user.stream, false);
    pass(&fixture);
    ck_assert_uint_eq(unconsumed(&user), 10);
    stream_set_reading(&user.stream, true);
    pass(&fixture);
    ck_assert_uint_eq(unconsumed(&user), INPUT_MAX);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* All streams share the scratch buffer. Input that a stream has not consumed, here half of a
 * secret, must not stay there. */
START_TEST(unconsumed_input_does_not_stay_in_the_scratch)
{
    static const char nothing[16];
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_pair(&user, &fixture, SOCK_STREAM);
    send_bytes(&user, "AUTH half-a-secr", 16);
    pass(&fixture);
    ck_assert_uint_eq(unconsumed(&user), 16);
    ck_assert_mem_eq(fixture.streams.scratch, nothing, sizeof(nothing));
    /* Bytes that are appended to kept input leave nothing in the scratch buffer either. */
    send_bytes(&user, "et-of-mine\n", 11);
    pass(&fixture);
    check_lines(&user, "AUTH half-a-secret-of-mine\n");
    ck_assert_mem_eq(fixture.streams.scratch, nothing, sizeof(nothing));
    end(&user);
    tear_down(&fixture);
}
END_TEST

START_TEST(streams_do_not_share_input)
{
    struct fixture fixture;
    struct line_user one;
    struct line_user two;
    set_up(&fixture);
    begin_pair(&one, &fixture, SOCK_STREAM);
    begin_pair(&two, &fixture, SOCK_STREAM);
    send_bytes(&one, "first li", 8);
    send_bytes(&two, "second l", 8);
    pass(&fixture);
    send_bytes(&two, "ine\n", 4);
    send_bytes(&one, "ne\n", 3);
    pass(&fixture);
    check_lines(&one, "first line\n");
    check_lines(&two, "second line\n");
    end(&one);
    end(&two);
    tear_down(&fixture);
}
END_TEST

/* The order in which the sockets became ready does not matter. */
START_TEST(master_is_read_after_the_clients)
{
    struct fixture fixture;
    struct line_user client;
    struct line_user master;
    int fds[2];
    unsigned callbacks = 0;
    set_up(&fixture);
    begin_pair(&client, &fixture, SOCK_STREAM);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    begin(&master, &fixture, &of_master, fds[0], fds[1]);
    client.callbacks = master.callbacks = &callbacks;
    send_bytes(&master, "reply\n", 6);
    send_bytes(&client, "request\n", 8);
    pass(&fixture);
    ck_assert_uint_eq(client.read_order, 1);
    ck_assert_uint_eq(master.read_order, 2);
    end(&client);
    end(&master);
    tear_down(&fixture);
}
END_TEST

START_TEST(stream_may_be_closed_in_its_own_callback)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_pair(&user, &fixture, SOCK_STREAM);
    user.closes = true;
    stream_write(&user.stream, "x", 1);
    send_bytes(&user, "a\nb", 3);
    pass(&fixture);
    check_lines(&user, "a\n");
    ck_assert(!stream_is_open(&user.stream));
    ck_assert_uint_eq(fixture.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* --- output --- */

START_TEST(writes_of_one_pass_go_out_in_one_send)
{
    struct fixture fixture;
    struct line_user user;
    char got[1000];
    set_up(&fixture);
    begin_pair(&user, &fixture, SOCK_SEQPACKET);
    for (unsigned i = 0; i < 100; i++)
        stream_write(&user.stream, "0123456789" + i % 10, 1);
    ck_assert_uint_eq(stream_unsent(&user.stream), 100);
    ck_assert_int_lt(recv(user.peer, got, sizeof(got), 0), 0);
    pass(&fixture);
    ck_assert_int_eq(recv(user.peer, got, sizeof(got), 0), 100);
    ck_assert_mem_eq(got + 90, "0123456789", 10);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    ck_assert_uint_eq(user.written, 1);
    ck_assert_uint_eq(fixture.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* Write a megabyte: `at_once` bytes before the first pass, in pieces of varying lengths, and more
 * after each pass. The peer reads slowly. */
static void check_much(struct fixture *fixture, struct line_user *user, size_t at_once)
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
        pass(fixture);
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

START_TEST(output_that_the_kernel_does_not_take_is_sent_later)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_pair(&user, &fixture, SOCK_STREAM);
    check_much(&fixture, &user, MUCH / 2);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* The kernel takes only a part of a block. A unix socket never does that, so this test uses TCP. */
START_TEST(partly_sent_block_arrives_whole)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    const int small = 1;
    ck_assert_int_eq(setsockopt(user.stream.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    ck_assert_int_eq(fcntl(user.peer, F_SETFL, O_NONBLOCK), 0);
    check_much(&fixture, &user, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

START_TEST(output_survives_a_lack_of_blocks)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    while (pool_take(&fixture.streams.blocks) != NULL)
        ;
    begin_pair(&user, &fixture, SOCK_STREAM);
    check_much(&fixture, &user, MUCH / 2);
    end(&user);
    tear_down(&fixture);
}
END_TEST

START_TEST(output_for_masters_goes_first)
{
    struct fixture fixture;
    struct line_user clients[2];
    struct line_user master;
    int fds[2];
    unsigned callbacks = 0;
    set_up(&fixture);
    begin_pair(&clients[0], &fixture, SOCK_STREAM);
    begin_pair(&clients[1], &fixture, SOCK_STREAM);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    begin(&master, &fixture, &of_master, fds[0], fds[1]);
    clients[0].callbacks = clients[1].callbacks = master.callbacks = &callbacks;
    stream_write(&clients[0].stream, "a", 1);
    stream_write(&clients[1].stream, "b", 1);
    stream_write(&master.stream, "c", 1);
    pass(&fixture);
    ck_assert_uint_eq(master.write_order, 1);
    ck_assert_uint_eq(clients[0].write_order, 2);
    ck_assert_uint_eq(clients[1].write_order, 3);
    end(&clients[0]);
    end(&clients[1]);
    end(&master);
    tear_down(&fixture);
}
END_TEST

/* A SET that was given up must not reach its master. */
START_TEST(closed_stream_discards_its_unsent_output)
{
    struct fixture fixture;
    struct line_user user;
    char got[16];
    set_up(&fixture);
    begin_pair(&user, &fixture, SOCK_STREAM);
    stream_write(&user.stream, "SET", 3);
    stream_close(&user.stream);
    pass(&fixture);
    ck_assert_int_eq(recv(user.peer, got, sizeof(got), 0), 0);
    ck_assert_uint_eq(fixture.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* --- ends and losses --- */

START_TEST(end_is_reported_once_and_answers_still_go_out)
{
    struct fixture fixture;
    struct line_user user;
    char got[16];
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    send_bytes(&user, "a\nb", 3);
    shutdown(user.peer, SHUT_WR);
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    check_lines(&user, "a\n");
    ck_assert_uint_eq(user.ends, 1);
    stream_write(&user.stream, "answer", 6);
    pass(&fixture);
    ck_assert_int_eq(recv(user.peer, got, sizeof(got), 0), 6);
    ck_assert_uint_eq(user.losses, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* If the end were reported one pass later, a LOCK that came before it would already have gone to
 * the masters. */
START_TEST(end_is_reported_in_one_pass_with_the_input_before_it)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    for (unsigned i = 0; i < 100; i++) {
        begin_tcp(&user, &fixture);
        send_bytes(&user, "a\nb", 3);
        shutdown(user.peer, SHUT_WR);
        pass(&fixture);
        check_lines(&user, "a\n");
        ck_assert_uint_eq(user.ends, 1);
        end(&user);
    }
    tear_down(&fixture);
}
END_TEST

START_TEST(reset_is_a_loss_and_no_end)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* The kernel reports a reset once, in this case to send(). recv() would then report an end. */
START_TEST(reset_found_by_a_write_is_no_end)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    reset(&user);
    stream_write(&user.stream, "answer", 6);
    streams_flush(&fixture.streams);
    /* The loss is not reported in the middle of a flush. */
    ck_assert_uint_eq(user.losses, 0);
    stream_write(&user.stream, "more", 4);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(user.written, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* The read of this pass finds the reset before the output is flushed. The flush must not report the
 * loss again. */
START_TEST(reset_after_a_write_is_reported_once)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    reset(&user);
    stream_write(&user.stream, "answer", 6);
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(fixture.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

static bool out_of_memory;

static void *allocate(size_t size)
{
    return out_of_memory ? NULL : malloc(size);
}

static void *reallocate(void *memory, size_t size)
{
    return out_of_memory ? NULL : realloc(memory, size);
}

/* Whether the peer ended the connection decides what happens to the holds of a local client. In the
 * first run memory is exhausted, in the second the peer resets the connection. */
START_TEST(loss_is_by_the_peer_only_if_it_ended_the_connection)
{
    struct fixture fixture;
    struct line_user user;
    event_set_mem_functions(allocate, reallocate, free);
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    out_of_memory = _i == 0;
    if (out_of_memory)
        send_bytes(&user, "half a line", 11);
    else
        reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    out_of_memory = false;
    ck_assert_uint_eq(user.losses, 1);
    ck_assert(user.stream.lost_by_peer == (_i == 1));
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* Input of a lost client is not processed any more. */
START_TEST(lost_stream_has_no_input)
{
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    user.lines_at_once = 1;
    send_bytes(&user, "a\nb\nc\n", 6);
    pass(&fixture);
    ck_assert_uint_eq(unconsumed(&user), 4);
    reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(unconsumed(&user), 0);
    check_lines(&user, "a\n");
    end(&user);
    tear_down(&fixture);
}
END_TEST

/* The peer resets the connection while the stream is not reading, and while output that the kernel
 * did not take is still waiting. */
START_TEST(reset_with_waiting_output_is_reported)
{
    static char much[MUCH];
    struct fixture fixture;
    struct line_user user;
    set_up(&fixture);
    begin_tcp(&user, &fixture);
    for (unsigned i = 0; i < 8; i++)
        stream_write(&user.stream, much, sizeof(much));
    pass(&fixture);
    ck_assert_uint_gt(stream_unsent(&user.stream), 0);
    stream_set_reading(&user.stream, false);
    reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&fixture);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    end(&user);
    tear_down(&fixture);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("stream");
    TCase *in = tcase_create("input");
    TCase *out = tcase_create("output");
    TCase *over = tcase_create("ends");
    tcase_add_test(in, lines_are_whole_wherever_they_are_split);
    tcase_add_test(in, unconsumed_input_is_kept);
    tcase_add_test(in, input_over_the_limit_stays_in_the_kernel);
    tcase_add_test(in, unconsumed_input_does_not_stay_in_the_scratch);
    tcase_add_test(in, streams_do_not_share_input);
    tcase_add_test(in, master_is_read_after_the_clients);
    tcase_add_test(in, stream_may_be_closed_in_its_own_callback);
    tcase_add_test(out, writes_of_one_pass_go_out_in_one_send);
    tcase_add_test(out, output_that_the_kernel_does_not_take_is_sent_later);
    tcase_add_test(out, partly_sent_block_arrives_whole);
    tcase_add_test(out, output_survives_a_lack_of_blocks);
    tcase_add_test(out, output_for_masters_goes_first);
    tcase_add_test(out, closed_stream_discards_its_unsent_output);
    tcase_add_test(over, end_is_reported_once_and_answers_still_go_out);
    tcase_add_test(over, end_is_reported_in_one_pass_with_the_input_before_it);
    tcase_add_test(over, reset_is_a_loss_and_no_end);
    tcase_add_test(over, reset_found_by_a_write_is_no_end);
    tcase_add_test(over, reset_after_a_write_is_reported_once);
    tcase_add_loop_test(over, loss_is_by_the_peer_only_if_it_ended_the_connection, 0, 2);
    tcase_add_test(over, lost_stream_has_no_input);
    tcase_add_test(over, reset_with_waiting_output_is_reported);
    suite_add_tcase(suite, in);
    suite_add_tcase(suite, out);
    suite_add_tcase(suite, over);
    return suite;
}
