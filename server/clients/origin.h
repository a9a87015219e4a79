/*
 * Where a connection comes from, as far as bounds go: what is likely to be one party. Pure.
 *
 * An IPv4 address is one; of an IPv6 address the first 64 bits, since whoever has one has all the
 * others behind it, too; of a unix socket the user at its other end.
 */
#ifndef SERVER_CLIENTS_ORIGIN_H
#define SERVER_CLIENTS_ORIGIN_H

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

#endif
