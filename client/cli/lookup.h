/*
 * Resolves the daemon's host name without blocking. The supervisor must not wait for a name server,
 * and getaddrinfo(3) can take a minute. A child process resolves the name, while the supervisor
 * tries the known addresses.
 */
#ifndef CLIENT_CLI_LOOKUP_H
#define CLIENT_CLI_LOOKUP_H

#include <stdbool.h>

#include "protocol/address.h"

/* The addresses of one daemon, tried in turn. After places_worked() the next attempt begins with
 * the address that worked. The longest URL is tcp://[<IPv6 address>%<interface>]:65535. */
enum { PLACES_MAX = 8, PLACES_URL = 80 };

/* All zero: no address is known. */
struct places {
    char url[PLACES_MAX][PLACES_URL]; /* numeric addresses */
    unsigned count;
    unsigned last; /* index that places_next() returned last */
    unsigned next; /* index that it returns next */
};

/* Replaces all addresses; count is at most PLACES_MAX. If the new addresses include the one that
 * places_next() returned last, that address is tried after all others, since it may not work. */
void places_set(struct places *places, const char (*urls)[PLACES_URL], unsigned count);

/* The address to try now, valid until places_set(); NULL: none is known. */
const char *places_next(struct places *places);

/* The address tried last works: it is tried first the next time. */
void places_worked(struct places *places);

struct lookup {
    struct address address; /* the daemon's address from the command line */
    bool needed;            /* the host is a name, not a numeric address */
    struct places places;
    int answer; /* pipe from the child, for poll(2); -1: no lookup is under way */
};

/* connection: a socket that is connected to that URL, or -1. If the host is a name, the address of
 * the socket's peer becomes the first known address. Otherwise no address is known. */
void lookup_init(struct lookup *lookup, const char *url, int connection);

/* If `needed`, call this before each attempt to connect. Starts a lookup unless one is under way.
 * Returns a URL with a known numeric address; NULL: none is known yet. */
const char *lookup_next(struct lookup *lookup);

/* Takes the result of the child if it has finished. */
void lookup_read(struct lookup *lookup);

#endif
