/*
 * Identifies the user of each connection and what it may do. Until the user is known, the
 * connection may do very little, and only for a limited time:
 *
 *     AUTH_NONE -+- no users are configured ------------------------> AUTH_OPEN
 *                +- the kernel names the user of its unix socket ---> AUTH_BY_SOCKET --+
 *                |                                                       AUTH succeeds |
 *                +- otherwise --> AUTH_PENDING --- AUTH succeeds ---> AUTH_BY_SECRET <-+
 *                                   |
 *                                   +-- wrong secret (not in RESP), auth_timeout, or too many
 *                                       pending connections: closed, the oldest first
 *
 * Unauthenticated connections cannot crowd out clients that can authenticate. If there are too
 * many, the oldest connection is closed, not the newest. A client needs one round trip to
 * authenticate, and a flood would have to fill all places within that time.
 *
 * If no users are configured, every connection may do everything, except that only root and the
 * user that the daemon runs as may use BREAK, and only on a unix socket (PEER_OWNER).
 *
 * This module does not know sessions. It names the connections to close; their owner closes them.
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

/* The authentication state of one connection. Only auth_*() change it. */
struct auth_identity {
    enum auth_state state;
    enum peer_kind peer;
    int fd; /* socket whose user the kernel reports; not used for PEER_TCP */
    struct client_address client_address;
    const struct user *user; /* NULL unless AUTH_BY_SOCKET or AUTH_BY_SECRET */
    struct acl acl;
    TAILQ_ENTRY(auth_identity) entry; /* while AUTH_PENDING */
    int64_t pending_since_ns;
};

TAILQ_HEAD(identity_queue, auth_identity);

struct auth {
    const struct config *config; /* owned by the caller */
    struct random *random;       /* owned by the caller */
    bool open;                   /* no users are configured */
    struct users users;
    struct auth_throttle auth_throttle;
    struct identity_queue pending; /* the oldest first */
    unsigned pending_count;
    /* unauthenticated_limited is logged. Reset when half of limits.unauthenticated is free; that
     * can always be so at limits.clients, and then only the log's throttle limits the lines. */
    bool full_logged;
    uint64_t wrong;     /* wrong secrets since the start */
    uint64_t late;      /* connections closed because auth_timeout passed */
    uint64_t displaced; /* connections closed to make room for newer ones */
};

/* Load the users of the configuration. False if there is not enough memory. */
bool auth_init(struct auth *auth, const struct config *config, struct random *random);
void auth_deinit(struct auth *auth);

/* Identify a new connection. The caller has set peer, fd and client_address; the other fields are
 * zero. False: the connection has to authenticate. The caller then makes room if auth_is_full(),
 * and calls auth_await(). */
bool auth_identify(struct auth *auth, struct auth_identity *identity);
bool auth_is_full(const struct auth *auth);
void auth_await(struct auth *auth, struct auth_identity *identity, int64_t now_ns);

/* Call this when the connection has ended. */
void auth_leave(struct auth *auth, struct auth_identity *identity);

/* auth_oldest(): the connection that has been pending longest, or NULL. auth_deadline_ns(): the
 * time by which that connection must have authenticated; INT64_MAX if none is pending. */
struct auth_identity *auth_oldest(const struct auth *auth);
int64_t auth_deadline_ns(const struct auth *auth);

/* Count that the oldest connection is closed to make room. True: the caller has to log the event
 * unauthenticated_limited. False: the event is in the log already (see full_logged). */
bool auth_displace(struct auth *auth);

enum auth_result {
    AUTH_ACCEPTED, /* the connection is now AUTH_BY_SECRET */
    /* The secret is fine and changes nothing. Either no users are configured: any secret is
     * accepted, so that clients can be given secrets before the daemon. Or the connection has
     * authenticated as the user with this secret, and may repeat that. */
    AUTH_IGNORED,
    AUTH_AGAIN,   /* the connection had already authenticated */
    AUTH_BOUND,   /* same_user, and the secret is that of another user */
    AUTH_LIMITED, /* too many wrong secrets from this client address: the secret is not checked */
    AUTH_WRONG,   /* no user has this secret */
};

/* What a client presents. */
struct auth_credentials {
    const char *name; /* the secret must be that of this user; NULL: of any user */
    size_t name_len;
    const char *secret;
    size_t secret_len;
    bool may_repeat; /* Redis clients may authenticate again, as the same user */
    bool same_user;  /* must be those of the connection's user, if it has one */
};

/* Check a secret. After a failure, the caller closes a line connection if it is still AUTH_PENDING.
 * *news is set if the result is AUTH_WRONG. */
enum auth_result auth_try(struct auth *auth, struct auth_identity *identity,
                          const struct auth_credentials *credentials, int64_t now_ns,
                          enum auth_throttle_news *news);

/*
 * Replace the users after a reload. Call auth_renew_users(), which moves the old users to *before,
 * then auth_renew() for each connection, then users_deinit(before). A connection that authenticated
 * by a secret gets the new user of the same name. Any other connection gets the user that its unix
 * socket maps to now. If auth_renew() returns false, the caller closes the connection. If there is
 * not enough memory, auth_renew_users() returns false and changes nothing.
 */
bool auth_renew_users(struct auth *auth, struct users *before);
bool auth_renew(struct auth *auth, struct auth_identity *identity);

#endif
