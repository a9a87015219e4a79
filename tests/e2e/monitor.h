/*
 * Counts the commands that a master receives, by its MONITOR.
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

/* Commands about a key since the previous call. `others` counts those that contain none of the
 * words (ending with NULL). For a script called by its SHA1, the word is the SHA1. Commands inside
 * scripts do not count. */
struct monitor_counts {
    unsigned commands;
    unsigned others;
};
struct monitor_counts monitor_count(struct monitor *monitor, const char *key,
                                    const char *const *words);

#endif
