/*
 * `redlockd --dev`: throw-away masters, to try redlockd without setting anything up.
 *
 * dev_start() starts five redis-server processes in a temporary directory, each on its own unix
 * socket. dev_stop() kills the processes and removes the directory. If redlockd ends without
 * dev_stop(), the kernel kills the processes.
 */
#ifndef SERVER_DEV_H
#define SERVER_DEV_H

#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"
#include "protocol/text.h"

enum { DEV_MASTERS = 5 };

struct dev {
    char directory[64];         /* "" if there is none */
    pid_t masters[DEV_MASTERS]; /* 0: not running */
};

/* Start the masters, wait until each has created its socket, and add them to the configuration as
 * its nodes. */
bool dev_start(struct dev *dev, struct config *config, struct error *error);

/* Kill the masters and remove the directory. */
void dev_stop(struct dev *dev);

#endif
