/*
 * A connection to one Redis master: bytes in and out, nothing decided. engine/master/link.h and,
 * for the second one, engine/master/tracker.h decide.
 *
 * First the name is resolved (server/net/resolver.h). A libevent bufferevent connects the socket;
 * with TLS another one shakes hands then. What follows is a stream: what the engine
 * writes during one pass of the loop goes out in one write.
 */
#ifndef SERVER_MASTERS_NODE_H
#define SERVER_MASTERS_NODE_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "engine/engine.h"
#include "server/masters/resp.h"
#include "server/net/resolver.h"
#include "server/net/stream.h"
#include "server/net/tcp.h"

struct connections;

struct node {
    struct connections *connections; /* the owner */
    const struct config_node *config;
    unsigned index;
    enum channel channel;
    struct name_lookup lookup;
    struct resolved address; /* the last that was connected to */
    unsigned addresses;      /* that the name had then */
    unsigned tried;          /* attempts since it was up; the one under way counts */
    struct bufferevent
        *opening;          /* until it is connected, with TLS until the end of the handshake */
    struct stream stream;  /* from then on */
    struct event *failure; /* tells of an open that failed at once, after the pass, or whose name
                              takes too long */
    enum reason why;       /* what it tells */
    struct resp resp;
    bool secured;          /* `opening` is one of TLS: its handshake has begun */
    bool heard;            /* something has come by it */
    uint64_t tls_reported; /* the failures of TLS that the log has; reasons, a bit each */
};

/* False if there is not enough memory. */
bool node_init(struct node *node, struct connections *connections, unsigned index,
               enum channel channel);
void node_deinit(struct node *node);

/* The address behind the name, "10.0.0.1:6379", or "" where the configuration has an address, or
 * none was found so far. */
void node_address(const struct node *node, char text[SOCKADDR_TEXT]);

/* Has it not been tried yet all that there is to try? */
bool node_goes_on(const struct node *node);

/* The commands connection works: the other one has to lead to the same server, if the name has
 * several. */
void node_on_up(struct node *node);

/* For struct engine_io. */
void node_open(struct node *node);
void node_close(struct node *node); /* what has not left yet never will */

#endif
