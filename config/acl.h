/*
 * What a user may do: verb and resource -> yes, or why not. Pure.
 *
 * A connection without a name is nobody: it may say who it is, and ask whether there is a daemon.
 * Whoever has a name may besides use the verbs he was given, on the resources that begin with one
 * of his prefixes ("" is a prefix of all). There is nothing that is allowed by being left out.
 */
#ifndef CONFIG_ACL_H
#define CONFIG_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/request.h"

/* Sets of verbs. */
#define ACL_BIT(verb) (UINT32_C(1) << (verb))

/* Verbs that take a permission, and what the configuration calls them. */
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

/* All of them; what a user has where none are named, which is what it takes to use locks, and no
 * more; those about resources. */
#define ACL_OR(verb, word) | ACL_BIT(verb)
#define ACL_GRANTABLE      (UINT32_C(0) ACL_TABLE(ACL_OR))
#define ACL_USUAL                                                                                  \
    (ACL_BIT(VERB_LOCK) | ACL_BIT(VERB_UNLOCK) | ACL_BIT(VERB_EXTEND) | ACL_BIT(VERB_STATUS) |     \
     ACL_BIT(VERB_LOCKS))
#define ACL_ABOUT_RESOURCES (ACL_USUAL | ACL_BIT(VERB_BREAK))

struct acl {
    bool known;     /* whose acl this is has been found out */
    uint32_t verbs; /* of ACL_GRANTABLE */
    const char *const *prefixes;
    size_t prefix_count;
};

enum acl_answer {
    ACL_YES,
    ACL_NOT_KNOWN,    /* authenticate first */
    ACL_NOT_VERB,     /* not this verb */
    ACL_NOT_RESOURCE, /* this verb, but not on this resource */
};

/* resource: NULL for a verb without one, and for a listing of all. A listing of all is allowed by
 * its verb alone: whoever writes it leaves out what acl_covers() does not allow. */
enum acl_answer acl_ask(const struct acl *acl, enum verb verb, const char *resource,
                        size_t resource_len);

/* Does it begin with one of the prefixes? */
bool acl_covers(const struct acl *acl, const char *resource, size_t resource_len);

/* Is every resource covered? */
bool acl_covers_all(const struct acl *acl);

/* What DENIED says of this verb. */
const char *acl_text(enum acl_answer answer, enum verb verb);

/* May this error be told to nobody in particular? Others tell of the configuration. */
bool acl_tells(const struct acl *acl, enum request_error error);

#endif
