/*
 * Checks the TLS fields of an entry in `listen` or `nodes`: whether the fields fit together, and
 * whether their files can be loaded.
 */
#ifndef CONFIG_TLS_H
#define CONFIG_TLS_H

#include "config/config.h"
#include "config/report.h"
#include "config/yaml.h"

/* How `listen` and `nodes` differ in their TLS fields. */
struct tls_names {
    const char *list;   /* "listen" */
    const char *scheme; /* "tls://" */
    const char *ca;     /* "client_ca" */
    bool own_required;  /* the entry must have a certificate */
};

/* Add the mistakes of one entry to the report. Call this after all fields of the entry, including
 * `address`, have been read. */
void tls_check(const struct config_tls *tls, const struct config_address *address,
               const struct tls_names *names, const struct yaml_node *entry, struct report *report);

void tls_free(struct config_tls *tls);

#endif
