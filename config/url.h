/*
 * Addresses of a configuration: those of protocol/address.h, kept.
 */
#ifndef CONFIG_URL_H
#define CONFIG_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "config/report.h"
#include "config/yaml.h"
#include "protocol/address.h"
#include "protocol/text.h"

/* Where the daemon listens, or where a master is. */
struct config_address {
    enum address_kind kind;
    char *url;  /* as written, for people */
    char *host; /* TCP: name or address, IPv6 without its brackets */
    uint16_t port;
    bool tls;          /* TCP */
    char *path;        /* UNIX */
    unsigned database; /* of a node */
};

/*
 * Fill an address; url_free() it, also on failure. Then the error says what is wrong with the text
 * and what would be right, to be put behind it, as in value.h.
 */
bool url_parse(const char *text, enum url_use use, struct config_address *address,
               struct error *error);

/* The same of a value of the configuration; the report says what is wrong, after `name`. */
bool url_read(const struct yaml_node *value, const char *name, enum url_use use,
              struct config_address *address, struct report *report);

/* Leaves an empty address. */
void url_free(struct config_address *address);

/* Can only this host reach it? Names other than localhost count as no. */
bool url_is_local(const struct config_address *address);

/* Do two addresses lead to the same place, as far as the text tells? Never where one is empty. */
bool url_equal(const struct config_address *a, const struct config_address *b);

/* Can only one of them be listened on? Also where one stands for every address of a family. */
bool url_collides(const struct config_address *a, const struct config_address *b);

#endif
