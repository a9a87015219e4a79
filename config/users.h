/*
 * `auth.users`: the users of the daemon and their permissions. An entry is a mapping of name,
 * secret_file, uids, gids, resources and verbs.
 */
#ifndef CONFIG_USERS_H
#define CONFIG_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/report.h"
#include "config/yaml.h"
#include "protocol/limits.h"

struct config;

struct config_user {
    char *name;
    char *secret;                        /* NULL without one; LIMIT_SECRET_MIN bytes or more */
    uid_t uids[LIMIT_USER_IDS];          /* clients of a unix socket with one of these user ids */
    gid_t gids[LIMIT_USER_IDS];          /* clients of a unix socket with one of these groups */
    char *prefixes[LIMIT_USER_PREFIXES]; /* of the resources this user may use; "": all */
    size_t uid_count;
    size_t gid_count;
    size_t prefix_count;
    uint32_t verbs; /* a mask of ACL_BIT(), config/acl.h */
};

/* All users, as one object that a reload can swap. */
struct config_users {
    struct config_user *list; /* LIMIT_USERS entries; the first `count` are in use */
    size_t count;
};

/* Read the users of the list. `target` is a struct config; free its users with users_free(). */
void users_read(void *target, const struct yaml_node *list, struct report *report);

/* Report an error for each user that has only uids or gids and no secret. Call this if `listen` has
 * no unix socket, after users_read() with the same list. */
void users_check_secrets(const struct config_users *users, const struct yaml_node *list,
                         struct report *report);

/* Whether two configurations have the same users, including secrets, in the same order. */
bool users_equal(const struct config *a, const struct config *b);

/* Wipe the secrets and free the users. NULL is allowed. */
void users_free(struct config_users *users);

#endif
