/*
 * The bytes of one connection, to a client or a master, over a plain socket or over TLS. The input
 * is one contiguous view. The output is sent with one send() per pass of the event loop.
 *
 *     socket --recv--> scratch --+--> stream_input(), stream_consume()
 *                                |      ^
 *                  not consumed  +--> input      an evbuffer, usually empty; over TLS it belongs
 *                                                to libevent's bufferevent
 *     stream_write() --> output --streams_flush()--> socket, or the bufferevent
 *
 * All streams of a loop share one scratch buffer, used by one stream at a time, and the blocks that
 * outputs borrow for a pass (server/net/output.h). An idle connection has no buffer. As long as
 * clients read their replies and send whole lines, nothing is allocated.
 *
 * Output is collected until streams_flush(), which is called at the end of the pass, after
 * everything else that writes. Apart from on_written, callbacks come from the event loop only,
 * never from inside stream_write() or streams_flush().
 */
#ifndef SERVER_NET_STREAM_H
#define SERVER_NET_STREAM_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "engine/pool.h"
#include "protocol/limits.h"
#include "server/net/output.h"
#include "server/net/pass.h"

struct stream;

TAILQ_HEAD(stream_list, stream);

/* What all streams of a loop share. */
struct streams {
    struct event_base *base;
    char *scratch;      /* LIMIT_NODE_IO bytes, of which a read touches only those it returns */
    struct pool blocks; /* blocks borrowed by the outputs */
    struct stream_list collected; /* streams with output to flush */
    struct pass *pass;            /* streams_flush() is due at its end */
    unsigned ends_seen; /* calls of on_end_seen in this pass for streams that may not be read */
    int hangup_epoll;   /* see stream_watch_hangup(); -1: none */
    struct event *hangup_event;
};

/* The callbacks of a stream's user. on_written may be NULL, and so may on_end_seen of a master. A
 * callback may close the stream but not free it. */
struct stream_user {
    /* May the stream be read now? If not, or if stream->more is true after on_input, the user calls
     * stream_read() later: the event loop reports the same input only once, so that thousands of
     * sockets that have to wait cost nothing. NULL: always. Plain sockets only. */
    bool (*may_read)(void *context);
    /* New input has arrived. Input that the user does not consume is kept, and the view of the next
     * call begins with it. */
    void (*on_input)(void *context);
    /* All output has been sent. The callback may only schedule an event: it must neither write nor
     * close. */
    void (*on_written)(void *context);
    /* The peer closed its sending direction in order: there is no more input. */
    void (*on_end)(void *context);
    /* The stream has ended, in order or by stream->failure, but there may be input left to read:
     * the stream is watched by stream_watch_hangup(), which is now over, or may_read has returned
     * false, or nothing can be sent any more. After a failure, reading goes on as if stream->more
     * were true, until on_end or on_lost. It may be called more than once. */
    void (*on_end_seen)(void *context);
    /* The connection was lost, by stream->failure. Only input that was kept is left. No callback
     * follows. */
    void (*on_lost)(void *context);
    /* The peer is a master, not a client. Masters are flushed before the clients, so that they work
     * while the daemon sends replies. Masters are read after the clients. So the daemon sees the
     * end of a client's TLS connection before the votes that would grant its LOCK. */
    bool master;
    /* The most bytes of unconsumed input, and of one read. Over TLS, the rest of the last record
     * can exceed this limit. A user that leaves this much input must consume some of it in the next
     * pass or stop reading. Otherwise the loop would spin. */
    size_t input_max;
};

struct stream {
    struct streams *streams; /* NULL: closed */
    const struct stream_user *user;
    void *context;
    int fd;
    struct bufferevent *tls;     /* owned; NULL: a plain socket */
    struct event *readable;      /* plain sockets only */
    struct event *deferred_read; /* plain sockets of masters: reads after the events that are
                                    already active */
    struct event
        *writable; /* added while the kernel accepts no more output; activated to report a loss */
    struct evbuffer *input; /* unconsumed input, NULL if none; over TLS the bufferevent's */
    char *fresh;            /* new input in the scratch buffer, while on_input runs */
    size_t fresh_len;
    struct output output;
    TAILQ_ENTRY(stream) entry; /* in streams->collected */
    bool collected;            /* is in streams->collected */
    bool blocked;              /* `writable` is added */
    bool reading;
    bool hangup_watched; /* by stream_watch_hangup() */
    bool reset_watched;  /* with may_read, until it was reported */
    bool watched;        /* is in streams->hangup_epoll */
    bool closed;         /* the kernel has reported the end, in order or by reset */
    bool more; /* the socket may have input, or an end, that was not read and is not reported */
    bool full; /* TLS: input_max is reached; reading resumes when some input is consumed */
    bool ended;
    bool lost;
    int failure; /* errno of the first failure, or ECONNRESET; nothing can be sent. 0: none */
};

/* The owner has to call streams_flush() at the end of each pass. False if there is not enough
 * memory. */
bool streams_init(struct streams *streams, struct event_base *base, struct pass *pass);
void streams_deinit(struct streams *streams);

/* Send all collected output. */
void streams_flush(struct streams *streams);

/* Read from and write to a connected non-blocking socket. tls: the TLS connection on that socket
 * after its handshake, else NULL. The stream owns both. False if there is not enough memory; both
 * have been closed then. */
bool stream_open(struct stream *stream, struct streams *streams, int fd, struct bufferevent *tls,
                 const struct stream_user *user, void *context);

/* Discards unsent output. No effect on a closed stream. */
void stream_close(struct stream *stream);
bool stream_is_open(const struct stream *stream);

/* The unconsumed input, *len bytes. Valid until the callback returns or another stream function is
 * called. The caller may overwrite the bytes. */
char *stream_input(struct stream *stream, size_t *len);
void stream_consume(struct stream *stream, size_t len);

/* Read if stream->more is true. False if nothing was read, so that no callback was called. */
bool stream_read(struct stream *stream);

/* Turn reading on or off; it is on at first. While a stream is not read from, its end goes
 * unnoticed unless stream_watch_hangup() is on. */
void stream_set_reading(struct stream *stream, bool reading);

/*
 * Turn on or off the detection of a hang-up, in order or by reset, while the stream is not read
 * from. It is off at first.
 *
 * libevent's EV_CLOSED reports only an end in order. A reset makes the socket readable and
 * writable. If neither event is registered, libevent ignores the reset, and the loop spins. So the
 * sockets of these streams are in a separate epoll instance, which libevent watches. The sockets of
 * streams with may_read are always there: libevent reports a reset like input, so one that comes
 * together with input would go unnoticed.
 */
void stream_watch_hangup(struct stream *stream, bool watched);

/* Write len bytes, at least one. No effect after a failure. */
void stream_write(struct stream *stream, const char *bytes, size_t len);

/* Like stream_write(), for output shared by several streams. If the stream has no unsent bytes, it
 * refers to these bytes instead of copying them. So the caller keeps them unchanged until
 * streams_flush() returns. */
void stream_share(struct stream *stream, char *bytes, size_t len);

/* The number of bytes written that the kernel has not accepted yet. */
size_t stream_unsent(const struct stream *stream);

#endif
