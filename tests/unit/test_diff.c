/*
 * config/diff.h: for each key of the configuration file, whether a reload is allowed to change it.
 * After an allowed change, the running configuration has the new value, and nothing else has
 * changed.
 */
#include <stdio.h>
#include <string.h>

#include "config/diff.h"
#include "config/keys.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

const struct runner_settings runner_settings = {.setup = configs_open, .teardown = configs_close};

#define NODE_AT(name, more) "  - {name: " name ", url: \"redis://10.0.0." name "\"" more "}\n"
#define NODES_ALONE         "nodes:\n" NODE_AT("1", "") NODE_AT("2", "") NODE_AT("3", "")

#define LISTEN_UNIX "listen: [\"unix:/run/a\", \"tcp://127.0.0.1:7335\"]\n"

/* --- every key --- */

#define USERS(prefix, verbs)                                                                       \
    LISTEN_UNIX "auth: {users: [{name: u, uids: [0], resources: [" prefix "], verbs: [" verbs      \
                "]}]}\n"

struct change {
    const char *key;  /* in the configuration file */
    const char *from; /* NODES_ALONE is appended to `from` and `to` unless they list nodes */
    const char *to;
    bool refused;
    const char *name; /* the name that config_diff() reports; NULL: the same as `key` */
};

static const struct change changes[] = {
    {"cluster", "cluster: a\n", "cluster: b\n", true, NULL},
    {"listen", LISTEN_UNIX, "listen: [\"unix:/run/b\", \"tcp://127.0.0.1:7335\"]\n", false, NULL},
    {"listen", LISTEN_UNIX, "listen: [\"unix:/run/a\"]\n", false, NULL},
    {"listen", "listen: [\"unix:/run/a\"]\n", LISTEN_UNIX, false, NULL},
    {"listen", "listen: [{url: \"unix:/run/a\"}]\n",
     "listen: [{url: \"unix:/run/a\", mode: \"0600\"}]\n", true, "listen.mode"},
    {"listen", "listen: [{url: \"unix:/run/a\"}]\n",
     "listen: [{url: \"unix:/run/a\", group: \"7\"}]\n", true, "listen.group"},
    {"listen", "listen: [\"tcp://localhost:7335\"]\n", "listen: [\"tcp://LOCALHOST:7335\"]\n", true,
     "listen.url"},
    {"insecure", "insecure: false\n", "insecure: true\n", false, NULL},
    {"admin", "", "admin: http://127.0.0.1:7336\n", true, NULL},
    {"admin", "admin: http://127.0.0.1:7336\n", "admin: http://127.0.0.1:7337\n", true, NULL},
    {"metrics", "", "metrics: http://0.0.0.0:7338\n", true, NULL},
    {"metrics", "metrics: http://0.0.0.0:7338\n", "metrics: http://127.0.0.1:7338\n", true, NULL},
    {"metrics", "metrics: http://0.0.0.0:7338\n", "", true, NULL},
    {"nodes", NODES_ALONE, NODES_ALONE NODE_AT("4", "") NODE_AT("5", ""), true, NULL},
    {"nodes", NODES_ALONE, "nodes:\n" NODE_AT("1", "") NODE_AT("2", "") NODE_AT("4", ""), true,
     NULL},
    {"nodes", NODES_ALONE,
     "nodes:\n" NODE_AT("1", "") NODE_AT("2", "") "  - {name: 3, url: \"redis://10.0.0.3/1\"}\n",
     true, "nodes.url"},
    {"nodes", NODES_ALONE,
     "nodes:\n" NODE_AT("1", "") NODE_AT("2", "") "  - {name: 3, url: \"redis://10.0.0.4\"}\n",
     true, "nodes.url"},
    {"nodes", NODES_ALONE,
     "nodes:\n" NODE_AT("1", "") NODE_AT("2", "") NODE_AT("3", ", durable: true"), true,
     "nodes.durable"},
    {"nodes", NODES_ALONE,
     "nodes:\n" NODE_AT("1", "") NODE_AT("2", "") NODE_AT("3", ", password_file: secret"), false,
     "nodes.password_file"},
    {"nodes", "nodes:\n" NODE_AT("1", "") NODE_AT("2", "") NODE_AT("3", ", password_file: secret"),
     "nodes:\n" NODE_AT("1", "") NODE_AT("2", "")
         NODE_AT("3", ", username: u, password_file: secret"),
     false, "nodes.username"},
    {"locks.key_prefix", "locks: {key_prefix: \"a:\"}\n", "locks: {key_prefix: \"b:\"}\n", true,
     NULL},
    {"locks.max_ttl", "locks: {max_ttl: 60s}\n", "locks: {max_ttl: 61s}\n", true, NULL},
    {"locks.min_validity", "locks: {min_validity: 1ms}\n", "locks: {min_validity: 2ms}\n", true,
     NULL},
    {"locks.clock_drift_rate", "locks: {clock_drift_rate: 1%}\n",
     "locks: {clock_drift_rate: 0.5%}\n", true, NULL},
    {"locks.clock_drift_margin", "locks: {clock_drift_margin: 10ms}\n",
     "locks: {clock_drift_margin: 5ms}\n", true, NULL},
    {"locks.max_hold", "locks: {max_hold: 1h}\n", "locks: {max_hold: 2h}\n", false, NULL},
    {"locks.max_extensions", "locks: {max_extensions: 10}\n", "locks: {max_extensions: 11}\n",
     false, NULL},
    {"locks.fence", "locks: {fence: always}\n", "locks: {fence: on-request}\n", false, NULL},
    {"locks.fence_ttl", "locks: {fence_ttl: 24h}\n", "locks: {fence_ttl: 23h}\n", true, NULL},
    {"rounds.node_timeout", "rounds: {node_timeout: 50ms}\n", "rounds: {node_timeout: 51ms}\n",
     true, NULL},
    {"rounds.backoff_min", "rounds: {backoff_min: 5ms}\n", "rounds: {backoff_min: 6ms}\n", false,
     NULL},
    {"rounds.backoff_max", "rounds: {backoff_max: 250ms}\n", "rounds: {backoff_max: 251ms}\n",
     false, NULL},
    {"limits.clients", "limits: {clients: 7}\n", "limits: {clients: 8}\n", true, NULL},
    {"limits.clients_per_address", "limits: {clients_per_address: 7}\n",
     "limits: {clients_per_address: 8}\n", false, NULL},
    {"limits.unauthenticated", "limits: {unauthenticated: 7}\n", "limits: {unauthenticated: 8}\n",
     false, NULL},
    {"limits.auth_timeout", "limits: {auth_timeout: 5s}\n", "limits: {auth_timeout: 6s}\n", false,
     NULL},
    {"auth.users", LISTEN_UNIX, USERS("a", "lock"), false, NULL},
    {"auth.users", USERS("a", "lock"), USERS("b", "lock"), false, NULL},
    {"auth.users", USERS("a", "lock"), USERS("a", "all"), false, NULL},
    {"limits.waiters", "limits: {waiters: 7}\n", "limits: {waiters: 8}\n", true, NULL},
    {"limits.waiters_per_resource", "limits: {waiters_per_resource: 7}\n",
     "limits: {waiters_per_resource: 8}\n", false, NULL},
    {"log.level", "log: {level: info}\n", "log: {level: debug}\n", false, NULL},
    {"log.format", "log: {format: text}\n", "log: {format: json}\n", false, NULL},
};

static struct config *load_with(const char *text)
{
    char whole[2048];
    bool has_nodes = strncmp(text, "nodes:", 6) == 0;
    snprintf(whole, sizeof(whole), "%s%s", text, has_nodes ? "" : NODES_ALONE);
    return configs_accept(whole);
}

static void expect_adopted(const struct change *change)
{
    struct config *running = load_with(change->from);
    struct config *before = load_with(change->from);
    struct config *wanted = load_with(change->to);
    struct config *adopted = load_with(change->to);
    struct config_diff diff;
    config_adopt(running, adopted);
    config_diff(running, wanted, &diff);
    ck_assert_uint_eq(diff.count, 0);
    /* config_adopt() swaps the values: `adopted` now has the old ones, and its owner frees them. */
    config_diff(adopted, before, &diff);
    ck_assert_uint_eq(diff.count, 0);
    config_free(running);
    config_free(before);
    config_free(wanted);
    config_free(adopted);
}

TEST_ROWS(each_change_is_found_and_adopted_or_refused, changes)
{
    const struct change *change = &changes[_i];
    const char *name = change->name != NULL ? change->name : change->key;
    configs_write("secret", "hunter2\n");
    struct config *running = load_with(change->from);
    struct config *wanted = load_with(change->to);
    struct config_diff diff;
    config_diff(running, wanted, &diff);
    ck_assert_msg(diff.count == 1, "%s: %zu differences", change->to, diff.count);
    ck_assert_str_eq(diff.found[0].name, name);
    ck_assert_msg((diff.found[0].why_not != NULL) == change->refused, "%s: %s", change->to,
                  diff.found[0].why_not != NULL ? diff.found[0].why_not : "may change");
    ck_assert_uint_eq(diff.refused, change->refused);
    config_free(running);
    config_free(wanted);
    if (!change->refused)
        expect_adopted(change);
}

/* For a new key of the configuration, add a rule to config_keys and a change to `changes`. */
TEST(every_key_has_a_rule_and_a_tested_change)
{
    static const char *const untried[] = {"auth", "locks", "rounds", "limits", "log"};
    const char *key;
    size_t count = 0;
    for (size_t i = 0; (key = config_keys[i].name) != NULL; i++) {
        bool tried = false;
        ck_assert_msg(config_keys[i].fixed != NULL, "%s: may a reload change it?", key);
        for (size_t j = 0; j < sizeof(changes) / sizeof(changes[0]); j++)
            tried = tried || strcmp(changes[j].key, key) == 0;
        for (size_t j = 0; j < sizeof(untried) / sizeof(untried[0]); j++)
            tried = tried || strcmp(untried[j], key) == 0;
        ck_assert_msg(tried, "%s: no test changes it", key);
        count++;
    }
    ck_assert_uint_gt(count, 20);
}

TEST(equal_files_have_no_differences)
{
    const char *const texts[] = {NODES_ALONE, LISTEN_UNIX NODES_ALONE,
                                 "locks: {max_ttl: 60s}\n" NODES_ALONE};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct config *running = configs_accept(texts[i]);
        struct config *wanted = configs_accept(texts[i]);
        struct config_diff diff;
        config_diff(running, wanted, &diff);
        ck_assert_uint_eq(diff.count, 0);
        config_free(running);
        config_free(wanted);
    }
}

TEST(order_of_listens_does_not_matter)
{
    struct config *running = configs_accept(LISTEN_UNIX NODES_ALONE);
    struct config *wanted =
        configs_accept("listen: [\"tcp://127.0.0.1:7335\", \"unix:/run/a\"]\n" NODES_ALONE);
    struct config_diff diff;
    config_diff(running, wanted, &diff);
    ck_assert_uint_eq(diff.count, 0);
    config_free(running);
    config_free(wanted);
}

TEST(order_of_nodes_does_not_matter)
{
    struct config_diff diff;
    struct config *running = configs_accept(NODES_ALONE);
    struct config *reordered =
        configs_accept("nodes:\n" NODE_AT("3", "") NODE_AT("2", "") NODE_AT("1", ""));
    config_diff(running, reordered, &diff);
    ck_assert_uint_eq(diff.count, 0);
    config_adopt(running, reordered);
    ck_assert_str_eq(running->nodes[0].name, "1");

    configs_write("secret", "of 1\n");
    struct config *login = configs_accept(
        "nodes:\n" NODE_AT("3", "") NODE_AT("1", ", password_file: secret") NODE_AT("2", ""));
    config_diff(running, login, &diff);
    ck_assert_uint_eq(diff.count, 1);
    ck_assert_str_eq(diff.found[0].name, "nodes.password_file");
    config_adopt(running, login);
    ck_assert_str_eq(running->nodes[0].password, "of 1");
    ck_assert_ptr_null(running->nodes[1].password);
    ck_assert_ptr_null(running->nodes[2].password);
    config_free(running);
    config_free(reordered);
    config_free(login);
}

TEST(changed_secret_in_the_same_file_is_found)
{
    static const char text[] =
        "nodes:\n" NODE_AT("1", ", password_file: secret") NODE_AT("2", "") NODE_AT("3", "");
    struct config_diff diff;
    configs_write("secret", "old\n");
    struct config *running = configs_accept(text);
    configs_write("secret", "new\n");
    struct config *wanted = configs_accept(text);
    config_diff(running, wanted, &diff);
    ck_assert_uint_eq(diff.count, 1);
    ck_assert_uint_eq(diff.refused, 0);
    config_adopt(running, wanted);
    ck_assert_str_eq(running->nodes[0].password, "new");
    ck_assert_str_eq(wanted->nodes[0].password, "old");
    config_free(running);
    config_free(wanted);
}

TEST(every_one_of_many_changes_is_counted)
{
    struct config *running = configs_accept(NODES_ALONE);
    struct config *wanted = configs_accept("cluster: b\nlocks: {max_ttl: 2m, max_hold: 2h}\n"
                                           "log: {level: error}\n" NODES_ALONE);
    struct config_diff diff;
    config_diff(running, wanted, &diff);
    ck_assert_uint_eq(diff.count, 4);
    ck_assert_uint_eq(diff.refused, 2);
    config_free(running);
    config_free(wanted);
}
