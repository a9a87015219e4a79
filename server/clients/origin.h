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

/* Count one more connection of this origin, in a tree that begins as NULL. False, and nothing is
 * counted, if there are `most` already (0: no limit) or memory is short. */
bool origins_enter(void **origins, const struct origin *origin, unsigned most);

/* A counted connection has ended. */
void origins_leave(void **origins, const struct origin *origin);

#endif
