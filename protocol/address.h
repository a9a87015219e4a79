/*
 * Parses addresses. Pure, and allocates nothing: the client library also uses this module.
 *
 *     listen   tcp://127.0.0.1:7335   tls://[::]:7337   unix:/run/redlockd/redlockd.sock
 *     admin    http://127.0.0.1:7336   http://[::1]:7336
 *     metrics  http://0.0.0.0:7338   http://[::]:7338
 *     nodes    redis://10.0.0.1:6379/0   rediss://[fd00::1]   unix:/run/redis/redis.sock
 *
 * URL_DAEMON is the address of the daemon that a client connects to. It accepts the same addresses
 * as URL_LISTEN except tls://, which the client library does not support. The error messages for
 * URL_DAEMON differ from those for URL_LISTEN.
 */
#ifndef PROTOCOL_ADDRESS_H
#define PROTOCOL_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/text.h"

enum { ADDRESS_HOST_MAX = 253, ADDRESS_PATH_MAX = 107 };

enum address_kind { ADDRESS_TCP, ADDRESS_UNIX };

enum url_use { URL_LISTEN, URL_NODE, URL_DAEMON, URL_ADMIN, URL_METRICS };

struct address {
    enum address_kind kind;
    char host[ADDRESS_HOST_MAX + 1]; /* TCP: name or address; IPv6 without brackets,
                                        with the zone: fe80::1%eth0 */
    uint16_t port;                   /* TCP */
    char path[ADDRESS_PATH_MAX + 1]; /* UNIX */
    bool tls;                        /* TCP */
    unsigned database;               /* NODE: the number of the Redis database */
};

/*
 * Parse an address. Returns false on an error; the message then says what is wrong and what would
 * be right. The message has no subject: the caller puts the address, or its name, before it.
 */
__attribute__((warn_unused_result)) bool
address_parse(const char *text, enum url_use use, struct address *address, struct error *error);

/* Whether a message may quote the text: false if it could contain a password. */
bool address_is_printable(const char *text);

#endif
