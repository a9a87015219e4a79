/*
 * Addresses in the configuration: allocated copies of the addresses of protocol/address.h.
 */
#ifndef CONFIG_URL_H
#define CONFIG_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "config/report.h"
#include "config/yaml.h"
#include "protocol/address.h"
#include "protocol/text.h"

/* The address of a listener or of a master. */
struct config_address {
    enum address_kind kind;
    char *url;  /* as written, for messages */
    char *host; /* TCP: name or address; IPv6 without brackets */
    uint16_t port;
    bool tls;          /* TCP */
    char *path;        /* UNIX */
    unsigned database; /* node: number of the Redis database */
};

/*
 * Parse an address. The caller frees the address with url_free(), even on failure. On failure the
 * error says what is wrong and what would be right. The caller puts the error after the text, as in
 * value.h.
 */
bool url_parse(const char *text, enum url_use use, struct config_address *address,
               struct error *error);

/* Parse a value of the configuration. If it is invalid, adds an error that begins with `name` to
 * the report. */
bool url_read(const struct yaml_node *value, const char *name, enum url_use use,
              struct config_address *address, struct report *report);

/* Free the members. The address is empty afterwards. */
void url_free(struct config_address *address);

/* Whether only this host can reach the address. False for names other than localhost. */
bool url_is_local(const struct config_address *address);

/* Whether two addresses are the same, judging by their text. False if one is empty. */
bool url_equal(const struct config_address *a, const struct config_address *b);

/* Whether only one of two addresses can be opened: they are the same, or they have the same port
 * and one of them is the wildcard address (0.0.0.0 or ::) of the other's family. */
bool url_collides(const struct config_address *a, const struct config_address *b);

#endif
