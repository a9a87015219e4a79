/*
 * What a user may do: verb and resource -> yes, or why not. Pure.
 *
 * A connection without a name is nobody: it may say who it is, and ask whether there is a daemon.
 * Whoever has a name may besides use the verbs he was given, on the resources that begin with one
 * of his prefixes ("" is a prefix of all). There is nothing that is allowed by being left out.
 */
#ifndef CONFIG_PERMIT_H
#define CONFIG_PERMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/request.h"

/* Sets of verbs. */
#define PERMIT_BIT(verb) (UINT32_C(1) << (verb))

/* Verbs that take a permission, and what the configuration calls them. */
#define PERMIT_TABLE(X)                                                                            \
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
#define PERMIT_OR(verb, word) | PERMIT_BIT(verb)
#define PERMIT_GRANTABLE      (UINT32_C(0) PERMIT_TABLE(PERMIT_OR))
#define PERMIT_USUAL                                                                               \
    (PERMIT_BIT(VERB_LOCK) | PERMIT_BIT(VERB_UNLOCK) | PERMIT_BIT(VERB_EXTEND) |                   \
     PERMIT_BIT(VERB_STATUS) | PERMIT_BIT(VERB_LOCKS))
#define PERMIT_ABOUT_RESOURCES (PERMIT_USUAL | PERMIT_BIT(VERB_BREAK))

struct permit {
    bool known;     /* whose permit this is has been found out */
    uint32_t verbs; /* of PERMIT_GRANTABLE */
    const char *const *prefixes;
    size_t prefix_count;
};

enum permit_answer {
    PERMIT_YES,
    PERMIT_NOT_KNOWN,    /* authenticate first */
    PERMIT_NOT_VERB,     /* not this verb */
    PERMIT_NOT_RESOURCE, /* this verb, but not on this resource */
};

/* resource: NULL for a verb without one, and for a listing of all. A listing of all is allowed by
 * its verb alone: whoever writes it leaves out what permit_covers() does not allow. */
enum permit_answer permit_ask(const struct permit *permit, enum verb verb, const char *resource,
                              size_t resource_len);

/* Does it begin with one of the prefixes? */
bool permit_covers(const struct permit *permit, const char *resource, size_t resource_len);

/* Is every resource covered? */
bool permit_covers_all(const struct permit *permit);

/* What DENIED says of this verb. */
const char *permit_text(enum permit_answer answer, enum verb verb);

/* May this error be told to nobody in particular? Others tell of the configuration. */
bool permit_tells(const struct permit *permit, enum request_error error);

#endif
