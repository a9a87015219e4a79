/*
 * The bytes of one connection: what has come as one view, what is written in one send() per pass of
 * the loop. For clients and masters alike, over a socket or over TLS.
 *
 *     socket --recv--> scratch --+--> stream_input(), stream_consume()
 *                                |      ^
 *                  not consumed  +--> input      an evbuffer, empty as a rule; over TLS that of
 *                                                libevent's bufferevent
 *     stream_write() --> output --streams_flush()--> socket, or the bufferevent
 *
 * All streams of a loop share one scratch, which is used by one at a time, and the blocks that
 * outputs borrow for a pass (server/net/output.h): a connection at rest has no buffer, and while
 * clients read what they are sent, and send whole lines, nothing is allocated.
 *
 * What is written is collected until streams_flush(), whose caller lets everything come first that
 * belongs into the same pass. Callbacks come from the loop alone, never out of stream_write() or
 * streams_flush(), but for on_written.
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

/* What all streams of a loop have in common. */
struct streams {
    struct event_base *base;
    char *scratch;      /* LIMIT_NODE_IO bytes, of which only those are touched that come at once */
    struct pool blocks; /* of the outputs */
    struct stream_list collected; /* those with something to be flushed */
    struct pass *pass;            /* its end is wanted for those */
    int hangup_epoll;             /* an epoll: see stream_watch_hangup(); -1: none */
    struct event *hangup_event;
};

/* What its user does about a stream; on_written and on_end_seen may be NULL. It may close the
 * stream, but not free it. */
struct stream_user {
    /* There is more to be read than before. What is not consumed is kept, and comes again with what
     * comes next. */
    void (*on_input)(void *context);
    /* All that was written has gone out. To be noted, for an event of its own: neither write nor
     * close here. */
    void (*on_written)(void *context);
    /* The other side ended its direction, in order: nothing more comes in. */
    void (*on_end)(void *context);
    /* The same, or that it was lost, of a stream whose end is watched: SO_ERROR tells which. It is
     * not watched any more. */
    void (*on_end_seen)(void *context);
    /* The connection was lost: the last callback of all. */
    void (*on_lost)(void *context);
    /* A master is flushed before the clients, since it works meanwhile, and read behind them: a
     * client's end over TLS, that was there first, comes before the answer to its LOCK. */
    bool master;
    /* At most so many bytes are kept that were not consumed, or are read at once; over TLS, and
     * what was read with the last of them. Who leaves that many takes some in the next pass, or
     * stops reading: the loop does not wait for him. */
    size_t input_max;
};

struct stream {
    struct streams *streams; /* NULL: closed */
    const struct stream_user *user;
    void *context;
    int fd;
    struct bufferevent *tls; /* owned; NULL: a socket */
    struct event *readable;  /* of a socket alone */
    struct event *behind;    /* of a socket of a master: reads, behind what is active by then */
    struct event
        *writable; /* added while the kernel does not take more; activated to tell a loss */
    struct evbuffer *input; /* NULL: nothing is in it; over TLS the bufferevent's */
    char *fresh;            /* in the scratch, while its on_input runs */
    size_t fresh_len;
    struct output output;
    TAILQ_ENTRY(stream) entry; /* while collected */
    bool collected;            /* something was written in this pass */
    bool blocked;              /* `writable` is added */
    bool reading;
    bool hangup_watched;
    bool full; /* TLS: so much is kept that nothing is read until some is consumed */
    bool ended;
    bool lost;
    bool lost_by_peer; /* it, or something on the way, ended it; false where it was lost here: for
                          lack of memory, above all */
};

/* At the end of the pass its owner calls streams_flush(). False if there is not enough memory. */
bool streams_init(struct streams *streams, struct event_base *base, struct pass *pass);
void streams_deinit(struct streams *streams);

/* Send all that was collected. */
void streams_flush(struct streams *streams);

/* Read from and write to this socket, which is connected and does not block; `tls`: over the TLS
 * connection that has it, whose handshake is done, else NULL. Owns both from now on. False if there
 * is not enough memory: then they have been closed. */
bool stream_open(struct stream *stream, struct streams *streams, int fd, struct bufferevent *tls,
                 const struct stream_user *user, void *context);

/* What was not sent yet is dropped. For one that is closed, nothing. */
void stream_close(struct stream *stream);
bool stream_is_open(const struct stream *stream);

/* All that has come and was not consumed: *len bytes, until the callback returns, or the next call
 * but this. They may be overwritten. */
char *stream_input(struct stream *stream, size_t *len);
void stream_consume(struct stream *stream, size_t len);

/* Whether to read: true at first. Who is not read from is not noticed to end, either. */
void stream_set_reading(struct stream *stream, bool reading);

/*
 * Whether to watch for its end while it is not read from: false at first. It ends in order, or by a
 * reset.
 *
 * libevent can watch for the first alone, by EV_CLOSED. Of the second it makes something to read
 * and to write; where nobody does either, nobody hears of it, and its loop goes round and round. So
 * these have an epoll instance of their own, which libevent watches.
 */
void stream_watch_hangup(struct stream *stream, bool watched);

/* At least one byte. Once it is lost, nothing. */
void stream_write(struct stream *stream, const char *bytes, size_t len);

/* The same without a copy, if nothing is unsent: the bytes stay as they are until streams_flush().
 * For what is sent to several. */
void stream_share(struct stream *stream, char *bytes, size_t len);

/* How many bytes were written that the kernel has not taken yet. */
size_t stream_unsent(const struct stream *stream);

#endif
