/*
 * The sockets that clients connect to. When descriptors or places for TLS handshakes run out, the
 * listeners pause, so that the loop does not spin on a listener that stays ready.
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

/* Why connections are refused, and the words for that in the log and the metric. The words are keys
 * under `limits` in the configuration, except `memory`: there is not enough memory for the
 * connection. */
enum listener_refusal {
    REFUSED_CLIENTS,
    REFUSED_PER_ADDRESS,
    REFUSED_MEMORY,
    LISTENER_REFUSAL_COUNT
};
extern const char *const listener_refusals[LISTENER_REFUSAL_COUNT];

struct listener {
    struct clients *clients; /* the owner */
    const struct config_listen *config;
    struct evconnlistener *accepting;
    struct stat file;    /* of the unix socket's file that this daemon created */
    struct event *retry; /* while paused: checks whether descriptors are available again */
    bool paused;
    unsigned accepted;       /* connections accepted in this pass */
    struct event *pass;      /* runs in the next pass: resets `accepted` */
    bool from_systemd;       /* the socket is systemd's, so its file stays */
    struct tls tls;          /* for tls://; may be replaced for new connections */
    char address[LIMIT_URL]; /* the bound address, for messages */
};

/* Bind and listen. If `inherited_fd` is not -1, use that listening socket of the same address
 * instead. NULL on failure; the error says what to do. */
struct listener *listener_open(struct clients *clients, const struct config_listen *config,
                               int inherited_fd, struct error *error);

/* Stop accepting and free the listener. Removes the file of a unix socket if this daemon created
 * the file and no other file has replaced it. */
void listener_close(struct listener *listener);

/* An address on which this daemon already listens and which may conflict with `address`; NULL if
 * there is none. It is a unix socket with the same file, or a TCP address with the same port. The
 * hosts may look different and still be the same, because one is a name or the wildcard address. */
const struct config_address *listener_rival(const struct clients *clients,
                                            const struct config_address *address);

/* Whether clients can still connect. They cannot if the file of a unix socket was removed or
 * replaced. */
bool listener_is_reachable(const struct listener *listener);

/* Call this when a descriptor or a place for a handshake has become free: paused listeners resume
 * accepting. */
void listener_resume(struct clients *clients);

/* --- listeners.c: all listeners ---
 *
 * They are opened at the start or passed by systemd. A reload changes all of them or none. */

/* Open the listeners of the server's configuration. On failure the reason has been logged; call
 * listeners_stop() to close those opened so far. */
bool listeners_start(struct clients *clients);

/* Close all listeners (listener_close()). */
void listeners_stop(struct clients *clients);

/* The listeners of a new configuration, in its order. Some of them exist already. The others have
 * just been opened. */
struct listeners_change {
    struct listener *wanted[LISTENS_MAX];
    struct tls tls[LISTENS_MAX]; /* reloaded TLS files of listeners that stay */
    size_t count;
};

/* Open the new listeners, and load the TLS files of the listeners that stay. On failure the error
 * says why, and nothing has changed. If the socket file of a listener that stays was removed, the
 * listener is opened again; a failure of that is only logged. */
bool listeners_prepare(struct clients *clients, const struct config *wanted,
                       struct listeners_change *change, struct error *error);
/* Close the listeners that are no longer configured; their connections stay open. The server's
 * configuration must already be the new one, and the old one must not be freed yet. */
void listeners_commit(struct clients *clients, struct listeners_change *change);

#endif
