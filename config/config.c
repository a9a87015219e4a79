#include "config/config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
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

static const char *const levels[] = {"debug", "info", "warning", "error", NULL};
static const char *const fences[] = {"on-request", "always", NULL};
static const char *const formats[] = {"text", "json", NULL};

_Static_assert(sizeof(enum config_fence) == sizeof(unsigned), "KEY_CHOICE stores an unsigned");
_Static_assert(sizeof(enum config_log_level) == sizeof(unsigned), "KEY_CHOICE stores an unsigned");
_Static_assert(sizeof(enum config_log_format) == sizeof(unsigned), "KEY_CHOICE stores an unsigned");

#define OF_THE_SET                                                                                 \
    "all daemons of the cluster must use the same value; see \"Changing the list of nodes\" in "   \
    "docs/operations/masters.md"
#define OF_ROUNDS "rounds in flight and held locks rely on the old value"
#define SIZED     "it sizes tables that are allocated at the start"
#define OPENED    "the address is opened only at the start"
#define FREE      KEY_MAY_CHANGE

#define AT(field) KEY_AT(struct config, field)

/*
 * Name, kind, why a reload cannot change the key, field; for numbers: default, minimum, maximum.
 *
 * Before you let a reload change a key, ask: could two clients believe that they hold the same
 * lock, one according to the old value and one according to the new value?
 */
const struct key config_keys[] = {
    {"cluster", KEY_LABEL, OF_THE_SET, AT(cluster), .least = 1, .most = LIMIT_CLUSTER_NAME,
     .text = "main"},
    {"listen", KEY_LIST, FREE, .read = listens_read, .equal = listens_equal},
    {"insecure", KEY_BOOLEAN, FREE, AT(insecure)}, /* affects only checks of the configuration */
    {"auth", KEY_SECTION, FREE, .size = 0},
    /* A reload closes the connections of users that it removes. It also closes each connection that
     * holds, or waits for, a resource that the connection's user may no longer lock. */
    {"auth.users", KEY_LIST, FREE, .read = users_read, .equal = users_equal},
    {"admin", KEY_URL, OPENED, AT(admin), .use = URL_ADMIN},
    {"metrics", KEY_URL, OPENED, AT(metrics), .use = URL_METRICS},
    {"nodes", KEY_LIST, OF_THE_SET, .read = nodes_read, .equal = nodes_equal},
    {"locks", KEY_SECTION, FREE, .size = 0},
    {"locks.key_prefix", KEY_PREFIX, "the keys of all locks begin with it", AT(locks.key_prefix),
     .most = LIMIT_KEY_PREFIX, .text = "redlock:"},
    {"locks.max_ttl", KEY_DURATION, OF_THE_SET, AT(locks.max_ttl_ns), 60 * S, 100 * MS, 24 * H},
    {"locks.min_validity", KEY_DURATION, OF_ROUNDS, AT(locks.min_validity_ns), 1 * MS, 1 * MS,
     1 * M},
    {"locks.clock_drift_rate", KEY_RATE, OF_THE_SET, AT(locks.clock_drift_ppm), 10000, 0, 100000},
    {"locks.clock_drift_margin", KEY_DURATION, OF_THE_SET, AT(locks.clock_drift_margin_ns), 10 * MS,
     1 * MS, 10 * S},
    /* max_hold and max_extensions only decide whether a lock is extended. */
    {"locks.max_hold", KEY_DURATION, FREE, AT(locks.max_hold_ns), 1 * H, 1 * S, YEAR},
    {"locks.max_extensions", KEY_INTEGER, FREE, AT(locks.max_extensions), 1000, 1, 1000000000},
    /* This key only decides which rounds get a ballot, and thus a fencing token. Each ballot
     * follows the wall clock (engine/round/fence.h), so the fencing tokens of a resource also rise
     * across grants without one. */
    {"locks.fence", KEY_CHOICE, FREE, AT(locks.fence), CONFIG_FENCE_ON_REQUEST, .words = fences},
    {"locks.fence_ttl", KEY_DURATION, OF_THE_SET, AT(locks.fence_ttl_ns), 24 * H, 1 * S, YEAR},
    {"rounds", KEY_SECTION, FREE, .size = 0},
    {"rounds.node_timeout", KEY_DURATION, OF_ROUNDS, AT(rounds.node_timeout_ns), 50 * MS, 1 * MS,
     10 * S},
    {"rounds.backoff_min", KEY_DURATION, FREE, AT(rounds.backoff_min_ns), 5 * MS, 1 * MS, 1 * M},
    {"rounds.backoff_max", KEY_DURATION, FREE, AT(rounds.backoff_max_ns), 250 * MS, 1 * MS, 1 * M},
    {"limits", KEY_SECTION, FREE, .size = 0},
    {"limits.clients", KEY_INTEGER, SIZED, AT(limits.clients), 10000, 1, 1000000},
    {"limits.clients_per_address", KEY_INTEGER, FREE, AT(limits.clients_per_address), 0, 0,
     1000000},
    {"limits.unauthenticated", KEY_INTEGER, FREE, AT(limits.unauthenticated), 1000, 1, 1000000},
    {"limits.auth_timeout", KEY_DURATION, FREE, AT(limits.auth_timeout_ns), 5 * S, 100 * MS, 1 * M},
    {"limits.waiters", KEY_INTEGER, SIZED, AT(limits.waiters), 10000, 1, 1000000},
    {"limits.waiters_per_resource", KEY_INTEGER, FREE, AT(limits.waiters_per_resource), 1000, 1,
     1000000},
    {"log", KEY_SECTION, FREE, .size = 0},
    {"log.level", KEY_CHOICE, FREE, AT(log.level), CONFIG_LOG_INFO, .words = levels},
    {"log.format", KEY_CHOICE, FREE, AT(log.format), CONFIG_LOG_TEXT, .words = formats},
    {.name = NULL},
};

/* --- checks that involve several keys --- */

/* A configuration and the file that it was read from. */
struct loaded {
    const struct config *config;
    const struct yaml_node *root;
    struct report *report;
};

/* The value of a key in the file, or NULL. Sets *fine to false if the value is invalid. */
static const struct yaml_node *given(const struct loaded *loaded, const char *name, bool *fine)
{
    const struct yaml_node *value = loaded->root;
    char word[32];
    for (; value != NULL && *name != '\0'; name += strspn(name, ".")) {
        size_t len = strcspn(name, ".");
        snprintf(word, sizeof(word), "%.*s", (int)len, name);
        value = value->kind == YAML_MAPPING ? yaml_node_child(value, word) : NULL;
        name += len;
    }
    *fine = *fine && (value == NULL || !value->broken);
    return value;
}

/* Report an error if the duration `larger` is less than `smaller`. Invalid values are not compared.
 */
static void check_order(const struct loaded *loaded, const char *smaller, int64_t smaller_ns,
                        const char *larger, int64_t larger_ns)
{
    char smaller_text[VALUE_PRINTED];
    char larger_text[VALUE_PRINTED];
    bool fine = true;
    const struct yaml_node *low = given(loaded, smaller, &fine);
    const struct yaml_node *high = given(loaded, larger, &fine);
    if (!fine || smaller_ns <= larger_ns)
        return;
    value_print_duration(smaller_ns, smaller_text);
    value_print_duration(larger_ns, larger_text);
    report_error(loaded->report, (high != NULL ? high : low)->position,
                 "%s: %s is less than %s (%s); raise it to at least that value", larger,
                 larger_text, smaller, smaller_text);
}

/* What is left of a TTL after drift, min_validity, and a round that takes node_timeout. */
static int64_t spare_ns(const struct config *config, int64_t ttl_ns)
{
    const struct drift drift = {config->locks.clock_drift_ppm, config->locks.clock_drift_margin_ns};
    return ttl_ns - drift_of(&drift, ttl_ns) - config->locks.min_validity_ns -
           config->rounds.node_timeout_ns;
}

/* The least max_ttl in whole milliseconds that leaves something to spare. Each step adds what is
 * missing. The next step adds the drift of that, because a longer TTL has more drift. */
static int64_t least_max_ttl_ns(const struct config *config)
{
    int64_t ttl_ns = config->locks.max_ttl_ns / NS_PER_MS * NS_PER_MS;
    while (spare_ns(config, ttl_ns) <= 0)
        ttl_ns += (-spare_ns(config, ttl_ns) / NS_PER_MS + 1) * NS_PER_MS;
    return ttl_ns;
}

/* Report an error if even a lock with the longest TTL would have no more than min_validity left
 * when its round takes node_timeout. */
static void check_max_ttl(const struct loaded *loaded)
{
    static const char *const names[] = {"locks.max_ttl", "locks.clock_drift_margin",
                                        "locks.clock_drift_rate", "locks.min_validity",
                                        "rounds.node_timeout"};
    const struct config *config = loaded->config;
    int64_t left_ns = spare_ns(config, config->locks.max_ttl_ns);
    const struct yaml_node *place = NULL;
    bool fine = true;
    char max_ttl[VALUE_PRINTED];
    char taken[VALUE_PRINTED];
    char least[VALUE_PRINTED];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct yaml_node *value = given(loaded, names[i], &fine);
        place = place != NULL ? place : value;
    }
    if (!fine || left_ns > 0)
        return;
    assert(place != NULL); /* the defaults pass this check */
    value_print_duration(config->locks.max_ttl_ns, max_ttl);
    value_print_duration(config->locks.max_ttl_ns - left_ns, taken);
    value_print_duration(least_max_ttl_ns(config), least);
    report_error(loaded->report, place->position,
                 "locks.max_ttl: %s leaves no validity, because clock drift, min_validity and "
                 "node_timeout take %s; raise it to at least %s, or lower one of these",
                 max_ttl, taken, least);
}

/* Report an error if only one of an HTTP address and another address can be opened. Addresses that
 * are not given conflict with none. */
static void check_conflict(const struct loaded *loaded, const struct yaml_node *value,
                           const char *name, const struct config_address *address,
                           const char *other_name, const struct config_address *other)
{
    if (value != NULL && url_collides(other, address))
        report_error(loaded->report, value->position,
                     "%s: %s conflicts with %s: %s; choose another port", name, address->url,
                     other_name, other->url);
}

/* Refuse an admin address that other hosts can reach, and addresses of which only one can be
 * opened. */
static void check_http(const struct loaded *loaded)
{
    const struct config *config = loaded->config;
    bool fine = true; /* an invalid address is empty, so these checks do not need this */
    const struct yaml_node *admin = given(loaded, "admin", &fine);
    const struct yaml_node *metrics = given(loaded, "metrics", &fine);
    if (config->admin.host != NULL && !url_is_local(&config->admin))
        report_error(loaded->report, admin->position,
                     "admin: other hosts can reach %s and read the names of resources there; write "
                     "http://127.0.0.1:%u. Use metrics: for Prometheus on another host, and ssh -L "
                     "or a proxy for people",
                     config->admin.url, config->admin.port);
    for (size_t i = 0; i < config->listen_count; i++) {
        const struct config_address *listen = &config->listens[i].address;
        check_conflict(loaded, admin, "admin", &config->admin, "listen", listen);
        check_conflict(loaded, metrics, "metrics", &config->metrics, "listen", listen);
    }
    check_conflict(loaded, metrics, "metrics", &config->metrics, "admin", &config->admin);
}

static void check_whole(const struct loaded *loaded)
{
    const struct config *config = loaded->config;
    bool listen_fine = true;
    bool insecure_fine = true;
    bool auth_fine = true;
    bool users_fine = true;
    const struct yaml_node *listen = given(loaded, "listen", &listen_fine);
    const struct yaml_node *auth = given(loaded, "auth", &auth_fine);
    const struct yaml_node *users = given(loaded, "auth.users", &users_fine);
    given(loaded, "insecure", &insecure_fine);
    check_order(loaded, "locks.max_ttl", config->locks.max_ttl_ns, "locks.fence_ttl",
                config->locks.fence_ttl_ns);
    check_order(loaded, "locks.max_ttl", config->locks.max_ttl_ns, "locks.max_hold",
                config->locks.max_hold_ns);
    check_order(loaded, "rounds.backoff_min", config->rounds.backoff_min_ns, "rounds.backoff_max",
                config->rounds.backoff_max_ns);
    check_max_ttl(loaded);
    /* An auth section whose users are commented out must not disable authentication. Each user must
     * have a way to authenticate. */
    if (auth != NULL && auth_fine && users == NULL)
        report_error(loaded->report, auth->key->position,
                     "auth: has no users; list them in auth.users, or leave auth out");
    if (users != NULL && users_fine && listen_fine && !listens_may_be_unix(config))
        users_check_secrets(config->users, users, loaded->report);
    if (listen != NULL && auth == NULL && listen_fine && insecure_fine && !config->insecure)
        listens_check_local(config, listen, loaded->report);
    check_http(loaded);
}

/* --- from file to configuration --- */

struct config *config_defaults(void)
{
    struct config *config = memory_zeroed(1, sizeof(*config));
    listens_default(config);
    for (const struct key *key = config_keys; key->name != NULL; key++) {
        /* In this table, only texts and numbers have a maximum (`most`), and each of these texts
         * has a default (`text`). So a key that reaches the last branch is a number if it has a
         * maximum. Keys without a default begin as zero. */
        if (key->text != NULL)
            *(char **)keys_field(key, config) = memory_copy(key->text);
        else if (key->words != NULL)
            *(unsigned *)keys_field(key, config) = (unsigned)key->initial;
        else if (key->most > 0)
            *(int64_t *)keys_field(key, config) = key->initial;
    }
    return config;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    listens_free(config);
    url_free(&config->admin);
    url_free(&config->metrics);
    nodes_free(config);
    users_free(config->users);
    free(config->cluster);
    free(config->locks.key_prefix);
    free(config);
}

/* The file must have nodes, except with --dev, which starts its own. */
static void check_nodes(struct yaml_node *root, enum config_mode mode, struct report *report)
{
    const struct yaml_node *nodes = yaml_node_child(root, "nodes");
    if (mode == CONFIG_NORMAL && nodes == NULL)
        report_error(report, root->position, "nodes: missing; list at least three Redis masters");
    if (mode == CONFIG_NORMAL || nodes == NULL)
        return;
    report_error(report, nodes->key->position,
                 "nodes: --dev starts its own masters; leave the list out");
    nodes->key->broken = true;
}

static struct config *read_tree(struct yaml_node *root, enum config_mode mode,
                                struct report *report)
{
    if (!keys_check_kind(root, YAML_MAPPING, "the file", NULL, report))
        return NULL;
    struct config *config = config_defaults();
    const struct loaded loaded = {config, root, report};
    check_nodes(root, mode, report);
    keys_read(config_keys, "", root, config, report);
    check_whole(&loaded);
    return config;
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
    /* There can be a tree although the YAML has mistakes. */
    if (report.errors > 0) {
        config_free(config);
        config = NULL;
    }
    report_print(&report, out);
    return config;
}
