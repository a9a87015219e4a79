/*
 * The ends of connections that are not read from: by an end in order, or by a reset.
 *
 * libevent can watch for the first alone, by EV_CLOSED. Of the second it makes something to read
 * and to write; where nobody does either, nobody hears of it, and its loop goes round and round. So
 * these have an epoll instance of their own, which libevent watches.
 */
#ifndef SERVER_NET_ENDS_H
#define SERVER_NET_ENDS_H

#include <event2/event.h>
#include <stdbool.h>

struct ends {
    int epoll; /* -1 without one */
    struct event *event;
};

struct end_watch {
    struct ends *ends;
    int fd;
    /* The other side sends no more, or SO_ERROR tells what happened; it is not watched any more. */
    void (*on_end)(void *context);
    void *context;
    bool watched; /* for end_watch_set() alone to change */
};

/* False if there is not enough memory, or no descriptor. */
bool ends_init(struct ends *ends, struct event_base *base);
void ends_deinit(struct ends *ends);

/* Watch, or do not; false at first, and before the socket is closed. */
void end_watch_set(struct end_watch *watch, bool watched);

#endif
