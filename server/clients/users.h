/*
 * Identifies users, by secret or by the user that the kernel reports for the peer of a unix socket.
 *
 * The time to check a secret does not depend on the secrets of the users. The presented secret is
 * hashed with a key of this process, so the time reveals neither the length nor a prefix of a
 * user's secret. The digest is compared in full with the digest of every user, even after a match
 * (tests/unit/test_users.c counts instructions).
 */
#ifndef SERVER_CLIENTS_USERS_H
#define SERVER_CLIENTS_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/acl.h"
#include "config/users.h"

enum { USERS_DIGEST = 32 };

struct user {
    const struct config_user *config;
    struct acl acl;
    bool has_secret;
    unsigned char digest[USERS_DIGEST];
};

struct users {
    struct user *list; /* in the order of the configuration */
    size_t count;
    unsigned char key[USERS_DIGEST];
};

/* key: USERS_DIGEST random bytes. The configuration must outlive the users. False if there is not
 * enough memory; then there is nothing to release. */
bool users_init(struct users *users, const struct config_users *config, const void *key);
void users_deinit(struct users *users);

/* NULL if no user has this secret; *fingerprint is then nonzero and distinguishes this wrong secret
 * from others. */
const struct user *users_by_secret(const struct users *users, const char *secret, size_t len,
                                   uint64_t *fingerprint);

/* The user of that name, or NULL. */
const struct user *users_by_name(const struct users *users, const char *name);

/* Look up by user id first, then by group id, in the order of gids. NULL if no user matches. */
const struct user *users_by_ids(const struct users *users, uid_t uid, const gid_t *gids,
                                size_t gid_count);

#endif
