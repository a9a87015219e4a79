/*
 * Limits the wrong secrets that each client address may try: AUTH_THROTTLE_BURST at once, then one
 * per AUTH_THROTTLE_EVERY_NS. Beyond that no secret from this client address is checked, right or
 * wrong: a reply, even a late one, would tell an attacker whether a guess was right. The module is
 * pure and has a fixed size.
 *
 * A repetition of the same wrong secret reveals nothing and is not counted: a client that still
 * uses an old secret must not lock out other clients of the same address. The module remembers the
 * last few wrong secrets by a fingerprint that only this process can compute.
 */
#ifndef SERVER_CLIENTS_AUTH_THROTTLE_H
#define SERVER_CLIENTS_AUTH_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "server/clients/client_address.h"

#define AUTH_THROTTLE_EVERY_NS INT64_C(1000000000)

/* BURST: the budget of wrong secrets of a client address. SEEN: the wrong secrets remembered for
 * it. WAYS: the entries of one set of the table; addresses in one set can evict each other. */
enum { AUTH_THROTTLE_BURST = 20, AUTH_THROTTLE_SEEN = 4, AUTH_THROTTLE_WAYS = 8 };

struct auth_failures {
    struct client_address client_address;
    int64_t budget_full_ns; /* when the budget is full again; each wrong secret moves it later */
    uint64_t seen[AUTH_THROTTLE_SEEN]; /* fingerprints; 0: empty */
    unsigned next_seen;
};

struct auth_throttle {
    uint64_t seed;
    struct auth_failures clients[LIMIT_AUTH_THROTTLES];
};

/* seed: random, so that an attacker cannot predict which addresses evict each other. */
void auth_throttle_init(struct auth_throttle *auth_throttle, uint64_t seed);

/* How long not to check any secret from this client address; 0: check it now. */
int64_t auth_throttle_wait_ns(const struct auth_throttle *auth_throttle,
                              const struct client_address *client_address, int64_t now_ns);

/* What the caller should log after a wrong secret. */
enum auth_throttle_news {
    AUTH_THROTTLE_NOTHING,
    AUTH_THROTTLE_FIRST, /* the first of this client address, or the first since its budget was full
                          */
    AUTH_THROTTLE_SPENT, /* from now on, secrets from this client address are not checked */
};
/* Record a wrong secret. fingerprint: from users_by_secret(). */
enum auth_throttle_news auth_throttle_note(struct auth_throttle *auth_throttle,
                                           const struct client_address *client_address,
                                           uint64_t fingerprint, int64_t now_ns);

#endif
