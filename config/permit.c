#include "config/permit.h"

#include <assert.h>

/* Verbs that take nothing, and those that take a name alone. */
#define FOR_ANYBODY                                                                                \
    (PERMIT_BIT(VERB_AUTH) | PERMIT_BIT(VERB_PING) | PERMIT_BIT(VERB_VERSION) |                    \
     PERMIT_BIT(VERB_HELP) | PERMIT_BIT(VERB_QUIT))
#define FOR_KNOWN PERMIT_BIT(VERB_NAME)

_Static_assert((FOR_ANYBODY ^ FOR_KNOWN ^ PERMIT_GRANTABLE) == PERMIT_BIT(VERB_COUNT) - 1,
               "what does each verb take?");

/* Most prefixes are short, and that of who may use all has no byte. */
static bool begins_with(const char *resource, size_t resource_len, const char *prefix)
{
    size_t i = 0;
    while (prefix[i] != '\0' && i < resource_len && prefix[i] == resource[i])
        i++;
    return prefix[i] == '\0';
}

bool permit_covers(const struct permit *permit, const char *resource, size_t resource_len)
{
    for (size_t i = 0; i < permit->prefix_count; i++)
        if (begins_with(resource, resource_len, permit->prefixes[i]))
            return true;
    return false;
}

bool permit_covers_all(const struct permit *permit)
{
    return permit_covers(permit, "", 0);
}

enum permit_answer permit_ask(const struct permit *permit, enum verb verb, const char *resource,
                              size_t resource_len)
{
    assert(verb < VERB_COUNT);
    if ((FOR_ANYBODY & PERMIT_BIT(verb)) != 0)
        return PERMIT_YES;
    if (!permit->known)
        return PERMIT_NOT_KNOWN;
    if ((FOR_KNOWN & PERMIT_BIT(verb)) != 0)
        return PERMIT_YES;
    if ((permit->verbs & PERMIT_BIT(verb)) == 0)
        return PERMIT_NOT_VERB;
    if (resource != NULL && !permit_covers(permit, resource, resource_len))
        return PERMIT_NOT_RESOURCE;
    return PERMIT_YES;
}

const char *permit_text(enum permit_answer answer, enum verb verb)
{
    switch (answer) {
    case PERMIT_NOT_KNOWN:
        return "authenticate first: AUTH <secret>";
    case PERMIT_NOT_VERB:
        /* It is denied where there are no users, too. */
        if (verb == VERB_BREAK)
            return "BREAK takes a user with that verb; without users, root or who runs the daemon, "
                   "on a unix socket";
        return "this user may not use this verb";
    case PERMIT_NOT_RESOURCE:
        return "this user may not use this resource";
    case PERMIT_YES:
        break;
    }
    return "";
}

bool permit_tells(const struct permit *permit, enum request_error error)
{
    switch (error) {
    case REQUEST_LINE_TOO_LONG:
    case REQUEST_BAD_BYTE:
    case REQUEST_BAD_TAG:
    case REQUEST_UNKNOWN_VERB:
    case REQUEST_BAD_ARGUMENTS:
        return true;
    case REQUEST_FINE:
    case REQUEST_EMPTY:
    case REQUEST_BAD_RESOURCE:
    case REQUEST_BAD_TOKEN:
    case REQUEST_BAD_TIME:
    case REQUEST_TTL_RANGE:
    case REQUEST_WAIT_RANGE:
    case REQUEST_ERRORS:
        break;
    }
    return permit->known;
}
