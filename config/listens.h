/*
 * `listen`: where clients connect. Each is an address, or {url, mode, group} for a unix socket.
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

/* The one there is where the file says nothing. */
void listens_default(struct config *config);

/* Those of the list, in place of the default, of the configuration that `target` is. */
void listens_read(void *target, const struct yaml_node *list, struct report *report);

/* The keys of one, in struct config_listen. */
extern const struct key listens_keys[];

/* Refuse what other hosts can reach, after listens_read() with the same list. */
void listens_check_local(const struct config *config, const struct yaml_node *list,
                         struct report *report);

/* Is there a unix socket among them? Also if one is not to be read, and could have been one. */
bool listens_may_be_unix(const struct config *config);

/* Do two configurations name the same addresses, in whatever order? */
bool listens_equal(const struct config *a, const struct config *b);

/* The one at this address; NULL: there is none. */
const struct config_listen *listens_find(const struct config *config,
                                         const struct config_address *address);

void listens_free(struct config *config);

#endif
