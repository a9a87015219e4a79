#include "config/acl.h"

#include <assert.h>

/* Verbs that require no permission: those for every connection, and those for every authenticated
 * connection. */
#define WITHOUT_AUTH                                                                               \
    (ACL_BIT(VERB_AUTH) | ACL_BIT(VERB_PING) | ACL_BIT(VERB_VERSION) | ACL_BIT(VERB_HELP) |        \
     ACL_BIT(VERB_QUIT))
#define WITH_AUTH ACL_BIT(VERB_NAME)

_Static_assert((WITHOUT_AUTH ^ WITH_AUTH ^ ACL_GRANTABLE) == ACL_BIT(VERB_COUNT) - 1,
               "every verb is in exactly one set");

/* A loop is fast enough: most prefixes are short, and "" has no byte. */
static bool begins_with(const char *resource, size_t resource_len, const char *prefix)
{
    size_t i = 0;
    while (prefix[i] != '\0' && i < resource_len && prefix[i] == resource[i])
        i++;
    return prefix[i] == '\0';
}

bool acl_covers(const struct acl *acl, const char *resource, size_t resource_len)
{
    for (size_t i = 0; i < acl->prefix_count; i++)
        if (begins_with(resource, resource_len, acl->prefixes[i]))
            return true;
    return false;
}

bool acl_covers_all(const struct acl *acl)
{
    return acl_covers(acl, "", 0);
}

enum acl_answer acl_check(const struct acl *acl, enum verb verb, const char *resource,
                          size_t resource_len)
{
    assert(verb < VERB_COUNT);
    if ((WITHOUT_AUTH & ACL_BIT(verb)) != 0)
        return ACL_YES;
    if (!acl->known)
        return ACL_NOT_KNOWN;
    if ((WITH_AUTH & ACL_BIT(verb)) != 0)
        return ACL_YES;
    if ((acl->verbs & ACL_BIT(verb)) == 0)
        return ACL_NOT_VERB;
    if (resource != NULL && !acl_covers(acl, resource, resource_len))
        return ACL_NOT_RESOURCE;
    return ACL_YES;
}

void acl_explain(enum acl_answer answer, enum verb verb, const char *user, struct text *text)
{
    if (answer == ACL_NOT_KNOWN) {
        text_string(text, "authenticate first: AUTH <secret>");
    } else if (user == NULL) {
        text_string(text, verb_word(verb));
        text_string(text, " requires a user with that verb; without users, root or the daemon's "
                          "own user on a unix socket");
    } else {
        text_string(text, "user ");
        text_string(text, user);
        text_string(text, " may not use ");
        text_string(text, answer == ACL_NOT_VERB ? verb_word(verb) : "this resource");
    }
}

bool acl_may_reveal(const struct acl *acl, enum request_error error)
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
    case REQUEST_SLOTS_RANGE:
    case REQUEST_ERRORS:
        break;
    }
    return acl->known;
}
