#include "config/diff.h"

#include <assert.h>
#include <string.h>

#include "config/listens.h"
#include "config/nodes.h"

#define OF_THE_SET                                                                                 \
    "it is part of the set that all daemons share; see \"Changing the list of nodes\""
#define OF_ROUNDS "rounds under way and locks that are held were promised by the old value"
#define SIZED     "tables are sized by it at the start"

/* A section is changed by its keys. */
#define BY_KEYS NULL

struct rule {
    const char *name;
    const char *why_not; /* NULL: it may change */
    /* NULL: the key of that name, as a whole. */
    bool (*equal)(const struct config *a, const struct config *b);
};

/*
 * One for each key. Before a key may change, ask: which two clients could both believe now that
 * they hold a lock, one by the old value, one by the new?
 */
static const struct rule rules[] = {
    {"cluster", OF_THE_SET, NULL},
    {"listen", NULL, NULL},
    {"listen, of an address that stays", "it keeps what it was opened with", listens_equal_kept},
    /* For the next connection. The files are read again in any case. */
    {"listen.certificate, key, client_ca, client_certificate", NULL, listens_equal_tls},
    {"insecure", NULL, NULL}, /* no more than a check of `listen` */
    {"auth", BY_KEYS, NULL},
    /* Who holds what he may not lock any more is closed, as any connection that is lost. */
    {"auth.users", NULL, NULL},
    {"admin", "it is opened at the start", NULL},
    {"nodes", OF_THE_SET, nodes_equal},
    {"nodes.url",
     "where a master is, is read at the start; for another server see \"Replacing a master\"",
     nodes_equal_servers},
    {"nodes.durable", "whether a master may be trusted after a restart is decided at the start",
     nodes_equal_durable},
    /* For the next connection; those there are have been let in. Which server it is the guard
     * tells by its record. The files are read again in any case. */
    {"nodes.ca, certificate, key", NULL, nodes_equal_tls},
    {"nodes.username", NULL, nodes_equal_usernames},
    {"nodes.password_file", NULL, nodes_equal_passwords},
    {"locks", BY_KEYS, NULL},
    {"locks.key_prefix", "the keys of all locks begin with it", NULL},
    {"locks.max_ttl", OF_THE_SET, NULL},
    {"locks.min_validity", OF_ROUNDS, NULL},
    {"locks.clock_drift_rate", OF_THE_SET, NULL},
    {"locks.clock_drift_margin", OF_THE_SET, NULL},
    /* Only whether a lock is extended hangs on these two. */
    {"locks.max_hold", NULL, NULL},
    {"locks.max_extensions", NULL, NULL},
    /* A ballot is drawn when a round begins, and has to be larger than all before, as ever. */
    {"locks.fence", NULL, NULL},
    {"locks.fence_ttl", OF_THE_SET, NULL},
    {"rounds", BY_KEYS, NULL},
    {"rounds.node_timeout", OF_ROUNDS, NULL},
    {"rounds.backoff_min", NULL, NULL},
    {"rounds.backoff_max", NULL, NULL},
    {"limits", BY_KEYS, NULL},
    {"limits.clients", SIZED, NULL},
    {"limits.clients_per_address", NULL, NULL},
    {"limits.unauthenticated", NULL, NULL},
    {"limits.auth_timeout", NULL, NULL},
    {"limits.waiters", SIZED, NULL},
    {"limits.waiters_per_resource", NULL, NULL},
    {"log", BY_KEYS, NULL},
    {"log.level", NULL, NULL},
    {"log.format", NULL, NULL},
};

enum { RULE_COUNT = sizeof(rules) / sizeof(rules[0]) };

static const struct rule *rule_of(const char *key)
{
    for (size_t i = 0; i < RULE_COUNT; i++)
        if (strcmp(rules[i].name, key) == 0)
            return &rules[i];
    return NULL;
}

bool config_diff_knows(const char *key)
{
    return rule_of(key) != NULL;
}

static void add(struct config_diff *diff, const char *name, const char *why_not)
{
    assert(diff->count < CONFIG_DIFF_MAX);
    diff->found[diff->count++] = (struct config_difference){name, why_not};
    diff->refused += why_not != NULL;
}

void config_diff(const struct config *running, const struct config *wanted,
                 struct config_diff *diff)
{
    static const char unknown[] = "nobody has said that it may change while the daemon runs";
    const char *key;
    *diff = (struct config_diff){.count = 0};
    for (size_t i = 0; (key = config_key_name(i)) != NULL; i++) {
        const struct rule *rule = rule_of(key);
        if (rule != NULL && rule->equal != NULL)
            continue;
        if (!config_key_equal(i, running, wanted))
            add(diff, key, rule != NULL ? rule->why_not : unknown);
    }
    for (size_t i = 0; i < RULE_COUNT; i++)
        if (rules[i].equal != NULL && !rules[i].equal(running, wanted))
            add(diff, rules[i].name, rules[i].why_not);
}

void config_adopt(struct config *running, struct config *wanted)
{
    const char *key;
    struct config_diff diff;
    config_diff(running, wanted, &diff);
    assert(diff.refused == 0);
    for (size_t i = 0; (key = config_key_name(i)) != NULL; i++) {
        const struct rule *rule = rule_of(key);
        if (rule != NULL && rule->why_not == NULL)
            config_key_swap(i, running, wanted);
    }
    nodes_swap_access(running, wanted);
}
