/*
 * The sessions of a daemon: when each begins, goes on and ends.
 */
#ifndef SERVER_CLIENTS_SESSIONS_H
#define SERVER_CLIENTS_SESSIONS_H

#include <stdbool.h>

struct bufferevent;
struct clients;
struct peer;
struct users;

/* False if there is not enough memory. */
bool sessions_init(struct clients *clients);

/* After sessions_free_all(); also if it was never initialised and is all zero. */
void sessions_deinit(struct clients *clients);

/* Serve a connection that was accepted; or one whose TLS handshake is done. Owns it from now on.
 * False if there is no memory for it. */
bool sessions_add(struct clients *clients, int fd, const struct peer *peer);
bool sessions_add_tls(struct clients *clients, struct bufferevent *tls, const struct peer *peer);

/* Free all of them, as if each client had gone. */
void sessions_free_all(struct clients *clients);

/* There is no room for another connection: the one that has been unauthenticated for longest is
 * closed. False if there is none. */
bool sessions_make_room(struct clients *clients);

/* auth_renew_users() has been called: connections whose user is gone are closed, and so are those
 * that hold or wait for what they may not lock any more. */
void sessions_renew_users(struct clients *clients);

/* limits.auth_timeout may have changed. */
void sessions_apply_config(struct clients *clients);

#endif
