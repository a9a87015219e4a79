/*
 * Who somebody is: by a secret, or by the user that the kernel names at the other end of a unix
 * socket.
 *
 * It takes the same time whatever the secrets are: what is presented is made a digest under a key
 * of this process, so that neither lengths nor beginnings show, and is compared with that of every
 * user, whole, whether or not one has been found (tests/unit/test_users.c counts instructions).
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

/* key: USERS_DIGEST random bytes. The configuration outlives it. False if there is not enough
 * memory; nothing needs to be released then. */
bool users_init(struct users *users, const struct config_users *config, const void *key);
void users_deinit(struct users *users);

/* NULL if it is nobody's; then the fingerprint, never 0, tells this wrong secret from others. */
const struct user *users_by_secret(const struct users *users, const char *secret, size_t len,
                                   uint64_t *fingerprint);

/* The user of that name, or NULL. */
const struct user *users_by_name(const struct users *users, const char *name);

/* By user id before group id, by the first of its groups that is named. NULL if it is nobody. */
const struct user *users_by_ids(const struct users *users, uid_t uid, const gid_t *gids,
                                size_t gid_count);

#endif
