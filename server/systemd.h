/*
 * What systemd passes to the daemon in environment variables: sd_listen_fds(3) and
 * sd_watchdog_enabled(3). notifier.h covers the other direction.
 */
#ifndef SERVER_SYSTEMD_H
#define SERVER_SYSTEMD_H

#include <stdint.h>

/* systemd kills the daemon unless it receives WATCHDOG=1 within this time. 0: the watchdog is
 * off. */
int64_t systemd_watchdog_ns(void);

/* The listening sockets passed by systemd: consecutive descriptors from *first. Returns their
 * number, or -1 if they are unusable. Only the first call returns any; its caller owns them. */
int systemd_sockets(int *first);

#endif
