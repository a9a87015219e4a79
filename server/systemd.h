/*
 * What systemd is told, and what it hands over; see sd_notify(3), sd_listen_fds(3). By libsystemd:
 * in a build without it nobody is told anything, and nothing is handed over.
 */
#ifndef SERVER_SYSTEMD_H
#define SERVER_SYSTEMD_H

#include <stdbool.h>
#include <stdint.h>

/* Does somebody want to be told? */
bool systemd_listens(void);

/* "READY=1", or several such lines. It waits for room in the queue of systemd, which has plenty. */
void systemd_notify(const char *state);

/* Unless it is told WATCHDOG=1 this often, it kills the daemon; 0: it does not. */
int64_t systemd_watchdog_ns(void);

/* The sockets handed over: *first and the descriptors behind it. Returns how many, or -1 where they
 * cannot be had. Only the first call finds any; who made it closes them. */
int systemd_sockets(int *first);

#endif
