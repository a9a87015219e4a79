/*
 * A limit per client applies to a client address, which stands for one person or machine. This
 * module computes client addresses and counts the connections from each. Pure.
 *
 * The client address of an IPv4 connection is its remote address. For IPv6 it is the first 64 bits
 * of that address, because the owner of one address in a /64 usually has the others as well. For a
 * unix socket it is the user at the other end.
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

/* ADDRESS_FULL: the limit is reached. ADDRESS_NO_MEMORY: there is not enough memory. */
enum address_count { ADDRESS_COUNTED, ADDRESS_FULL, ADDRESS_NO_MEMORY };

/* Count a new connection from this client address, unless the result is another than
 * ADDRESS_COUNTED. The counts are a tree; NULL is the empty tree. most: the limit of connections
 * from one address; 0: no limit. */
enum address_count address_counts_enter(void **address_counts,
                                        const struct client_address *client_address, unsigned most);

/* A counted connection from this client address has ended: subtract it. */
void address_counts_leave(void **address_counts, const struct client_address *client_address);

#endif
