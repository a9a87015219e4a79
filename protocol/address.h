/*
 * Addresses as people write them. Pure, and without an allocation: the library of clients reads
 * them, too.
 *
 *     listen   tcp://127.0.0.1:7335   tls://[::]:7337   unix:/run/redlockd/redlockd.sock
 *     admin    http://127.0.0.1:7336   http://[::1]:7336
 *     nodes    redis://10.0.0.1:6379/0   rediss://[fd00::1]   unix:/run/redis/redis.sock
 *
 * A daemon is connected to where it listens; only the advice is another one, and that the library
 * of clients has no TLS.
 */
#ifndef PROTOCOL_ADDRESS_H
#define PROTOCOL_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/text.h"

enum { ADDRESS_HOST_MAX = 253, ADDRESS_PATH_MAX = 107 };

enum address_kind { ADDRESS_TCP, ADDRESS_UNIX };

enum url_use { URL_LISTEN, URL_NODE, URL_DAEMON, URL_ADMIN };

struct address {
    enum address_kind kind;
    char host[ADDRESS_HOST_MAX + 1]; /* TCP: name or address, IPv6 without its brackets,
                                        but with its zone: fe80::1%eth0 */
    uint16_t port;                   /* TCP */
    char path[ADDRESS_PATH_MAX + 1]; /* UNIX */
    bool tls;                        /* TCP */
    unsigned database;               /* of a node */
};

/*
 * On failure the error says what is wrong with the text and what would be right, to be put behind
 * the text itself; it never repeats the text.
 */
__attribute__((warn_unused_result)) bool
address_parse(const char *text, enum url_use use, struct address *address, struct error *error);

/* May an error repeat the text? Not where there could be a password in it. */
bool address_is_printable(const char *text);

#endif
