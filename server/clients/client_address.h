/*
 * The client address that limits apply to, which approximates one party, and the number of
 * connections from each. Pure.
 *
 * For IPv4 it is the address. For IPv6 it is the first 64 bits, because the owner of one address of
 * a /64 usually has the others as well. For a unix socket it is the user at the other end.
 */
#ifndef SERVER_CLIENTS_CLIENT_ADDRESS_H
#define SERVER_CLIENTS_CLIENT_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_ADDRESS_BYTES = 9 };

/* Can be compared and hashed as bytes. */
struct client_address {
    unsigned char bytes[CLIENT_ADDRESS_BYTES];
};

/* Addresses in network byte order: 4 or 16 bytes. An IPv4-mapped IPv6 address counts as IPv4. */
struct client_address client_address_of_ipv4(const void *address);
struct client_address client_address_of_ipv6(const void *address);
struct client_address client_address_of_user(uint32_t uid);

/* Count one more connection from this client address, in a tree that starts as NULL. False, without
 * counting it, if there are `most` already (0: no limit) or memory is short. */
bool address_counts_enter(void **address_counts, const struct client_address *client_address,
                          unsigned most);

/* Uncount a connection that has ended. */
void address_counts_leave(void **address_counts, const struct client_address *client_address);

#endif
