/*
 * Streams under test, over real kernel sockets: an event loop, and the user of each stream with the
 * socket of its peer.
 */
#ifndef TESTS_UNIT_STREAM_FIXTURE_H
#define TESTS_UNIT_STREAM_FIXTURE_H

#include "server/net/stream.h"

/* The limit of unconsumed input, and more output than the kernel takes at once. */
enum { INPUT_MAX = 4096, MUCH = 1024 * 1024 };

struct stream_fixture {
    struct event_base *base;
    struct streams streams;
    struct pass pass;
};

extern struct stream_fixture stream_fixture;

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
    unsigned ends_seen;
    unsigned losses;
    unsigned *callbacks; /* number of callbacks so far, shared by all users of a test */
    unsigned write_order;
    unsigned read_order;
};

void stream_fixture_open(void);
void stream_fixture_close(void);

/* Run the loop once, without waiting. */
void stream_fixture_pass(void);

/* The user's side of a stream to a master. */
extern const struct stream_user stream_of_master;

/* Open the stream of a user over this socket, whose other end is `peer`. */
void line_user_begin(struct line_user *user, const struct stream_user *as, int fd, int peer);

/* Open a stream of a client over a new pair of sockets. With SOCK_SEQPACKET, each send() of the
 * stream is one recv() of the peer. */
void line_user_begin_pair(struct line_user *user, int type);
void line_user_begin_tcp(struct line_user *user);

/* Close the stream and the socket of the peer. */
void line_user_end(struct line_user *user);

/* The peer resets the connection, or sends bytes. */
void line_user_reset(struct line_user *user);
void line_user_send(const struct line_user *user, const char *bytes, size_t len);

/* Take lines from the stream, at most lines_at_once. */
void line_user_take(struct line_user *user);

/* Assert that the user has taken these lines. */
void line_user_check(const struct line_user *user, const char *lines);
size_t line_user_unconsumed(struct line_user *user);

#endif
