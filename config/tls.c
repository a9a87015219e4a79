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

/* Load every file as the daemon will, even if another one is invalid. */
static void try_files(const struct config_tls *tls, const struct tls_names *names,
                      const struct yaml_node *entry, struct report *report)
{
    const struct {
        const char *key;
        const char *path;
        bool (*load)(SSL_CTX *context, const char *path, struct error *error);
    } files[] = {{"certificate", tls->certificate, certificate_load},
                 {"key", tls->key, certificate_load_key},
                 {names->ca, tls->ca, certificate_load_ca}};
    struct error error;
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    if (context == NULL)
        return; /* the daemon will report the lack of memory when it starts */
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const struct yaml_node *value = yaml_node_child(entry, files[i].key);
        if (files[i].path == NULL)
            continue;
        if (!files[i].load(context, files[i].path, &error))
            report_error(report, value->position, "%s.%s: %s %s", names->list, files[i].key,
                         files[i].path, error.text);
        else if (i == 0 &&
                 certificate_is_stale(SSL_CTX_get0_certificate(context), time(NULL), &error))
            report_warning(report, value->position, "%s.%s: %s %s", names->list, files[i].key,
                           files[i].path, error.text);
    }
    SSL_CTX_free(context);
}

void tls_check(const struct config_tls *tls, const struct config_address *address,
               const struct tls_names *names, const struct yaml_node *entry, struct report *report)
{
    const char *const all[] = {"certificate", "key", names->ca, "client_certificate"};
    const struct yaml_node *certificate = yaml_node_child(entry, "certificate");
    const struct yaml_node *key = yaml_node_child(entry, "key");
    if (address->host == NULL && address->path == NULL)
        return; /* the invalid address is already in the report */
    for (size_t i = 0; !address->tls && i < sizeof(all) / sizeof(all[0]); i++) {
        const struct yaml_node *unwanted = yaml_node_child(entry, all[i]);
        if (unwanted != NULL)
            report_error(report, unwanted->key->position,
                         "%s.%s: is for %s addresses; leave it out of %s", names->list, all[i],
                         names->scheme, address->url);
    }
    if (!address->tls)
        return;
    if (names->own_required && certificate == NULL)
        report_error(report, entry->position, "%s.certificate: missing; %s needs one, and its key",
                     names->list, address->url);
    else if (certificate != NULL && key == NULL)
        report_error(report, certificate->key->position,
                     "%s.key: missing; a certificate needs its key", names->list);
    if (certificate == NULL && key != NULL)
        report_error(report, key->key->position, "%s.key: needs a certificate", names->list);
    const struct yaml_node *wanted = yaml_node_child(entry, "client_certificate");
    if (wanted != NULL && yaml_node_child(entry, names->ca) == NULL)
        report_error(report, wanted->key->position,
                     "%s.client_certificate: needs %s, the file with the CA of the clients",
                     names->list, names->ca);
    try_files(tls, names, entry, report);
}
