/*
 * `nodes`: the independent Redis masters, {name, url, username, password_file} each.
 */
#ifndef CONFIG_NODES_H
#define CONFIG_NODES_H

#include <stdbool.h>

#include "config/report.h"
#include "config/yaml.h"

struct config;
struct config_node;

void nodes_read(struct config *config, const struct yaml_node *list, struct report *report);

/* Do two lists have the same names, in whatever order? */
bool nodes_equal(const struct config *a, const struct config *b);

/* ... and those that both have the same of this? */
bool nodes_equal_servers(const struct config *a, const struct config *b);
bool nodes_equal_durable(const struct config *a, const struct config *b);
bool nodes_equal_tls(const struct config *a, const struct config *b);
bool nodes_equal_usernames(const struct config *a, const struct config *b);
bool nodes_equal_passwords(const struct config *a, const struct config *b);

/* Swap all that may change while the daemon runs: logins, and the files for TLS. */
void nodes_swap_access(struct config *a, struct config *b);

/* The one of this name, in whatever place; NULL: there is none. */
struct config_node *nodes_find(struct config *config, const char *name);

void nodes_free(struct config *config);

#endif
