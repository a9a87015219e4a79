/*
 * `nodes`: the independent Redis masters. An entry is a mapping: name, url, and optional keys.
 */
#ifndef CONFIG_NODES_H
#define CONFIG_NODES_H

#include <stdbool.h>

#include "config/keys.h"
#include "config/report.h"
#include "config/yaml.h"

struct config;
struct config_node;

/* Read the masters of the list. `target` is a struct config. */
void nodes_read(void *target, const struct yaml_node *list, struct report *report);

/* The keys of an entry, in struct config_node. */
extern const struct key nodes_keys[];

/* Whether two configurations have the same names, in any order. */
bool nodes_equal(const struct config *a, const struct config *b);

/* The index of the node with this name; node_count if there is none. */
unsigned nodes_find(const struct config *config, const char *name);

void nodes_free(struct config *config);

#endif
