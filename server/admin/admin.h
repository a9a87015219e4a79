/*
 * The admin listener: metrics, health and the status page by HTTP, for the operator.
 *
 *     /            the status page                    server/admin/status.h
 *     /live        the part of it that lives
 *     /status.json the same for scripts
 *     /metrics     for Prometheus
 *     /healthz     200: the loop lives
 *     /readyz      200: locks can be granted; else 503 and why not
 *
 * libevent's evhttp serves it on the loop that serves the locks, so nothing here may take long or
 * much: all is made of what is in memory, at most a few times a second however often it is asked
 * for, and handed out by reference; so a slow reader costs a connection and no more. Connections
 * are few (LIMIT_ADMIN_CONNECTIONS; for one more, the oldest is closed that has not sent anything
 * new), answer one request, and end after LIMIT_ADMIN_SECONDS, whatever they are at. GET and HEAD
 * alone are served.
 */
#ifndef SERVER_ADMIN_ADMIN_H
#define SERVER_ADMIN_ADMIN_H

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "protocol/text.h"
#include "server/admin/process.h"

struct config_address;

struct server;
struct admin_connection;

enum { ADMIN_CACHED = 4, ADMIN_NONCE = 32 };

/* What was written once, and is handed out by reference. */
struct admin_body {
    struct evbuffer *bytes; /* NULL none yet */
    int64_t made_ns;
    char nonce[ADMIN_NONCE + 1];
};

struct admin {
    struct server *server; /* the owner */
    struct evhttp *http;   /* NULL: off */
    struct evconnlistener *accepting;
    struct event *tick;  /* each second */
    struct event *sweep; /* a connection may have ended */
    struct event *pass;  /* the next one, once a connection was accepted in this */
    unsigned accepted;   /* in this pass */
    LIST_HEAD(, admin_connection) connections;
    unsigned connection_count; /* without those that are refused */
    uint64_t rejected;
    char *draft; /* LIMIT_ADMIN_BODY bytes in which bodies are put together */
    struct admin_body cache[ADMIN_CACHED];
    struct process process;
};

/* Listen there. On failure the error says why, and nothing is left. */
bool admin_start(struct admin *admin, struct server *server, const struct config_address *address,
                 struct error *error);

/* Whatever it is at; also one that was never started. */
void admin_stop(struct admin *admin);

#endif
