/*
 * Compares the running configuration with a new one, and decides whether each difference may take
 * effect while the daemon runs. Pure. The tables of keys (keys.h) have a rule for each key.
 *
 * A key may not change if two daemons, two rounds, or a grant and its later extension must agree on
 * it while a lock lives, or if it sizes tables that are allocated at the start.
 */
#ifndef CONFIG_DIFF_H
#define CONFIG_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum { CONFIG_DIFF_MAX = 64 };

struct config_difference {
    const char *name;    /* "locks.max_ttl"; in entries of a list "nodes.url" */
    const char *why_not; /* reason for the refusal; NULL: the key may change */
};

struct config_diff {
    struct config_difference found[CONFIG_DIFF_MAX];
    size_t count;
    size_t refused; /* number of differences that may not take effect */
};

void config_diff(const struct config *running, const struct config *wanted,
                 struct config_diff *diff);

/* Swap all keys that may change between the two configurations. Nothing may be refused. The old
 * values are then in `wanted`, and the caller frees them with it. */
void config_adopt(struct config *running, struct config *wanted);

#endif
