#include "config/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "config/memory.h"
#include "config/secret.h"
#include "config/tls.h"
#include "config/url.h"
#include "config/value.h"

enum { USERNAME_MAX = 256 };

/* --- one entry --- */

static bool parse_username(const char *text, void *field, struct error *error)
{
    char **username = field;
    size_t len = strlen(text);
    bool fine = len >= 1 && len <= USERNAME_MAX;
    for (size_t i = 0; i < len; i++)
        fine = fine && text[i] > ' ' && text[i] < 0x7f;
    if (!fine)
        return error_set(error, "is not a Redis user name; write 1 to %d characters without spaces",
                         USERNAME_MAX);
    *username = memory_copy(text);
    return true;
}

static const struct tls_names tls_names = {"nodes", "rediss://", "ca", false};

static const char example[] = "{name: a, url: \"redis://10.0.0.1:6379\"}";

#define AT(field) KEY_AT(struct config_node, field)

/* A new login or certificate takes effect with the next connection to the master, since open
 * connections are already authenticated. A reload always reads the files again. If a new login
 * leads to another server, for example behind a proxy, this is safe: the record on that server is
 * not the one adopted for this master, so the guard takes the vote away. */
const struct key nodes_keys[] = {
    {"nodes.name", KEY_NAME, "the name identifies the master as long as the daemon runs", AT(name),
     .least = 1, .most = LIMIT_NODE_NAME, .missing = example},
    {"nodes.url", KEY_URL,
     "the address of a master is read only at the start; see \"Moving a master\"", AT(address),
     .use = URL_NODE, .missing = example},
    {"nodes.username", KEY_WORD, KEY_MAY_CHANGE, AT(username), .parse = parse_username},
    {"nodes.password_file", KEY_SECRET, KEY_MAY_CHANGE, AT(password)},
    {"nodes.durable", KEY_BOOLEAN, "it is read only at the start", AT(durable)},
    {"nodes.ca", KEY_TEXT, KEY_MAY_CHANGE, AT(tls.ca)},
    {"nodes.certificate", KEY_TEXT, KEY_MAY_CHANGE, AT(tls.certificate)},
    {"nodes.key", KEY_TEXT, KEY_MAY_CHANGE, AT(tls.key)},
    {.name = NULL},
};

static void read_one(struct config_node *node, struct yaml_node *entry, struct report *report)
{
    if (!keys_check_entry(entry, "nodes", example, report))
        return;
    keys_read(nodes_keys, "nodes", entry, node, report);
    const struct yaml_node *username = yaml_node_child(entry, "username");
    if (username != NULL && yaml_node_child(entry, "password_file") == NULL)
        report_error(report, username->key->position,
                     "nodes.username: needs a password as well; set password_file");
    tls_check(&node->tls, &node->address, &tls_names, entry, report);
}

/* --- the list --- */

static void check_new(const struct config *config, unsigned index, const struct yaml_node *list,
                      const struct yaml_node *entry, struct report *report)
{
    const struct config_node *node = &config->nodes[index];
    const struct yaml_node *place = list->children;
    bool again = false; /* a duplicate url is reported only once */
    for (unsigned i = 0; i < index; i++, place = place->next) {
        const struct config_node *other = &config->nodes[i];
        if (node->name != NULL && other->name != NULL && strcmp(node->name, other->name) == 0)
            report_error(
                report, yaml_node_child(entry, "name")->position,
                "nodes.name: %s is already the name of the node in line %zu; give each its own",
                node->name, place->position.line);
        if (again || !url_equal(&node->address, &other->address))
            continue;
        again = true;
        report_error(report, yaml_node_child(entry, "url")->position,
                     "nodes.url: %s is also the address of the node in line %zu; a quorum needs "
                     "independent masters",
                     node->address.url, place->position.line);
    }
}

static void check_count(unsigned count, const struct yaml_node *list, struct report *report)
{
    if (count < LIMIT_NODES_MIN)
        report_error(report, list->position, "nodes: %u are too few for a quorum; list %d or 5",
                     count, LIMIT_NODES_MIN);
    else if (count % 2 == 0)
        report_error(
            report, list->position,
            "nodes: %u is an even number and tolerates no more failures than %u; list %u or %u",
            count, count - 1, count - 1, count + 1);
}

void nodes_read(void *target, const struct yaml_node *list, struct report *report)
{
    struct config *config = target;
    for (struct yaml_node *entry = list->children; entry != NULL; entry = entry->next) {
        unsigned index = config->node_count;
        if (index == LIMIT_NODES) {
            report_error(report, entry->position, "nodes: more than %d; 5 or 7 are enough",
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
    /* Free all entries, since --dev fills them before it sets node_count. */
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

unsigned nodes_find(const struct config *config, const char *name)
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
        equal = nodes_find(b, a->nodes[i].name) < b->node_count;
    return equal;
}
