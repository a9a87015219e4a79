#include "config/config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/admin.h"
#include "config/entry.h"
#include "config/listens.h"
#include "config/memory.h"
#include "config/nodes.h"
#include "config/value.h"
#include "config/yaml.h"
#include "engine/round/validity.h"
#include "protocol/units.h"

/* The units of the table. */
#define MS   NS_PER_MS
#define S    NS_PER_S
#define M    (60 * S)
#define H    (60 * M)
#define YEAR (8760 * H)

enum kind {
    SECTION,
    LISTEN,
    ADMIN,
    NODES,
    USERS,
    LABEL,
    PREFIX,
    BOOLEAN,
    INTEGER,
    DURATION,
    RATE,
    CHOICE
};

struct key {
    const char *name;
    enum kind kind;
    size_t offset; /* in struct config: char *, bool, int64_t (numbers), an enum (CHOICE) */
    int64_t initial;
    int64_t least; /* of a number, or of the bytes of a text */
    int64_t most;
    const char *text;         /* texts: the default */
    const char *const *words; /* CHOICE */
};

static const char *const levels[] = {"debug", "info", "warning", "error", NULL};
static const char *const fences[] = {"on-request", "always", NULL};
static const char *const formats[] = {"text", "json", NULL};

_Static_assert(sizeof(enum config_fence) == sizeof(unsigned), "CHOICE stores an unsigned");
_Static_assert(sizeof(enum config_log_level) == sizeof(unsigned), "CHOICE stores an unsigned");
_Static_assert(sizeof(enum config_log_format) == sizeof(unsigned), "CHOICE stores an unsigned");

#define AT(field) .offset = offsetof(struct config, field)
#define NOWHERE   .offset = 0

/* name, kind, where it goes, then for numbers: default, least, most */
static const struct key keys[] = {
    {"cluster", LABEL, AT(cluster), .least = 1, .most = LIMIT_CLUSTER_NAME, .text = "main"},
    {"listen", LISTEN, NOWHERE},
    {"insecure", BOOLEAN, AT(insecure)},
    {"auth", SECTION, NOWHERE},
    {"auth.users", USERS, NOWHERE},
    {"admin", ADMIN, NOWHERE},
    {"nodes", NODES, NOWHERE},
    {"locks", SECTION, NOWHERE},
    {"locks.key_prefix", PREFIX, AT(locks.key_prefix), .most = LIMIT_KEY_PREFIX,
     .text = "redlock:"},
    {"locks.max_ttl", DURATION, AT(locks.max_ttl_ns), 60 * S, 100 * MS, 24 * H},
    {"locks.min_validity", DURATION, AT(locks.min_validity_ns), 1 * MS, 1 * MS, 1 * M},
    {"locks.clock_drift_rate", RATE, AT(locks.clock_drift_ppm), 10000, 0, 100000},
    {"locks.clock_drift_margin", DURATION, AT(locks.clock_drift_margin_ns), 10 * MS, 1 * MS,
     10 * S},
    {"locks.max_hold", DURATION, AT(locks.max_hold_ns), 1 * H, 1 * S, YEAR},
    {"locks.max_extensions", INTEGER, AT(locks.max_extensions), 1000, 1, 1000000000},
    {"locks.fence", CHOICE, AT(locks.fence), CONFIG_FENCE_ON_REQUEST, .words = fences},
    {"locks.fence_ttl", DURATION, AT(locks.fence_ttl_ns), 24 * H, 1 * S, YEAR},
    {"rounds", SECTION, NOWHERE},
    {"rounds.node_timeout", DURATION, AT(rounds.node_timeout_ns), 50 * MS, 1 * MS, 10 * S},
    {"rounds.backoff_min", DURATION, AT(rounds.backoff_min_ns), 5 * MS, 1 * MS, 1 * M},
    {"rounds.backoff_max", DURATION, AT(rounds.backoff_max_ns), 250 * MS, 1 * MS, 1 * M},
    {"limits", SECTION, NOWHERE},
    {"limits.clients", INTEGER, AT(limits.clients), 10000, 1, 1000000},
    {"limits.clients_per_address", INTEGER, AT(limits.clients_per_address), 0, 0, 1000000},
    {"limits.unauthenticated", INTEGER, AT(limits.unauthenticated), 1000, 1, 1000000},
    {"limits.auth_timeout", DURATION, AT(limits.auth_timeout_ns), 5 * S, 100 * MS, 1 * M},
    {"limits.waiters", INTEGER, AT(limits.waiters), 10000, 1, 1000000},
    {"limits.waiters_per_resource", INTEGER, AT(limits.waiters_per_resource), 1000, 1, 1000000},
    {"log", SECTION, NOWHERE},
    {"log.level", CHOICE, AT(log.level), CONFIG_LOG_INFO, .words = levels},
    {"log.format", CHOICE, AT(log.format), CONFIG_LOG_TEXT, .words = formats},
};

enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]), KEY_NAME_MAX = 64 };

/* The kinds that are numbers: from the word, and back to it. */
static const struct {
    const char *(*read)(const char *text, int64_t *number);
    void (*print)(int64_t number, char buf[VALUE_PRINTED]);
} numbers[] = {
    [INTEGER] = {value_integer, value_print_integer},
    [DURATION] = {value_duration, value_print_duration},
    [RATE] = {value_rate, value_print_rate},
};

/* A key as it came out of the file, for the checks that need more than one. */
struct found {
    const struct yaml_node *value; /* NULL where the file does not give it */
    int64_t number;                /* numbers; as in the table until it is read */
    bool wrong;                    /* the report knows */
};

struct loading {
    struct config *config;
    struct report *report;
    enum config_mode mode;
    struct mark begin; /* of the file, for what is missing */
    struct found found[KEY_COUNT];
};

const char *config_key_name(size_t index)
{
    return index < KEY_COUNT ? keys[index].name : NULL;
}

static void *field_of(struct config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

/* --- one value --- */

static bool set_boolean(struct loading *loading, const struct key *key,
                        const struct yaml_node *value)
{
    const char *wrong = value_boolean(value->text, field_of(loading->config, key));
    if (wrong != NULL)
        report_error(loading->report, value->mark, "%s: \"%s\" %s", key->name, value->text, wrong);
    return wrong == NULL;
}

static bool set_number(struct loading *loading, const struct key *key,
                       const struct yaml_node *value, int64_t *number)
{
    char least[VALUE_PRINTED];
    char most[VALUE_PRINTED];
    int64_t read;
    const char *wrong = numbers[key->kind].read(value->text, &read);
    if (wrong != NULL) {
        report_error(loading->report, value->mark, "%s: \"%s\" %s", key->name, value->text, wrong);
        return false;
    }
    if (read < key->least || read > key->most) {
        numbers[key->kind].print(key->least, least);
        numbers[key->kind].print(key->most, most);
        report_error(loading->report, value->mark, "%s: %s is out of range; it goes from %s to %s",
                     key->name, value->text, least, most);
        return false;
    }
    *number = read;
    *(int64_t *)field_of(loading->config, key) = read;
    return true;
}

static bool set_choice(struct loading *loading, const struct key *key,
                       const struct yaml_node *value)
{
    int choice = value_choice(value->text, key->words);
    if (choice >= 0) {
        *(unsigned *)field_of(loading->config, key) = (unsigned)choice;
        return true;
    }
    char words[64] = "";
    for (const char *const *word = key->words; *word != NULL; word++) {
        size_t len = strlen(words);
        snprintf(words + len, sizeof(words) - len, "%s%s", len > 0 ? ", " : "", *word);
    }
    report_error(loading->report, value->mark, "%s: \"%s\" is none of %s", key->name, value->text,
                 words);
    return false;
}

/* What is wrong with a text, and what would be right; or NULL. */
static const char *check_text(const struct key *key, const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    static const char reserved[] = "redlockd:";
    if (key->kind == LABEL && strspn(text, letters) != strlen(text))
        return "has other letters than A-Z a-z 0-9 _ . : -";
    if (key->kind != PREFIX)
        return NULL;
    if (strncmp(text, reserved, strlen(reserved)) == 0)
        return "is where redlockd keeps keys of its own; begin with another word";
    for (; *text != '\0'; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return "has a space or a control character in it; leave that out";
    return NULL;
}

static bool set_text(struct loading *loading, const struct key *key, const struct yaml_node *value)
{
    size_t len = strlen(value->text);
    const char *wrong = check_text(key, value->text);
    if (len < (size_t)key->least || len > (size_t)key->most) {
        report_error(loading->report, value->mark, "%s: has %zu bytes; write %d to %d", key->name,
                     len, (int)key->least, (int)key->most);
        return false;
    }
    if (wrong != NULL) {
        report_error(loading->report, value->mark, "%s: \"%s\" %s", key->name, value->text, wrong);
        return false;
    }
    char **field = field_of(loading->config, key);
    free(*field);
    *field = memory_copy(value->text);
    return true;
}

/* --- sections, and the whole --- */

static size_t find_key(const char *name)
{
    size_t index = 0;
    while (index < KEY_COUNT && strcmp(keys[index].name, name) != 0)
        index++;
    return index;
}

/* The key `name` stands for inside a section ("" at the top), or KEY_COUNT. */
static size_t find_inside(const char *section, const char *name)
{
    char full[KEY_NAME_MAX];
    int len = snprintf(full, sizeof(full), "%s%s%s", section, section[0] != '\0' ? "." : "", name);
    bool fits = len > 0 && (size_t)len < sizeof(full);
    return fits && strchr(name, '.') == NULL ? find_key(full) : KEY_COUNT;
}

/* The keys of one section, without its name: what an unknown one may have been meant to be. */
static void names_inside(const char *section, const char *names[KEY_COUNT + 1])
{
    size_t count = 0;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const char *dot = strrchr(keys[i].name, '.');
        const char *name = dot != NULL ? dot + 1 : keys[i].name;
        if (find_inside(section, name) == i)
            names[count++] = name;
    }
    names[count] = NULL;
}

static void read_section(struct loading *loading, const char *section,
                         const struct yaml_node *mapping);

static enum yaml_kind yaml_kind_of(const struct key *key)
{
    if (key->kind == SECTION)
        return YAML_MAPPING;
    return key->kind == LISTEN || key->kind == NODES || key->kind == USERS ? YAML_SEQUENCE
                                                                           : YAML_SCALAR;
}

/* False where the value is wrong; lists and sections answer for what is in them themselves. */
static bool read_value(struct loading *loading, size_t index, const struct yaml_node *value)
{
    const struct key *key = &keys[index];
    /* A section may lose all of its keys to comments. */
    if (key->kind == SECTION && yaml_node_is_empty(value))
        return true;
    if (!entry_has_kind(value, yaml_kind_of(key), key->name, loading->report))
        return false;
    switch (key->kind) {
    case SECTION:
        read_section(loading, key->name, value);
        return true;
    case LISTEN:
        listens_read(loading->config, value, loading->report);
        return true;
    case ADMIN:
        admin_read(loading->config, value, loading->report);
        return true;
    case NODES:
        if (loading->mode == CONFIG_NORMAL)
            nodes_read(loading->config, value, loading->report);
        return true;
    case USERS:
        users_free(loading->config->users); /* of a key that is given twice */
        loading->config->users = users_read(value, loading->report);
        return true;
    case LABEL:
    case PREFIX:
        return set_text(loading, key, value);
    case BOOLEAN:
        return set_boolean(loading, key, value);
    case INTEGER:
    case DURATION:
    case RATE:
        return set_number(loading, key, value, &loading->found[index].number);
    case CHOICE:
        return set_choice(loading, key, value);
    }
    assert(false);
    return false;
}

static void read_section(struct loading *loading, const char *section,
                         const struct yaml_node *mapping)
{
    for (const struct yaml_node *value = mapping->children; value != NULL; value = value->next) {
        if (value->key->broken)
            continue;
        size_t index = find_inside(section, value->key->text);
        if (index == KEY_COUNT) {
            const char *names[KEY_COUNT + 1];
            names_inside(section, names);
            entry_unknown(value->key, section, names, loading->report);
            continue;
        }
        loading->found[index].value = value;
        loading->found[index].wrong = !read_value(loading, index, value);
    }
}

/* --- what no single key can tell --- */

static const struct found *found(const struct loading *loading, const char *name)
{
    size_t index = find_key(name);
    assert(index < KEY_COUNT);
    return &loading->found[index];
}

/* One key that may not be smaller than another. What is wrong by itself is not compared. */
static void check_order(const struct loading *loading, const char *smaller, const char *larger)
{
    const struct found *low = found(loading, smaller);
    const struct found *high = found(loading, larger);
    char low_text[VALUE_PRINTED];
    char high_text[VALUE_PRINTED];
    if (low->wrong || high->wrong || low->number <= high->number)
        return;
    value_print_duration(low->number, low_text);
    value_print_duration(high->number, high_text);
    const struct yaml_node *place = high->value != NULL ? high->value : low->value;
    report_error(loading->report, place->mark,
                 "%s: %s is less than %s, which is %s; make it at least that", larger, high_text,
                 smaller, low_text);
}

/* A lock of the longest time to live has to be worth something after all that is taken off. */
static void check_max_ttl(const struct loading *loading)
{
    static const char *const names[] = {"locks.max_ttl", "locks.clock_drift_margin",
                                        "locks.clock_drift_rate", "locks.min_validity",
                                        "rounds.node_timeout"};
    const struct config *config = loading->config;
    const struct drift drift = {config->locks.clock_drift_ppm, config->locks.clock_drift_margin_ns};
    int64_t needed_ns = drift_of(&drift, config->locks.max_ttl_ns) + config->locks.min_validity_ns +
                        config->rounds.node_timeout_ns;
    const struct yaml_node *place = NULL;
    char max_ttl[VALUE_PRINTED];
    char needed[VALUE_PRINTED];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (found(loading, names[i])->wrong)
            return;
        place = place != NULL ? place : found(loading, names[i])->value;
    }
    if (config->locks.max_ttl_ns > needed_ns)
        return;
    assert(place != NULL); /* The defaults alone are fine. */
    value_print_duration(config->locks.max_ttl_ns, max_ttl);
    value_print_duration(needed_ns, needed);
    report_error(loading->report, place->mark,
                 "locks.max_ttl: %s leaves no validity; drift, min_validity and node_timeout take "
                 "%s together, make it more than that",
                 max_ttl, needed);
}

/* A section that has lost its users to a comment must not let everybody in; and there has to be a
 * way in for each. */
static void check_auth(const struct loading *loading)
{
    const struct found *auth = found(loading, "auth");
    const struct found *users = found(loading, "auth.users");
    if (auth->value != NULL && !auth->wrong && users->value == NULL)
        report_error(loading->report, auth->value->key->mark,
                     "auth: has no users; list them in auth.users, or leave auth out");
    if (users->value != NULL && !users->wrong && !found(loading, "listen")->wrong &&
        !listens_may_be_unix(loading->config))
        users_check_secrets(loading->config->users, users->value, loading->report);
}

static void check_whole(const struct loading *loading)
{
    const struct found *listen = found(loading, "listen");
    const struct found *insecure = found(loading, "insecure");
    const struct found *admin = found(loading, "admin");
    const struct found *nodes = found(loading, "nodes");
    check_order(loading, "locks.max_ttl", "locks.fence_ttl");
    check_order(loading, "locks.max_ttl", "locks.max_hold");
    check_order(loading, "rounds.backoff_min", "rounds.backoff_max");
    check_max_ttl(loading);
    check_auth(loading);
    if (listen->value != NULL && !listen->wrong && !insecure->wrong && !loading->config->insecure &&
        found(loading, "auth")->value == NULL)
        listens_check_local(loading->config, listen->value, loading->report);
    if (admin->value != NULL && !insecure->wrong)
        admin_check(loading->config, admin->value, loading->report);
    if (loading->mode == CONFIG_NORMAL && nodes->value == NULL)
        report_error(loading->report, loading->begin,
                     "nodes: missing; list at least three Redis masters");
    if (loading->mode == CONFIG_DEV && nodes->value != NULL)
        report_error(loading->report, nodes->value->key->mark,
                     "nodes: --dev brings masters of its own; leave the list out");
}

/* --- from file to configuration --- */

struct config *config_defaults(void)
{
    struct config *config = memory_zeroed(1, sizeof(*config));
    listens_default(config);
    for (const struct key *key = keys; key < keys + KEY_COUNT; key++) {
        /* Only numbers have a range without being texts; the rest begins as zero. */
        if (key->text != NULL)
            *(char **)field_of(config, key) = memory_copy(key->text);
        else if (key->words != NULL)
            *(unsigned *)field_of(config, key) = (unsigned)key->initial;
        else if (key->most > 0)
            *(int64_t *)field_of(config, key) = key->initial;
    }
    return config;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    listens_free(config);
    admin_free(config);
    nodes_free(config);
    users_free(config->users);
    free(config->cluster);
    free(config->locks.key_prefix);
    free(config);
}

static struct config *read_tree(const struct yaml_node *root, enum config_mode mode,
                                struct report *report)
{
    struct loading loading = {.report = report, .mode = mode, .begin = root->mark};
    if (!entry_has_kind(root, YAML_MAPPING, "the file", report))
        return NULL;
    loading.config = config_defaults();
    for (size_t i = 0; i < KEY_COUNT; i++)
        loading.found[i].number = keys[i].initial;
    read_section(&loading, "", root);
    check_whole(&loading);
    return loading.config;
}

/* --- two of them --- */

/* How many bytes of struct config a key takes by itself; of a text, its pointer. */
static size_t size_of(const struct key *key, bool *is_text)
{
    *is_text = false;
    switch (key->kind) {
    case SECTION:
    case LISTEN:
    case NODES:
    case ADMIN:
    case USERS:
        return 0;
    case LABEL:
    case PREFIX:
        *is_text = true;
        return sizeof(char *);
    case BOOLEAN:
        return sizeof(bool);
    case INTEGER:
    case DURATION:
    case RATE:
        return sizeof(int64_t);
    case CHOICE:
        return sizeof(unsigned);
    }
    assert(false);
    return 0;
}

bool config_key_equal(size_t index, const struct config *a, const struct config *b)
{
    assert(index < KEY_COUNT);
    const struct key *key = &keys[index];
    const void *in_a = (const char *)a + key->offset;
    const void *in_b = (const char *)b + key->offset;
    bool is_text;
    size_t size = size_of(key, &is_text);
    if (key->kind == LISTEN)
        return listens_equal(a, b);
    if (key->kind == ADMIN)
        return value_same_text(a->admin.url, b->admin.url);
    if (key->kind == USERS)
        return users_equal(a->users, b->users);
    return is_text ? value_same_text(*(char *const *)in_a, *(char *const *)in_b)
                   : memcmp(in_a, in_b, size) == 0;
}

void config_key_swap(size_t index, struct config *a, struct config *b)
{
    assert(index < KEY_COUNT);
    const struct key *key = &keys[index];
    char kept[sizeof(int64_t)];
    bool is_text;
    size_t size = size_of(key, &is_text);
    assert(size <= sizeof(kept));
    if (key->kind == LISTEN)
        listens_swap(a, b);
    if (key->kind == USERS)
        users_swap(&a->users, &b->users);
    memcpy(kept, field_of(a, key), size);
    memcpy(field_of(a, key), field_of(b, key), size);
    memcpy(field_of(b, key), kept, size);
}

struct config *config_load(const char *path, enum config_mode mode, FILE *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct config *config = NULL;
    struct report report = {.file = is_stdin ? "stdin" : path};
    FILE *in = is_stdin ? stdin : fopen(path, "re");
    if (in == NULL) {
        fprintf(out, "%s: %s\n", path, strerror(errno));
        return NULL;
    }
    struct yaml_node *root = yaml_node_read(in, &report);
    if (!is_stdin)
        fclose(in);
    if (root != NULL)
        config = read_tree(root, mode, &report);
    yaml_node_free(root);
    /* Mistakes of the YAML alone leave a tree, too. */
    if (report.errors > 0) {
        config_free(config);
        config = NULL;
    }
    report_print(&report, out);
    return config;
}
