/*
 * The clients of a daemon: declarations shared by the files of this folder.
 *
 *     listeners, listener      accept connections
 *     handshake                does the TLS handshake, if there is TLS
 *     sessions                 begins and ends sessions; each connection is one session
 *     turns                    decides which sessions take input in a pass, and how much
 *     lines                    takes the lines of a session that speaks the line protocol
 *     commands, command_reader takes the commands of a session that speaks RESP
 *     requests, listing        run the requests, which are the same in both protocols
 *     resp_session, resp_docs  the further commands that Redis clients send by themselves
 *     session, reply_queue     the state of one session; its replies, in order
 *     auth                     determines the user of a session and its rights
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
#include "server/clients/command_reader.h"
#include "server/clients/handshake.h"
#include "server/clients/listener.h"
#include "server/clients/session.h"
#include "server/clients/turns.h"

struct engine;
struct random;
struct pass;
struct streams;
struct tls_sockets;

struct clients {
    /* Owned by the server, which outlives this struct. */
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
    void *address_counts; /* connections per client address */
    struct request_limits request_limits;
    unsigned limit; /* maximum of connections: limits.clients, or fewer if descriptors are short */
    bool starting;  /* no connection is accepted yet; they wait in the listen queues */
    bool place_freed; /* a connection has ended: paused listeners may resume */

    struct listener *listeners[LISTENS_MAX]; /* listener_count of them */
    size_t listener_count;
    struct handshakes handshakes;
    struct auth auth;         /* the users and the unauthenticated connections */
    struct event *auth_timer; /* when the oldest unauthenticated connection must be closed */

    struct command_reader commands; /* of the session whose RESP commands are being taken */

    struct session_list sessions;
    struct session_queue deferred; /* sessions for sessions_on_sweep(), the oldest first */
    struct event *sweep;           /* active or added while `deferred` is not empty */
    struct turns turns;
    struct event *turns_event; /* added if turns_end_pass() has returned true */
    unsigned session_count;
    uint64_t next_session_id;

    /* Counted since the start. */
    uint64_t requests[VERB_COUNT];
    uint64_t request_errors[REQUEST_ERRORS];
    uint64_t denied; /* requests that the user may not make */
    uint64_t rejected[LISTENER_REFUSAL_COUNT];
};

/*
 * Initialise everything that the caller has not set. No client is accepted yet. False if memory or
 * descriptors ran out; then call clients_deinit().
 */
bool clients_init(struct clients *clients);

/* May also be called on a struct that is all zero because it was never initialised. */
void clients_deinit(struct clients *clients);

/* Accept the connections that have waited in the listen queues since the start. */
void clients_accept(struct clients *clients);

/* Call this at the end of a pass of the event loop, after all output is written. */
void clients_on_pass_end(struct clients *clients);

/* Whether any session has output that the kernel has not accepted yet. */
bool clients_have_unsent(const struct clients *clients);

/* --- refusals.c --- */

/* Count and log that a connection is refused. */
void clients_log_refusal(struct clients *clients, const char *peer, enum listener_refusal refusal);

/* --- sessions.c: a connection's start, progress and end --- */

/* False if there is not enough memory. */
bool sessions_init(struct clients *clients);

/* Call this after clients_free_sessions(). May also be called on a struct that is all zero because
 * it was never initialised. */
void sessions_deinit(struct clients *clients);

/* Create the session of an accepted connection. tls: the connection's TLS after its handshake, else
 * NULL. The session owns fd and tls. False if there is not enough memory. Then both have been
 * closed, and the refusal is in the log. */
bool sessions_add(struct clients *clients, int fd, struct bufferevent *tls,
                  const struct peer *peer);

/* Close the connection that has been unauthenticated longest, to make room for a new one. why:
 * which limit is reached, for the log. False if there is none. */
bool sessions_make_room(struct clients *clients, const char *why);

/* Free all sessions, as if each connection had been lost. */
void clients_free_sessions(struct clients *clients);

/* Call this when the configuration has new users. It applies them to all sessions, and closes the
 * sessions that may not continue. Afterwards the caller releases the old users of the
 * configuration. If there is not enough memory, it returns false and changes nothing. */
bool clients_renew_users(struct clients *clients);

/* Apply the other changes of a configuration (auth_timeout) and a new limit of connections. */
void clients_apply_config(struct clients *clients, unsigned limit);

#endif
