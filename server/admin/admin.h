/*
 * Metrics, health checks and the status page over HTTP, for the operator. There are two listeners:
 * `admin` serves everything and is limited to this host. `metrics` serves the paths marked with m,
 * and other hosts may reach it. So the bodies of these paths name no resource, client or user.
 *
 *       /            the status page                    server/admin/status.h
 *       /live        the part of the page that is refreshed
 *       /status.json the data of the page for scripts, without the samples of its plots
 *     m /metrics     for Prometheus
 *     m /healthz     200: the event loop runs
 *     m /readyz      200: locks can be granted; else 503 and the reasons
 *
 * They are served on the event loop that serves the locks, so each request must be cheap. The
 * bodies of the first four are rendered from data in memory, each at most five times a second
 * regardless of the request rate. Responses refer to the rendered body instead of copying it, so a
 * slow reader costs only its connection. The bodies of /healthz and /readyz are short and written
 * for each request.
 *
 * Each listener has limits of its own (server/admin/http_listener.h), so that connections to
 * `metrics` cannot keep the operator from `admin`. The listeners share the rendered bodies.
 */
#ifndef SERVER_ADMIN_ADMIN_H
#define SERVER_ADMIN_ADMIN_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/text.h"
#include "server/admin/http_listener.h"
#include "server/admin/process.h"

struct server;

/* ADMIN_CACHED: the number of cached bodies. ADMIN_NONCE: the hex digits of a nonce. */
enum { ADMIN_CACHED = 4, ADMIN_NONCE = 32 };

/* A rendered body that several responses share: of /, /live, /status.json or /metrics. */
struct admin_body {
    struct evbuffer *bytes; /* NULL: not rendered yet */
    int64_t made_ns;
    /* The Content-Security-Policy allows only the style and script that carry this nonce. */
    char nonce[ADMIN_NONCE + 1];
};

struct admin {
    struct server *server;         /* the owner */
    struct http_listener listener; /* `admin` */
    struct http_listener metrics;
    struct event *tick; /* once a second */
    char *draft;        /* LIMIT_HTTP_BODY bytes in which bodies are rendered */
    struct admin_body cache[ADMIN_CACHED];
    struct process process;
};

/* Listen on the addresses `admin` and `metrics`, if configured. On failure the error says why, and
 * admin_stop() need not be called. */
bool admin_start(struct admin *admin, struct server *server, struct error *error);

/* Close the listeners and all connections. May be called without a successful admin_start(). */
void admin_stop(struct admin *admin);

#endif
