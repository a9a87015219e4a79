#include "config/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/memory.h"
#include "config/secret.h"
#include "config/tls.h"
#include "config/url.h"
#include "config/value.h"

enum { USERNAME_MAX = 256 };

/* --- one of them --- */

static void set_name(void *target, const struct yaml_node *value, struct report *report)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    struct config_node *node = target;
    size_t len = strlen(value->text);
    if (len >= 1 && len <= LIMIT_NODE_NAME && strspn(value->text, allowed) == len)
        node->name = memory_copy(value->text);
    else
        report_error(report, value->mark,
                     "nodes.name: \"%s\" is no name; write 1 to %d of A-Z a-z 0-9 _ . -",
                     value->text, LIMIT_NODE_NAME);
}

static void set_url(void *target, const struct yaml_node *value, struct report *report)
{
    struct config_node *node = target;
    url_read(value, "nodes.url", URL_NODE, &node->address, &node->database, report);
}

static void set_username(void *target, const struct yaml_node *value, struct report *report)
{
    struct config_node *node = target;
    size_t len = strlen(value->text);
    bool fine = len >= 1 && len <= USERNAME_MAX;
    for (size_t i = 0; i < len; i++)
        fine = fine && value->text[i] > ' ' && value->text[i] < 0x7f;
    if (fine)
        node->username = memory_copy(value->text);
    else
        report_error(report, value->mark,
                     "nodes.username: \"%s\" is no name of a Redis user; write 1 to %d letters "
                     "without spaces",
                     value->text, USERNAME_MAX);
}

static void set_password(void *target, const struct yaml_node *value, struct report *report)
{
    struct config_node *node = target;
    node->password = entry_secret(value, "nodes.password_file", report);
}

static void set_durable(void *target, const struct yaml_node *value, struct report *report)
{
    struct config_node *node = target;
    const char *wrong = value_boolean(value->text, &node->durable);
    if (wrong != NULL)
        report_error(report, value->mark, "nodes.durable: \"%s\" %s", value->text, wrong);
}

static const struct tls_names tls_names = {"nodes", "rediss://", "ca", false};

static const struct entry_field fields[] = {
    {"name", set_name, 0},
    {"url", set_url, 0},
    {"username", set_username, 0},
    {"password_file", set_password, 0},
    {"durable", set_durable, 0},
    {"ca", NULL, offsetof(struct config_node, tls.ca)},
    {"certificate", NULL, offsetof(struct config_node, tls.certificate)},
    {"key", NULL, offsetof(struct config_node, tls.key)},
    {NULL, NULL, 0},
};

static void read_one(struct config_node *node, const struct yaml_node *entry, struct report *report)
{
    static const char example[] = "{name: a, url: \"redis://10.0.0.1:6379\"}";
    if (!entry_is_mapping(entry, "nodes", example, report))
        return;
    entry_read(entry, "nodes", fields, node, report);
    if (yaml_node_child(entry, "name") == NULL)
        report_error(report, entry->mark, "nodes.name: missing; write %s", example);
    if (yaml_node_child(entry, "url") == NULL)
        report_error(report, entry->mark, "nodes.url: missing; write %s", example);
    const struct yaml_node *username = yaml_node_child(entry, "username");
    if (username != NULL && yaml_node_child(entry, "password_file") == NULL)
        report_error(report, username->key->mark,
                     "nodes.username: needs a password too; name its file by password_file");
    tls_check(&node->tls, &node->address, &tls_names, entry, report);
}

/* --- all of them --- */

static void check_new(const struct config *config, unsigned index, const struct yaml_node *list,
                      const struct yaml_node *entry, struct report *report)
{
    const struct config_node *node = &config->nodes[index];
    const struct yaml_node *place = list->children;
    bool again = false; /* told with the first that has it */
    for (unsigned i = 0; i < index; i++, place = place->next) {
        const struct config_node *other = &config->nodes[i];
        if (node->name != NULL && other->name != NULL && strcmp(node->name, other->name) == 0)
            report_error(report, yaml_node_child(entry, "name")->mark,
                         "nodes.name: %s is taken by the node in line %zu; give each its own",
                         node->name, place->mark.line);
        if (again || !url_equal(&node->address, &other->address))
            continue;
        again = true;
        report_error(report, yaml_node_child(entry, "url")->mark,
                     "nodes.url: %s is the node in line %zu again; a quorum needs independent "
                     "masters",
                     node->address.url, place->mark.line);
    }
}

static void check_count(unsigned count, const struct yaml_node *list, struct report *report)
{
    if (count < LIMIT_NODES_MIN)
        report_error(report, list->mark, "nodes: %u of them make no quorum; list %d, or 5", count,
                     LIMIT_NODES_MIN);
    else if (count % 2 == 0)
        report_error(report, list->mark,
                     "nodes: %u is an even number, and survives no more failures than %u; list %u, "
                     "or %u",
                     count, count - 1, count - 1, count + 1);
}

void nodes_read(struct config *config, const struct yaml_node *list, struct report *report)
{
    for (const struct yaml_node *entry = list->children; entry != NULL; entry = entry->next) {
        unsigned index = config->node_count;
        if (index == LIMIT_NODES) {
            report_error(report, entry->mark, "nodes: more than %d; 5 or 7 are plenty",
                         LIMIT_NODES);
            return;
        }
        config->node_count++;
        read_one(&config->nodes[index], entry, report);
        check_new(config, index, list, entry, report);
    }
    check_count(config->node_count, list, report);
}

void nodes_free(struct config *config)
{
    /* All there is room for: --dev fills them in before it counts them. */
    for (unsigned i = 0; i < LIMIT_NODES; i++) {
        struct config_node *node = &config->nodes[i];
        url_free(&node->address);
        tls_free(&node->tls);
        free(node->name);
        free(node->username);
        secret_free(node->password);
    }
}

/* --- two configurations --- */

/* A new field has to be compared below, or have a rule of its own in diff.c. */
_Static_assert(sizeof(struct config_node) == sizeof(struct {
                   char *name;
                   struct config_address address;
                   unsigned database;
                   char *username;
                   char *password;
                   bool durable;
                   struct config_tls tls;
               }),
               "does a reload see the new field of config_node?");

/* Of the one of this name, since in which order they are listed does not matter; node_count if
 * there is none. */
static unsigned index_of(const struct config *config, const char *name)
{
    unsigned i = 0;
    while (i < config->node_count && !value_same_text(config->nodes[i].name, name))
        i++;
    return i;
}

bool nodes_equal(const struct config *a, const struct config *b)
{
    bool equal = a->node_count == b->node_count;
    for (unsigned i = 0; equal && i < a->node_count; i++)
        equal = index_of(b, a->nodes[i].name) < b->node_count;
    return equal;
}

/* Is this so for each that both have? */
static bool each_equal(const struct config *a, const struct config *b,
                       bool (*equal)(const struct config_node *a, const struct config_node *b))
{
    for (unsigned i = 0; i < a->node_count; i++) {
        unsigned other = index_of(b, a->nodes[i].name);
        if (other < b->node_count && !equal(&a->nodes[i], &b->nodes[other]))
            return false;
    }
    return true;
}

static bool same_server(const struct config_node *a, const struct config_node *b)
{
    /* The text, too: it is what listings show. */
    return a->database == b->database && value_same_text(a->address.url, b->address.url);
}

static bool same_durable(const struct config_node *a, const struct config_node *b)
{
    return a->durable == b->durable;
}

static bool same_username(const struct config_node *a, const struct config_node *b)
{
    return value_same_text(a->username, b->username);
}

static bool same_password(const struct config_node *a, const struct config_node *b)
{
    return value_same_text(a->password, b->password);
}

static bool same_tls(const struct config_node *a, const struct config_node *b)
{
    return tls_equal(&a->tls, &b->tls);
}

bool nodes_equal_servers(const struct config *a, const struct config *b)
{
    return each_equal(a, b, same_server);
}

bool nodes_equal_durable(const struct config *a, const struct config *b)
{
    return each_equal(a, b, same_durable);
}

bool nodes_equal_usernames(const struct config *a, const struct config *b)
{
    return each_equal(a, b, same_username);
}

bool nodes_equal_passwords(const struct config *a, const struct config *b)
{
    return each_equal(a, b, same_password);
}

bool nodes_equal_tls(const struct config *a, const struct config *b)
{
    return each_equal(a, b, same_tls);
}

static void swap(char **a, char **b)
{
    char *kept = *a;
    *a = *b;
    *b = kept;
}

struct config_node *nodes_find(struct config *config, const char *name)
{
    unsigned index = index_of(config, name);
    return index < config->node_count ? &config->nodes[index] : NULL;
}

void nodes_swap_access(struct config *a, struct config *b)
{
    for (unsigned i = 0; i < a->node_count; i++) {
        struct config_node *node = &a->nodes[i];
        struct config_node *other = nodes_find(b, node->name);
        if (other == NULL)
            continue;
        struct config_tls tls = node->tls;
        node->tls = other->tls;
        other->tls = tls;
        swap(&node->username, &other->username);
        swap(&node->password, &other->password);
    }
}
