/*
 * The clients of a daemon: what the files of this folder share.
 *
 *     listeners, listener      accept a connection
 *     handshake                TLS, where there is TLS
 *     sessions                 when a connection begins, goes on, ends
 *     requests, listing        lines in, and what answers them
 *     session, auth            replies out; which user it is, and what it may do
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
#include "server/clients/auth.h"
#include "server/clients/client_log.h"
#include "server/clients/handshake.h"
#include "server/clients/listener.h"
#include "server/clients/session.h"

struct engine;
struct random;
struct pass;
struct streams;
struct tls_sockets;

struct clients {
    /* The server's, which outlive this. */
    struct config *config;
    const struct log *log;
    struct event_base *base;
    struct pass *pass;
    struct engine *engine;
    struct random *random;
    struct streams *streams;
    struct tls_sockets *tls_sockets;
    int64_t started_ns;

    struct client_log client_log;
    void *address_counts; /* where they come from */
    struct request_limits request_limits;
    unsigned limit;   /* connections: of the configuration, or what descriptors allow */
    bool starting;    /* all wait in the queues of the sockets */
    bool place_freed; /* a connection has ended: the listeners that paused may go on */

    struct listener *listeners[LISTENS_MAX]; /* listener_count of them */
    size_t listener_count;
    struct handshakes handshakes;
    struct auth auth;         /* which users they are, and what they may do */
    struct event *auth_timer; /* when the oldest that is unauthenticated has to go */

    struct session_list sessions;
    struct session_list deferred;   /* sessions that want attention after this pass */
    struct event *sweep;            /* active while there is something on `deferred` */
    struct session_queue next_pass; /* sessions whose read budget is spent */
    struct event *next_pass_event;  /* added while there is something on `next_pass` */
    unsigned read_budget;           /* so many lines are taken from one session in one pass */
    unsigned sessions_served;       /* in this pass of the loop */
    unsigned session_count;
    uint64_t next_session_id;

    /* Counted since the start. */
    uint64_t requests[VERB_COUNT];
    uint64_t request_errors[REQUEST_ERRORS];
    uint64_t denied; /* requests that their user may not make */
    uint64_t rejected[LISTENER_REFUSAL_COUNT];
};

/*
 * Initialise all but what the caller has set. No client is accepted yet. False if
 * there is not enough memory, or no descriptor: then clients_deinit() has the rest.
 */
bool clients_init(struct clients *clients);

/* Also if it was never initialised and is all zero. */
void clients_deinit(struct clients *clients);

/* The clients that wait in the queues of the sockets since the start are accepted. */
void clients_accept(struct clients *clients);

/* At the end of a pass of the loop, after all was written. */
void clients_on_pass_end(struct clients *clients);

/* Is there an answer that the kernel has not taken yet? */
bool clients_have_unsent(const struct clients *clients);

/* --- sessions.c: when a connection begins, goes on and ends --- */

/* False if there is not enough memory. */
bool sessions_init(struct clients *clients);

/* After clients_free_sessions(); also if it was never initialised and is all zero. */
void sessions_deinit(struct clients *clients);

/* Serve a connection that was accepted; `tls`: over TLS, whose handshake is done, else NULL. Owns
 * both from now on. False if there is no memory for it. */
bool sessions_add(struct clients *clients, int fd, struct bufferevent *tls,
                  const struct peer *peer);

/* There is no room for another connection: the one that has been unauthenticated for longest is
 * closed. False if there is none. */
bool sessions_make_room(struct clients *clients);

/* Free all sessions, as if each client had gone. */
void clients_free_sessions(struct clients *clients);

/* The configuration has other users; the old ones are released by the caller, afterwards. False if
 * there is not enough memory: then nothing has changed. */
bool clients_renew_users(struct clients *clients);

/* The rest of the configuration may have changed, and so has the number of connections. */
void clients_apply_config(struct clients *clients, unsigned limit);

#endif
