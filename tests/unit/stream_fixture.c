#include "tests/unit/stream_fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- callbacks --- */

void line_user_take(struct line_user *user)
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
    line_user_take(user);
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

/* A session reads on in a later pass. */
static void on_end_seen(void *context)
{
    struct line_user *user = context;
    user->ends_seen++;
    stream_read(&user->stream);
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
    .on_end_seen = on_end_seen,
    .on_lost = on_lost,
    .input_max = INPUT_MAX,
};

const struct stream_user stream_of_master = {
    .on_input = on_input,
    .on_written = on_written,
    .on_end = on_end,
    .on_lost = on_lost,
    .master = true,
    .input_max = INPUT_MAX,
};

/* --- event loop --- */

struct stream_fixture stream_fixture;

static void on_pass_end(evutil_socket_t fd, short events, void *context)
{
    (void)context;
    (void)fd;
    (void)events;
    streams_flush(&stream_fixture.streams);
    pass_ended(&stream_fixture.pass);
}

void stream_fixture_open(void)
{
    stream_fixture = (struct stream_fixture){.base = event_base_new()};
    ck_assert_ptr_nonnull(stream_fixture.base);
    ck_assert(pass_init(&stream_fixture.pass, stream_fixture.base, on_pass_end, NULL));
    ck_assert(streams_init(&stream_fixture.streams, stream_fixture.base, &stream_fixture.pass));
}

void stream_fixture_close(void)
{
    streams_deinit(&stream_fixture.streams);
    pass_deinit(&stream_fixture.pass);
    event_base_free(stream_fixture.base);
}

void stream_fixture_pass(void)
{
    event_base_loop(stream_fixture.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

void line_user_begin(struct line_user *user, const struct stream_user *as, int fd, int peer)
{
    *user = (struct line_user){.peer = peer, .lines_at_once = 1000};
    ck_assert(stream_open(&user->stream, &stream_fixture.streams, fd, NULL, as, user));
}

void line_user_begin_pair(struct line_user *user, int type)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    line_user_begin(user, &of_client, fds[0], fds[1]);
}

void line_user_begin_tcp(struct line_user *user)
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
    line_user_begin(user, &of_client, fd, peer);
}

void line_user_end(struct line_user *user)
{
    stream_close(&user->stream);
    if (user->peer >= 0)
        close(user->peer);
}

void line_user_reset(struct line_user *user)
{
    const struct linger at_once = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(user->peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(user->peer);
    user->peer = -1;
}

void line_user_send(const struct line_user *user, const char *bytes, size_t len)
{
    ck_assert_int_eq(send(user->peer, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

size_t line_user_unconsumed(struct line_user *user)
{
    size_t len;
    stream_input(&user->stream, &len);
    return len;
}

void line_user_check(const struct line_user *user, const char *lines)
{
    ck_assert_uint_eq(user->lines_len, strlen(lines));
    ck_assert_mem_eq(user->lines, lines, user->lines_len);
}
