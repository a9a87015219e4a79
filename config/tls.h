/*
 * The TLS fields of an entry in `listen` or `nodes`: which of them belong together, and whether
 * their files can be used.
 */
#ifndef CONFIG_TLS_H
#define CONFIG_TLS_H

#include "config/config.h"
#include "config/report.h"
#include "config/yaml.h"

/* How the fields are called there. */
struct tls_names {
    const char *list;   /* "listen" */
    const char *scheme; /* "tls://" */
    const char *ca;     /* "client_ca" */
    bool own_required;  /* there has to be a certificate of ours */
};

/* After all fields of the entry have been read. `address` has been read, too. */
void tls_check(const struct config_tls *tls, const struct config_address *address,
               const struct tls_names *names, const struct yaml_node *entry, struct report *report);

void tls_free(struct config_tls *tls);

#endif
