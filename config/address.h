/*
 * An address as the configuration keeps it: where the daemon listens, or where a master is.
 * config/url.h reads it.
 */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/address.h"

struct config_address {
    enum address_kind kind;
    char *url;  /* as written, for people */
    char *host; /* TCP: name or address, IPv6 without its brackets */
    uint16_t port;
    bool tls;   /* TCP */
    char *path; /* UNIX */
};

#endif
