/*
 * What differs between the configuration in force and another one, and may it change while the
 * daemon runs? Pure. The tables of keys (keys.h) have a rule for each.
 *
 * What may not change is what two daemons, or two rounds, or a lock and the one who promised it,
 * have to agree on for as long as a lock may live; and what tables were sized by at the start.
 */
#ifndef CONFIG_DIFF_H
#define CONFIG_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum { CONFIG_DIFF_MAX = 64 };

struct config_difference {
    const char *name;    /* "locks.max_ttl"; of the entries of a list "nodes.url" */
    const char *why_not; /* NULL: it may change */
};

struct config_diff {
    struct config_difference found[CONFIG_DIFF_MAX];
    size_t count;
    size_t refused; /* how many of them may not */
};

void config_diff(const struct config *running, const struct config *wanted,
                 struct config_diff *diff);

/* Where nothing is refused: put what may change from the wanted one into the running one, which
 * stays where it is; what it had before is in the wanted one then, to be freed with it. */
void config_adopt(struct config *running, struct config *wanted);

#endif
