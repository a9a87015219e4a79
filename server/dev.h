/*
 * `redlockd --dev`: a set of throw-away masters, to try redlockd without setting anything up.
 *
 * Starts five redis-server processes in a temporary directory, each on a unix socket of its own,
 * and takes both down at the end. They die with this process, however it ends.
 */
#ifndef SERVER_DEV_H
#define SERVER_DEV_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"
#include "protocol/text.h"

enum { DEV_MASTERS = 5 };

struct dev {
    char directory[64]; /* "" while there is none */
    pid_t masters[DEV_MASTERS];
};

/* Start the masters, wait until each has made its socket, and name them in the configuration. */
bool dev_start(struct dev *dev, struct config *config, struct error *error);

/* Kill the masters and remove the directory. */
void dev_stop(struct dev *dev);

#endif
