/*
 * A connection to an address, made within a time.
 */
#ifndef CLIENT_C_CONNECT_H
#define CLIENT_C_CONNECT_H

#include <stdint.h>

#include "protocol/address.h"
#include "protocol/text.h"

/* A socket that does not block, is closed by exec, and sends at once; -1: the error says why not,
 * to be put behind the address. The look-up of a name is not within the time. */
int connect_to(const struct address *address, int64_t timeout_ns, struct error *error);

/* Nanoseconds of CLOCK_BOOTTIME. */
int64_t connect_clock_ns(void);

/* How long poll(2) has to wait until then: rounded up, 0 if that has passed. */
int connect_wait_ms(int64_t until_ns, int64_t now_ns);

#endif
