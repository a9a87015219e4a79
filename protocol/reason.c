#include "protocol/reason.h"

#include <string.h>

static const struct {
    const char *word;
    const char *text;
} reasons[] = {
#define X(name, word, text) [name] = {word, text},
    REASON_TABLE(X)
#undef X
};

const char *reason_word(enum reason reason)
{
    return reasons[reason].word;
}

const char *reason_text(enum reason reason)
{
    return reasons[reason].text;
}

bool reason_ends_by_waiting(enum reason reason)
{
    switch (reason) {
    case REASON_NONE:
    case REASON_NEW:
    case REASON_FLUSHED:
    case REASON_RESTARTED:
    case REASON_FAILEDOVER:
    case REASON_OLDDATA:
    case REASON_EVICTED:
    case REASON_STEPPED:
    case REASON_DURABLE:
    case REASON_RESET:
    case REASON_BOOTSTRAP:
        return true;
    default:
        return false;
    }
}

enum reason reason_of_word(const char *word)
{
    for (enum reason reason = 0; reason < REASON_COUNT; reason++)
        if (strcmp(word, reason_word(reason)) == 0)
            return reason;
    return REASON_ERROR;
}

enum reason reason_of_redis_error(const char *text, size_t len)
{
    static const struct {
        const char *start;
        enum reason reason;
    } errors[] = {
        {"LOADING", REASON_LOADING},
        {"OOM", REASON_OOM},
        {"MISCONF", REASON_MISCONF},
        {"READONLY", REASON_READONLY},
        {"NOREPLICAS", REASON_NOREPLICAS},
        {"MASTERDOWN", REASON_MASTERDOWN},
        {"BUSY", REASON_BUSY},
        {"NOSCRIPT", REASON_NOSCRIPT},
        {"NOAUTH", REASON_NOAUTH},
        {"WRONGPASS", REASON_WRONGPASS},
        {"NOPERM", REASON_NOPERM},
        {"MOVED", REASON_MOVED},
        {"ASK", REASON_MOVED},
        {"CLUSTERDOWN", REASON_CLUSTERDOWN},
        /* Redis begins these with ERR, so more of the text is compared. */
        {"ERR max number of clients", REASON_MAXCLIENTS},
        {"ERR invalid password", REASON_WRONGPASS},
        {"ERR AUTH <password> called without any password", REASON_WRONGPASS},
        /* Errors of a command in a script, in Redis 7.0 and in later versions. */
        {"ERR The user executing the script can't run", REASON_NOPERM},
        {"ERR ACL failure in script:", REASON_NOPERM},
    };
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        size_t start_len = strlen(errors[i].start);
        if (len >= start_len && memcmp(text, errors[i].start, start_len) == 0 &&
            (len == start_len || text[start_len] == ' '))
            return errors[i].reason;
    }
    return REASON_ERROR;
}
