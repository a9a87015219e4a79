/*
 * Where a connection comes from, as far as limits go: what is likely to be one party; and how many
 * connections there are from each. Pure.
 *
 * An IPv4 address is one; of an IPv6 address the first 64 bits, since whoever has one has all the
 * others behind it, too; of a unix socket the user at its other end.
 */
#ifndef SERVER_CLIENTS_ORIGIN_H
#define SERVER_CLIENTS_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

enum { ORIGIN_BYTES = 9 };

/* Comparable and hashable as bytes. */
struct origin {
    unsigned char bytes[ORIGIN_BYTES];
};

/* In network order: 4 bytes; 16 bytes, an IPv4 address inside of it is that. */
struct origin origin_of_ipv4(const void *address);
struct origin origin_of_ipv6(const void *address);
struct origin origin_of_user(uint32_t uid);

/* A hash of the origins that connections come from; NULL: there is none. */
struct counted_origin;

/* One more connection; false, and none is counted, if that is more than `most` (0: no limit), or if
 * there is not enough memory. */
bool origins_enter(struct counted_origin **origins, const struct origin *origin, unsigned most);

/* One that had been let in is over. */
void origins_leave(struct counted_origin **origins, const struct origin *origin);

#endif
