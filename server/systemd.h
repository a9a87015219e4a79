/*
 * What systemd hands over, by the protocols of sd_listen_fds(3) and sd_watchdog_enabled(3):
 * variables of the environment. What it is told: notifier.h.
 */
#ifndef SERVER_SYSTEMD_H
#define SERVER_SYSTEMD_H

#include <stdint.h>

/* Unless it is told WATCHDOG=1 this often, it kills the daemon; 0: it does not. */
int64_t systemd_watchdog_ns(void);

/* The sockets handed over: *first and the descriptors behind it. Returns how many, or -1 where they
 * cannot be had. Only the first call finds any; its caller closes them. */
int systemd_sockets(int *first);

#endif
