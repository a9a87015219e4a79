/*
 * The addresses of one daemon, and the order in which they are tried: the one that was good last,
 * then the others in turn. Pure.
 */
#ifndef CLIENT_CLI_PLACES_H
#define CLIENT_CLI_PLACES_H

/* The longest is tcp://[an IPv6 address%an interface]:65535. */
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

#endif
