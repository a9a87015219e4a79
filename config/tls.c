#include "config/tls.h"

#include <stdlib.h>
#include <time.h>

#include "config/certificate.h"

void tls_free(struct config_tls *tls)
{
    free(tls->certificate);
    free(tls->key);
    free(tls->ca);
    *tls = (struct config_tls){0};
}

/* The first of these fields that the entry has, or NULL. */
static const struct yaml_node *first_of(const struct yaml_node *entry, const char *const *fields)
{
    for (; *fields != NULL; fields++) {
        const struct yaml_node *found = yaml_node_child(entry, *fields);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static void complain(const struct yaml_node *entry, const struct tls_names *names,
                     const char *field, const char *path, const struct error *error,
                     struct report *report)
{
    report_error(report, yaml_node_child(entry, field)->mark, "%s.%s: %s %s", names->list, field,
                 path, error->text);
}

/* As the daemon will, and every file although another is wrong. */
static void try_files(const struct config_tls *tls, const struct tls_names *names,
                      const struct yaml_node *entry, struct report *report)
{
    struct error error;
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    if (context == NULL)
        return; /* without memory the daemon will not start, and say so */
    if (tls->certificate != NULL) {
        if (!certificate_load(context, tls->certificate, &error))
            complain(entry, names, "certificate", tls->certificate, &error, report);
        else if (certificate_is_stale(context, time(NULL), &error))
            report_warning(report, yaml_node_child(entry, "certificate")->mark,
                           "%s.certificate: %s %s", names->list, tls->certificate, error.text);
    }
    if (tls->key != NULL && !certificate_load_key(context, tls->key, &error))
        complain(entry, names, "key", tls->key, &error, report);
    if (tls->ca != NULL && !certificate_load_ca(context, tls->ca, &error))
        complain(entry, names, names->ca, tls->ca, &error, report);
    SSL_CTX_free(context);
}

void tls_check(const struct config_tls *tls, const struct config_address *address,
               const struct tls_names *names, const struct yaml_node *entry, struct report *report)
{
    const char *const all[] = {"certificate", "key", names->ca, "client_certificate", NULL};
    const struct yaml_node *certificate = yaml_node_child(entry, "certificate");
    const struct yaml_node *key = yaml_node_child(entry, "key");
    const struct yaml_node *any = first_of(entry, all);
    if (address->host == NULL && address->path == NULL)
        return; /* the address is wrong, and the report knows */
    if (!address->tls) {
        if (any != NULL)
            report_error(report, any->key->mark, "%s.%s: is for %s addresses; leave it out of %s",
                         names->list, any->key->text, names->scheme, address->url);
        return;
    }
    if (names->own_required && certificate == NULL)
        report_error(report, entry->mark, "%s.certificate: missing; %s needs one, and its key",
                     names->list, address->url);
    else if (certificate != NULL && key == NULL)
        report_error(report, certificate->key->mark, "%s.key: missing; a certificate needs its key",
                     names->list);
    if (certificate == NULL && key != NULL)
        report_error(report, key->key->mark, "%s.key: needs a certificate", names->list);
    const struct yaml_node *wanted = yaml_node_child(entry, "client_certificate");
    if (wanted != NULL && yaml_node_child(entry, names->ca) == NULL)
        report_error(report, wanted->key->mark,
                     "%s.client_certificate: needs %s, the file with the CA of the clients",
                     names->list, names->ca);
    try_files(tls, names, entry, report);
}
