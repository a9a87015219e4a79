#include "server/admin/http_listener.h"

#include <event2/bufferevent.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "protocol/limits.h"
#include "protocol/units.h"
#include "server/clock.h"
#include "server/net/pass.h"

/* --- connections --- */

/*
 * evhttp does not report when it accepts or drops a connection, and it does not limit the number of
 * connections. So this module creates the bufferevent of each connection and keeps a reference to
 * it. When evhttp has finished with a connection, it removes its callbacks from the bufferevent. To
 * close a connection, this module shuts down the socket, and evhttp then ends the connection in the
 * usual way.
 */
struct http_connection {
    LIST_ENTRY(http_connection) entry;
    struct bufferevent *connection;
    int64_t since_ns;
    bool refused; /* there were too many connections, so the sweep closes this one */
};

static bool is_done(const struct http_connection *one)
{
    bufferevent_data_cb on_read = NULL;
    bufferevent_event_cb on_event = NULL;
    bufferevent_getcb(one->connection, &on_read, NULL, &on_event, NULL);
    return on_read == NULL && on_event == NULL;
}

static void release_connection(struct http_listener *listener, struct http_connection *one)
{
    LIST_REMOVE(one, entry);
    listener->connection_count -= !one->refused;
    bufferevent_decref(one->connection);
    free(one);
}

static void http_listener_on_sweep(evutil_socket_t fd, short events, void *context)
{
    struct http_listener *listener = context;
    struct http_connection *next;
    int64_t now_ns = clock_now_ns();
    (void)fd;
    (void)events;
    for (struct http_connection *one = LIST_FIRST(&listener->connections); one != NULL;
         one = next) {
        next = LIST_NEXT(one, entry);
        if (is_done(one))
            release_connection(listener, one);
        else if (one->refused || now_ns - one->since_ns > LIMIT_HTTP_SECONDS * NS_PER_S)
            shutdown(bufferevent_getfd(one->connection), SHUT_RDWR);
    }
}

static bool has_request(const struct http_connection *one)
{
    char byte;
    return recv(bufferevent_getfd(one->connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The connection to close if there are too many: the oldest one without unread input, so that
 * silent connections cannot keep others out. If all have unread input, the newest one. */
static struct http_connection *find_victim(const struct http_listener *listener)
{
    struct http_connection *one;
    struct http_connection *oldest = LIST_FIRST(&listener->connections);
    LIST_FOREACH (one, &listener->connections, entry)
        if (!one->refused && !has_request(one))
            oldest = one;
    return oldest;
}

static void refuse(struct http_listener *listener, struct http_connection *one)
{
    one->refused = true;
    listener->connection_count--;
    listener->rejected++;
    event_active(listener->sweep, 0, 0);
}

/* Limit the connections accepted in one pass. Without the limit, libevent would accept connections
 * for as long as they arrive fast enough, and would serve no other client meanwhile. */
static void count_accepted(struct http_listener *listener)
{
    if (listener->accepted++ == 0)
        pass_run_in_next(listener->pass);
    if (listener->accepted >= LIMIT_HTTP_CONNECTIONS)
        evconnlistener_disable(listener->accepting);
}

static void http_listener_on_pass(evutil_socket_t fd, short events, void *context)
{
    struct http_listener *listener = context;
    (void)fd;
    (void)events;
    listener->accepted = 0;
    evconnlistener_enable(listener->accepting);
}

static struct bufferevent *http_listener_on_accept(struct event_base *base, void *context)
{
    struct http_listener *listener = context;
    struct http_connection *one = calloc(1, sizeof(*one));
    struct bufferevent *connection = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    count_accepted(listener);
    if (one == NULL || connection == NULL) {
        free(one);
        return connection;
    }
    if (listener->connection_count >= LIMIT_HTTP_CONNECTIONS)
        http_listener_on_sweep(-1, 0, listener);
    bufferevent_incref(connection);
    one->connection = connection;
    one->since_ns = clock_now_ns();
    LIST_INSERT_HEAD(&listener->connections, one, entry);
    if (++listener->connection_count > LIMIT_HTTP_CONNECTIONS)
        refuse(listener, find_victim(listener));
    return connection;
}

/* Descriptors ran out: stop accepting until the next tick. */
static void http_listener_on_accept_error(struct evconnlistener *accepting, void *context)
{
    (void)context;
    evconnlistener_disable(accepting);
}

static void http_listener_on_closed(struct evhttp_connection *connection, void *context)
{
    struct http_listener *listener = context;
    (void)connection;
    event_active(listener->sweep, 0, 0);
}

/* --- start and end --- */

static void http_listener_on_request(struct evhttp_request *request, void *context)
{
    struct http_listener *listener = context;
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct bufferevent *below = evhttp_connection_get_bufferevent(connection);
    evhttp_connection_set_closecb(connection, http_listener_on_closed, listener);
    listener->on_request(request, listener->context);
    /* Do not read any more: if the client ends its sending direction, evhttp would take that for
     * the end of the connection. */
    bufferevent_disable(below, EV_READ);
}

static bool start_http(struct http_listener *listener, struct event_base *base)
{
    listener->sweep = event_new(base, -1, 0, http_listener_on_sweep, listener);
    listener->pass = event_new(base, -1, 0, http_listener_on_pass, listener);
    listener->http = evhttp_new(base);
    if (listener->sweep == NULL || listener->pass == NULL || listener->http == NULL)
        return false;
    evhttp_set_max_headers_size(listener->http, LIMIT_HTTP_HEADERS);
    evhttp_set_max_body_size(listener->http, LIMIT_HTTP_REQUEST_BODY);
    evhttp_set_timeout(listener->http, LIMIT_HTTP_SECONDS);
    /* libevent would not close the connection after the reply to CONNECT. */
    evhttp_set_allowed_methods(listener->http, UINT16_MAX & ~EVHTTP_REQ_CONNECT);
    evhttp_set_bevcb(listener->http, http_listener_on_accept, listener);
    evhttp_set_gencb(listener->http, http_listener_on_request, listener);
    evconnlistener_set_error_cb(listener->accepting, http_listener_on_accept_error);
    return evhttp_bind_listener(listener->http, listener->accepting) != NULL;
}

bool http_listener_start(struct http_listener *listener, struct event_base *base, int fd,
                         void (*on_request)(struct evhttp_request *request, void *context),
                         void *context)
{
    listener->on_request = on_request;
    listener->context = context;
    listener->accepting =
        evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (listener->accepting == NULL)
        evutil_closesocket(fd);
    else if (start_http(listener, base))
        return true;
    http_listener_stop(listener);
    return false;
}

void http_listener_tick(struct http_listener *listener)
{
    if (listener->http == NULL)
        return;
    evconnlistener_enable(listener->accepting);
    event_active(listener->sweep, 0, 0);
}

void http_listener_stop(struct http_listener *listener)
{
    struct http_connection *one;
    /* evhttp frees the listener that is bound to it. */
    if (listener->http != NULL)
        evhttp_free(listener->http);
    else if (listener->accepting != NULL)
        evconnlistener_free(listener->accepting);
    while ((one = LIST_FIRST(&listener->connections)) != NULL)
        release_connection(listener, one);
    if (listener->sweep != NULL)
        event_free(listener->sweep);
    if (listener->pass != NULL)
        event_free(listener->pass);
    *listener = (struct http_listener){0};
}
