/*
 * Addresses as a configuration writes them.
 *
 *     listen   tcp://127.0.0.1:7335   tcp://[::1]:7335   unix:/run/redlockd/redlockd.sock
 *     nodes    redis://10.0.0.1:6379/0   redis://[::1]   unix:/run/redis/redis.sock
 */
#ifndef CONFIG_URL_H
#define CONFIG_URL_H

#include <stdbool.h>

#include "config/config.h"
#include "protocol/error.h"

/*
 * Fill an address (url_free() it, also on failure). database may be NULL: then a path behind the
 * host is an error. default_port 0: the port has to be given.
 */
bool url_parse(const char *text, const char *scheme, uint16_t default_port,
               struct config_address *address, unsigned *database, struct error *error);

void url_free(struct config_address *address);

/* Can only this host reach it? Names other than localhost count as no. */
bool url_is_local(const struct config_address *address);

/* Do two addresses name the same place, as far as the text tells? */
bool url_equal(const struct config_address *a, const struct config_address *b);

#endif
