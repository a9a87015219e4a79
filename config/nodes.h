/*
 * `nodes`: the independent Redis masters, {name, url, username, password_file} each.
 */
#ifndef CONFIG_NODES_H
#define CONFIG_NODES_H

#include "config/config.h"
#include "config/report.h"
#include "config/yaml.h"

void nodes_read(struct config *config, const struct yaml_node *list, struct report *report);

/* Are two lists the same, but for logins and `durable`? Are these? */
bool nodes_equal(const struct config *a, const struct config *b);
bool nodes_equal_durable(const struct config *a, const struct config *b);
bool nodes_equal_tls(const struct config *a, const struct config *b);
bool nodes_equal_logins(const struct config *a, const struct config *b);
void nodes_swap_logins(struct config *a, struct config *b);

void nodes_free(struct config *config);

#endif
