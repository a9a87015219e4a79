/*
 * An HTTP listener: libevent's evhttp on the event loop that serves the locks, with limits that
 * evhttp lacks. No number of connections delays the other clients of the daemon for long.
 *
 * There are at most LIMIT_HTTP_CONNECTIONS connections. If one more is accepted, the oldest one
 * without unread input is closed, or the newest one if all have unread input. A connection serves
 * one request and is closed after LIMIT_HTTP_SECONDS at the latest.
 */
#ifndef SERVER_ADMIN_HTTP_LISTENER_H
#define SERVER_ADMIN_HTTP_LISTENER_H

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct http_connection;

struct http_listener {
    struct evhttp *http; /* NULL: off */
    struct evconnlistener *accepting;
    struct event *sweep; /* frees ended connections and closes refused and late ones */
    struct event *pass;  /* runs in the next pass if a connection was accepted in this one */
    unsigned accepted;   /* connections accepted in this pass */
    LIST_HEAD(, http_connection) connections;
    unsigned connection_count; /* refused connections are not counted */
    uint64_t rejected;
    void (*on_request)(struct evhttp_request *request, void *context);
    void *context;
};

/* Serve a listening socket, which the listener owns from now on, even on failure. `on_request` must
 * send the whole response before it returns. The listener must be zeroed. False if there is not
 * enough memory or a descriptor is missing; http_listener_stop() need not be called then. */
bool http_listener_start(struct http_listener *listener, struct event_base *base, int fd,
                         void (*on_request)(struct evhttp_request *request, void *context),
                         void *context);

/* Call this once a second: closes late connections, and accepts again after a lack of descriptors.
 * May be called without a successful http_listener_start(), as may http_listener_stop(). */
void http_listener_tick(struct http_listener *listener);

/* Close the listener and all connections. */
void http_listener_stop(struct http_listener *listener);

#endif
