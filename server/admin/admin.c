#include "server/admin/admin.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocol/limits.h"
#include "protocol/units.h"
#include "server/admin/status.h"
#include "server/clock.h"
#include "server/net/tcp.h"
#include "server/server.h"

/* A rendered body is reused for this long, so that a flood of requests costs the locks little. */
#define BODY_NS (NS_PER_S / 5)

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
    struct text text = {.buf = admin->draft, .size = LIMIT_HTTP_BODY};
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
 * Whether `admin` serves the request. This protects against DNS rebinding: a foreign page in a
 * browser on this host can make its own name resolve to this address, and then read the response.
 * So the Host header must be an IP address or localhost.
 *
 * `metrics` does not check the header, because Prometheus and load balancers send the name by which
 * they know this host. So a foreign page in a browser that can reach `metrics` can read what it
 * serves, just as every host that can reach it: node names, counts and rates.
 */
static bool is_for_us(struct evhttp_request *request)
{
    const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
    unsigned char address[sizeof(struct in6_addr)];
    char name[64];
    if (host == NULL)
        return true;
    if (host[0] == '[')
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(host + 1, "]"), host + 1);
    else
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":"), host);
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1 ||
           inet_pton(AF_INET6, name, address) == 1;
}

/* Whether `metrics` serves the path: its body names no resource, client or user. */
static bool is_for_metrics(const char *path)
{
    return strcmp(path, "/metrics") == 0 || strcmp(path, "/healthz") == 0 ||
           strcmp(path, "/readyz") == 0;
}

static void respond_path(struct admin *admin, struct evhttp_request *request, const char *path)
{
    size_t index = 0;
    while (index < ADMIN_CACHED && strcmp(paths[index].path, path) != 0)
        index++;
    if (strcmp(path, "/healthz") == 0)
        respond_string(request, HTTP_OK, "OK", "ok\n");
    else if (strcmp(path, "/readyz") == 0)
        respond_ready(admin, request);
    else if (index < ADMIN_CACHED)
        respond_body(admin, request, index);
    else
        respond_string(request, HTTP_NOTFOUND, "Not Found",
                       "available: / /status.json /metrics /healthz /readyz\n");
}

/* The path of a request that may be served. Otherwise NULL, and the error has been sent. */
static const char *check_request(struct evhttp_request *request)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
    if (evhttp_request_get_command(request) == EVHTTP_REQ_GET || !wants_body(request))
        return path != NULL ? path : "";
    add_header(request, "Allow", "GET, HEAD");
    respond_string(request, HTTP_BADMETHOD, "Method Not Allowed",
                   "only GET and HEAD are supported\n");
    return NULL;
}

static void admin_on_request(struct evhttp_request *request, void *context)
{
    const char *path = check_request(request);
    if (path != NULL && is_for_us(request))
        respond_path(context, request, path);
    else if (path != NULL)
        respond_string(request, 403, "Forbidden",
                       "the Host header must be an IP address or localhost\n");
}

static void metrics_on_request(struct evhttp_request *request, void *context)
{
    const char *path = check_request(request);
    if (path != NULL && is_for_metrics(path))
        respond_path(context, request, path);
    else if (path != NULL)
        respond_string(request, HTTP_NOTFOUND, "Not Found",
                       "available: /metrics /healthz /readyz; the status page and /status.json are "
                       "at the address `admin`, which only the daemon's own host can reach\n");
}

/* --- once a second --- */

static void take_sample(struct server *server)
{
    struct status status;
    status_take(&status, server, clock_now_ns());
    struct status_history_sample sample = {
        .granted = status.engine.stats->outcomes[ROUND_ACQUIRE][OUTCOME_OK],
        .voting = status.voting,
    };
    for (unsigned i = 0; i < status.engine.node_count; i++) {
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
    http_listener_tick(&admin->listener);
    http_listener_tick(&admin->metrics);
}

/* --- start and end --- */

static bool start_tick(struct admin *admin)
{
    const struct timeval second = {.tv_sec = 1};
    process_init(&admin->process);
    admin->draft = malloc(LIMIT_HTTP_BODY);
    admin->tick = event_new(admin->server->base, -1, EV_PERSIST, admin_on_tick, admin);
    return admin->draft != NULL && admin->tick != NULL && event_add(admin->tick, &second) == 0;
}

/* Does nothing if the address is not configured. */
static bool start_listener(struct admin *admin, struct http_listener *listener,
                           const struct config_address *address,
                           void (*on_request)(struct evhttp_request *request, void *context),
                           struct error *error)
{
    struct server *server = admin->server;
    if (address->host == NULL)
        return true;
    int fd = tcp_listen(address, false, listener_rival(&server->clients, address), error);
    if (fd < 0)
        return false;
    return http_listener_start(listener, server->base, fd, on_request, admin) ||
           error_set(error, "%.100s: not enough memory or too few file descriptors", address->url);
}

bool admin_start(struct admin *admin, struct server *server, struct error *error)
{
    const struct config *config = server->config;
    *admin = (struct admin){.server = server};
    if (config->admin.host == NULL && config->metrics.host == NULL)
        return true;
    if (!start_tick(admin))
        error_set(error, "not enough memory");
    else if (start_listener(admin, &admin->listener, &config->admin, admin_on_request, error) &&
             start_listener(admin, &admin->metrics, &config->metrics, metrics_on_request, error))
        return true;
    admin_stop(admin);
    return false;
}

void admin_stop(struct admin *admin)
{
    http_listener_stop(&admin->listener);
    http_listener_stop(&admin->metrics);
    if (admin->tick != NULL)
        event_free(admin->tick);
    for (size_t i = 0; i < ADMIN_CACHED; i++)
        drop_body(&admin->cache[i]);
    process_deinit(&admin->process);
    free(admin->draft);
    *admin = (struct admin){.server = admin->server};
}
