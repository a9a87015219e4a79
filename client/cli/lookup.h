/*
 * The addresses of a daemon by its name, for a process that must not wait for a name server:
 * getaddrinfo(3) can take a minute. A child does it; meanwhile the addresses that are known are
 * tried.
 */
#ifndef CLIENT_CLI_LOOKUP_H
#define CLIENT_CLI_LOOKUP_H

#include <stdbool.h>

#include "protocol/address.h"

/* The addresses of one daemon, and the order in which they are tried: the one that was good last,
 * then the others in turn. The longest is tcp://[an IPv6 address%an interface]:65535. */
enum { PLACES_MAX = 8, PLACES_URL = 80 };

/* All zero: none is known. */
struct places {
    char url[PLACES_MAX][PLACES_URL]; /* numbers, no names */
    unsigned count;
    unsigned last; /* the one that was given last */
    unsigned next;
};

/* These instead, at most PLACES_MAX. The one that was given last, where it is among them, has its
 * turn after the others. */
void places_set(struct places *places, const char (*urls)[PLACES_URL], unsigned count);

/* The one to be tried now, valid until places_set(); NULL: none is known. */
const char *places_next(struct places *places);

/* The one that was given last works: it is the first to be tried again. */
void places_good(struct places *places);

struct lookup {
    struct address address; /* of the daemon, as it was given */
    bool needed;            /* it is a name */
    struct places places;
    int answer; /* where the child writes to, for poll(2); -1: no child is at work */
};

/* With a connection to that URL, or -1: where that leads to is the first address that is known. */
void lookup_init(struct lookup *lookup, const char *url, int connection);

/* Before each attempt to connect, where a look-up is needed: begins one unless one is under way.
 * The URL to connect to, without a name in it; NULL: none is known yet. */
const char *lookup_next(struct lookup *lookup);

/* Take what the child has found, if it is ready. */
void lookup_read(struct lookup *lookup);

#endif
