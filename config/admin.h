/*
 * `admin`: where metrics, health and the status page are served. Off without it.
 */
#ifndef CONFIG_ADMIN_H
#define CONFIG_ADMIN_H

#include "config/report.h"
#include "config/yaml.h"

struct config;

void admin_read(struct config *config, const struct yaml_node *value, struct report *report);

/* Refuse what other hosts can reach, or what clients connect to, after admin_read(). */
void admin_check(const struct config *config, const struct yaml_node *value, struct report *report);

void admin_free(struct config *config);

#endif
