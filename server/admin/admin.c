#include "server/admin/admin.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "protocol/limits.h"
#include "protocol/units.h"
#include "server/admin/status.h"
#include "server/clock.h"
#include "server/net/tcp.h"
#include "server/server.h"

/* A rendered body is reused for this long, so that a flood of requests costs the locks little. */
#define BODY_NS (NS_PER_S / 5)

/* --- connections --- */

/*
 * evhttp does not report when it accepts or drops a connection, and it does not limit the number of
 * connections. So this module creates the bufferevent of each connection and keeps a reference to
 * it. When evhttp has finished with a connection, it removes its callbacks from the bufferevent. To
 * close a connection, this module shuts down the socket, and evhttp then ends the connection in the
 * usual way.
 */
struct admin_connection {
    LIST_ENTRY(admin_connection) entry;
    struct bufferevent *connection;
    int64_t since_ns;
    bool refused; /* there were too many connections, so the sweep closes this one */
};

static bool is_done(const struct admin_connection *one)
{
    bufferevent_data_cb on_read = NULL;
    bufferevent_event_cb on_event = NULL;
    bufferevent_getcb(one->connection, &on_read, NULL, &on_event, NULL);
    return on_read == NULL && on_event == NULL;
}

static void release_connection(struct admin *admin, struct admin_connection *one)
{
    LIST_REMOVE(one, entry);
    admin->connection_count -= !one->refused;
    bufferevent_decref(one->connection);
    free(one);
}

static void admin_on_sweep(evutil_socket_t fd, short events, void *context)
{
    struct admin *admin = context;
    struct admin_connection *next;
    int64_t now_ns = clock_now_ns();
    (void)fd;
    (void)events;
    for (struct admin_connection *one = LIST_FIRST(&admin->connections); one != NULL; one = next) {
        next = LIST_NEXT(one, entry);
        if (is_done(one))
            release_connection(admin, one);
        else if (one->refused || now_ns - one->since_ns > LIMIT_ADMIN_SECONDS * NS_PER_S)
            shutdown(bufferevent_getfd(one->connection), SHUT_RDWR);
    }
}

static bool has_request(const struct admin_connection *one)
{
    char byte;
    return recv(bufferevent_getfd(one->connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The connection to close if there are too many: the oldest one without unread input, so that
 * silent connections cannot keep others out. If all have unread input, the newest one. */
static struct admin_connection *find_victim(const struct admin *admin)
{
    struct admin_connection *one;
    struct admin_connection *oldest = LIST_FIRST(&admin->connections);
    LIST_FOREACH (one, &admin->connections, entry)
        if (!one->refused && !has_request(one))
            oldest = one;
    return oldest;
}

static void refuse(struct admin *admin, struct admin_connection *one)
{
    one->refused = true;
    admin->connection_count--;
    admin->rejected++;
    event_active(admin->sweep, 0, 0);
}

/* Limit the connections accepted in one pass. Without the limit, libevent would accept connections
 * for as long as they arrive fast enough, and would serve no other client meanwhile. */
static void count_accepted(struct admin *admin)
{
    if (admin->accepted++ == 0)
        pass_run_in_next(admin->pass);
    if (admin->accepted >= LIMIT_ADMIN_CONNECTIONS)
        evconnlistener_disable(admin->accepting);
}

static void admin_on_pass(evutil_socket_t fd, short events, void *context)
{
    struct admin *admin = context;
    (void)fd;
    (void)events;
    admin->accepted = 0;
    evconnlistener_enable(admin->accepting);
}

static struct bufferevent *admin_on_accept(struct event_base *base, void *context)
{
    struct admin *admin = context;
    struct admin_connection *one = calloc(1, sizeof(*one));
    struct bufferevent *connection = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    count_accepted(admin);
    if (one == NULL || connection == NULL) {
        free(one);
        return connection;
    }
    if (admin->connection_count >= LIMIT_ADMIN_CONNECTIONS)
        admin_on_sweep(-1, 0, admin);
    bufferevent_incref(connection);
    one->connection = connection;
    one->since_ns = clock_now_ns();
    LIST_INSERT_HEAD(&admin->connections, one, entry);
    if (++admin->connection_count > LIMIT_ADMIN_CONNECTIONS)
        refuse(admin, find_victim(admin));
    return connection;
}

/* Descriptors ran out: stop accepting until the next tick. */
static void admin_on_accept_error(struct evconnlistener *accepting, void *context)
{
    (void)context;
    evconnlistener_disable(accepting);
}

static void admin_on_closed(struct evhttp_connection *connection, void *context)
{
    struct admin *admin = context;
    (void)connection;
    event_active(admin->sweep, 0, 0);
}

/* --- bodies --- */

/* Connections that are still sending the body keep a reference to it. */
static void drop_body(struct admin_body *body)
{
    if (body->bytes != NULL)
        evbuffer_free(body->bytes);
}

static void make_nonce(struct server *server, char nonce[ADMIN_NONCE + 1])
{
    unsigned char random[ADMIN_NONCE / 2];
    random_fill(&server->random, random, sizeof(random));
    text_hex(random, sizeof(random), nonce);
    nonce[ADMIN_NONCE] = '\0';
}

static const struct resource_path {
    const char *path;
    const char *type;
    void (*write)(const struct status *status, struct text *text);
} paths[ADMIN_CACHED] = {
    {"/", "text/html; charset=utf-8", page_write},
    {"/live", "text/html; charset=utf-8", page_write_live},
    {"/status.json", "application/json", status_write_json},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", metrics_write},
};

/* False if the body exceeds its size limit or memory is short. */
static bool refresh(struct admin *admin, size_t index)
{
    struct admin_body *cached = &admin->cache[index];
    int64_t now_ns = clock_now_ns();
    struct admin_body fresh = {.made_ns = now_ns};
    struct status status;
    struct text text = {.buf = admin->draft, .size = LIMIT_ADMIN_BODY};
    if (cached->bytes != NULL && now_ns - cached->made_ns < BODY_NS)
        return true;
    make_nonce(admin->server, fresh.nonce);
    process_update(&admin->process);
    status_take(&status, admin->server, now_ns);
    status_take_queues(&status, admin->server->engine, now_ns);
    status.nonce = fresh.nonce;
    paths[index].write(&status, &text);
    fresh.bytes = evbuffer_new();
    if (fresh.bytes == NULL || text.len == text.size ||
        evbuffer_add(fresh.bytes, text.buf, text.len) != 0) {
        drop_body(&fresh);
        return false;
    }
    drop_body(cached);
    *cached = fresh;
    return true;
}

/* --- responses --- */

static void add_header(struct evhttp_request *request, const char *name, const char *value)
{
    evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

static void add_headers(struct evhttp_request *request, const char *type, size_t len,
                        const char *nonce)
{
    char text[512];
    snprintf(text, sizeof(text), "%zu", len);
    add_header(request, "Content-Type", type);
    add_header(request, "Content-Length", text);
    /* One request per connection, so that the limit of connections also limits the requests. */
    add_header(request, "Connection", "close");
    add_header(request, "Cache-Control", "no-store");
    add_header(request, "X-Content-Type-Options", "nosniff");
    add_header(request, "Referrer-Policy", "no-referrer");
    add_header(request, "Cross-Origin-Resource-Policy", "same-origin");
    snprintf(text, sizeof(text),
             "default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; connect-src 'self'; "
             "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             nonce, nonce);
    add_header(request, "Content-Security-Policy",
               nonce[0] != '\0' ? text : "default-src 'none'; frame-ancestors 'none'");
}

static bool wants_body(const struct evhttp_request *request)
{
    return evhttp_request_get_command(request) != EVHTTP_REQ_HEAD;
}

static void respond_text(struct evhttp_request *request, int code, const char *reason,
                         const char *bytes, size_t len)
{
    add_headers(request, "text/plain; charset=utf-8", len, "");
    if (wants_body(request))
        evbuffer_add(evhttp_request_get_output_buffer(request), bytes, len);
    evhttp_send_reply(request, code, reason, NULL);
}

static void respond_string(struct evhttp_request *request, int code, const char *reason,
                           const char *string)
{
    respond_text(request, code, reason, string, strlen(string));
}

static void respond_ready(struct admin *admin, struct evhttp_request *request)
{
    char buf[8192];
    struct text text = {.buf = buf, .size = sizeof(buf)};
    struct status status;
    status_take(&status, admin->server, clock_now_ns());
    status_write_ready(&status, &text);
    bool ready = status_is_ready(&status);
    respond_text(request, ready ? HTTP_OK : HTTP_SERVUNAVAIL, ready ? "OK" : "Service Unavailable",
                 text.buf, text.len);
}

static void respond_body(struct admin *admin, struct evhttp_request *request, size_t index)
{
    const struct admin_body *body = &admin->cache[index];
    if (!refresh(admin, index)) {
        respond_string(request, HTTP_INTERNAL, "Internal Server Error",
                       "the response exceeds its size limit, or there is not enough memory\n");
        return;
    }
    add_headers(request, paths[index].type, evbuffer_get_length(body->bytes),
                strstr(paths[index].type, "html") != NULL ? body->nonce : "");
    if (wants_body(request))
        evbuffer_add_buffer_reference(evhttp_request_get_output_buffer(request), body->bytes);
    evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

/*
 * Whether to serve the request. This protects against DNS rebinding: a foreign page in a browser on
 * this host can make its own name resolve to this address, and then read the response. So the Host
 * header must be an IP address or localhost, unless `insecure` lets anyone read this listener.
 */
static bool is_for_us(const struct admin *admin, struct evhttp_request *request)
{
    const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
    unsigned char address[sizeof(struct in6_addr)];
    char name[64];
    if (host == NULL || admin->server->config->insecure)
        return true;
    if (host[0] == '[')
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(host + 1, "]"), host + 1);
    else
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":"), host);
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1 ||
           inet_pton(AF_INET6, name, address) == 1;
}

static void admin_on_request(struct evhttp_request *request, void *context)
{
    struct admin *admin = context;
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct bufferevent *below = evhttp_connection_get_bufferevent(connection);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
    size_t index = 0;
    evhttp_connection_set_closecb(connection, admin_on_closed, admin);
    while (path != NULL && index < ADMIN_CACHED && strcmp(paths[index].path, path) != 0)
        index++;
    if (evhttp_request_get_command(request) != EVHTTP_REQ_GET && wants_body(request)) {
        add_header(request, "Allow", "GET, HEAD");
        respond_string(request, HTTP_BADMETHOD, "Method Not Allowed",
                       "only GET and HEAD are supported\n");
    } else if (!is_for_us(admin, request)) {
        respond_string(request, 403, "Forbidden",
                       "the Host header must be an IP address or localhost\n");
    } else if (path != NULL && strcmp(path, "/healthz") == 0) {
        respond_string(request, HTTP_OK, "OK", "ok\n");
    } else if (path != NULL && strcmp(path, "/readyz") == 0) {
        respond_ready(admin, request);
    } else if (path != NULL && index < ADMIN_CACHED) {
        respond_body(admin, request, index);
    } else {
        respond_string(request, HTTP_NOTFOUND, "Not Found",
                       "available: / /status.json /metrics /healthz /readyz\n");
    }
    /* Do not read any more: if the client ends its sending direction, evhttp would take that for
     * the end of the connection. */
    bufferevent_disable(below, EV_READ);
}

/* --- once a second --- */

static void take_sample(struct server *server)
{
    struct status status;
    status_take(&status, server, clock_now_ns());
    struct status_history_sample sample = {
        .granted = status.stats.outcomes[ROUND_ACQUIRE][OUTCOME_OK],
        .voting = status.voting,
    };
    for (unsigned i = 0; i < status.node_count; i++) {
        const struct status_node *node = &status.nodes[i];
        sample.round_trip_us[i] = node->state != LINK_UP            ? -1
                                  : node->round_trip_us < INT32_MAX ? (int32_t)node->round_trip_us
                                                                    : INT32_MAX;
    }
    status_history_take(&server->history, &sample);
}

static void admin_on_tick(evutil_socket_t fd, short events, void *context)
{
    struct admin *admin = context;
    (void)fd;
    (void)events;
    take_sample(admin->server);
    process_tick(&admin->process);
    evconnlistener_enable(admin->accepting);
    event_active(admin->sweep, 0, 0);
}

/* --- start and end --- */

static bool start_http(struct admin *admin, int fd)
{
    struct event_base *base = admin->server->base;
    const struct timeval second = {.tv_sec = 1};
    admin->accepting =
        evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (admin->accepting == NULL) {
        evutil_closesocket(fd);
        return false;
    }
    admin->draft = malloc(LIMIT_ADMIN_BODY);
    admin->tick = event_new(base, -1, EV_PERSIST, admin_on_tick, admin);
    admin->sweep = event_new(base, -1, 0, admin_on_sweep, admin);
    admin->pass = event_new(base, -1, 0, admin_on_pass, admin);
    admin->http = evhttp_new(base);
    if (admin->draft == NULL || admin->tick == NULL || admin->sweep == NULL ||
        admin->pass == NULL || admin->http == NULL || event_add(admin->tick, &second) != 0)
        return false;
    evhttp_set_max_headers_size(admin->http, LIMIT_ADMIN_HEADERS);
    evhttp_set_max_body_size(admin->http, LIMIT_ADMIN_REQUEST_BODY);
    evhttp_set_timeout(admin->http, LIMIT_ADMIN_SECONDS);
    evhttp_set_allowed_methods(admin->http, UINT16_MAX);
    evhttp_set_bevcb(admin->http, admin_on_accept, admin);
    evhttp_set_gencb(admin->http, admin_on_request, admin);
    evconnlistener_set_error_cb(admin->accepting, admin_on_accept_error);
    return evhttp_bind_listener(admin->http, admin->accepting) != NULL;
}

bool admin_start(struct admin *admin, struct server *server, const struct config_address *address,
                 struct error *error)
{
    *admin = (struct admin){.server = server};
    int fd = tcp_listen(address, false, listener_rival(&server->clients, address), error);
    if (fd < 0)
        return false;
    process_init(&admin->process);
    if (start_http(admin, fd))
        return true;
    error_set(error, "%.100s: not enough memory or too few file descriptors", address->url);
    admin_stop(admin);
    return false;
}

void admin_stop(struct admin *admin)
{
    struct admin_connection *one;
    /* evhttp frees the listener that is bound to it. */
    if (admin->http != NULL)
        evhttp_free(admin->http);
    else if (admin->accepting != NULL)
        evconnlistener_free(admin->accepting);
    while ((one = LIST_FIRST(&admin->connections)) != NULL)
        release_connection(admin, one);
    if (admin->tick != NULL)
        event_free(admin->tick);
    if (admin->sweep != NULL)
        event_free(admin->sweep);
    if (admin->pass != NULL)
        event_free(admin->pass);
    for (size_t i = 0; i < ADMIN_CACHED; i++)
        drop_body(&admin->cache[i]);
    process_deinit(&admin->process);
    free(admin->draft);
    *admin = (struct admin){.server = admin->server};
}
