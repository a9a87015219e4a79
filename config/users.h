/*
 * `auth.users`: who may use the daemon, and for what. {name, secret_file, uids, gids, resources,
 * verbs} each.
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
    uid_t uids[LIMIT_USER_IDS];          /* whoever connects to a unix socket as one of these */
    gid_t gids[LIMIT_USER_IDS];          /* ... or with one of these groups */
    char *prefixes[LIMIT_USER_PREFIXES]; /* of the resources he may use; "" of all */
    size_t uid_count;
    size_t gid_count;
    size_t prefix_count;
    uint32_t verbs; /* config/acl.h */
};

/* All of them; in one piece, so that another such list can take its place. */
struct config_users {
    struct config_user *list; /* LIMIT_USERS of them, the first `count` in use */
    size_t count;
};

/* Those of the list, for users_free(), into the configuration that `target` is. */
void users_read(void *target, const struct yaml_node *list, struct report *report);

/* Refuse who has nothing but uids and gids, after users_read() with the same list: for where there
 * is no unix socket to listen on. */
void users_check_secrets(const struct config_users *users, const struct yaml_node *list,
                         struct report *report);

/* The same users, secrets included, in the same order? */
bool users_equal(const struct config *a, const struct config *b);

/* Wipes the secrets first. NULL is fine. */
void users_free(struct config_users *users);

#endif
