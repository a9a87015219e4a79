/*
 * Permissions: whether a user may use a verb on a resource, and if not, why. Pure.
 *
 * An unauthenticated connection is allowed to use AUTH, and the verbs that show only that the
 * daemon is alive. A user is also allowed to use NAME, and the verbs that the configuration grants
 * to it. If a granted verb is about a resource, the name of the resource must begin with one of the
 * user's prefixes ("" is a prefix of every name). Everything else is denied.
 */
#ifndef CONFIG_ACL_H
#define CONFIG_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/request.h"
#include "protocol/text.h"

/* A set of verbs is a bit mask. */
#define ACL_BIT(verb) (UINT32_C(1) << (verb))

/* The verbs that require a permission, and their names in the configuration. */
#define ACL_TABLE(X)                                                                               \
    X(VERB_LOCK, "lock")                                                                           \
    X(VERB_UNLOCK, "unlock")                                                                       \
    X(VERB_EXTEND, "extend")                                                                       \
    X(VERB_STATUS, "status")                                                                       \
    X(VERB_BREAK, "break")                                                                         \
    X(VERB_NODES, "nodes")                                                                         \
    X(VERB_STATS, "stats")                                                                         \
    X(VERB_LOCKS, "locks")                                                                         \
    X(VERB_CLIENTS, "clients")

/* ACL_GRANTABLE: all verbs of the table. ACL_USUAL: the verbs that a user has by default, which are
 * sufficient to use locks. ACL_ABOUT_RESOURCES: if a user has any of these verbs, the configuration
 * must give it prefixes. */
#define ACL_OR(verb, word) | ACL_BIT(verb)
#define ACL_GRANTABLE      (UINT32_C(0) ACL_TABLE(ACL_OR))
#define ACL_USUAL                                                                                  \
    (ACL_BIT(VERB_LOCK) | ACL_BIT(VERB_UNLOCK) | ACL_BIT(VERB_EXTEND) | ACL_BIT(VERB_STATUS) |     \
     ACL_BIT(VERB_LOCKS))
#define ACL_ABOUT_RESOURCES (ACL_USUAL | ACL_BIT(VERB_BREAK))

struct acl {
    bool known;     /* false: the connection is unauthenticated */
    uint32_t verbs; /* a subset of ACL_GRANTABLE */
    const char *const *prefixes;
    size_t prefix_count;
};

enum acl_answer {
    ACL_YES,
    ACL_NOT_KNOWN,    /* not authenticated */
    ACL_NOT_VERB,     /* the verb is not granted */
    ACL_NOT_RESOURCE, /* the verb is granted, but not on this resource */
};

/* Check a request. resource: NULL for a verb without one, and for a listing of all resources. Such
 * a listing requires only its verb; the caller leaves out the resources that acl_covers() excludes.
 */
enum acl_answer acl_check(const struct acl *acl, enum verb verb, const char *resource,
                          size_t resource_len);

/* Whether the resource begins with one of the prefixes. */
bool acl_covers(const struct acl *acl, const char *resource, size_t resource_len);

/* Whether the prefixes cover every resource. */
bool acl_covers_all(const struct acl *acl);

/* Appends the text of the DENIED reply for this answer, which is not ACL_YES. `user` is the name of
 * the client's user. NULL: the configuration has no users, and only BREAK can be denied. */
void acl_explain(enum acl_answer answer, enum verb verb, const char *user, struct text *text);

/* Whether the client may see this error. Some errors reveal configuration values, which only an
 * authenticated client may see. */
bool acl_may_reveal(const struct acl *acl, enum request_error error);

#endif
