/*
 * The sockets passed by systemd (redlockd.socket). Each is used for the entry under `listen` that
 * names its address. systemd keeps them open, so no connection is refused while the daemon
 * restarts.
 */
#ifndef SERVER_CLIENTS_SOCKETS_H
#define SERVER_CLIENTS_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

struct config_address;
struct error;

struct sockets {
    int first; /* first of `count` consecutive descriptors */
    unsigned count;
    uint32_t taken; /* one bit per socket */
};

/* Take over all sockets that systemd has passed. They have to be listening sockets, at most
 * LISTENS_MAX. On failure the error says what to do, and there is nothing to deinit. */
bool sockets_init(struct sockets *sockets, struct error *error);

/* The socket of this address, which the caller then owns; -1 if there is none. */
int sockets_take(struct sockets *sockets, const struct config_address *address);

/* Whether each socket was taken. If not, the error names the first one that was not: clients that
 * connect to it would wait forever. */
bool sockets_all_taken(const struct sockets *sockets, struct error *error);

/* Close the sockets that were not taken. */
void sockets_deinit(struct sockets *sockets);

#endif
