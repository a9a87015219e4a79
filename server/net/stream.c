#include "server/net/stream.h"

#include <assert.h>
#include <errno.h>
#include <event2/util.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* HANGUPS_PER_PASS: hang-ups handled in one pass of the loop, of streams that may not be read and
 * of streams that are watched; the others are found in the next pass. REPORTS_PER_PASS also counts
 * reports that need no work, such as those of unix sockets that were closed in order. */
enum { HANGUPS_PER_PASS = 64, REPORTS_PER_PASS = 4096 };

static void stream_on_readable(evutil_socket_t fd, short events, void *context);

/* Bring the second epoll instance up to date with what is watched. Errors and hang-ups in both
 * directions are always reported. False if there is not enough memory. */
static bool update_watch(struct stream *stream)
{
    struct epoll_event what = {.events = stream->hangup_watched ? EPOLLRDHUP : 0,
                               .data.ptr = stream};
    bool before = stream->watched;
    stream->watched = stream->hangup_watched || stream->reset_watched;
    if (!before && !stream->watched)
        return true;
    int op = !before ? EPOLL_CTL_ADD : stream->watched ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
    bool done = epoll_ctl(stream->streams->hangup_epoll, op, stream->fd, &what) == 0;
    stream->watched = stream->watched && (done || before);
    return done;
}

static void see_end(struct stream *stream);

/* False if nothing has to be done. */
static bool on_hangup(struct stream *stream, uint32_t events)
{
    bool hangup_watched = stream->hangup_watched;
    stream->hangup_watched = false;
    /* Otherwise it would be reported again and again. */
    if (events & (EPOLLERR | EPOLLHUP))
        stream->reset_watched = false;
    (void)update_watch(stream);
    if (hangup_watched) {
        see_end(stream);
        return true;
    }
    if (!(events & EPOLLERR) || !stream->reading)
        return false;
    /* First comes the input before the reset. */
    stream->closed = true;
    stream_on_readable(stream->fd, EV_READ, stream);
    return true;
}

static void streams_on_hangups(evutil_socket_t fd, short events, void *context)
{
    struct epoll_event found;
    unsigned hangups = 0;
    (void)events;
    (void)context;
    /* One at a time, because a callback may end the watch of another stream. */
    for (unsigned i = 0;
         i < REPORTS_PER_PASS && hangups < HANGUPS_PER_PASS && epoll_wait(fd, &found, 1, 0) == 1;
         i++)
        hangups += on_hangup(found.data.ptr, found.events);
}

bool streams_init(struct streams *streams, struct event_base *base, struct pass *pass)
{
    *streams = (struct streams){.base = base, .pass = pass};
    TAILQ_INIT(&streams->collected);
    streams->scratch = malloc(LIMIT_NODE_IO);
    streams->hangup_epoll = epoll_create1(EPOLL_CLOEXEC);
    if (streams->hangup_epoll >= 0)
        streams->hangup_event =
            event_new(base, streams->hangup_epoll, EV_READ | EV_PERSIST, streams_on_hangups, NULL);
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

/* The length of the kept input. On plain sockets `input` is nearly always NULL, which saves the
 * call. */
static size_t input_len(const struct stream *stream)
{
    return stream->input != NULL ? evbuffer_get_length(stream->input) : 0;
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* --- output --- */

/* The error that the kernel has noted for the socket, which this clears; 0: none. */
static int take_socket_error(const struct stream *stream)
{
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

/* Nothing can be sent any more. `error` is the errno of the call that failed; if that is EPIPE, a
 * unix socket may have noted a reset as well. What the plain socket of a client has received is
 * still read, up to its end. Any other stream is lost at once. */
static void fail(struct stream *stream, int error)
{
    if (error == EPIPE && take_socket_error(stream) == ECONNRESET)
        error = ECONNRESET;
    if (stream->failure == 0 || error == ECONNRESET)
        stream->failure = error;
    if (stream->user->master || stream->tls != NULL || stream->ended)
        stream->lost = true;
    stream->more = !stream->lost;
    output_drop(&stream->output, &stream->streams->blocks);
    event_del(stream->writable);
    if (stream->lost)
        stream_set_reading(stream, false);
}

static void report_end(struct stream *stream)
{
    if (stream->lost)
        stream->user->on_lost(stream->context);
    else
        stream->user->on_end_seen(stream->context);
}

/* Record a failure found outside the stream's own events, and activate an event that reports it. */
static void fail_and_notify(struct stream *stream, int error)
{
    fail(stream, error);
    event_active(stream->writable, EV_WRITE, 0);
}

/* Make the next streams_flush() send the stream's output. False if nothing can be sent any more. */
static bool collect(struct stream *stream)
{
    struct streams *streams = stream->streams;
    if (stream->failure != 0 || stream->collected)
        return stream->failure == 0;
    pass_want_end(streams->pass);
    stream->collected = true;
    if (stream->user->master) {
        TAILQ_INSERT_HEAD(&streams->collected, stream, entry);
    } else {
        TAILQ_INSERT_TAIL(&streams->collected, stream, entry);
        pass_note_output(streams->pass);
    }
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
        fail_and_notify(stream, ENOMEM);
}

void stream_share(struct stream *stream, char *bytes, size_t len)
{
    if (collect(stream) && !output_share(&stream->output, &stream->streams->blocks, bytes, len))
        fail_and_notify(stream, ENOMEM);
}

size_t stream_unsent(const struct stream *stream)
{
    size_t unsent = output_unsent(&stream->output);
    if (stream->tls != NULL && !stream->lost)
        unsent += evbuffer_get_length(bufferevent_get_output(stream->tls));
    return unsent;
}

/* Send as much as the kernel accepts now, and the rest when it accepts more. False if the
 * connection is lost. */
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

/* Over TLS, pass the output to libevent, which encrypts and sends it. */
static void hand_over_output(struct stream *stream)
{
    struct output *output = &stream->output;
    if (bufferevent_write(stream->tls, output->bytes + output->begin, output_unsent(output)) != 0)
        fail_and_notify(stream, ENOMEM);
    output_drop(output, &stream->streams->blocks);
}

static void notify_written(struct stream *stream)
{
    if (stream->user->on_written != NULL && stream->failure == 0 && stream_unsent(stream) == 0)
        stream->user->on_written(stream->context);
}

static void flush(struct stream *stream)
{
    uncollect(stream);
    /* After a failure, no output is left. */
    bool unsent = output_unsent(&stream->output) > 0;
    if (unsent && stream->tls != NULL)
        hand_over_output(stream);
    else if (unsent && !stream->blocked && !send_output(stream))
        fail_and_notify(stream, errno);
    notify_written(stream);
}

void streams_flush(struct streams *streams)
{
    struct stream *stream;
    while ((stream = TAILQ_FIRST(&streams->collected)) != NULL)
        flush(stream);
    streams->ends_seen = 0;
}

static void stream_on_writable(evutil_socket_t fd, short events, void *context)
{
    struct stream *stream = context;
    (void)fd;
    (void)events;
    if (stream->failure == 0 && !send_output(stream))
        fail(stream, errno);
    if (stream->failure != 0)
        report_end(stream);
    else
        notify_written(stream);
}

/* --- input --- */

/*
 * Stop reading while the kept input has reached input_max. libevent's read watermark cannot be used
 * for this. It stops in the middle of data that OpenSSL has already decrypted, and later waits for
 * the socket to become readable, although nothing more may arrive. Without the watermark, the kept
 * input can exceed input_max by one read.
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
    else if (!may)
        event_del(stream->readable);
    else if (event_add(stream->readable, NULL) != 0)
        fail_and_notify(stream, ENOMEM);
}

void stream_watch_hangup(struct stream *stream, bool watched)
{
    if (stream->hangup_watched == watched)
        return;
    stream->hangup_watched = watched;
    (void)update_watch(stream);
}

char *stream_input(struct stream *stream, size_t *len)
{
    *len = stream->fresh_len > 0 ? stream->fresh_len : input_len(stream);
    if (*len == 0 || stream->fresh_len > 0)
        return stream->fresh;
    char *input = (char *)evbuffer_pullup(stream->input, -1);
    if (input == NULL) {
        *len = 0;
        fail_and_notify(stream, ENOMEM);
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
    if (len == 0)
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

/* Copy unconsumed input out of the scratch buffer, and erase it there: the next stream uses the
 * buffer and must not see these bytes. False if there is not enough memory. */
static bool keep(struct stream *stream, char *bytes, size_t len)
{
    if (stream->input == NULL)
        stream->input = evbuffer_new();
    bool kept = stream->input != NULL && evbuffer_add(stream->input, bytes, len) == 0;
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
    stream->lost = true;
    fail(stream, error);
    stream->user->on_lost(stream->context);
}

static void deliver_input(struct stream *stream, char *bytes, size_t len)
{
    stream->fresh = bytes;
    stream->fresh_len = len;
    stream->user->on_input(stream->context);
    /* If the stream was closed in the callback, no input is left. */
    len = stream->fresh_len;
    stream->fresh_len = 0;
    if (len > 0 && !keep(stream, stream->fresh, len)) {
        stream->lost = true;
        fail_and_notify(stream, ENOMEM);
    }
}

/* Whether the end that was read is one in order. After a call that has reported a reset, the kernel
 * reports such an end, too. EPIPE reports no reset: it follows an end, or the peer, on a unix
 * socket, has shut down its receiving side. */
static bool has_ended_in_order(const struct stream *stream)
{
    return stream->failure == 0 || stream->failure == EPIPE;
}

/* False if nothing was read. */
static bool read_on(struct stream *stream)
{
    char *scratch = stream->streams->scratch;
    size_t kept = input_len(stream);
    stream->more = true;
    /* The user has enough unconsumed input for now. */
    if (kept >= stream->user->input_max)
        return false;
    size_t room = stream->user->input_max - kept;
    ssize_t got = recv(stream->fd, scratch, room, MSG_DONTWAIT);
    stream->more = got > 0 && (stream->closed || stream->failure != 0 || (size_t)got == room);
    if (got < 0 && is_passing(errno) && stream->failure == 0)
        return false;
    if (got == 0 && has_ended_in_order(stream))
        on_end(stream);
    else if (got <= 0)
        on_lost(stream, got < 0 ? errno : stream->failure);
    else if (kept == 0)
        deliver_input(stream, scratch, (size_t)got);
    else if (keep(stream, scratch, (size_t)got))
        stream->user->on_input(stream->context);
    else
        on_lost(stream, ENOMEM);
    return true;
}

/* If the connection has ended after this input, report the end now, before any output is flushed: a
 * LOCK must not be granted to a client that has disconnected. */
static bool read_to_end(struct stream *stream)
{
    bool any = read_on(stream);
    if (stream->closed && stream->reading)
        read_on(stream);
    return any;
}

/* The kernel has reported the end of a stream that is not read now. */
static void see_end(struct stream *stream)
{
    int error = take_socket_error(stream);
    if (error != 0)
        fail(stream, error);
    report_end(stream);
}

/* The end of a stream that may not be read now. */
static void note_end(struct stream *stream)
{
    struct streams *streams = stream->streams;
    if (streams->ends_seen == HANGUPS_PER_PASS) {
        stream_watch_hangup(stream, true);
        return;
    }
    streams->ends_seen++;
    see_end(stream);
}

static void stream_on_readable(evutil_socket_t fd, short events, void *context)
{
    struct stream *stream = context;
    (void)fd;
    if (stream->user->master) {
        event_active(stream->deferred_read, EV_READ, 0);
        return;
    }
    stream->closed = stream->closed || (events & EV_CLOSED);
    if (stream->user->may_read != NULL && !stream->user->may_read(stream->context)) {
        stream->more = true;
        if (stream->closed)
            note_end(stream);
        return;
    }
    read_to_end(stream);
}

bool stream_read(struct stream *stream)
{
    return stream->more && stream->reading && read_to_end(stream);
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
    notify_written(context);
}

static void stream_on_tls_event(struct bufferevent *tls, short events, void *context)
{
    struct stream *stream = context;
    if (stream->lost)
        return;
    /* After the end of the input only a failed write can follow. libevent may report it as another
     * end, so treat every later event as a loss. */
    if (stream->ended || !(events & BEV_EVENT_EOF) || (events & BEV_EVENT_ERROR)) {
        on_lost(stream, ECONNABORTED);
        return;
    }
    on_end(stream);
    /* libevent disables both directions when one ends. */
    if (stream_is_open(stream))
        bufferevent_enable(tls, EV_WRITE);
}

/* --- opening and closing --- */

static bool open_socket(struct stream *stream, struct event_base *base)
{
    bool master = stream->user->master;
    /* libevent requires that all events of a socket are edge-triggered, or none. */
    short how = stream->user->may_read != NULL ? EV_PERSIST | EV_ET : EV_PERSIST;
    stream->readable =
        event_new(base, stream->fd, EV_READ | EV_CLOSED | how, stream_on_readable, stream);
    stream->writable = event_new(base, stream->fd, EV_WRITE | how, stream_on_writable, stream);
    if (master)
        stream->deferred_read = event_new(base, -1, 0, stream_on_deferred_read, stream);
    stream->reset_watched = stream->user->may_read != NULL;
    return stream->readable != NULL && stream->writable != NULL &&
           (!master || stream->deferred_read != NULL) && update_watch(stream);
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
    stream->hangup_watched = stream->reset_watched = false;
    (void)update_watch(stream);
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
