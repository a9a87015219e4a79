/*
 * Which user a connection is, and what it may do. Until that is known it may do next to nothing,
 * and not for long:
 *
 *     AUTH_NONE -+- no users are configured ------------------------> AUTH_OPEN
 *                +- the kernel names the user of its unix socket ---> AUTH_BY_SOCKET --+
 *                +- otherwise --> AUTH_PENDING --- AUTH succeeds ---> AUTH_BY_SECRET <-+
 *                                   |
 *                                   +-- a wrong secret, or auth_timeout, or others come and there
 *                                       is no room left: it is closed, the oldest first
 *
 * Unauthenticated connections cannot crowd out clients that can authenticate: because the oldest
 * is closed, and not the newest, a client needs one round trip, and a flood would have to fill all
 * places in that time.
 *
 * Where the configuration has no users, every connection may do everything but BREAK.
 *
 * This module knows no sessions. It names the connections that have to be closed; their owner
 * closes them.
 */
#ifndef SERVER_CLIENTS_AUTH_H
#define SERVER_CLIENTS_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "config/acl.h"
#include "server/clients/auth_throttle.h"
#include "server/clients/peer.h"
#include "server/clients/users.h"

struct config;
struct random;

enum auth_state { AUTH_NONE, AUTH_OPEN, AUTH_PENDING, AUTH_BY_SOCKET, AUTH_BY_SECRET };

/* What is known of one connection. auth_*() alone change it. */
struct auth_identity {
    enum auth_state state;
    enum peer_kind peer;
    int fd; /* the kernel is asked about it, unless the peer is PEER_TCP */
    struct client_address client_address;
    const struct user *user; /* while AUTH_BY_SOCKET or AUTH_BY_SECRET, else NULL */
    struct acl acl;
    TAILQ_ENTRY(auth_identity) entry; /* while AUTH_PENDING */
    int64_t pending_since_ns;
};

TAILQ_HEAD(identity_queue, auth_identity);

struct auth {
    const struct config *config; /* the owner's */
    struct random *random;       /* the owner's */
    bool open;                   /* no users are configured */
    struct users users;
    struct auth_throttle auth_throttle;
    struct identity_queue pending; /* the oldest first */
    unsigned pending_count;
    bool crowded;       /* the log knows: no news until half of the places are free again */
    uint64_t wrong;     /* secrets, since the start */
    uint64_t late;      /* connections that did not authenticate in time */
    uint64_t displaced; /* ... and that were closed because others came */
};

/* By the users of the configuration. False if there is not enough memory. */
bool auth_init(struct auth *auth, const struct config *config, struct random *random);
void auth_deinit(struct auth *auth);

/* A new connection, of which peer, fd and client_address are set, and all else is zero. False: it
 * has to authenticate. Then call auth_await(), after making room for it if auth_is_full(). */
bool auth_recognize(struct auth *auth, struct auth_identity *identity);
bool auth_is_full(const struct auth *auth);
void auth_await(struct auth *auth, struct auth_identity *identity, int64_t now_ns);

/* The connection is over. */
void auth_leave(struct auth *auth, struct auth_identity *identity);

/* The connection that has been pending for longest, NULL if none is; and when its time is over,
 * INT64_MAX if none is. */
struct auth_identity *auth_oldest(const struct auth *auth);
int64_t auth_deadline_ns(const struct auth *auth);

/* The oldest is about to be closed because others came. True: the log has not been told yet. */
bool auth_displace(struct auth *auth);

enum auth_result {
    AUTH_ACCEPTED, /* the connection is AUTH_BY_SECRET now */
    AUTH_IGNORED,  /* no users are configured: clients can be given secrets before the daemon is */
    AUTH_AGAIN,    /* it has authenticated before */
    AUTH_LIMITED,  /* wrong secrets have come from there: this one was not looked at */
    AUTH_WRONG,
};

/* A secret. After a failure, a connection that is still AUTH_PENDING is to be closed. *news is set
 * after AUTH_WRONG. */
enum auth_result auth_try(struct auth *auth, struct auth_identity *identity, const char *secret,
                          size_t len, int64_t now_ns, enum auth_throttle_news *news);

/* What the client is told. */
const char *auth_answer(enum auth_result result);

/*
 * The users of the configuration have changed. First auth_renew_users(); the old ones are in
 * *before then, and the caller's. Then auth_renew() for each connection, which goes on as the user
 * of the same name, or as the one that its unix socket says now; false: it has to be closed.
 * Then users_deinit(before). False if there is not enough memory: then nothing has changed.
 */
bool auth_renew_users(struct auth *auth, struct users *before);
bool auth_renew(struct auth *auth, struct auth_identity *identity);

#endif
