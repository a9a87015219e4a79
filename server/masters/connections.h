/*
 * The daemon's connections to the masters: declarations shared by the files of this folder.
 *
 *     node        one connection: bytes in and out
 *     resp        bytes -> replies
 *     node_log    log lines about masters
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
 * A connection to one Redis master. It only moves bytes. The engine makes all decisions: in
 * engine/master/link.h for the commands connection and in engine/master/tracker.h for the tracking
 * connection.
 *
 * Opening resolves the name first (server/net/resolver.h). Then a libevent bufferevent connects the
 * socket, and with TLS a second bufferevent does the handshake. After that the connection is a
 * stream, and everything that the engine writes in one pass of the event loop is sent in one write.
 */
struct node {
    struct connections *connections; /* the owner */
    const struct config_node *config;
    unsigned index;
    enum channel channel;
    struct name_lookup lookup;
    struct resolved address;     /* the address connected to last */
    unsigned addresses;          /* number of addresses that the name had then */
    unsigned attempts;           /* connection attempts since the connection was last up */
    struct bufferevent *opening; /* until connected; with TLS until the handshake is complete */
    struct stream stream;        /* once connected */
    struct event *failure; /* reports from the event loop that node_open() failed immediately or
                              that a look-up timed out */
    enum reason failure_reason; /* the reason that `failure` reports */
    struct resp resp;
    bool tls_started;      /* `opening` is a TLS bufferevent: the handshake has begun */
    bool received_any;     /* bytes have been received on this connection */
    uint64_t tls_reported; /* TLS failures already logged, one bit per reason */
};

struct connections {
    /* Owned by the server, which outlives this struct. */
    const struct config *config;
    const struct log *log;
    struct event_base *base;
    struct pass *pass;
    struct resolver *resolver;
    struct streams *streams;
    struct tls_sockets *tls_sockets;
    struct engine *engine;
    bool bootstrap; /* masters without a record are trusted (--bootstrap or --dev) */
    int64_t started_ns;

    struct node nodes[LIMIT_NODES][CHANNELS];
    struct tls tls[LIMIT_NODES]; /* shared by both channels of a node; see struct tls */
    struct broadcast broadcast;
    uint64_t down_reasons_logged[LIMIT_NODES]; /* since the node was last up, one bit per reason */
    int64_t suspect_logged_ns[LIMIT_NODES];    /* when node_suspect was last logged; 0: never */
    bool suspect_unlogged[LIMIT_NODES]; /* the present suspicion of the node, or the last one */
    bool lapse_unlogged[LIMIT_NODES];   /* the node has lost its vote, and no line says so */
    unsigned votes;                     /* number of nodes that vote */
    int64_t no_quorum_ns;               /* since when they are no quorum; 0: they are one */
    bool no_quorum_logged;
    bool had_all_votes; /* all nodes have voted at the same time, at least once */
};

/* The caller has set the fields owned by the server. No connection is opened yet: the engine does
 * that with node_open(). False if there is not enough memory; then call connections_deinit(). */
bool connections_init(struct connections *connections);

/* May also be called on a struct that is all zero because it was never initialised. */
void connections_deinit(struct connections *connections);

/* Load the TLS files of all nodes. On failure the reason has been logged. */
bool connections_load_tls(struct connections *connections);

/* The write function of struct link_io. */
void connections_write(struct connections *connections, uint32_t nodes, enum channel channel,
                       const char *bytes, size_t len);

/* Whether there are commands that the kernel has not accepted yet. */
bool connections_have_unsent(const struct connections *connections);

/* --- node.c: one connection --- */

/* False if there is not enough memory. */
bool node_init(struct node *node, struct connections *connections, unsigned index,
               enum channel channel);
void node_deinit(struct node *node);

/* The address that the name resolved to, such as "10.0.0.1:6379". "" if the configuration has an
 * address instead of a name, or if the name has not been resolved yet. */
void node_address(const struct node *node, char text[SOCKADDR_TEXT]);

/* Whether there is another address or another look-up to try before the node counts as down. */
bool node_has_more(const struct node *node);

/* Call this when the commands connection is up. If the tracking connection uses another address of
 * the name, it is closed and opened again, because both have to use the same server. */
void node_on_up(struct node *node);

/* The open and close functions of struct link_io. */
void node_open(struct node *node);
void node_close(struct node *node); /* discards unsent output */

/* --- node_log.c: log lines about masters, called from struct engine_io --- */

void node_log_link(struct connections *connections, unsigned node, enum link_state before);

/* Log that a node has lost or regained its vote, and count the votes. False if the daemon must stop
 * because the configuration lists a master twice. */
bool node_log_vote(struct connections *connections, unsigned node, enum reason before,
                   enum reason reason, int64_t now_ns);

/* Log that too few nodes vote, once they have been too few for a while. Call this at the end of
 * each pass. */
void node_log_no_quorum(struct connections *connections);

void node_log_clock_back(const struct connections *connections, unsigned node, int64_t back_ns);
void node_log_refused(const struct connections *connections, unsigned node, enum reason reason,
                      bool release);

#endif
