/*
 * Counts the commands that a master receives. The MONITOR command shows them.
 */
#ifndef TESTS_E2E_MONITOR_H
#define TESTS_E2E_MONITOR_H

#include "tests/e2e/master.h"

struct monitor {
    struct master *master;
    redisContext *context;
    unsigned markers;
};

void monitor_open(struct monitor *monitor, struct master *master);
void monitor_close(struct monitor *monitor);

/* Counts the commands with this key that the master has received since the previous call. Commands
 * that are run by a script do not count. `others` is how many of the counted commands contain none
 * of `words`, a list that ends with NULL. To find the EVALSHA of a script, give its SHA1 as a
 * word. */
struct monitor_counts {
    unsigned commands;
    unsigned others;
};
struct monitor_counts monitor_count(struct monitor *monitor, const char *key,
                                    const char *const *words);

#endif
