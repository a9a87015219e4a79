/*
 * What a master is asked: its MONITOR, from when it was opened.
 */
#ifndef TESTS_E2E_MONITOR_H
#define TESTS_E2E_MONITOR_H

#include "tests/e2e/master.h"

struct monitor {
    struct master *master;
    redisContext *context;
    unsigned marks;
};

void monitor_open(struct monitor *monitor, struct master *master);
void monitor_close(struct monitor *monitor);

/* The commands about this key so far, and since the last call, of which `others` contain none of
 * these words (NULL ends them; of a script that is called by its SHA1, that). Commands inside of
 * scripts do not count. */
struct monitor_counts {
    unsigned commands;
    unsigned others;
};
struct monitor_counts monitor_count(struct monitor *monitor, const char *key,
                                    const char *const *words);

#endif
