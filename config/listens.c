#include "config/listens.h"

#include <stdlib.h>
#include <string.h>

#include "config/memory.h"
#include "config/tls.h"
#include "config/value.h"

static const char default_url[] = "tcp://127.0.0.1:7335";

static const struct config_listen untouched = {
    .mode = 0660,
    .group = (gid_t)-1,
    .tls = {.client_certificate = CONFIG_CERTIFICATE_REQUIRED},
};

static const struct tls_names tls_names = {"listen", "tls://", "client_ca", true};

void listens_default(struct config *config)
{
    struct error error;
    config->listens = memory_zeroed(LISTENS_MAX, sizeof(*config->listens));
    config->listens[0] = untouched;
    config->listen_count = 1;
    (void)url_parse(default_url, URL_LISTEN, &config->listens[0].address, &error);
}

static void clear(struct config *config)
{
    for (size_t i = 0; i < config->listen_count; i++) {
        url_free(&config->listens[i].address);
        tls_free(&config->listens[i].tls);
    }
    config->listen_count = 0;
}

void listens_free(struct config *config)
{
    clear(config);
    free(config->listens);
}

/* --- one entry --- */

static bool parse_mode(const char *text, void *field, struct error *error)
{
    mode_t *mode = field;
    size_t len = strlen(text);
    if (len < 3 || len > 4 || strspn(text, "01234567") != len || strtol(text, NULL, 8) > 0777)
        return error_set(error, "is not a file mode; write 0600, 0660 or 0666");
    *mode = (mode_t)strtol(text, NULL, 8);
    return true;
}

static bool parse_group(const char *text, void *field, struct error *error)
{
    return value_group(text, field) ||
           error_set(error, "is not a group of this host; write the name or number of a group");
}

static const char *const certificates[] = {"optional", "required", NULL};

_Static_assert(sizeof(enum config_client_certificate) == sizeof(unsigned),
               "KEY_CHOICE stores an unsigned");

#define KEPT      "an open listener keeps the settings it was opened with"
#define AT(field) KEY_AT(struct config_listen, field)

/* A reload reads the certificate files again even if their paths are unchanged. New connections
 * use them. */
const struct key listens_keys[] = {
    {"listen.url", KEY_URL, KEPT, AT(address), .use = URL_LISTEN,
     .missing = "{url: \"unix:/PATH\", ...}"},
    {"listen.mode", KEY_WORD, KEPT, AT(mode), .parse = parse_mode},
    {"listen.group", KEY_WORD, KEPT, AT(group), .parse = parse_group},
    {"listen.certificate", KEY_TEXT, KEY_MAY_CHANGE, AT(tls.certificate)},
    {"listen.key", KEY_TEXT, KEY_MAY_CHANGE, AT(tls.key)},
    {"listen.client_ca", KEY_TEXT, KEY_MAY_CHANGE, AT(tls.ca)},
    {"listen.client_certificate", KEY_CHOICE, KEY_MAY_CHANGE, AT(tls.client_certificate),
     .words = certificates},
    {.name = NULL},
};

static void read_one(struct config_listen *listen, struct yaml_node *entry, struct report *report)
{
    if (entry->kind == YAML_SCALAR && !entry->broken && !yaml_node_is_empty(entry)) {
        (void)url_read(entry, "listen", URL_LISTEN, &listen->address, report);
        tls_check(&listen->tls, &listen->address, &tls_names, entry, report);
        return;
    }
    if (!keys_check_kind(entry, YAML_MAPPING, "listen", NULL, report))
        return;
    keys_read(listens_keys, "listen", entry, listen, report);
    const struct yaml_node *mode = yaml_node_child(entry, "mode");
    const struct yaml_node *group = yaml_node_child(entry, "group");
    if (listen->address.host != NULL && (mode != NULL || group != NULL))
        report_error(report, (mode != NULL ? mode : group)->key->position,
                     "listen: mode and group are for unix sockets; leave them out of %s",
                     listen->address.url);
    tls_check(&listen->tls, &listen->address, &tls_names, entry, report);
}

/* --- the list --- */

static void check_new(const struct config *config, size_t index, const struct yaml_node *list,
                      const struct yaml_node *entry, struct report *report)
{
    const struct config_address *address = &config->listens[index].address;
    const struct yaml_node *other = list->children;
    for (size_t i = 0; i < index; i++, other = other->next) {
        const struct config_address *earlier = &config->listens[i].address;
        if (!url_collides(earlier, address))
            continue;
        if (url_equal(earlier, address))
            report_error(report, entry->position,
                         "listen: %s is given twice; the first is in line %zu", address->url,
                         other->position.line);
        else
            report_error(report, entry->position,
                         "listen: %s conflicts with %s in line %zu: one of them covers every "
                         "address with that port",
                         address->url, earlier->url, other->position.line);
        return;
    }
}

void listens_read(void *target, const struct yaml_node *list, struct report *report)
{
    struct config *config = target;
    clear(config);
    if (list->children == NULL)
        report_error(report, list->position,
                     "listen: the list is empty; leave the key out to listen on %s", default_url);
    for (struct yaml_node *entry = list->children; entry != NULL; entry = entry->next) {
        size_t index = config->listen_count;
        if (index == LISTENS_MAX) {
            report_error(report, entry->position, "listen: more than %d addresses; leave some out",
                         LISTENS_MAX);
            return;
        }
        config->listens[index] = untouched;
        config->listen_count++;
        read_one(&config->listens[index], entry, report);
        check_new(config, index, list, entry, report);
    }
}

void listens_check_local(const struct config *config, const struct yaml_node *list,
                         struct report *report)
{
    const struct yaml_node *entry = list->children;
    for (size_t i = 0; i < config->listen_count; i++, entry = entry->next) {
        const struct config_address *address = &config->listens[i].address;
        const struct config_tls *tls = &config->listens[i].tls;
        bool certified = tls->ca != NULL && tls->client_certificate == CONFIG_CERTIFICATE_REQUIRED;
        if (address->host == NULL || url_is_local(address) || certified)
            continue;
        report_error(report, entry->position,
                     "listen: other hosts can reach %s and release locks there; list users (auth), "
                     "require certificates (%s), listen on 127.0.0.1 or a unix socket, or set "
                     "insecure: true",
                     address->url,
                     tls->ca != NULL ? "client_certificate: required" : "tls:// with client_ca");
    }
}

bool listens_may_be_unix(const struct config *config)
{
    bool may = false;
    for (size_t i = 0; i < config->listen_count; i++)
        may = may || config->listens[i].address.host == NULL;
    return may;
}

/* --- two configurations --- */

const struct config_listen *listens_find(const struct config *config,
                                         const struct config_address *address)
{
    for (size_t i = 0; i < config->listen_count; i++)
        if (url_equal(&config->listens[i].address, address))
            return &config->listens[i];
    return NULL;
}

bool listens_equal(const struct config *a, const struct config *b)
{
    /* No configuration lists an address twice, so equal counts and inclusion one way suffice. */
    bool equal = a->listen_count == b->listen_count;
    for (size_t i = 0; i < a->listen_count; i++)
        equal = equal && listens_find(b, &a->listens[i].address) != NULL;
    return equal;
}
