#include "tests/fake/lease.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SIGNED_MAX = 7 };

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Collect the fresh renewals by other daemons, formatted as in the value of a lease. */
static void find_others(const char *renewals, const struct lease_options *options, char *others,
                        size_t size)
{
    char daemon[64];
    int64_t at_ms;
    int len = 0;
    unsigned count = 0;
    int64_t rest_ms = -1;
    size_t used = 0;
    others[0] = '\0';
    while (sscanf(renewals, " %63[0-9a-f*]=%" SCNd64 "%n", daemon, &at_ms, &len) == 2) {
        renewals += len;
        at_ms = min(at_ms, options->now_ms);
        if (strcmp(daemon, options->daemon) == 0 || options->now_ms - at_ms > options->fresh_ms)
            continue;
        if (daemon[0] == '*' || ++count > SIGNED_MAX)
            rest_ms = max(rest_ms, at_ms);
        else
            used += (size_t)snprintf(others + used, size - used, " %s=%" PRId64, daemon, at_ms);
    }
    if (rest_ms >= 0)
        snprintf(others + used, size - used, " *=%" PRId64, rest_ms);
}

static void set_value(struct lease *lease, const char *text)
{
    assert(strlen(text) < sizeof(lease->value));
    memcpy(lease->value, text, strlen(text) + 1);
}

char lease_ask(struct lease *lease, const struct lease_options *options)
{
    struct lease seen = *lease;
    char unsigned_by[32];
    char others[LIMIT_RECORD];
    char text[3 * LIMIT_RECORD];
    size_t first = strcspn(seen.value, " ");
    size_t known = first + (seen.value[first] == ' ') + strcspn(seen.value + first + 1, " ");
    bool none = seen.value[0] == '\0';
    bool readable = !none && seen.value[first] == ' ' && known > first + 1;
    const char *renewals = readable ? seen.value + known : "";
    if (seen.left_ms < 0)
        seen.left_ms = options->lease_ms;
    if (readable && renewals[0] == '\0' && seen.left_ms > options->lease_ms - options->fresh_ms) {
        snprintf(unsigned_by, sizeof(unsigned_by), " *=%" PRId64,
                 options->now_ms - max(options->lease_ms - seen.left_ms, 0));
        renewals = unsigned_by;
    }
    find_others(renewals, options, others, sizeof(others));
    bool ours = readable && strlen(options->server) == known &&
                memcmp(seen.value, options->server, known) == 0;
    bool same = readable && strncmp(seen.value, options->server, 40) == 0;
    if (none || ours || (same && others[0] == '\0')) {
        snprintf(text, sizeof(text), "%s %s=%" PRId64 "%s", options->server, options->daemon,
                 options->now_ms, others);
        set_value(lease, text);
        lease->left_ms = options->lease_ms;
        return '0';
    }
    int64_t most_ms = options->lease_ms;
    if (readable) {
        snprintf(text, sizeof(text), "%.*s%s", (int)known, seen.value, others);
        set_value(lease, text);
        if (others[0] == '\0')
            most_ms -= options->fresh_ms;
    }
    lease->left_ms = max(min(seen.left_ms, most_ms), 1);
    return same ? '2' : '1';
}
