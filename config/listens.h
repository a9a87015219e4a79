/*
 * `listen`: the addresses for clients. An entry is an address, or a mapping of an address with a
 * file mode and group (unix sockets) or with certificates (TLS).
 */
#ifndef CONFIG_LISTENS_H
#define CONFIG_LISTENS_H

#include <stdbool.h>

#include "config/keys.h"
#include "config/report.h"
#include "config/yaml.h"

struct config;
struct config_address;
struct config_listen;

enum { LISTENS_MAX = 16 };

/* Set the default, which applies if the file has no `listen`. */
void listens_default(struct config *config);

/* Replace the default by the addresses of the list. `target` is a struct config. */
void listens_read(void *target, const struct yaml_node *list, struct report *report);

/* The configuration keys of one `listen` entry. Their values are stored in struct config_listen. */
extern const struct key listens_keys[];

/* Report an error for each address that other hosts can reach without a client certificate. Call it
 * after listens_read() with the same list. */
void listens_check_local(const struct config *config, const struct yaml_node *list,
                         struct report *report);

/* Whether at least one address can be a unix socket. An address that could not be parsed can be
 * one.
 */
bool listens_may_be_unix(const struct config *config);

/* Whether two configurations have the same addresses, in any order. */
bool listens_equal(const struct config *a, const struct config *b);

/* The listener with this address, or NULL. */
const struct config_listen *listens_find(const struct config *config,
                                         const struct config_address *address);

void listens_free(struct config *config);

#endif
