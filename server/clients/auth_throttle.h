/*
 * How many wrong secrets each client address may try: AUTH_THROTTLE_BURST at once, then one in
 * AUTH_THROTTLE_EVERY_NS. Beyond that no secret of that client_address is looked at, right or
 * wrong: a guess that is answered, if only late, is a guess. Pure, and of a fixed size.
 *
 * The same wrong secret again tells nobody anything and costs nothing: a client that was forgotten
 * when a secret was changed must not shut out its neighbours. The last few are remembered, by a
 * fingerprint that only this process can compute.
 */
#ifndef SERVER_CLIENTS_AUTH_THROTTLE_H
#define SERVER_CLIENTS_AUTH_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "server/clients/client_address.h"

#define AUTH_THROTTLE_EVERY_NS INT64_C(1000000000)

enum { AUTH_THROTTLE_BURST = 20, AUTH_THROTTLE_SEEN = 4, AUTH_THROTTLE_WAYS = 8 };

struct auth_failures {
    struct client_address client_address;
    int64_t forgiven_ns; /* when all is forgiven; the further ahead, the more auth throttle */
    uint64_t seen[AUTH_THROTTLE_SEEN];
    unsigned next_seen;
};

struct auth_throttle {
    uint64_t seed;
    struct auth_failures clients[LIMIT_AUTH_THROTTLES];
};

/* seed: random, so that nobody knows which address_counts displace each other. */
void auth_throttle_init(struct auth_throttle *auth_throttle, uint64_t seed);

/* For how long no secret of this client address is looked at; 0: now. */
int64_t auth_throttle_wait_ns(const struct auth_throttle *auth_throttle,
                              const struct client_address *client_address, int64_t now_ns);

/* A wrong one was tried. What is worth a line of a log: */
enum auth_throttle_news {
    AUTH_THROTTLE_NOTHING,
    AUTH_THROTTLE_FIRST, /* the first of this client address, or after a pause that has forgiven all
                          */
    AUTH_THROTTLE_SPENT, /* now no secret of this client address is looked at, for a while */
};
enum auth_throttle_news auth_throttle_note(struct auth_throttle *auth_throttle,
                                           const struct client_address *client_address,
                                           uint64_t fingerprint, int64_t now_ns);

#endif
