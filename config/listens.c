#include "config/listens.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/memory.h"
#include "config/tls.h"
#include "config/url.h"
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
    (void)url_parse(default_url, URL_LISTEN, &config->listens[0].address, NULL, &error);
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

/* --- one of them --- */

static void set_url(void *target, const struct yaml_node *value, struct report *report)
{
    struct config_listen *listen = target;
    url_read(value, "listen", URL_LISTEN, &listen->address, NULL, report);
}

static void set_mode(void *target, const struct yaml_node *value, struct report *report)
{
    struct config_listen *listen = target;
    size_t len = strlen(value->text);
    long mode = strtol(value->text, NULL, 8);
    if (len >= 3 && len <= 4 && strspn(value->text, "01234567") == len && mode <= 0777)
        listen->mode = (mode_t)mode;
    else
        report_error(report, value->mark,
                     "listen.mode: \"%s\" is no file mode; write 0600, 0660 or 0666", value->text);
}

static void set_group(void *target, const struct yaml_node *value, struct report *report)
{
    struct config_listen *listen = target;
    const struct group *group = getgrnam(value->text);
    int64_t number;
    if (group != NULL)
        listen->group = group->gr_gid;
    else if (value_integer(value->text, &number) == NULL && number < (gid_t)-1)
        listen->group = (gid_t)number;
    else
        report_error(report, value->mark,
                     "listen.group: \"%s\" is no group of this host; write the name of one, or its "
                     "number",
                     value->text);
}

static void set_client_certificate(void *target, const struct yaml_node *value,
                                   struct report *report)
{
    static const char *const words[] = {"optional", "required", NULL};
    struct config_listen *listen = target;
    int choice = value_choice(value->text, words);
    if (choice >= 0)
        listen->tls.client_certificate = (enum config_client_certificate)choice;
    else
        report_error(report, value->mark,
                     "listen.client_certificate: \"%s\" is none of optional, required",
                     value->text);
}

static const struct entry_field fields[] = {
    {"url", set_url, 0},
    {"mode", set_mode, 0},
    {"group", set_group, 0},
    {"certificate", NULL, offsetof(struct config_listen, tls.certificate)},
    {"key", NULL, offsetof(struct config_listen, tls.key)},
    {"client_ca", NULL, offsetof(struct config_listen, tls.ca)},
    {"client_certificate", set_client_certificate, 0},
    {NULL, NULL, 0},
};

static void read_one(struct config_listen *listen, const struct yaml_node *entry,
                     struct report *report)
{
    if (entry->kind == YAML_SCALAR && !entry->broken && !yaml_node_is_empty(entry)) {
        set_url(listen, entry, report);
        tls_check(&listen->tls, &listen->address, &tls_names, entry, report);
        return;
    }
    if (!entry_has_kind(entry, YAML_MAPPING, "listen", report))
        return;
    entry_read(entry, "listen", fields, listen, report);
    const struct yaml_node *mode = yaml_node_child(entry, "mode");
    const struct yaml_node *group = yaml_node_child(entry, "group");
    if (yaml_node_child(entry, "url") == NULL)
        report_error(report, entry->mark, "listen.url: missing; write {url: \"unix:/PATH\", ...}");
    else if (listen->address.host != NULL && (mode != NULL || group != NULL))
        report_error(report, (mode != NULL ? mode : group)->key->mark,
                     "listen: mode and group are for unix sockets; leave them out of %s",
                     listen->address.url);
    tls_check(&listen->tls, &listen->address, &tls_names, entry, report);
}

/* --- all of them --- */

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
            report_error(report, entry->mark, "listen: %s is given twice; the first is in line %zu",
                         address->url, other->mark.line);
        else
            report_error(report, entry->mark,
                         "listen: %s cannot be had beside %s in line %zu: one of them is every "
                         "address with that port",
                         address->url, earlier->url, other->mark.line);
        return;
    }
}

void listens_read(struct config *config, const struct yaml_node *list, struct report *report)
{
    clear(config);
    if (list->children == NULL)
        report_error(report, list->mark,
                     "listen: the list is empty; leave the key out to have %s alone", default_url);
    for (const struct yaml_node *entry = list->children; entry != NULL; entry = entry->next) {
        size_t index = config->listen_count;
        if (index == LISTENS_MAX) {
            report_error(report, entry->mark, "listen: more than %d addresses; leave some out",
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
        report_error(report, entry->mark,
                     "listen: %s can be reached from other hosts, and anybody who reaches it can "
                     "release locks; list users (auth), require certificates (%s), listen on "
                     "127.0.0.1 or a unix socket, or set insecure: true",
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

static const struct config_listen *find(const struct config *config,
                                        const struct config_address *address)
{
    for (size_t i = 0; i < config->listen_count; i++)
        if (url_equal(&config->listens[i].address, address))
            return &config->listens[i];
    return NULL;
}

bool listens_equal(const struct config *a, const struct config *b)
{
    /* None is twice in either. */
    bool equal = a->listen_count == b->listen_count;
    for (size_t i = 0; i < a->listen_count; i++)
        equal = equal && find(b, &a->listens[i].address) != NULL;
    return equal;
}

/* A new field has to be compared below, or have a rule of its own in diff.c. */
_Static_assert(sizeof(struct config_listen) == sizeof(struct {
                   struct config_address address;
                   mode_t mode;
                   gid_t group;
                   bool any_port;
                   struct config_tls tls;
               }),
               "does a reload see the new field of config_listen?");

/* Is this so for each address that is in both? */
static bool all_alike(const struct config *a, const struct config *b,
                      bool (*alike)(const struct config_listen *one,
                                    const struct config_listen *other))
{
    bool equal = true;
    for (size_t i = 0; i < a->listen_count; i++) {
        const struct config_listen *one = &a->listens[i];
        const struct config_listen *other = find(b, &one->address);
        equal = equal && (other == NULL || alike(one, other));
    }
    return equal;
}

/* The text, too: the same host and port may be meant otherwise by another scheme. */
static bool same_kept(const struct config_listen *one, const struct config_listen *other)
{
    return one->mode == other->mode && one->group == other->group &&
           strcmp(one->address.url, other->address.url) == 0;
}

static bool same_tls(const struct config_listen *one, const struct config_listen *other)
{
    return tls_equal(&one->tls, &other->tls);
}

bool listens_equal_kept(const struct config *a, const struct config *b)
{
    return all_alike(a, b, same_kept);
}

bool listens_equal_tls(const struct config *a, const struct config *b)
{
    return all_alike(a, b, same_tls);
}

void listens_swap(struct config *a, struct config *b)
{
    struct config_listen *listens = a->listens;
    size_t count = a->listen_count;
    a->listens = b->listens;
    a->listen_count = b->listen_count;
    b->listens = listens;
    b->listen_count = count;
}
