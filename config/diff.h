/*
 * Compares the running configuration with a new one, and decides which differences can take effect
 * while the daemon runs. Pure. The tables of keys (keys.h) have a rule for each key.
 *
 * A reload refuses to change a key for reasons such as these: all daemons of the cluster must use
 * the same value; rounds in flight and held locks rely on the old value; or the daemon uses the
 * value only once, to allocate tables or to open an address.
 */
#ifndef CONFIG_DIFF_H
#define CONFIG_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum { CONFIG_DIFF_MAX = 64 };

struct config_difference {
    const char *name;    /* "locks.max_ttl"; "nodes.url" for a key in the entries of a list */
    const char *why_not; /* why a reload refuses the change; NULL: the key may change */
};

struct config_diff {
    struct config_difference found[CONFIG_DIFF_MAX];
    size_t count;
    size_t refused; /* number of differences that a reload refuses */
};

void config_diff(const struct config *running, const struct config *wanted,
                 struct config_diff *diff);

/* Swap the values of all keys that may change: `running` gets the new values, and `wanted` the old
 * ones, which the caller frees with `wanted`. The caller has checked with config_diff() that no
 * difference is refused. */
void config_adopt(struct config *running, struct config *wanted);

#endif
