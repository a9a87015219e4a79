/*
 * The sockets that systemd has handed over (redlockd.socket): each takes the place of the entry
 * under `listen` that names its address. systemd keeps them open, so that nobody is refused while
 * the daemon is restarted.
 */
#ifndef SERVER_CLIENTS_SOCKETS_H
#define SERVER_CLIENTS_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

struct config_address;
struct error;

struct sockets {
    int first; /* and the descriptors behind it */
    unsigned count;
    uint32_t taken; /* a bit for each */
};

/* All of them; they have to be listening sockets, and no more than there may be entries. On failure
 * the error says what to do about it, and none are left. */
bool sockets_init(struct sockets *sockets, struct error *error);

/* The one for this address, from now on the caller's; or -1. */
int sockets_take(struct sockets *sockets, const struct config_address *address);

/* Has each been taken? Otherwise clients of the first that was not would wait for ever: the error
 * names it. */
bool sockets_all_taken(const struct sockets *sockets, struct error *error);

/* Close those that were not taken. */
void sockets_deinit(struct sockets *sockets);

#endif
