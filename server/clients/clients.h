/*
 * The clients of a daemon: what the files of this folder share.
 *
 *     listeners, listener      accept a connection
 *     handshake                TLS, where there is TLS
 *     session                  lines in, replies out
 *     gate                     who the client is, and what it may do
 */
#ifndef SERVER_CLIENTS_CLIENTS_H
#define SERVER_CLIENTS_CLIENTS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "config/listens.h"
#include "protocol/request.h"
#include "server/clients/client_log.h"
#include "server/clients/gate.h"
#include "server/clients/handshake.h"
#include "server/clients/listener.h"
#include "server/clients/origins.h"
#include "server/clients/session.h"
#include "server/net/ends.h"

struct engine;
struct entropy;
struct pass;
struct server;
struct streams;
struct tls_sockets;

struct clients {
    /* The server's, which outlive this. */
    const struct server *server; /* for status_take() alone */
    struct config *config;
    const struct log *log;
    struct event_base *base;
    struct pass *pass;
    struct engine *engine;
    struct entropy *entropy;
    struct streams *streams;
    struct tls_sockets *tls_sockets;
    int64_t started_ns;

    struct client_log client_log;
    struct ends ends;       /* of clients that are not read from */
    struct origins origins; /* where they come from */
    struct request_limits request_limits;
    unsigned limit;   /* connections: of the configuration, or what descriptors allow */
    bool starting;    /* all wait in the queues of the sockets */
    bool place_freed; /* a connection has ended: the listeners that paused may go on */

    struct listener *listeners[LISTENS_MAX]; /* listener_count of them */
    size_t listener_count;
    struct handshakes handshakes;
    struct gate gate; /* who they are, and what they may do */

    struct session_list sessions;
    struct session_list swept;  /* sessions that want attention after this pass */
    struct session_queue turns; /* sessions that had more to say than one turn takes */
    struct event *sweep;        /* active while there is something on `swept` */
    struct event *turn;         /* the next pass, for `turns` */
    unsigned turn_lines;        /* so many lines may be said in one turn */
    unsigned turn_count;        /* turns in this pass of the loop */
    unsigned session_count;
    uint64_t next_session_id;

    /* Counted since the start. */
    uint64_t requests[VERB_COUNT];
    uint64_t request_errors[REQUEST_ERRORS];
    uint64_t denied; /* requests, to who may not */
    uint64_t rejected[LISTENER_REFUSAL_COUNT];
};

/*
 * All but what the server hands in, which the caller has set. Nobody is accepted yet. False if
 * there is not enough memory, or no descriptor: then clients_deinit() has the rest.
 */
bool clients_init(struct clients *clients);

/* Also if it was never initialised and is all zero. */
void clients_deinit(struct clients *clients);

/* Listen. On failure the reason has been logged. */
bool clients_listen(struct clients *clients);

/* Whoever waited in the queues of the sockets during the start is accepted. */
void clients_accept(struct clients *clients);

/* Nobody is accepted any more. */
void clients_stop_listening(struct clients *clients);

/* Free all sessions, as if each client had gone. */
void clients_free_sessions(struct clients *clients);

/* At the end of a pass of the loop, after all was written. */
void clients_on_pass_end(struct clients *clients);

/* Is there an answer that the kernel has not taken yet? */
bool clients_have_unsent(const struct clients *clients);

#endif
