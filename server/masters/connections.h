/*
 * The daemon's connections to the masters: what the files of this folder share.
 *
 *     node        one connection: bytes in and out
 *     resp        bytes -> replies
 *     node_log    what the log says of masters
 */
#ifndef SERVER_MASTERS_CONNECTIONS_H
#define SERVER_MASTERS_CONNECTIONS_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "engine/engine.h"
#include "server/masters/resp.h"
#include "server/net/broadcast.h"
#include "server/net/pass.h"
#include "server/net/resolver.h"
#include "server/net/stream.h"
#include "server/net/tcp.h"
#include "server/net/tls.h"

struct connections;
struct log;

/*
 * A connection to one Redis master: bytes in and out, nothing decided. engine/master/link.h and,
 * for the second one, engine/master/tracker.h decide.
 *
 * First the name is resolved (server/net/resolver.h). A libevent bufferevent connects the socket;
 * with TLS another one shakes hands then. What follows is a stream: what the engine writes during
 * one pass of the loop goes out in one write.
 */
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

struct connections {
    /* The server's, which outlive this. */
    const struct config *config;
    const struct log *log;
    struct event_base *base;
    struct pass *pass;
    struct resolver *resolver;
    struct streams *streams;
    struct tls_sockets *tls_sockets;
    struct engine *engine;
    bool bootstrap; /* masters without a record are trusted: an operator says so */
    int64_t started_ns;

    struct node nodes[LIMIT_NODES][CHANNELS];
    struct tls tls[LIMIT_NODES]; /* of both channels of a node; see struct tls */
    struct broadcast broadcast;
    uint64_t down_because[LIMIT_NODES]; /* reasons logged since it was last up, a bit for each */
    unsigned votes;                     /* how many nodes vote */
    bool was_whole;                     /* all of them did, once */
};

/* All but what the server hands in, which the caller has set. The engine opens the connections.
 * False if there is not enough memory: then connections_deinit() has the rest. */
bool connections_init(struct connections *connections);

/* Also if it was never initialised and is all zero. */
void connections_deinit(struct connections *connections);

/* The files for TLS. On failure the reason has been logged. */
bool connections_load_tls(struct connections *connections);

/* For struct engine_io. */
void connections_write(struct connections *connections, uint32_t nodes, enum channel channel,
                       const char *bytes, size_t len);

/* Is there a command that the kernel has not taken yet? */
bool connections_have_unsent(const struct connections *connections);

/* --- node.c: one connection --- */

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

/* --- node_log.c: what the log says of masters, as struct engine_io tells it --- */

void node_log_link(struct connections *connections, unsigned node, enum link_state before);

/* Counts the votes, too. False if the daemon must not go on, because the configuration names a
 * master twice. */
bool node_log_vote(struct connections *connections, unsigned node, enum reason before,
                   enum reason reason, int64_t now_ns);

void node_log_clock_back(const struct connections *connections, unsigned node, int64_t back_ns);
void node_log_refused(const struct connections *connections, unsigned node, enum reason reason,
                      bool release);

#endif
