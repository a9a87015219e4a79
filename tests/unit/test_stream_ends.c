/*
 * How a connection ends: cleanly, or by a loss (server/net/stream.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/runner.h"
#include "tests/unit/stream_fixture.h"

const struct runner_settings runner_settings = {.setup = stream_fixture_open,
                                                .teardown = stream_fixture_close};

TEST(end_is_reported_once_and_answers_still_go_out)
{
    struct line_user user;
    char got[16];
    line_user_begin_tcp(&user);
    line_user_send(&user, "a\nb", 3);
    shutdown(user.peer, SHUT_WR);
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    line_user_check(&user, "a\n");
    ck_assert_uint_eq(user.ends, 1);
    stream_write(&user.stream, "answer", 6);
    stream_fixture_pass();
    ck_assert_int_eq(recv(user.peer, got, sizeof(got), 0), 6);
    ck_assert_uint_eq(user.losses, 0);
    line_user_end(&user);
}

/* If the end were reported one pass later, a LOCK that came before it would already have gone to
 * the masters. */
TEST(end_is_reported_in_one_pass_with_the_input_before_it)
{
    struct line_user user;
    for (unsigned i = 0; i < 100; i++) {
        line_user_begin_tcp(&user);
        line_user_send(&user, "a\nb", 3);
        shutdown(user.peer, SHUT_WR);
        stream_fixture_pass();
        line_user_check(&user, "a\n");
        ck_assert_uint_eq(user.ends, 1);
        line_user_end(&user);
    }
}

TEST(reset_is_a_loss_and_no_end)
{
    struct line_user user;
    line_user_begin_tcp(&user);
    line_user_reset(&user);
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    line_user_end(&user);
}

/* The kernel reports a reset once, in this case to send(). recv() would then report an end. */
TEST(reset_found_by_a_write_is_no_end)
{
    struct line_user user;
    line_user_begin_tcp(&user);
    line_user_reset(&user);
    stream_write(&user.stream, "answer", 6);
    streams_flush(&stream_fixture.streams);
    /* The loss is not reported in the middle of a flush. */
    ck_assert_uint_eq(user.losses, 0);
    stream_write(&user.stream, "more", 4);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(user.written, 0);
    line_user_end(&user);
}

/* The read of this pass finds the reset before the output is flushed. The flush must not report the
 * loss again. */
TEST(reset_after_a_write_is_reported_once)
{
    struct line_user user;
    line_user_begin_tcp(&user);
    line_user_reset(&user);
    stream_write(&user.stream, "answer", 6);
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(stream_fixture.streams.blocks.in_use, 0);
    line_user_end(&user);
}

static bool out_of_memory;

static void *allocate(size_t size)
{
    return out_of_memory ? NULL : malloc(size);
}

static void *reallocate(void *memory, size_t size)
{
    return out_of_memory ? NULL : realloc(memory, size);
}

/* Whether the peer reset the connection decides what happens to the holds of a local client. In the
 * first run memory is exhausted, in the second the peer resets the connection. */
TEST_LOOP(loss_is_by_the_peer_only_if_it_reset_the_connection, 0, 2)
{
    struct line_user user;
    event_set_mem_functions(allocate, reallocate, free);
    line_user_begin_tcp(&user);
    out_of_memory = _i == 0;
    if (out_of_memory)
        line_user_send(&user, "half a line", 11);
    else
        line_user_reset(&user);
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    out_of_memory = false;
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_int_eq(user.stream.failure, _i == 0 ? ENOMEM : ECONNRESET);
    line_user_end(&user);
}

/* A lost client may have sent an UNLOCK. */
TEST(lost_stream_keeps_its_input)
{
    struct line_user user;
    line_user_begin_tcp(&user);
    user.lines_at_once = 1;
    line_user_send(&user, "a\nb\nc\n", 6);
    stream_fixture_pass();
    ck_assert_uint_eq(line_user_unconsumed(&user), 4);
    line_user_reset(&user);
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    ck_assert_uint_eq(user.losses, 1);
    ck_assert_uint_eq(line_user_unconsumed(&user), 4);
    user.lines_at_once = 2;
    line_user_take(&user);
    line_user_check(&user, "a\nb\nc\n");
    line_user_end(&user);
}

/* The peer resets the connection while the stream is not reading, and while output that the kernel
 * did not take is still waiting. */
TEST(reset_with_waiting_output_is_reported)
{
    static char much[MUCH];
    struct line_user user;
    line_user_begin_tcp(&user);
    for (unsigned i = 0; i < 8; i++)
        stream_write(&user.stream, much, sizeof(much));
    stream_fixture_pass();
    ck_assert_uint_gt(stream_unsent(&user.stream), 0);
    stream_set_reading(&user.stream, false);
    line_user_reset(&user);
    for (unsigned i = 0; i < 5; i++)
        stream_fixture_pass();
    ck_assert_uint_eq(user.ends_seen, 1);
    ck_assert_uint_eq(user.losses, 0);
    ck_assert_uint_eq(stream_unsent(&user.stream), 0);
    stream_set_reading(&user.stream, true);
    ck_assert(stream_read(&user.stream));
    ck_assert_uint_eq(user.losses, 1);
    line_user_end(&user);
}

static void read_to_end(struct line_user *user)
{
    stream_set_reading(&user->stream, true);
    while (stream_read(&user->stream))
        ;
}

/* The first write makes the peer reset the connection, and the second one fails. */
TEST(end_in_order_before_a_failed_write_is_an_end)
{
    struct line_user user;
    line_user_begin_tcp(&user);
    stream_set_reading(&user.stream, false);
    line_user_send(&user, "a\n", 2);
    close(user.peer);
    user.peer = -1;
    for (unsigned i = 0; i < 5; i++) {
        stream_write(&user.stream, "answer", 6);
        stream_fixture_pass();
    }
    ck_assert_int_eq(user.stream.failure, EPIPE);
    read_to_end(&user);
    line_user_check(&user, "a\n");
    ck_assert_uint_eq(user.ends, 1);
    ck_assert_uint_eq(user.losses, 0);
    line_user_end(&user);
}

/* A peer that ends with unread input resets its unix socket. A write after that reports only EPIPE
 * (first run), and so does one before, if the peer had shut down its receiving side (second run).
 */
TEST_LOOP(reset_of_a_unix_socket_is_seen_although_a_write_reports_epipe, 0, 2)
{
    struct line_user user;
    line_user_begin_pair(&user, SOCK_STREAM);
    stream_set_reading(&user.stream, false);
    stream_write(&user.stream, "unread", 6);
    stream_fixture_pass();
    line_user_send(&user, "a\n", 2);
    if (_i == 0) {
        close(user.peer);
        user.peer = -1;
    } else {
        shutdown(user.peer, SHUT_RD);
    }
    stream_write(&user.stream, "answer", 6);
    streams_flush(&stream_fixture.streams);
    ck_assert_int_eq(user.stream.failure, _i == 0 ? ECONNRESET : EPIPE);
    if (_i == 1) {
        close(user.peer);
        user.peer = -1;
    }
    read_to_end(&user);
    line_user_check(&user, "a\n");
    ck_assert_int_eq(user.stream.failure, ECONNRESET);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(user.losses, 1);
    line_user_end(&user);
}

/* The peer of a unix socket may go on sending. It gets no answer any more. */
TEST(peer_that_receives_nothing_is_lost_after_its_input)
{
    struct line_user user;
    line_user_begin_pair(&user, SOCK_STREAM);
    shutdown(user.peer, SHUT_RD);
    line_user_send(&user, "a\n", 2);
    stream_write(&user.stream, "answer", 6);
    for (unsigned i = 0; i < 5; i++) {
        stream_fixture_pass();
        stream_read(&user.stream);
    }
    line_user_check(&user, "a\n");
    ck_assert_int_eq(user.stream.failure, EPIPE);
    ck_assert_uint_eq(user.ends, 0);
    ck_assert_uint_eq(user.losses, 1);
    line_user_end(&user);
}
