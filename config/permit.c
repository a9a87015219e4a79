#include "config/permit.h"

#include <assert.h>

/* What a verb takes. */
enum need { NEED_NOTHING, NEED_NAME, NEED_VERB };

static enum need need_of(enum verb verb)
{
    switch (verb) {
    case VERB_AUTH:
    case VERB_PING:
    case VERB_VERSION:
    case VERB_HELP:
    case VERB_QUIT:
        return NEED_NOTHING;
    case VERB_NAME:
        return NEED_NAME;
    case VERB_LOCK:
    case VERB_UNLOCK:
    case VERB_EXTEND:
    case VERB_STATUS:
    case VERB_BREAK:
    case VERB_NODES:
    case VERB_STATS:
    case VERB_LOCKS:
    case VERB_CLIENTS:
    case VERB_COUNT:
        break;
    }
    return NEED_VERB;
}

uint32_t permit_usual(void)
{
    return PERMIT_BIT(VERB_LOCK) | PERMIT_BIT(VERB_UNLOCK) | PERMIT_BIT(VERB_EXTEND) |
           PERMIT_BIT(VERB_STATUS) | PERMIT_BIT(VERB_LOCKS);
}

uint32_t permit_about_resources(void)
{
    return permit_usual() | PERMIT_BIT(VERB_BREAK);
}

uint32_t permit_grantable(void)
{
    uint32_t verbs = 0;
    for (unsigned verb = 0; verb < VERB_COUNT; verb++)
        if (need_of((enum verb)verb) == NEED_VERB)
            verbs |= PERMIT_BIT(verb);
    return verbs;
}

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
    enum need need = need_of(verb);
    assert(verb < VERB_COUNT);
    if (need == NEED_NOTHING)
        return PERMIT_YES;
    if (!permit->known)
        return PERMIT_NOT_KNOWN;
    if (need == NEED_NAME)
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
