/*
 * The bytes of one connection, over real sockets of the kernel: see server/net/stream.h.
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

struct bench {
    struct event_base *base;
    struct streams streams;
    struct pass pass;
};

/* A user who takes whole lines, and the other side. */
struct line_user {
    struct stream stream;
    int other;
    char lines[4 * INPUT_MAX];
    size_t lines_len;
    unsigned lines_at_once; /* at most, in one callback */
    bool closes;            /* the stream, once a line has come */
    unsigned written;
    unsigned ends;
    unsigned losses;
    unsigned *turn; /* counts those who were called, in order */
    unsigned written_as;
    unsigned read_as;
};

/* --- the user --- */

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
    if (user->turn != NULL)
        user->read_as = ++*user->turn;
    take_lines(user);
    if (user->closes && user->lines_len > 0)
        stream_close(&user->stream);
}

static void on_written(void *context)
{
    struct line_user *user = context;
    user->written++;
    if (user->turn != NULL)
        user->written_as = ++*user->turn;
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

/* --- the bench --- */

static void on_pass_end(evutil_socket_t fd, short events, void *context)
{
    struct bench *bench = context;
    (void)fd;
    (void)events;
    streams_flush(&bench->streams);
    pass_ended(&bench->pass);
}

static void set_up(struct bench *bench)
{
    *bench = (struct bench){.base = event_base_new()};
    ck_assert_ptr_nonnull(bench->base);
    ck_assert(pass_init(&bench->pass, bench->base, on_pass_end, bench));
    ck_assert(streams_init(&bench->streams, bench->base, &bench->pass));
}

static void tear_down(struct bench *bench)
{
    streams_deinit(&bench->streams);
    pass_deinit(&bench->pass);
    event_base_free(bench->base);
}

/* Once around the loop, without waiting. */
static void pass(struct bench *bench)
{
    event_base_loop(bench->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void begin(struct line_user *user, struct bench *bench, const struct stream_user *as, int fd,
                  int other)
{
    *user = (struct line_user){.other = other, .lines_at_once = 1000};
    ck_assert(stream_open(&user->stream, &bench->streams, fd, NULL, as, user));
}

/* A SOCK_SEQPACKET shows each send() by itself. */
static void begin_pair(struct line_user *user, struct bench *bench, int type)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    begin(user, bench, &of_client, fds[0], fds[1]);
}

static void begin_tcp(struct line_user *user, struct bench *bench)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(where);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&where, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&where, &len), 0);
    ck_assert_int_eq(connect(other, (struct sockaddr *)&where, len), 0);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    close(listener);
    begin(user, bench, &of_client, fd, other);
}

static void end(struct line_user *user)
{
    stream_close(&user->stream);
    if (user->other >= 0)
        close(user->other);
}

static void reset(struct line_user *user)
{
    const struct linger at_once = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(user->other, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(user->other);
    user->other = -1;
}

static void say(const struct line_user *user, const char *bytes, size_t len)
{
    ck_assert_int_eq(send(user->other, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static size_t kept(struct line_user *user)
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

/* --- in --- */

START_TEST(lines_are_whole_wherever_they_are_split)
{
    static const char text[] = "\nPING\na somewhat longer line\n\nx\n";
    struct bench bench;
    set_up(&bench);
    for (size_t first = 1; first < sizeof(text) - 2; first++)
        for (size_t second = first + 1; second < sizeof(text) - 1; second++) {
            struct line_user user;
            begin_pair(&user, &bench, SOCK_STREAM);
            say(&user, text, first);
            pass(&bench);
            say(&user, text + first, second - first);
            pass(&bench);
            say(&user, text + second, sizeof(text) - 1 - second);
            pass(&bench);
            check_lines(&user, text);
            ck_assert_uint_eq(kept(&user), 0);
            end(&user);
        }
    tear_down(&bench);
}
END_TEST

START_TEST(what_is_not_consumed_is_kept)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_pair(&user, &bench, SOCK_STREAM);
    user.lines_at_once = 2;
    say(&user, "a\nb\nc\nd\ne\nf", 11);
    pass(&bench);
    check_lines(&user, "a\nb\n");
    ck_assert_uint_eq(kept(&user), 7);
    take_lines(&user);
    check_lines(&user, "a\nb\nc\nd\n");
    say(&user, "g\n", 2);
    pass(&bench);
    check_lines(&user, "a\nb\nc\nd\ne\nfg\n");
    ck_assert_uint_eq(kept(&user), 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

START_TEST(what_may_not_be_read_yet_stays_with_the_kernel)
{
    static char bytes[3 * INPUT_MAX];
    struct bench bench;
    struct line_user user;
    memset(bytes, 'x', sizeof(bytes));
    bytes[sizeof(bytes) - 1] = '\n';
    set_up(&bench);
    begin_pair(&user, &bench, SOCK_STREAM);
    say(&user, bytes, sizeof(bytes));
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    ck_assert_uint_eq(kept(&user), INPUT_MAX);
    stream_consume(&user.stream, INPUT_MAX - 10);
    stream_set_reading(&user.stream, false);
    pass(&bench);
    ck_assert_uint_eq(kept(&user), 10);
    stream_set_reading(&user.stream, true);
    pass(&bench);
    ck_assert_uint_eq(kept(&user), INPUT_MAX);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* The scratch is everybody's. */
START_TEST(nothing_unconsumed_is_left_in_the_scratch)
{
    static const char nothing[16];
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_pair(&user, &bench, SOCK_STREAM);
    say(&user, "AUTH half-a-secr", 16);
    pass(&bench);
    ck_assert_uint_eq(kept(&user), 16);
    ck_assert_mem_eq(bench.streams.scratch, nothing, sizeof(nothing));
    /* Nor of what was put behind what is kept. */
    say(&user, "et-of-mine\n", 11);
    pass(&bench);
    check_lines(&user, "AUTH half-a-secret-of-mine\n");
    ck_assert_mem_eq(bench.streams.scratch, nothing, sizeof(nothing));
    end(&user);
    tear_down(&bench);
}
END_TEST

START_TEST(two_streams_do_not_mix)
{
    struct bench bench;
    struct line_user one;
    struct line_user two;
    set_up(&bench);
    begin_pair(&one, &bench, SOCK_STREAM);
    begin_pair(&two, &bench, SOCK_STREAM);
    say(&one, "first li", 8);
    say(&two, "second l", 8);
    pass(&bench);
    say(&two, "ine\n", 4);
    say(&one, "ne\n", 3);
    pass(&bench);
    check_lines(&one, "first line\n");
    check_lines(&two, "second line\n");
    end(&one);
    end(&two);
    tear_down(&bench);
}
END_TEST

/* Whatever was ready first. */
START_TEST(a_master_is_read_behind_the_clients)
{
    struct bench bench;
    struct line_user client;
    struct line_user master;
    int fds[2];
    unsigned turn = 0;
    set_up(&bench);
    begin_pair(&client, &bench, SOCK_STREAM);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    begin(&master, &bench, &of_master, fds[0], fds[1]);
    client.turn = master.turn = &turn;
    say(&master, "reply\n", 6);
    say(&client, "request\n", 8);
    pass(&bench);
    ck_assert_uint_eq(client.read_as, 1);
    ck_assert_uint_eq(master.read_as, 2);
    end(&client);
    end(&master);
    tear_down(&bench);
}
END_TEST

START_TEST(it_may_be_closed_in_its_own_callback)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_pair(&user, &bench, SOCK_STREAM);
    user.closes = true;
    stream_write(&user.stream, "x", 1);
    say(&user, "a\nb", 3);
    pass(&bench);
    check_lines(&user, "a\n");
    ck_assert(!stream_is_open(&user.stream));
    ck_assert_uint_eq(bench.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* --- out --- */

START_TEST(what_a_pass_writes_goes_out_at_once)
{
    struct bench bench;
    struct line_user user;
    char got[1000];
    set_up(&bench);
    begin_pair(&user, &bench, SOCK_SEQPACKET);
    for (unsigned i = 0; i < 100; i++)
        stream_write(&user.stream, "0123456789" + i % 10, 1);
    ck_assert_uint_eq(stream_unsent(&user.stream), 100);
    ck_assert_int_lt(recv(user.other, got, sizeof(got), 0), 0);
    pass(&bench);
    ck_assert_int_eq(recv(user.other, got, sizeof(got), 0), 100);
    ck_assert_mem_eq(got + 90, "0123456789", 10);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    ck_assert_uint_eq(user.written, 1);
    ck_assert_uint_eq(bench.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* Write this much: the first of it at once, in pieces of all lengths, then something after each
 * pass. The other side reads slowly. */
static void check_much(struct bench *bench, struct line_user *user, size_t at_once)
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
        pass(bench);
        ck_assert(user->written == 0 || stream_unsent(&user->stream) == 0);
        user->written = 0;
        poll(&(struct pollfd){.fd = user->other, .events = POLLIN}, 1, 1);
        ssize_t more = recv(user->other, got + len, 5000 < MUCH - len ? 5000 : MUCH - len, 0);
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

START_TEST(what_the_kernel_does_not_take_comes_later)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_pair(&user, &bench, SOCK_STREAM);
    check_much(&bench, &user, MUCH / 2);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* Of one block a part, which a unix socket never does. */
START_TEST(what_the_kernel_takes_a_part_of_is_whole)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_tcp(&user, &bench);
    const int small = 1;
    ck_assert_int_eq(setsockopt(user.stream.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    ck_assert_int_eq(fcntl(user.other, F_SETFL, O_NONBLOCK), 0);
    check_much(&bench, &user, 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

START_TEST(without_a_block_nothing_is_lost)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    while (pool_take(&bench.streams.blocks) != NULL)
        ;
    begin_pair(&user, &bench, SOCK_STREAM);
    check_much(&bench, &user, MUCH / 2);
    end(&user);
    tear_down(&bench);
}
END_TEST

START_TEST(what_is_for_a_master_goes_first)
{
    struct bench bench;
    struct line_user clients[2];
    struct line_user master;
    int fds[2];
    unsigned turn = 0;
    set_up(&bench);
    begin_pair(&clients[0], &bench, SOCK_STREAM);
    begin_pair(&clients[1], &bench, SOCK_STREAM);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    begin(&master, &bench, &of_master, fds[0], fds[1]);
    clients[0].turn = clients[1].turn = master.turn = &turn;
    stream_write(&clients[0].stream, "a", 1);
    stream_write(&clients[1].stream, "b", 1);
    stream_write(&master.stream, "c", 1);
    pass(&bench);
    ck_assert_uint_eq(master.written_as, 1);
    ck_assert_uint_eq(clients[0].written_as, 2);
    ck_assert_uint_eq(clients[1].written_as, 3);
    end(&clients[0]);
    end(&clients[1]);
    end(&master);
    tear_down(&bench);
}
END_TEST

/* A SET that was given up must not reach its master. */
START_TEST(what_was_not_sent_when_it_is_closed_never_is)
{
    struct bench bench;
    struct line_user user;
    char got[16];
    set_up(&bench);
    begin_pair(&user, &bench, SOCK_STREAM);
    stream_write(&user.stream, "SET", 3);
    stream_close(&user.stream);
    pass(&bench);
    ck_assert_int_eq(recv(user.other, got, sizeof(got), 0), 0);
    ck_assert_uint_eq(bench.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* --- how it ends --- */

START_TEST(an_end_is_told_once_and_answers_still_go_out)
{
    struct bench bench;
    struct line_user user;
    char got[16];
    set_up(&bench);
    begin_tcp(&user, &bench);
    say(&user, "a\nb", 3);
    shutdown(user.other, SHUT_WR);
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    check_lines(&user, "a\n");
    ck_assert_uint_eq(user.ends, 1);
    stream_write(&user.stream, "answer", 6);
    pass(&bench);
    ck_assert_int_eq(recv(user.other, got, sizeof(got), 0), 6);
    ck_assert_uint_eq(user.losses, 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* Else a LOCK in front of it would be on its way to the masters before. */
START_TEST(an_end_is_told_in_one_pass_with_what_is_in_front)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    for (unsigned i = 0; i < 100; i++) {
        begin_tcp(&user, &bench);
        say(&user, "a\nb", 3);
        shutdown(user.other, SHUT_WR);
        pass(&bench);
        check_lines(&user, "a\n");
        ck_assert_uint_eq(user.ends, 1);
        end(&user);
    }
    tear_down(&bench);
}
END_TEST

START_TEST(a_reset_is_a_loss_and_no_end)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_tcp(&user, &bench);
    reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* The kernel tells a reset once, here to send(); recv() would find an end then. */
START_TEST(a_reset_that_a_write_finds_is_no_end_either)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_tcp(&user, &bench);
    reset(&user);
    stream_write(&user.stream, "answer", 6);
    streams_flush(&bench.streams);
    /* Not in the middle of what others have sent. */
    ck_assert_uint_eq(user.losses, 0);
    stream_write(&user.stream, "more", 4);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(user.written, 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

/* Its flush is still to come, and must not find the same once more. */
START_TEST(a_reset_behind_what_was_written_is_told_once)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_tcp(&user, &bench);
    reset(&user);
    stream_write(&user.stream, "answer", 6);
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(bench.streams.blocks.in_use, 0);
    end(&user);
    tear_down(&bench);
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

/* Who ended it decides what becomes of the locks of a local client. */
START_TEST(a_loss_is_the_doing_of_the_other_side_only_if_it_ended_the_connection)
{
    struct bench bench;
    struct line_user user;
    event_set_mem_functions(allocate, reallocate, free);
    set_up(&bench);
    begin_tcp(&user, &bench);
    out_of_memory = _i == 0;
    if (out_of_memory)
        say(&user, "half a line", 11);
    else
        reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    out_of_memory = false;
    ck_assert_uint_eq(user.losses, 1);
    ck_assert(user.stream.lost_by_peer == (_i == 1));
    end(&user);
    tear_down(&bench);
}
END_TEST

/* Of what a lost client has sent nothing more is done. */
START_TEST(what_is_lost_has_no_input)
{
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_tcp(&user, &bench);
    user.lines_at_once = 1;
    say(&user, "a\nb\nc\n", 6);
    pass(&bench);
    ck_assert_uint_eq(kept(&user), 4);
    reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(kept(&user), 0);
    check_lines(&user, "a\n");
    end(&user);
    tear_down(&bench);
}
END_TEST

/* With what the kernel did not take still waiting. */
START_TEST(a_reset_while_output_waits_is_told_too)
{
    static char much[MUCH];
    struct bench bench;
    struct line_user user;
    set_up(&bench);
    begin_tcp(&user, &bench);
    for (unsigned i = 0; i < 8; i++)
        stream_write(&user.stream, much, sizeof(much));
    pass(&bench);
    ck_assert_uint_gt(stream_unsent(&user.stream), 0);
    stream_set_reading(&user.stream, false);
    reset(&user);
    for (unsigned i = 0; i < 5; i++)
        pass(&bench);
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    end(&user);
    tear_down(&bench);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("stream");
    TCase *in = tcase_create("in");
    TCase *out = tcase_create("out");
    TCase *over = tcase_create("how it ends");
    tcase_add_test(in, lines_are_whole_wherever_they_are_split);
    tcase_add_test(in, what_is_not_consumed_is_kept);
    tcase_add_test(in, what_may_not_be_read_yet_stays_with_the_kernel);
    tcase_add_test(in, nothing_unconsumed_is_left_in_the_scratch);
    tcase_add_test(in, two_streams_do_not_mix);
    tcase_add_test(in, a_master_is_read_behind_the_clients);
    tcase_add_test(in, it_may_be_closed_in_its_own_callback);
    tcase_add_test(out, what_a_pass_writes_goes_out_at_once);
    tcase_add_test(out, what_the_kernel_does_not_take_comes_later);
    tcase_add_test(out, what_the_kernel_takes_a_part_of_is_whole);
    tcase_add_test(out, without_a_block_nothing_is_lost);
    tcase_add_test(out, what_is_for_a_master_goes_first);
    tcase_add_test(out, what_was_not_sent_when_it_is_closed_never_is);
    tcase_add_test(over, an_end_is_told_once_and_answers_still_go_out);
    tcase_add_test(over, an_end_is_told_in_one_pass_with_what_is_in_front);
    tcase_add_test(over, a_reset_is_a_loss_and_no_end);
    tcase_add_test(over, a_reset_that_a_write_finds_is_no_end_either);
    tcase_add_test(over, a_reset_behind_what_was_written_is_told_once);
    tcase_add_loop_test(over, a_loss_is_the_doing_of_the_other_side_only_if_it_ended_the_connection,
                        0, 2);
    tcase_add_test(over, what_is_lost_has_no_input);
    tcase_add_test(over, a_reset_while_output_waits_is_told_too);
    suite_add_tcase(suite, in);
    suite_add_tcase(suite, out);
    suite_add_tcase(suite, over);
    return suite;
}
