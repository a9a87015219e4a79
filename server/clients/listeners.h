/*
 * All sockets that clients connect to: opened at the start, or taken over from systemd; and changed
 * while the daemon runs, all or nothing.
 */
#ifndef SERVER_CLIENTS_LISTENERS_H
#define SERVER_CLIENTS_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/listens.h"
#include "server/net/tls.h"

struct listener;
struct clients;
struct error;

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
