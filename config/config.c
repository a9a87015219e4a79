#include "config/config.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "config/value.h"
#include "config/yaml.h"

#define NS_PER_MS 1000000LL
#define NS_PER_S  (1000 * NS_PER_MS)
#define NS_PER_H  (3600 * NS_PER_S)

enum { NODE_PORT = 6379, SECRET_MAX = 1024, LISTENS_MAX = 16 };

static const char default_listen[] = "tcp://127.0.0.1:7335";

/* What is being put together, and where its mistakes go. */
struct loading {
    struct config *config;
    struct report *report;
    enum config_mode mode;
    struct mark listens[LISTENS_MAX];
    struct mark nodes;
};

enum kind { SECTION, TEXT, LABEL, BOOLEAN, INTEGER, DURATION, RATE, CHOICE, LISTEN, NODES };

/*
 * Every key: what it holds, where it goes, its default and its range. A key that comes with a
 * feature that is not built yet is checked like the others and kept nowhere.
 */
struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    int64_t initial;
    int64_t least;
    int64_t most;
    const char *text;           /* TEXT, LABEL: the default */
    const char *const *choices; /* CHOICE */
    const char *comes_with;     /* not built yet: the feature it is for */
};

static const char *const levels[] = {"debug", "info", "warning", "error", NULL};
static const char *const formats[] = {"text", "json", NULL};

#define AT(field) offsetof(struct config, field)

static const struct key keys[] = {
    {"cluster", LABEL, AT(cluster), 0, 1, LIMIT_CLUSTER_NAME, "main", NULL, NULL},
    {"listen", LISTEN, 0, 0, 0, 0, NULL, NULL, NULL},
    {"insecure", BOOLEAN, AT(insecure), 0, 0, 0, NULL, NULL, NULL},
    {"admin", TEXT, 0, 0, 0, LIMIT_URL, NULL, NULL, "the admin page"},
    {"nodes", NODES, 0, 0, 0, 0, NULL, NULL, NULL},
    {"locks", SECTION, 0, 0, 0, 0, NULL, NULL, NULL},
    {"locks.key_prefix", TEXT, AT(locks.key_prefix), 0, 0, LIMIT_KEY_PREFIX, "redlock:", NULL,
     NULL},
    {"locks.max_ttl", DURATION, AT(locks.max_ttl_ns), 60 * NS_PER_S, 100 * NS_PER_MS, 24 * NS_PER_H,
     NULL, NULL, NULL},
    {"locks.min_validity", DURATION, AT(locks.min_validity_ns), NS_PER_MS, NS_PER_MS, 60 * NS_PER_S,
     NULL, NULL, NULL},
    {"locks.clock_drift_rate", RATE, AT(locks.clock_drift_ppm), 10000, 0, 100000, NULL, NULL, NULL},
    {"locks.clock_drift_margin", DURATION, AT(locks.clock_drift_margin_ns), 10 * NS_PER_MS,
     NS_PER_MS, 10 * NS_PER_S, NULL, NULL, NULL},
    {"locks.max_hold", DURATION, 0, 0, NS_PER_S, 8760 * NS_PER_H, NULL, NULL, "HOLD"},
    {"locks.max_extensions", INTEGER, 0, 0, 1, 1000000000, NULL, NULL, "the guard"},
    {"locks.fence_ttl", DURATION, 0, 0, NS_PER_S, 8760 * NS_PER_H, NULL, NULL, "FENCE"},
    {"rounds", SECTION, 0, 0, 0, 0, NULL, NULL, NULL},
    {"rounds.node_timeout", DURATION, AT(rounds.node_timeout_ns), 50 * NS_PER_MS, NS_PER_MS,
     10 * NS_PER_S, NULL, NULL, NULL},
    {"rounds.backoff_min", DURATION, 0, 0, NS_PER_MS, 60 * NS_PER_S, NULL, NULL, "WAIT"},
    {"rounds.backoff_max", DURATION, 0, 0, NS_PER_MS, 60 * NS_PER_S, NULL, NULL, "WAIT"},
    {"limits", SECTION, 0, 0, 0, 0, NULL, NULL, NULL},
    {"limits.clients", INTEGER, AT(limits.clients), 10000, 1, 1000000, NULL, NULL, NULL},
    {"limits.waiters", INTEGER, 0, 0, 1, 1000000, NULL, NULL, "WAIT"},
    {"limits.waiters_per_resource", INTEGER, 0, 0, 1, 1000000, NULL, NULL, "WAIT"},
    {"log", SECTION, 0, 0, 0, 0, NULL, NULL, NULL},
    {"log.level", CHOICE, AT(log.level), CONFIG_LOG_INFO, 0, 0, NULL, levels, NULL},
    {"log.format", CHOICE, AT(log.format), CONFIG_LOG_TEXT, 0, 0, NULL, formats, NULL},
};

enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

const char *config_key_name(size_t index)
{
    return index < KEY_COUNT ? keys[index].name : NULL;
}

/* --- one value --- */

static void *field_of(struct config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

/* strdup(), or the end: a configuration is read once, when there is nothing yet to lose. */
static char *copy(const char *text)
{
    char *copied = strdup(text);
    if (copied == NULL)
        abort();
    return copied;
}

static bool is_label(const char *text, size_t most)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    size_t len = strlen(text);
    return len > 0 && len <= most && strspn(text, allowed) == len;
}

static void set_text(struct loading *loading, const struct key *key, const struct yaml_node *value)
{
    if (key->kind == LABEL && !is_label(value->text, (size_t)key->most)) {
        report_error(loading->report, value->mark,
                     "%s: write 1 to %" PRId64 " of the letters A-Z a-z 0-9 _ . : -", key->name,
                     key->most);
        return;
    }
    if (strlen(value->text) > (size_t)key->most) {
        report_error(loading->report, value->mark, "%s: longer than %" PRId64 " bytes", key->name,
                     key->most);
        return;
    }
    if (key->comes_with != NULL)
        return;
    char **field = field_of(loading->config, key);
    free(*field);
    *field = copy(value->text);
}

/* A number of whatever kind, already read, that has to be in the key's range. */
static void set_number(struct loading *loading, const struct key *key,
                       const struct yaml_node *value, int64_t number)
{
    if (number < key->least || number > key->most) {
        char least[32];
        char most[32];
        snprintf(least, sizeof(least), "%" PRId64, key->least);
        snprintf(most, sizeof(most), "%" PRId64, key->most);
        if (key->kind == DURATION) {
            value_print_duration(key->least, least);
            value_print_duration(key->most, most);
        } else if (key->kind == RATE) {
            snprintf(least, sizeof(least), "%" PRId64 "%%", key->least / 10000);
            snprintf(most, sizeof(most), "%" PRId64 "%%", key->most / 10000);
        }
        report_error(loading->report, value->mark, "%s: %s is out of range; it goes from %s to %s",
                     key->name, value->text, least, most);
        return;
    }
    if (key->comes_with == NULL)
        *(int64_t *)field_of(loading->config, key) = number;
}

static void set_choice(struct loading *loading, const struct key *key,
                       const struct yaml_node *value)
{
    int choice = value_choice(value->text, key->choices);
    if (choice < 0)
        report_error(loading->report, value->mark, "%s: \"%s\" is none of %s, %s%s%s", key->name,
                     value->text, key->choices[0], key->choices[1],
                     key->choices[2] != NULL ? ", warning" : "",
                     key->choices[2] != NULL ? ", error" : "");
    else
        *(unsigned *)field_of(loading->config, key) = (unsigned)choice;
}

static void set_scalar(struct loading *loading, const struct key *key,
                       const struct yaml_node *value)
{
    const char *wrong = NULL;
    int64_t number = 0;
    bool boolean = false;
    switch (key->kind) {
    case TEXT:
    case LABEL:
        set_text(loading, key, value);
        return;
    case CHOICE:
        set_choice(loading, key, value);
        return;
    case BOOLEAN:
        wrong = value_boolean(value->text, &boolean);
        if (wrong == NULL)
            *(bool *)field_of(loading->config, key) = boolean;
        break;
    case INTEGER:
        wrong = value_integer(value->text, &number);
        break;
    case DURATION:
        wrong = value_duration(value->text, &number);
        break;
    case RATE:
        wrong = value_rate(value->text, &number);
        break;
    case SECTION:
    case LISTEN:
    case NODES:
        return;
    }
    if (wrong != NULL)
        report_error(loading->report, value->mark, "%s: \"%s\": %s", key->name, value->text, wrong);
    else if (key->kind != BOOLEAN)
        set_number(loading, key, value, number);
}

/* Is the node of the kind that `name` needs? */
static bool has_kind(struct loading *loading, const struct yaml_node *node, enum yaml_kind kind,
                     const char *name)
{
    if (node->broken)
        return false;
    if (node->kind == kind && (kind != YAML_SCALAR || node->text[0] != '\0' || node->quoted))
        return true;
    if (node->kind == kind)
        report_error(loading->report, node->mark, "%s: has no value", name);
    else
        report_error(loading->report, node->mark, "%s: has to be %s, not %s", name,
                     yaml_kind_name(kind), yaml_kind_name(node->kind));
    return false;
}

static void unknown_key(struct loading *loading, const struct yaml_node *key, const char *where,
                        const char *const *known)
{
    const char *meant = value_suggestion(key->text, known);
    report_error(loading->report, key->mark, "%s%s: there is no such key%s%s%s", where, key->text,
                 meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
                 meant != NULL ? "?" : "");
}

/* --- listen --- */

static void set_mode(struct loading *loading, struct config_listen *listen,
                     const struct yaml_node *value)
{
    size_t len = strlen(value->text);
    if (len < 3 || len > 4 || strspn(value->text, "01234567") != len) {
        report_error(loading->report, value->mark,
                     "listen.mode: \"%s\" is no file mode; write \"0660\"", value->text);
        return;
    }
    listen->mode = (mode_t)strtoul(value->text, NULL, 8);
}

static void set_group(struct loading *loading, struct config_listen *listen,
                      const struct yaml_node *value)
{
    const struct group *group = getgrnam(value->text);
    int64_t number;
    if (group != NULL)
        listen->group = group->gr_gid;
    else if (value_integer(value->text, &number) == NULL)
        listen->group = (gid_t)number;
    else
        report_error(loading->report, value->mark, "listen.group: this host has no group \"%s\"",
                     value->text);
}

static void set_listen_url(struct loading *loading, struct config_listen *listen,
                           const struct yaml_node *value)
{
    struct error error;
    url_free(&listen->address);
    if (!url_parse(value->text, "tcp", 0, &listen->address, NULL, &error))
        report_error(loading->report, value->mark, "listen: \"%s\": %s", value->text, error.text);
}

static void load_listen(struct loading *loading, const struct yaml_node *entry,
                        struct config_listen *listen)
{
    static const char *const known[] = {"url", "mode", "group", NULL};
    const struct yaml_node *restricted = NULL;
    *listen = (struct config_listen){.mode = 0660, .group = (gid_t)-1};
    if (entry->kind == YAML_SCALAR) {
        set_listen_url(loading, listen, entry);
        return;
    }
    if (!has_kind(loading, entry, YAML_MAPPING, "listen"))
        return;
    for (const struct yaml_node *value = entry->children; value != NULL; value = value->next) {
        int which = value_choice(value->key->text, known);
        if (which < 0) {
            unknown_key(loading, value->key, "listen.", known);
            continue;
        }
        if (!has_kind(loading, value, YAML_SCALAR, "listen"))
            continue;
        if (which == 0)
            set_listen_url(loading, listen, value);
        else if (which == 1)
            set_mode(loading, listen, value);
        else
            set_group(loading, listen, value);
        restricted = which != 0 ? value : restricted;
    }
    if (listen->address.url == NULL)
        report_error(loading->report, entry->mark, "listen: url is missing");
    else if (restricted != NULL && listen->address.host != NULL)
        report_error(loading->report, restricted->mark,
                     "listen: mode and group are for unix sockets");
}

static void load_listens(struct loading *loading, const struct yaml_node *list)
{
    struct config *config = loading->config;
    if (!has_kind(loading, list, YAML_SEQUENCE, "listen"))
        return;
    for (const struct yaml_node *entry = list->children; entry != NULL; entry = entry->next) {
        if (config->listen_count == LISTENS_MAX) {
            report_error(loading->report, entry->mark, "listen: more than %d addresses",
                         LISTENS_MAX);
            return;
        }
        struct config_listen *listen = &config->listens[config->listen_count];
        load_listen(loading, entry, listen);
        loading->listens[config->listen_count] = entry->mark;
        for (size_t i = 0; i < config->listen_count; i++)
            if ((listen->address.host != NULL || listen->address.path != NULL) &&
                (config->listens[i].address.host != NULL ||
                 config->listens[i].address.path != NULL) &&
                url_equal(&config->listens[i].address, &listen->address))
                report_error(loading->report, entry->mark, "listen: %s is given twice",
                             listen->address.url);
        config->listen_count++;
    }
    if (config->listen_count == 0)
        report_error(loading->report, list->mark, "listen: the list is empty; leave it out for %s",
                     default_listen);
}

/* --- nodes --- */

static void set_password(struct loading *loading, struct config_node *node,
                         const struct yaml_node *value)
{
    char secret[SECRET_MAX + 2];
    FILE *file = fopen(value->text, "re");
    if (file == NULL) {
        report_error(loading->report, value->mark, "nodes.password_file: %s: %s", value->text,
                     strerror(errno));
        return;
    }
    size_t len = fread(secret, 1, sizeof(secret) - 1, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (len > 0 && secret[len - 1] == '\n')
        len--;
    secret[len] = '\0';
    if (failed)
        report_error(loading->report, value->mark, "nodes.password_file: %s cannot be read",
                     value->text);
    else if (len == 0 || len > SECRET_MAX || strlen(secret) != len)
        report_error(loading->report, value->mark,
                     "nodes.password_file: %s has to hold one line of 1 to %d bytes", value->text,
                     SECRET_MAX);
    else
        node->password = copy(secret);
    explicit_bzero(secret, sizeof(secret));
}

static void set_node_field(struct loading *loading, struct config_node *node, int which,
                           const struct yaml_node *value)
{
    struct error error;
    switch (which) {
    case 0:
        if (strchr(value->text, ':') != NULL || !is_label(value->text, LIMIT_NODE_NAME))
            report_error(loading->report, value->mark,
                         "nodes.name: write 1 to 32 of the letters A-Z a-z 0-9 _ . -");
        node->name = copy(value->text);
        break;
    case 1:
        if (!url_parse(value->text, "redis", NODE_PORT, &node->address, &node->database, &error))
            report_error(loading->report, value->mark, "nodes.url: %s", error.text);
        break;
    case 2:
        if (strlen(value->text) == 0 || strlen(value->text) > 256)
            report_error(loading->report, value->mark, "nodes.username: 1 to 256 bytes");
        node->username = strlen(value->text) <= 256 ? copy(value->text) : NULL;
        break;
    default:
        set_password(loading, node, value);
        break;
    }
}

static void load_node(struct loading *loading, const struct yaml_node *entry,
                      struct config_node *node)
{
    static const char *const known[] = {"name", "url", "username", "password_file", NULL};
    if (!has_kind(loading, entry, YAML_MAPPING, "nodes"))
        return;
    for (const struct yaml_node *value = entry->children; value != NULL; value = value->next) {
        int which = value_choice(value->key->text, known);
        if (which < 0)
            unknown_key(loading, value->key, "nodes.", known);
        else if (has_kind(loading, value, YAML_SCALAR, "nodes"))
            set_node_field(loading, node, which, value);
    }
    if (node->name == NULL)
        report_error(loading->report, entry->mark, "nodes: name is missing");
    if (node->address.url == NULL)
        report_error(loading->report, entry->mark, "nodes: url is missing");
    if (node->username != NULL && node->password == NULL)
        report_error(loading->report, entry->mark,
                     "nodes: a username needs a password_file beside it");
}

static void check_node_is_new(struct loading *loading, const struct yaml_node *entry,
                              const struct config_node *node)
{
    for (const struct config_node *other = loading->config->nodes; other < node; other++) {
        if (other->name != NULL && node->name != NULL && strcmp(other->name, node->name) == 0)
            report_error(loading->report, entry->mark, "nodes: two have the name %s", node->name);
        if ((other->address.host != NULL || other->address.path != NULL) &&
            (node->address.host != NULL || node->address.path != NULL) &&
            url_equal(&other->address, &node->address))
            report_error(loading->report, entry->mark,
                         "nodes: %s is listed twice; a quorum needs independent masters",
                         node->address.url);
    }
}

static void load_nodes(struct loading *loading, const struct yaml_node *list)
{
    struct config *config = loading->config;
    loading->nodes = list->mark;
    if (!has_kind(loading, list, YAML_SEQUENCE, "nodes"))
        return;
    if (loading->mode == CONFIG_DEV) {
        report_error(loading->report, list->mark,
                     "nodes: --dev brings its own masters; leave the list out");
        return;
    }
    for (const struct yaml_node *entry = list->children; entry != NULL; entry = entry->next) {
        if (config->node_count == LIMIT_NODES) {
            report_error(loading->report, entry->mark, "nodes: more than %d", LIMIT_NODES);
            return;
        }
        struct config_node *node = &config->nodes[config->node_count];
        load_node(loading, entry, node);
        check_node_is_new(loading, entry, node);
        config->node_count++;
    }
    if (config->node_count < LIMIT_NODES_MIN || config->node_count % 2 == 0)
        report_error(loading->report, list->mark,
                     "nodes: %u of them; take an odd number from %d to %d, as 4 masters survive "
                     "no more failures than 3",
                     config->node_count, LIMIT_NODES_MIN, LIMIT_NODES);
}

/* --- the whole --- */

static const struct key *find_key(const char *section, const char *name)
{
    char full[64];
    int len = snprintf(full, sizeof(full), "%s%s%s", section, section[0] != '\0' ? "." : "", name);
    if (len < 0 || (size_t)len >= sizeof(full))
        return NULL;
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(keys[i].name, full) == 0)
            return &keys[i];
    return NULL;
}

/* The keys of one section, without its name: what an unknown one may have been meant to be. */
static void names_in(const char *section, const char *names[KEY_COUNT + 1])
{
    size_t count = 0;
    size_t len = strlen(section);
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const char *dot = strchr(keys[i].name, '.');
        bool inside = len == 0 ? dot == NULL
                               : dot != NULL && (size_t)(dot - keys[i].name) == len &&
                                     strncmp(keys[i].name, section, len) == 0;
        if (inside)
            names[count++] = len == 0 ? keys[i].name : dot + 1;
    }
    names[count] = NULL;
}

static void load_section(struct loading *loading, const char *section,
                         const struct yaml_node *mapping);

static void load_value(struct loading *loading, const struct key *key,
                       const struct yaml_node *value)
{
    if (key->comes_with != NULL)
        report_warning(loading->report, value->key->mark, "%s has no effect yet (it comes with %s)",
                       key->name, key->comes_with);
    if (key->kind == LISTEN)
        load_listens(loading, value);
    else if (key->kind == NODES)
        load_nodes(loading, value);
    else if (key->kind == SECTION && has_kind(loading, value, YAML_MAPPING, key->name))
        load_section(loading, key->name, value);
    else if (key->kind != SECTION && has_kind(loading, value, YAML_SCALAR, key->name))
        set_scalar(loading, key, value);
}

static void load_section(struct loading *loading, const char *section,
                         const struct yaml_node *mapping)
{
    for (const struct yaml_node *value = mapping->children; value != NULL; value = value->next) {
        const struct key *key = find_key(section, value->key->text);
        if (key != NULL && strchr(value->key->text, '.') == NULL) {
            load_value(loading, key, value);
            continue;
        }
        const char *names[KEY_COUNT + 1];
        char where[64];
        names_in(section, names);
        snprintf(where, sizeof(where), "%s%s", section, section[0] != '\0' ? "." : "");
        unknown_key(loading, value->key, where, names);
    }
}

/* What no single key can tell. */
static void check_whole(struct loading *loading, struct mark mark)
{
    const struct config *config = loading->config;
    const char *prefix = config->locks.key_prefix;
    int64_t lost_ns = config->locks.max_ttl_ns / 1000000 * config->locks.clock_drift_ppm +
                      config->locks.clock_drift_margin_ns + config->locks.min_validity_ns +
                      config->rounds.node_timeout_ns;
    if (config->locks.max_ttl_ns <= lost_ns)
        report_error(loading->report, mark,
                     "locks.max_ttl: too short: drift, min_validity and node_timeout leave nothing "
                     "of it");
    if (strncmp(prefix, "redlockd:", 9) == 0)
        report_error(loading->report, mark,
                     "locks.key_prefix: \"redlockd:\" is where redlockd keeps its own keys");
    for (const char *at = prefix; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f) {
            report_error(loading->report, mark,
                         "locks.key_prefix: no spaces or control characters");
            break;
        }
    for (size_t i = 0; i < config->listen_count; i++)
        if (config->listens[i].address.host != NULL && !config->insecure &&
            !url_is_local(&config->listens[i].address))
            report_error(loading->report, loading->listens[i],
                         "listen: %s can be reached from other hosts, and whoever reaches it can "
                         "take locks: authentication is not available yet; listen on 127.0.0.1 or "
                         "a unix socket, or say insecure: true",
                         config->listens[i].address.url);
    if (loading->mode == CONFIG_NORMAL && loading->nodes.line == 0)
        report_error(loading->report, mark, "nodes: missing; list at least three Redis masters");
}

struct config *config_defaults(void)
{
    struct config *config = calloc(1, sizeof(*config));
    struct error error;
    if (config == NULL)
        abort();
    config->listens = calloc(LISTENS_MAX, sizeof(*config->listens));
    if (config->listens == NULL)
        abort();
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct key *key = &keys[i];
        if (key->comes_with != NULL)
            continue;
        if (key->kind == TEXT || key->kind == LABEL)
            *(char **)field_of(config, key) = copy(key->text);
        else if (key->kind == INTEGER || key->kind == DURATION || key->kind == RATE)
            *(int64_t *)field_of(config, key) = key->initial;
        else if (key->kind == CHOICE)
            *(unsigned *)field_of(config, key) = (unsigned)key->initial;
    }
    config->listens[0] = (struct config_listen){.mode = 0660, .group = (gid_t)-1};
    if (!url_parse(default_listen, "tcp", 0, &config->listens[0].address, NULL, &error))
        abort();
    config->listen_count = 1;
    return config;
}

static void clear_listens(struct config *config)
{
    for (size_t i = 0; i < config->listen_count; i++)
        url_free(&config->listens[i].address);
    config->listen_count = 0;
}

static bool has_key(const struct yaml_node *mapping, const char *name)
{
    for (const struct yaml_node *value = mapping->children; value != NULL; value = value->next)
        if (strcmp(value->key->text, name) == 0)
            return true;
    return false;
}

static struct config *load_tree(const struct yaml_node *root, enum config_mode mode,
                                struct report *report)
{
    struct loading loading = {.config = config_defaults(), .report = report, .mode = mode};
    if (has_kind(&loading, root, YAML_MAPPING, "the file")) {
        if (has_key(root, "listen"))
            clear_listens(loading.config);
        load_section(&loading, "", root);
        check_whole(&loading, root->mark);
    }
    if (report->errors == 0)
        return loading.config;
    config_free(loading.config);
    return NULL;
}

struct config *config_load(const char *path, enum config_mode mode, FILE *out)
{
    bool stdin_named = strcmp(path, "-") == 0;
    struct report report = {.file = stdin_named ? "stdin" : path};
    FILE *in = stdin_named ? stdin : fopen(path, "re");
    if (in == NULL) {
        fprintf(out, "%s: %s\n", path, strerror(errno));
        return NULL;
    }
    struct yaml_node *root = yaml_node_read(in, &report);
    if (!stdin_named)
        fclose(in);
    struct config *config = root != NULL ? load_tree(root, mode, &report) : NULL;
    yaml_node_free(root);
    report_print(&report, out);
    return config;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    clear_listens(config);
    free(config->listens);
    for (unsigned i = 0; i < LIMIT_NODES; i++) {
        struct config_node *node = &config->nodes[i];
        url_free(&node->address);
        free(node->name);
        free(node->username);
        if (node->password != NULL)
            explicit_bzero(node->password, strlen(node->password));
        free(node->password);
    }
    free(config->cluster);
    free(config->locks.key_prefix);
    free(config);
}
