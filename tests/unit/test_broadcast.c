/*
 * Writing to several masters over real kernel sockets (server/net/broadcast.h).
 */
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/redis.h"
#include "server/net/broadcast.h"
#include "tests/runner.h"

enum { NODES = 3, ALL = 7, MUCH = 1024 * 1024 };

/* The daemon's ends of the connections, and the peers' sockets. */
struct fixture {
    struct event_base *base;
    struct pass pass;
    struct streams streams;
    struct broadcast broadcast;
    struct stream stream[NODES];
    int peer[NODES];
};

static void ignore_event(void *context)
{
    (void)context;
}

/* Flushes nothing: the tests call broadcast_flush() themselves. */
static void on_pass_end(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    pass_ended(context);
}

static const struct stream_user of_master = {
    .on_input = ignore_event,
    .on_end = ignore_event,
    .on_lost = ignore_event,
    .master = true,
    .input_max = 4096,
};

/* With SOCK_SEQPACKET, each send() of the daemon is one recv() of the peer. */
static void connect_node(struct fixture *fixture, unsigned node, int type)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert(
        stream_open(&fixture->stream[node], &fixture->streams, fds[0], NULL, &of_master, NULL));
    fixture->peer[node] = fds[1];
}

static void set_up(struct fixture *fixture, int type)
{
    *fixture = (struct fixture){.base = event_base_new()};
    ck_assert(pass_init(&fixture->pass, fixture->base, on_pass_end, &fixture->pass));
    ck_assert(streams_init(&fixture->streams, fixture->base, &fixture->pass));
    for (unsigned i = 0; i < NODES; i++) {
        connect_node(fixture, i, type);
        fixture->broadcast.streams[i] = &fixture->stream[i];
    }
}

static void tear_down(struct fixture *fixture)
{
    for (unsigned i = 0; i < NODES; i++) {
        stream_close(&fixture->stream[i]);
        close(fixture->peer[i]);
    }
    streams_deinit(&fixture->streams);
    pass_deinit(&fixture->pass);
    event_base_free(fixture->base);
}

/* Write what the pass has collected, as at the end of a pass. */
static void flush(struct fixture *fixture)
{
    broadcast_flush(&fixture->broadcast, &fixture->streams);
}

static void write_text(struct fixture *fixture, uint32_t nodes, const char *text)
{
    broadcast_write(&fixture->broadcast, nodes, text, strlen(text));
}

/* Assert that one send() brought exactly this text; "" if nothing arrived. */
static void check_got(int peer, const char *text)
{
    char got[256];
    ssize_t len = recv(peer, got, sizeof(got), 0);
    ck_assert_int_eq(len, text[0] != '\0' ? (ssize_t)strlen(text) : -1);
    if (len > 0)
        ck_assert_mem_eq(got, text, (size_t)len);
}

/* Fill with bytes that show their position. */
static void fill(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 + i / 251);
}

TEST(bytes_for_all_nodes_go_out_in_one_send_each)
{
    struct fixture fixture;
    set_up(&fixture, SOCK_SEQPACKET);
    write_text(&fixture, ALL, "vote ");
    write_text(&fixture, ALL, "probe ");
    for (unsigned i = 0; i < NODES; i++)
        check_got(fixture.peer[i], "");
    flush(&fixture);
    for (unsigned i = 0; i < NODES; i++)
        check_got(fixture.peer[i], "vote probe ");
    ck_assert_uint_eq(fixture.streams.blocks.in_use, 0);
    flush(&fixture);
    check_got(fixture.peer[0], "");
    tear_down(&fixture);
}

TEST(each_node_gets_its_own_bytes_in_order)
{
    struct fixture fixture;
    set_up(&fixture, SOCK_SEQPACKET);
    write_text(&fixture, ALL, "a");
    write_text(&fixture, 2, "b"); /* one node */
    write_text(&fixture, ALL, "c");
    write_text(&fixture, 5, "d"); /* some nodes */
    write_text(&fixture, 0, "never");
    write_text(&fixture, 5, "e");
    flush(&fixture);
    check_got(fixture.peer[0], "acde");
    check_got(fixture.peer[1], "abc");
    check_got(fixture.peer[2], "acde");
    write_text(&fixture, 1, "f");
    write_text(&fixture, ALL, "g");
    flush(&fixture);
    check_got(fixture.peer[0], "fg");
    check_got(fixture.peer[1], "g");
    tear_down(&fixture);
}

/* A SET that was written for a connection must not go out on the connection that replaces it. */
TEST(bytes_for_a_closed_connection_are_dropped)
{
    struct fixture fixture;
    set_up(&fixture, SOCK_SEQPACKET);
    write_text(&fixture, ALL, "set");
    int before = fixture.peer[1];
    broadcast_drop(&fixture.broadcast, 1);
    stream_close(&fixture.stream[1]);
    connect_node(&fixture, 1, SOCK_SEQPACKET);
    write_text(&fixture, 5, " more");
    write_text(&fixture, ALL, " all");
    flush(&fixture);
    char byte;
    /* The peer reads the end of the connection, and no bytes before it. */
    ck_assert_int_eq(recv(before, &byte, 1, 0), 0);
    close(before);
    check_got(fixture.peer[0], "set more all");
    check_got(fixture.peer[1], " all");
    /* Two nodes share a write, and one of them is dropped. */
    write_text(&fixture, 3, "both ");
    broadcast_drop(&fixture.broadcast, 1);
    write_text(&fixture, 1, "one");
    flush(&fixture);
    check_got(fixture.peer[0], "both one");
    check_got(fixture.peer[1], "");
    tear_down(&fixture);
}

/* One pass collects more than its buffers hold, and the masters read at different speeds. */
TEST(large_writes_arrive_whole_at_every_node)
{
    struct fixture fixture;
    static char sent[MUCH];
    static char got[NODES][MUCH];
    size_t len[NODES] = {0};
    size_t written = 0;
    set_up(&fixture, SOCK_STREAM);
    fill(sent, MUCH);
    while (len[0] < MUCH || len[1] < MUCH || len[2] < MUCH) {
        for (unsigned piece = 0; piece < 7; piece++) {
            size_t some = 1 + written % REDIS_RELEASES_MAX;
            some = some < MUCH - written ? some : MUCH - written;
            if (some > 0)
                broadcast_write(&fixture.broadcast, ALL, sent + written, some);
            written += some;
        }
        flush(&fixture);
        event_base_loop(fixture.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        for (unsigned i = 0; i < NODES; i++) {
            size_t most = 20000 * (i + 1);
            most = most < MUCH - len[i] ? most : MUCH - len[i];
            ssize_t more = recv(fixture.peer[i], got[i] + len[i], most, 0);
            len[i] += more > 0 ? (size_t)more : 0;
        }
    }
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(memcmp(got[i], sent, MUCH) == 0);
    tear_down(&fixture);
}

/* The send buffer is small, so the kernel takes only a part of the bytes, which are sent without a
 * copy. The event loop must send the rest, although the test writes nothing more. */
TEST(write_that_the_kernel_takes_in_part_arrives_whole)
{
    enum { WRITE = 25000 };
    struct fixture fixture;
    static char sent[2 * WRITE];
    set_up(&fixture, SOCK_STREAM);
    fill(sent, sizeof(sent));
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_int_eq(
            setsockopt(fixture.stream[i].fd, SOL_SOCKET, SO_SNDBUF, &(int){8000}, sizeof(int)), 0);
    broadcast_write(&fixture.broadcast, ALL, sent, WRITE);
    broadcast_write(&fixture.broadcast, ALL, sent + WRITE, WRITE);
    flush(&fixture);
    for (unsigned i = 0; i < NODES; i++) {
        char got[sizeof(sent) + 1];
        size_t len = 0;
        ck_assert_uint_gt(stream_unsent(&fixture.stream[i]), 0);
        ck_assert_uint_lt(stream_unsent(&fixture.stream[i]), sizeof(sent));
        for (unsigned passes = 0; passes < 1000; passes++) {
            ssize_t more = recv(fixture.peer[i], got + len, sizeof(got) - len, 0);
            len += more > 0 ? (size_t)more : 0;
            event_base_loop(fixture.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        }
        ck_assert_uint_eq(len, sizeof(sent));
        ck_assert(memcmp(got, sent, len) == 0);
        ck_assert_uint_eq(stream_unsent(&fixture.stream[i]), 0);
    }
    tear_down(&fixture);
}

TEST(lost_connection_does_not_affect_the_other_nodes)
{
    struct fixture fixture;
    set_up(&fixture, SOCK_SEQPACKET);
    close(fixture.peer[1]);
    fixture.peer[1] = -1;
    for (unsigned i = 0; i < 3; i++) {
        write_text(&fixture, ALL, "x");
        flush(&fixture);
        check_got(fixture.peer[0], "x");
        check_got(fixture.peer[2], "x");
    }
    ck_assert(fixture.stream[1].lost);
    broadcast_write(&fixture.broadcast, ALL, "x", 1);
    broadcast_flush(&fixture.broadcast, &fixture.streams);
    ck_assert(!fixture.stream[1].collected);
    ck_assert_uint_eq(stream_unsent(&fixture.stream[1]), 0);
    tear_down(&fixture);
}
