/*
 * Where a connection comes from, as far as limits go: what is likely to be one party; and how many
 * connections there are from each. Pure.
 *
 * An IPv4 address is one; of an IPv6 address the first 64 bits, since whoever has one has all the
 * others behind it, too; of a unix socket the user at its other end.
 */
#ifndef SERVER_CLIENTS_CLIENT_ADDRESS_H
#define SERVER_CLIENTS_CLIENT_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_ADDRESS_BYTES = 9 };

/* Comparable and hashable as bytes. */
struct client_address {
    unsigned char bytes[CLIENT_ADDRESS_BYTES];
};

/* In network order: 4 bytes; 16 bytes, an IPv4 address inside of it is that. */
struct client_address client_address_of_ipv4(const void *address);
struct client_address client_address_of_ipv6(const void *address);
struct client_address client_address_of_user(uint32_t uid);

/* Count one more connection of this client address, in a tree that begins as NULL. False, and
 * nothing is counted, if there are `most` already (0: no limit) or memory is short. */
bool address_counts_enter(void **address_counts, const struct client_address *client_address,
                          unsigned most);

/* A counted connection has ended. */
void address_counts_leave(void **address_counts, const struct client_address *client_address);

#endif
