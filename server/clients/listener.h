/*
 * The sockets clients connect to. Accepting pauses when descriptors run out, or places for TLS
 * handshakes, and never spins.
 */
#ifndef SERVER_CLIENTS_LISTENER_H
#define SERVER_CLIENTS_LISTENER_H

#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "config/listens.h"
#include "protocol/limits.h"
#include "server/net/tls.h"

struct clients;
struct config_address;
struct config_listen;
struct error;

/* The keys of `limits` by which clients are refused: X(name, key). */
#define LISTENER_REFUSALS(X)                                                                       \
    X(REFUSED_CLIENTS, "clients")                                                                  \
    X(REFUSED_PER_ADDRESS, "clients_per_address")

enum listener_refusal {
#define X(name, key) name,
    LISTENER_REFUSALS(X)
#undef X
        LISTENER_REFUSAL_COUNT
};

struct listener {
    struct clients *clients; /* the owner */
    const struct config_listen *config;
    struct evconnlistener *accepting;
    struct stat file;    /* of a unix socket that we made */
    struct event *retry; /* while paused: looks whether descriptors are to be had again */
    bool paused;
    unsigned accepted;       /* in this pass of the loop */
    struct event *pass;      /* the next one begins */
    bool given;              /* by systemd, which keeps the socket: its file stays */
    struct tls tls;          /* of a tls:// address; it may be replaced, for connections to come */
    char address[LIMIT_URL]; /* as bound, for people */
};

/* Bind and listen; or listen on `given`, a listening socket of that address, unless it is -1. NULL
 * on failure: the error says what to do about it. */
struct listener *listener_open(struct clients *clients, const struct config_listen *config,
                               int given, struct error *error);

/* Stop accepting, and free it; removes a unix socket's file. */
void listener_close(struct listener *listener);

/* An address of ours that may be what is in the way of this one: a name, or every address, can mean
 * it, too. NULL: there is none. */
const struct config_address *listener_rival(const struct clients *clients,
                                            const struct config_address *address);

/* Can clients still come? Not where the file of a unix socket is gone, or is another's by now. */
bool listener_is_reachable(const struct listener *listener);

/* A descriptor or a place has become free: all that are paused accept again. */
void listener_resume(struct clients *clients);

/* --- listeners.c: all of them ---
 *
 * They are opened at the start, or taken over from systemd; and changed while the daemon runs, all
 * or nothing. */

/* As the configuration of the server has them. On failure the reason has been logged; what was
 * opened so far is for listeners_stop(). */
bool listeners_start(struct clients *clients);

/* Nobody is accepted any more. Files of unix sockets are removed. */
void listeners_stop(struct clients *clients);

/* Those of another configuration, in its order: some are ours already, some opened just now. */
struct listeners_change {
    struct listener *wanted[LISTENS_MAX];
    struct tls tls[LISTENS_MAX]; /* of those that stay, from the files as they are now */
    size_t count;
};

/* Open what is new; on failure the error says why, and all is as it was. */
bool listeners_prepare(struct clients *clients, const struct config *wanted,
                       struct listeners_change *change, struct error *error);
/* Close what is gone; the connections it accepted live on. By now the server's configuration is the
 * wanted one, and what was its own before must not be freed yet. */
void listeners_commit(struct clients *clients, struct listeners_change *change);

#endif
