/*
 * `nodes`: the independent Redis masters, {name, url, username, password_file} each.
 */
#ifndef CONFIG_NODES_H
#define CONFIG_NODES_H

#include "config/config.h"
#include "config/report.h"
#include "config/yaml.h"

void nodes_read(struct config *config, const struct yaml_node *list, struct report *report);

void nodes_free(struct config *config);

#endif
