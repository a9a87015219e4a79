/*
 * `nodes`: the independent Redis masters, {name, url, username, password_file} each.
 */
#ifndef CONFIG_NODES_H
#define CONFIG_NODES_H

#include <stdbool.h>

#include "config/keys.h"
#include "config/report.h"
#include "config/yaml.h"

struct config;
struct config_node;

/* Those of the list, into the configuration that `target` is. */
void nodes_read(void *target, const struct yaml_node *list, struct report *report);

/* The keys of one, in struct config_node. */
extern const struct key nodes_keys[];

/* Do two lists have the same names, in whatever order? */
bool nodes_equal(const struct config *a, const struct config *b);

/* Where the one of this name is; node_count: there is none. */
unsigned nodes_find(const struct config *config, const char *name);

void nodes_free(struct config *config);

#endif
