#include "server/net/stream.h"

#include <assert.h>
#include <errno.h>
#include <event2/util.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* In one pass of the loop; what is left is found in the next. */
enum { ENDS_AT_ONCE = 64 };

static void streams_on_ends(evutil_socket_t fd, short events, void *context)
{
    struct epoll_event found;
    (void)events;
    (void)context;
    /* One by one: a callback may end the watch of another. */
    for (unsigned i = 0; i < ENDS_AT_ONCE && epoll_wait(fd, &found, 1, 0) == 1; i++) {
        struct stream *stream = found.data.ptr;
        stream_watch_hangup(stream, false);
        stream->user->on_end_seen(stream->context);
    }
}

bool streams_init(struct streams *streams, struct event_base *base, struct pass *pass)
{
    *streams = (struct streams){.base = base, .pass = pass};
    TAILQ_INIT(&streams->collected);
    streams->scratch = malloc(LIMIT_NODE_IO);
    streams->hangup_epoll = epoll_create1(EPOLL_CLOEXEC);
    if (streams->hangup_epoll >= 0)
        streams->hangup_event =
            event_new(base, streams->hangup_epoll, EV_READ | EV_PERSIST, streams_on_ends, NULL);
    return streams->scratch != NULL && streams->hangup_event != NULL &&
           event_add(streams->hangup_event, NULL) == 0 && output_init_blocks(&streams->blocks);
}

void streams_deinit(struct streams *streams)
{
    if (streams->hangup_event != NULL)
        event_free(streams->hangup_event);
    if (streams->base != NULL && streams->hangup_epoll >= 0)
        close(streams->hangup_epoll);
    free(streams->scratch);
    pool_deinit(&streams->blocks);
    *streams = (struct streams){0};
}

/* Those of a socket are nearly always empty, so that is known without a call. */
static size_t input_len(const struct stream *stream)
{
    return stream->input != NULL ? evbuffer_get_length(stream->input) : 0;
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* --- out --- */

/* The errno of the call that failed says which side ended it. */
static void lose(struct stream *stream, int error)
{
    stream->lost = true;
    stream->lost_by_peer = error == ECONNRESET || error == EPIPE;
    output_drop(&stream->output, &stream->streams->blocks);
    stream_set_reading(stream, false);
    event_del(stream->writable);
}

/* For a loss that is found outside of the stream's own events: one of these tells it. */
static void lose_and_tell(struct stream *stream, int error)
{
    lose(stream, error);
    event_active(stream->writable, EV_WRITE, 0);
}

/* Something is about to be written. False if the stream is lost: then it is not. */
static bool collect(struct stream *stream)
{
    struct streams *streams = stream->streams;
    if (stream->lost || stream->collected)
        return !stream->lost;
    pass_want_end(streams->pass);
    if (stream->user->master)
        TAILQ_INSERT_HEAD(&streams->collected, stream, entry);
    else
        TAILQ_INSERT_TAIL(&streams->collected, stream, entry);
    stream->collected = true;
    return true;
}

static void uncollect(struct stream *stream)
{
    if (stream->collected)
        TAILQ_REMOVE(&stream->streams->collected, stream, entry);
    stream->collected = false;
}

void stream_write(struct stream *stream, const char *bytes, size_t len)
{
    if (collect(stream) && !output_write(&stream->output, &stream->streams->blocks, bytes, len))
        lose_and_tell(stream, ENOMEM);
}

void stream_share(struct stream *stream, char *bytes, size_t len)
{
    if (collect(stream) && !output_share(&stream->output, &stream->streams->blocks, bytes, len))
        lose_and_tell(stream, ENOMEM);
}

size_t stream_unsent(const struct stream *stream)
{
    size_t unsent = output_unsent(&stream->output);
    if (stream->tls != NULL && !stream->lost)
        unsent += evbuffer_get_length(bufferevent_get_output(stream->tls));
    return unsent;
}

/* As much as the kernel takes now; the rest once it takes more. False if the connection is lost. */
static bool send_output(struct stream *stream)
{
    if (!output_send(&stream->output, &stream->streams->blocks, stream->fd))
        return false;
    bool blocked = output_unsent(&stream->output) > 0;
    if (blocked && !stream->blocked)
        event_add(stream->writable, NULL);
    else if (!blocked && stream->blocked)
        event_del(stream->writable);
    stream->blocked = blocked;
    return true;
}

/* Over TLS libevent encrypts and sends it. */
static void hand_over_output(struct stream *stream)
{
    struct output *output = &stream->output;
    if (bufferevent_write(stream->tls, output->bytes + output->begin, output_unsent(output)) != 0)
        lose_and_tell(stream, ENOMEM);
    output_drop(output, &stream->streams->blocks);
}

static void tell_written(struct stream *stream)
{
    if (stream->user->on_written != NULL && !stream->lost && stream_unsent(stream) == 0)
        stream->user->on_written(stream->context);
}

static void flush(struct stream *stream)
{
    uncollect(stream);
    /* Nothing is left of one that was lost. */
    bool unsent = output_unsent(&stream->output) > 0;
    if (unsent && stream->tls != NULL)
        hand_over_output(stream);
    else if (unsent && !stream->blocked && !send_output(stream))
        lose_and_tell(stream, errno);
    tell_written(stream);
}

void streams_flush(struct streams *streams)
{
    struct stream *stream;
    while ((stream = TAILQ_FIRST(&streams->collected)) != NULL)
        flush(stream);
}

static void stream_on_writable(evutil_socket_t fd, short events, void *context)
{
    struct stream *stream = context;
    (void)fd;
    (void)events;
    if (!stream->lost && !send_output(stream))
        lose(stream, errno);
    if (stream->lost)
        stream->user->on_lost(stream->context);
    else
        tell_written(stream);
}

/* --- in --- */

/*
 * As long as its user takes it. That is not left to the watermark of libevent: it stops in the
 * midst of what OpenSSL has decrypted already, and once there is room waits for the socket, where
 * nothing may come any more. So what is kept may exceed the bound by what was read at once.
 */
static void set_tls_reading(struct stream *stream)
{
    stream->full = input_len(stream) >= stream->user->input_max;
    if (stream->reading && !stream->full)
        bufferevent_enable(stream->tls, EV_READ);
    else
        bufferevent_disable(stream->tls, EV_READ);
}

void stream_set_reading(struct stream *stream, bool reading)
{
    bool may = reading && !stream->ended && !stream->lost;
    if (stream->reading == may)
        return;
    stream->reading = may;
    if (stream->tls != NULL)
        set_tls_reading(stream);
    else if (may)
        event_add(stream->readable, NULL);
    else
        event_del(stream->readable);
}

void stream_watch_hangup(struct stream *stream, bool watched)
{
    struct epoll_event what = {.events = EPOLLRDHUP, .data.ptr = stream};
    if (stream->hangup_watched == watched)
        return;
    stream->hangup_watched = watched;
    epoll_ctl(stream->streams->hangup_epoll, watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, stream->fd,
              &what);
}

char *stream_input(struct stream *stream, size_t *len)
{
    *len = stream->fresh_len;
    if (stream->lost)
        *len = 0;
    else if (stream->fresh_len == 0)
        *len = input_len(stream);
    if (*len == 0 || stream->fresh_len > 0)
        return stream->fresh;
    char *input = (char *)evbuffer_pullup(stream->input, -1);
    if (input == NULL) {
        *len = 0;
        lose_and_tell(stream, ENOMEM);
    }
    return input;
}

static void free_input(struct stream *stream)
{
    if (stream->input != NULL)
        evbuffer_free(stream->input);
    stream->input = NULL;
}

void stream_consume(struct stream *stream, size_t len)
{
    if (stream->lost || len == 0)
        return;
    if (stream->fresh_len == 0 && stream->input != NULL) {
        evbuffer_drain(stream->input, len);
        if (stream->tls == NULL && input_len(stream) == 0)
            free_input(stream);
        if (stream->full)
            set_tls_reading(stream);
        return;
    }
    assert(len <= stream->fresh_len);
    stream->fresh += len;
    stream->fresh_len -= len;
}

/* Out of the scratch: the next one needs it, and has no business with what is in it. */
static bool keep(struct stream *stream, char *bytes, size_t len)
{
    if (stream->input == NULL)
        stream->input = evbuffer_new();
    bool kept =
        stream->lost || (stream->input != NULL && evbuffer_add(stream->input, bytes, len) == 0);
    explicit_bzero(bytes, len);
    return kept;
}

static void on_end(struct stream *stream)
{
    stream->ended = true;
    stream_set_reading(stream, false);
    stream->user->on_end(stream->context);
}

static void on_lost(struct stream *stream, int error)
{
    lose(stream, error);
    stream->user->on_lost(stream->context);
}

static void take_fresh(struct stream *stream, char *bytes, size_t len)
{
    stream->fresh = bytes;
    stream->fresh_len = len;
    stream->user->on_input(stream->context);
    /* Of one that was closed meanwhile nothing is left. */
    len = stream->fresh_len;
    stream->fresh_len = 0;
    if (len > 0 && !keep(stream, stream->fresh, len))
        lose_and_tell(stream, ENOMEM);
}

static void read_on(struct stream *stream)
{
    char *scratch = stream->streams->scratch;
    size_t kept = input_len(stream);
    /* Its user has enough for now. */
    if (kept >= stream->user->input_max)
        return;
    ssize_t got = recv(stream->fd, scratch, stream->user->input_max - kept, MSG_DONTWAIT);
    if (got < 0 && is_passing(errno))
        return;
    if (got == 0)
        on_end(stream);
    else if (got < 0)
        on_lost(stream, errno);
    else if (kept == 0)
        take_fresh(stream, scratch, (size_t)got);
    else if (keep(stream, scratch, (size_t)got))
        stream->user->on_input(stream->context);
    else
        on_lost(stream, ENOMEM);
}

static void stream_on_readable(evutil_socket_t fd, short events, void *context)
{
    struct stream *stream = context;
    (void)fd;
    if (stream->user->master) {
        event_active(stream->deferred_read, EV_READ, 0);
        return;
    }
    read_on(stream);
    /* An end behind that is told before anything of it is flushed: a LOCK of one who has gone is
     * not to be granted first. */
    if (events & EV_CLOSED && stream->reading)
        read_on(stream);
}

static void stream_on_deferred_read(evutil_socket_t fd, short events, void *context)
{
    struct stream *stream = context;
    (void)fd;
    (void)events;
    if (stream->reading)
        read_on(stream);
}

/* --- TLS --- */

static void stream_on_tls_read(struct bufferevent *tls, void *context)
{
    struct stream *stream = context;
    (void)tls;
    if (stream->lost)
        return;
    if (input_len(stream) >= stream->user->input_max)
        set_tls_reading(stream);
    stream->user->on_input(stream->context);
}

static void stream_on_tls_written(struct bufferevent *tls, void *context)
{
    (void)tls;
    tell_written(context);
}

static void stream_on_tls_event(struct bufferevent *tls, short events, void *context)
{
    struct stream *stream = context;
    if (stream->lost)
        return;
    /* Nothing comes behind the end but a failure to write; it may look like an end. */
    if (stream->ended || !(events & BEV_EVENT_EOF) || (events & BEV_EVENT_ERROR)) {
        on_lost(stream, errno);
        return;
    }
    on_end(stream);
    /* libevent stops both directions at the end of one. */
    if (stream_is_open(stream))
        bufferevent_enable(tls, EV_WRITE);
}

/* --- opening and closing --- */

static bool open_socket(struct stream *stream, struct event_base *base)
{
    bool master = stream->user->master;
    stream->readable =
        event_new(base, stream->fd, EV_READ | EV_CLOSED | EV_PERSIST, stream_on_readable, stream);
    stream->writable =
        event_new(base, stream->fd, EV_WRITE | EV_PERSIST, stream_on_writable, stream);
    if (master)
        stream->deferred_read = event_new(base, -1, 0, stream_on_deferred_read, stream);
    return stream->readable != NULL && stream->writable != NULL &&
           (!master || stream->deferred_read != NULL);
}

static bool open_tls(struct stream *stream, struct event_base *base)
{
    stream->input = bufferevent_get_input(stream->tls);
    stream->writable = event_new(base, -1, 0, stream_on_writable, stream);
    bufferevent_setcb(stream->tls, stream_on_tls_read, stream_on_tls_written, stream_on_tls_event,
                      stream);
    bufferevent_enable(stream->tls, EV_WRITE);
    return stream->writable != NULL;
}

bool stream_open(struct stream *stream, struct streams *streams, int fd, struct bufferevent *tls,
                 const struct stream_user *user, void *context)
{
    assert(user->input_max <= LIMIT_NODE_IO);
    *stream =
        (struct stream){.streams = streams, .user = user, .context = context, .fd = fd, .tls = tls};
    bool opened =
        tls != NULL ? open_tls(stream, streams->base) : open_socket(stream, streams->base);
    if (opened)
        stream_set_reading(stream, true);
    else
        stream_close(stream);
    return opened;
}

static void close_socket(struct stream *stream)
{
    if (stream->readable != NULL)
        event_free(stream->readable);
    if (stream->deferred_read != NULL)
        event_free(stream->deferred_read);
    free_input(stream);
    evutil_closesocket(stream->fd);
}

void stream_close(struct stream *stream)
{
    if (!stream_is_open(stream))
        return;
    uncollect(stream);
    stream_watch_hangup(stream, false);
    output_drop(&stream->output, &stream->streams->blocks);
    if (stream->writable != NULL)
        event_free(stream->writable);
    if (stream->tls != NULL)
        bufferevent_free(stream->tls);
    else
        close_socket(stream);
    *stream = (struct stream){0};
}

bool stream_is_open(const struct stream *stream)
{
    return stream->streams != NULL;
}
