/*
 * Addresses as a configuration writes them. Pure.
 *
 *     listen   tcp://127.0.0.1:7335   tcp://[::1]:7335   unix:/run/redlockd/redlockd.sock
 *     nodes    redis://10.0.0.1:6379/0   redis://[fd00::1]   unix:/run/redis/redis.sock
 */
#ifndef CONFIG_URL_H
#define CONFIG_URL_H

#include <stdbool.h>

#include "config/config.h"
#include "protocol/error.h"

enum url_use { URL_LISTEN, URL_NODE };

/*
 * Fill an address; url_free() it, also on failure. Then the error says what is wrong with the text
 * and what would be right, to be put behind it, as in value.h. `database` is set for a node; NULL
 * for a listen.
 */
bool url_parse(const char *text, enum url_use use, struct config_address *address,
               unsigned *database, struct error *error);

/* Leaves an empty address. */
void url_free(struct config_address *address);

/* Can only this host reach it? Names other than localhost count as no. */
bool url_is_local(const struct config_address *address);

/* Do two addresses lead to the same place, as far as the text tells? Never where one is empty. */
bool url_equal(const struct config_address *a, const struct config_address *b);

/* May an error repeat the text? Not where there could be a password in it. */
bool url_is_printable(const char *text);

#endif
