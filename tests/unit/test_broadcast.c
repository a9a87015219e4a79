/*
 * What several masters are sent, over real sockets of the kernel: see server/net/broadcast.h.
 */
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/redis.h"
#include "server/net/broadcast.h"
#include "tests/runner.h"

enum { NODES = 3, ALL = 7, MUCH = 1024 * 1024 };

/* A daemon's end of each connection, and the other one. */
struct bench {
    struct event_base *base;
    struct pass pass;
    struct streams streams;
    struct broadcast broadcast;
    struct stream stream[NODES];
    int other[NODES];
};

static void ignore(void *context)
{
    (void)context;
}

/* The tests flush by themselves. */
static void on_pass_end(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    pass_ended(context);
}

static const struct stream_user of_master = {
    .on_input = ignore,
    .on_end = ignore,
    .on_lost = ignore,
    .master = true,
    .input_max = 4096,
};

/* A SOCK_SEQPACKET shows each send() by itself. */
static void connect_node(struct bench *bench, unsigned node, int type)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert(stream_open(&bench->stream[node], &bench->streams, fds[0], NULL, &of_master, NULL));
    bench->other[node] = fds[1];
}

static void set_up(struct bench *bench, int type)
{
    *bench = (struct bench){.base = event_base_new()};
    ck_assert(pass_init(&bench->pass, bench->base, on_pass_end, &bench->pass));
    ck_assert(streams_init(&bench->streams, bench->base, &bench->pass));
    for (unsigned i = 0; i < NODES; i++) {
        connect_node(bench, i, type);
        bench->broadcast.streams[i] = &bench->stream[i];
    }
}

static void tear_down(struct bench *bench)
{
    for (unsigned i = 0; i < NODES; i++) {
        stream_close(&bench->stream[i]);
        close(bench->other[i]);
    }
    streams_deinit(&bench->streams);
    pass_deinit(&bench->pass);
    event_base_free(bench->base);
}

/* The end of a pass. */
static void flush(struct bench *bench)
{
    broadcast_flush(&bench->broadcast, &bench->streams);
}

static void write_text(struct bench *bench, uint32_t nodes, const char *text)
{
    broadcast_write(&bench->broadcast, nodes, text, strlen(text));
}

/* All of it, in one send(); "": nothing has come. */
static void check_got(int other, const char *text)
{
    char got[256];
    ssize_t len = recv(other, got, sizeof(got), 0);
    ck_assert_int_eq(len, text[0] != '\0' ? (ssize_t)strlen(text) : -1);
    if (len > 0)
        ck_assert_mem_eq(got, text, (size_t)len);
}

/* Bytes that tell where they belong. */
static void fill(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 + i / 251);
}

START_TEST(what_is_alike_goes_out_to_each_at_once)
{
    struct bench bench;
    set_up(&bench, SOCK_SEQPACKET);
    write_text(&bench, ALL, "vote ");
    write_text(&bench, ALL, "probe ");
    for (unsigned i = 0; i < NODES; i++)
        check_got(bench.other[i], "");
    flush(&bench);
    for (unsigned i = 0; i < NODES; i++)
        check_got(bench.other[i], "vote probe ");
    ck_assert_uint_eq(bench.streams.blocks.in_use, 0);
    flush(&bench);
    check_got(bench.other[0], "");
    tear_down(&bench);
}
END_TEST

START_TEST(each_gets_what_is_its_own_in_order)
{
    struct bench bench;
    set_up(&bench, SOCK_SEQPACKET);
    write_text(&bench, ALL, "a");
    write_text(&bench, 2, "b"); /* one alone */
    write_text(&bench, ALL, "c");
    write_text(&bench, 5, "d"); /* some */
    write_text(&bench, 0, "never");
    write_text(&bench, 5, "e");
    flush(&bench);
    check_got(bench.other[0], "acde");
    check_got(bench.other[1], "abc");
    check_got(bench.other[2], "acde");
    write_text(&bench, 1, "f");
    write_text(&bench, ALL, "g");
    flush(&bench);
    check_got(bench.other[0], "fg");
    check_got(bench.other[1], "g");
    tear_down(&bench);
}
END_TEST

/* A SET that was written to a connection which is given up must not go out on the next one. */
START_TEST(what_was_for_a_connection_that_is_closed_is_dropped)
{
    struct bench bench;
    set_up(&bench, SOCK_SEQPACKET);
    write_text(&bench, ALL, "set");
    int before = bench.other[1];
    broadcast_drop(&bench.broadcast, 1);
    stream_close(&bench.stream[1]);
    connect_node(&bench, 1, SOCK_SEQPACKET);
    write_text(&bench, 5, " more");
    write_text(&bench, ALL, " all");
    flush(&bench);
    char byte;
    ck_assert_int_eq(recv(before, &byte, 1, 0), 0); /* its end, and nothing before that */
    close(before);
    check_got(bench.other[0], "set more all");
    check_got(bench.other[1], " all");
    /* Of two, one is left. */
    write_text(&bench, 3, "both ");
    broadcast_drop(&bench.broadcast, 1);
    write_text(&bench, 1, "one");
    flush(&bench);
    check_got(bench.other[0], "both one");
    check_got(bench.other[1], "");
    tear_down(&bench);
}
END_TEST

/* More in a pass than there is room for, to masters that do not read at the same speed. */
START_TEST(much_is_whole_for_each)
{
    struct bench bench;
    static char sent[MUCH];
    static char got[NODES][MUCH];
    size_t len[NODES] = {0};
    size_t written = 0;
    set_up(&bench, SOCK_STREAM);
    fill(sent, MUCH);
    while (len[0] < MUCH || len[1] < MUCH || len[2] < MUCH) {
        for (unsigned piece = 0; piece < 7; piece++) {
            size_t some = 1 + written % REDIS_RELEASES_MAX;
            some = some < MUCH - written ? some : MUCH - written;
            if (some > 0)
                broadcast_write(&bench.broadcast, ALL, sent + written, some);
            written += some;
        }
        flush(&bench);
        event_base_loop(bench.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        for (unsigned i = 0; i < NODES; i++) {
            size_t most = 20000 * (i + 1);
            most = most < MUCH - len[i] ? most : MUCH - len[i];
            ssize_t more = recv(bench.other[i], got[i] + len[i], most, 0);
            len[i] += more > 0 ? (size_t)more : 0;
        }
    }
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(memcmp(got[i], sent, MUCH) == 0);
    tear_down(&bench);
}
END_TEST

/* Of what is sent without a copy the kernel takes a part; the rest goes out without another
 * write. */
START_TEST(what_the_kernel_takes_a_part_of_is_whole)
{
    enum { WRITE = 25000 };
    struct bench bench;
    static char sent[2 * WRITE];
    set_up(&bench, SOCK_STREAM);
    fill(sent, sizeof(sent));
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_int_eq(
            setsockopt(bench.stream[i].fd, SOL_SOCKET, SO_SNDBUF, &(int){8000}, sizeof(int)), 0);
    broadcast_write(&bench.broadcast, ALL, sent, WRITE);
    broadcast_write(&bench.broadcast, ALL, sent + WRITE, WRITE);
    flush(&bench);
    for (unsigned i = 0; i < NODES; i++) {
        char got[sizeof(sent) + 1];
        size_t len = 0;
        ck_assert_uint_gt(stream_unsent(&bench.stream[i]), 0);
        ck_assert_uint_lt(stream_unsent(&bench.stream[i]), sizeof(sent));
        for (unsigned passes = 0; passes < 1000; passes++) {
            ssize_t more = recv(bench.other[i], got + len, sizeof(got) - len, 0);
            len += more > 0 ? (size_t)more : 0;
            event_base_loop(bench.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        }
        ck_assert_uint_eq(len, sizeof(sent));
        ck_assert(memcmp(got, sent, len) == 0);
        ck_assert_uint_eq(stream_unsent(&bench.stream[i]), 0);
    }
    tear_down(&bench);
}
END_TEST

START_TEST(one_that_is_lost_takes_nothing_from_the_others)
{
    struct bench bench;
    set_up(&bench, SOCK_SEQPACKET);
    close(bench.other[1]);
    bench.other[1] = -1;
    for (unsigned i = 0; i < 3; i++) {
        write_text(&bench, ALL, "x");
        flush(&bench);
        check_got(bench.other[0], "x");
        check_got(bench.other[2], "x");
    }
    ck_assert(bench.stream[1].lost);
    broadcast_write(&bench.broadcast, ALL, "x", 1);
    broadcast_flush(&bench.broadcast, &bench.streams);
    ck_assert(!bench.stream[1].collected);
    ck_assert_uint_eq(stream_unsent(&bench.stream[1]), 0);
    tear_down(&bench);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("broadcast");
    TCase *tests = tcase_create("broadcast");
    tcase_add_test(tests, what_is_alike_goes_out_to_each_at_once);
    tcase_add_test(tests, each_gets_what_is_its_own_in_order);
    tcase_add_test(tests, what_was_for_a_connection_that_is_closed_is_dropped);
    tcase_add_test(tests, much_is_whole_for_each);
    tcase_add_test(tests, what_the_kernel_takes_a_part_of_is_whole);
    tcase_add_test(tests, one_that_is_lost_takes_nothing_from_the_others);
    suite_add_tcase(suite, tests);
    return suite;
}
