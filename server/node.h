/*
 * A connection to one Redis master: bytes in and out, nothing decided. protocol/link.h and, for the
 * second one, protocol/tracker.h decide.
 *
 * A libevent bufferevent connects the socket, and has names resolved off the loop by evdns; with
 * TLS another one shakes hands then. What comes behind that is a stream: what the engine writes
 * during one pass of the loop goes out in one write.
 */
#ifndef SERVER_NODE_H
#define SERVER_NODE_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "server/engine.h"
#include "server/resp.h"
#include "server/stream.h"

struct server;

struct node {
    struct server *server; /* the owner */
    const struct config_node *config;
    unsigned index;
    enum channel channel;
    struct bufferevent
        *opening;          /* until it is connected, with TLS until the end of the handshake */
    struct stream stream;  /* from then on */
    struct event *failure; /* tells, after the pass, of an open that failed at once */
    struct resp resp;
    bool secured;             /* `opening` is one of TLS: its handshake has begun */
    bool heard;               /* something has come by it */
    enum reason tls_reported; /* the failure of TLS that the log has */
};

/* False if there is not enough memory. */
bool node_init(struct node *node, struct server *server, unsigned index, enum channel channel,
               const struct config_node *config);
void node_deinit(struct node *node);

/* For struct engine_io. */
void node_open(struct node *node);
void node_close(struct node *node); /* what has not left yet never will */
void node_write(struct node *node, const char *bytes, size_t len);

#endif
