/*
 * config/: valid values are read as written, missing keys have their defaults, and the example
 * configuration documents every key.
 */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "config/value.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

const struct runner_settings runner_settings = {.setup = configs_open, .teardown = configs_close};

/* --- valid values --- */

static void check_defaults(const struct config *config)
{
    ck_assert_str_eq(config->cluster, "main");
    ck_assert(!config->insecure);
    ck_assert_str_eq(config->listens[0].address.url, "tcp://127.0.0.1:7335");
    ck_assert_str_eq(config->listens[0].address.host, "127.0.0.1");
    ck_assert_uint_eq(config->listens[0].address.port, 7335);
    ck_assert_str_eq(config->locks.key_prefix, "redlock:");
    ck_assert_int_eq(config->locks.max_ttl_ns, 60000000000);
    ck_assert_int_eq(config->locks.min_validity_ns, 1000000);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 10000);
    ck_assert_int_eq(config->locks.clock_drift_margin_ns, 10000000);
    ck_assert_int_eq(config->rounds.node_timeout_ns, 50000000);
    ck_assert_int_eq(config->rounds.backoff_min_ns, 5000000);
    ck_assert_int_eq(config->rounds.backoff_max_ns, 250000000);
    ck_assert_int_eq(config->limits.clients, 10000);
    ck_assert_int_eq(config->limits.clients_per_address, 0);
    ck_assert_int_eq(config->limits.unauthenticated, 1000);
    ck_assert_int_eq(config->limits.auth_timeout_ns, 5000000000);
    ck_assert_ptr_null(config->users);
    ck_assert_int_eq(config->limits.waiters, 10000);
    ck_assert_int_eq(config->limits.waiters_per_resource, 1000);
    ck_assert_int_eq(config->log.level, CONFIG_LOG_INFO);
    ck_assert_int_eq(config->log.format, CONFIG_LOG_TEXT);
}

TEST(missing_keys_have_their_defaults)
{
    struct config *config = configs_accept(NODES);
    check_defaults(config);
    ck_assert_uint_eq(config->listen_count, 1);
    config_free(config);
    config = config_defaults();
    check_defaults(config);
    ck_assert_uint_eq(config->listen_count, 1);
    ck_assert_uint_eq(config->node_count, 0);
    config_free(config);
    config_free(NULL);
}

TEST(section_without_keys_is_valid)
{
    struct config *config = configs_accept("locks:\n  # max_ttl: 60s\nlog:\nrounds: {}\n" NODES);
    check_defaults(config);
    config_free(config);
}

TEST(nodes_are_read_as_written)
{
    struct config *config = configs_accept(NODES);
    ck_assert_uint_eq(config->node_count, 3);
    ck_assert_str_eq(config->nodes[0].name, "a");
    ck_assert_int_eq(config->nodes[0].address.kind, ADDRESS_TCP);
    ck_assert_str_eq(config->nodes[0].address.host, "10.0.0.1");
    ck_assert_uint_eq(config->nodes[0].address.port, 6379);
    ck_assert_uint_eq(config->nodes[0].address.database, 0);
    ck_assert_ptr_null(config->nodes[0].username);
    ck_assert_ptr_null(config->nodes[0].password);
    ck_assert_str_eq(config->nodes[1].address.url, "redis://[fd00::2]/3");
    ck_assert_str_eq(config->nodes[1].address.host, "fd00::2");
    ck_assert_uint_eq(config->nodes[1].address.port, 6379);
    ck_assert_uint_eq(config->nodes[1].address.database, 3);
    ck_assert_int_eq(config->nodes[2].address.kind, ADDRESS_UNIX);
    ck_assert_str_eq(config->nodes[2].address.path, "/run/redis.sock");
    config_free(config);
}

TEST(every_key_can_be_set)
{
    const struct group *root = getgrgid(0);
    char text[2048];
    ck_assert_ptr_nonnull(root);
    snprintf(text, sizeof(text),
             "cluster: eu.1\ninsecure: true\n"
             "locks: {key_prefix: \"\", max_ttl: 2m, min_validity: 5ms, clock_drift_rate: 0.25%%,\n"
             "        clock_drift_margin: 1500us}\n"
             "rounds: {node_timeout: 20ms}\nlimits: {clients: 7}\n"
             "log: {level: error, format: json}\n"
             "listen:\n- tcp://0.0.0.0:1\n- {url: \"unix:/a\", mode: 0600, group: %s}\n"
             "- {url: \"unix:/b\", group: \"4294967294\"}\n- tcp://localhost:2\n" NODES,
             root->gr_name);
    struct config *config = configs_accept(text);
    ck_assert_str_eq(config->cluster, "eu.1");
    ck_assert(config->insecure);
    ck_assert_str_eq(config->locks.key_prefix, "");
    ck_assert_int_eq(config->locks.max_ttl_ns, 120000000000);
    ck_assert_int_eq(config->locks.min_validity_ns, 5000000);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 2500);
    ck_assert_int_eq(config->locks.clock_drift_margin_ns, 1500000);
    ck_assert_int_eq(config->rounds.node_timeout_ns, 20000000);
    ck_assert_int_eq(config->limits.clients, 7);
    ck_assert_int_eq(config->log.level, CONFIG_LOG_ERROR);
    ck_assert_int_eq(config->log.format, CONFIG_LOG_JSON);
    ck_assert_uint_eq(config->listen_count, 4);
    ck_assert_uint_eq(config->listens[1].mode, 0600);
    ck_assert_uint_eq(config->listens[1].group, 0);
    ck_assert_uint_eq(config->listens[2].mode, 0660);
    ck_assert_uint_eq(config->listens[2].group, 4294967294);
    ck_assert_uint_eq(config->listens[3].group, (gid_t)-1);
    config_free(config);
}

TEST(both_ends_of_a_range_are_valid)
{
    struct config *config =
        configs_accept("locks: {max_ttl: 24h, max_hold: 24h, min_validity: 1m, clock_drift_rate: "
                       "10%, clock_drift_margin: 10s}\n"
                       "rounds: {node_timeout: 10s}\nlimits: {clients: 1}\n" NODES);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 100000);
    config_free(config);
    config = configs_accept("locks: {max_ttl: 100ms, min_validity: 1ms, clock_drift_rate: 0ppm, "
                            "clock_drift_margin: 1000us}\n"
                            "rounds: {node_timeout: 1ms}\nlimits: {clients: 1000000}\n" NODES);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 0);
    config_free(config);
}

TEST(variables_are_expanded_in_any_value)
{
    setenv("REDLOCKD_TEST_NAME", "eu", 1);
    setenv("REDLOCKD_TEST_TTL", "5", 1);
    setenv("REDLOCKD_TEST_HOST", "10.9.8.7", 1);
    struct config *config =
        configs_accept("cluster: ${REDLOCKD_TEST_NAME}.1\n"
                       "locks: {key_prefix: \"$${x}\", max_ttl: \"${REDLOCKD_TEST_"
                       "TTL}s\"}\nnodes:\n- {name: a, url: \"redis://${REDLOCKD_"
                       "TEST_HOST}\"}\n" NODE("b") "}\n" NODE("c") "}\n");
    ck_assert_str_eq(config->cluster, "eu.1");
    ck_assert_str_eq(config->locks.key_prefix, "${x}");
    ck_assert_int_eq(config->locks.max_ttl_ns, 5000000000);
    ck_assert_str_eq(config->nodes[0].address.host, "10.9.8.7");
    config_free(config);
}

TEST(admin_and_metrics_are_off_by_default)
{
    struct config *config = configs_accept(NODES);
    ck_assert_ptr_null(config->admin.host);
    ck_assert_ptr_null(config->metrics.host);
    config_free(config);
    config = configs_accept("metrics: http://0.0.0.0:7338\n" NODES);
    ck_assert_ptr_null(config->admin.host);
    ck_assert_str_eq(config->metrics.host, "0.0.0.0");
    ck_assert_uint_eq(config->metrics.port, 7338);
    config_free(config);
    config = configs_accept("admin: http://127.0.0.1:7336/\n" NODES);
    ck_assert_str_eq(config->admin.host, "127.0.0.1");
    ck_assert_uint_eq(config->admin.port, 7336);
    config_free(config);
    config = configs_accept("admin: http://[::1]:1\n" NODES);
    ck_assert_str_eq(config->admin.host, "::1");
    config_free(config);
}

TEST(admin_must_be_an_http_address)
{
    configs_refuse("admin: tcp://127.0.0.1:7336\n" NODES,
                   "f:1:8: admin: \"tcp://127.0.0.1:7336\" is not a http:// address; write "
                   "http://127.0.0.1:7336\n");
    configs_refuse(
        "admin: unix:/run/x\n" NODES,
        "f:1:8: admin: \"unix:/run/x\" is not a http:// address; write http://127.0.0.1:7336\n");
    configs_refuse("admin: http://127.0.0.1\n" NODES,
                   "f:1:8: admin: \"http://127.0.0.1\" has no port; write http://127.0.0.1:7336\n");
    configs_refuse(
        "admin: http://127.0.0.1:7336/metrics\n" NODES,
        "f:1:8: admin: \"http://127.0.0.1:7336/metrics\" has text after the port; remove it\n");
    configs_refuse("admin: http://me:secret@127.0.0.1:7336\n" NODES,
                   "f:1:8: admin: the address contains a user name or a password; write "
                   "http://127.0.0.1:7336\n");
    configs_refuse("admin: [http://127.0.0.1:7336]\n" NODES,
                   "f:1:8: admin: must be a single value, not a list\n");
}

TEST(metrics_must_be_an_http_address)
{
    configs_refuse("metrics: tcp://0.0.0.0:7338\n" NODES,
                   "f:1:10: metrics: \"tcp://0.0.0.0:7338\" is not a http:// address; write "
                   "http://0.0.0.0:7338\n");
    configs_refuse("metrics: http://0.0.0.0\n" NODES,
                   "f:1:10: metrics: \"http://0.0.0.0\" has no port; write http://0.0.0.0:7338\n");
    configs_refuse("metrics: http://:7338\n" NODES,
                   "f:1:10: metrics: \"http://:7338\" has no host; write 127.0.0.1 for this host "
                   "only, 0.0.0.0 for all interfaces\n");
    configs_refuse("metrics: http://0.0.0.0:7338/metrics\n" NODES,
                   "f:1:10: metrics: \"http://0.0.0.0:7338/metrics\" has text after the port; "
                   "remove it\n");
}

TEST(admin_is_refused_on_public_addresses_even_with_insecure)
{
#define PUBLIC(position, url)                                                                      \
    "f:" position ": admin: other hosts can reach " url " and read the names of resources "        \
    "there; write http://127.0.0.1:7336. Use metrics: for Prometheus on another host, and ssh -L " \
    "or a proxy for people\n"
    static const char *const urls[] = {"http://0.0.0.0:7336", "http://[::]:7336",
                                       "http://10.0.0.1:7336", "http://a.example:7336"};
    static const char *const reports[] = {
        PUBLIC("1:8", "http://0.0.0.0:7336"), PUBLIC("1:8", "http://[::]:7336"),
        PUBLIC("1:8", "http://10.0.0.1:7336"), PUBLIC("1:8", "http://a.example:7336")};
    char text[256];
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        snprintf(text, sizeof(text), "admin: %s\n" NODES, urls[i]);
        configs_refuse(text, reports[i]);
        snprintf(text, sizeof(text), "admin: %s\ninsecure: true\n" NODES, urls[i]);
        configs_refuse(text, reports[i]);
    }
    configs_refuse(
        "insecure: maybe\nadmin: http://0.0.0.0:7336\n" NODES,
        "f:1:11: insecure: \"maybe\" must be true or false\n" PUBLIC("2:8", "http://0.0.0.0:7336"));
    config_free(configs_accept("admin: http://localhost:7336\n" NODES));
    config_free(configs_accept("admin: http://127.1.2.3:7336\n" NODES));
}

TEST(metrics_may_be_public_without_insecure)
{
    config_free(configs_accept("metrics: http://[::]:7338\n" NODES));
    config_free(configs_accept("metrics: http://10.0.0.1:7338\n" NODES));
    config_free(configs_accept("metrics: http://a.example:7338\n" NODES));
    config_free(
        configs_accept("metrics: http://0.0.0.0:7338\nadmin: http://127.0.0.1:7336\n" NODES));
}

TEST(http_addresses_must_not_conflict_with_others)
{
    configs_refuse("metrics: http://127.0.0.1:7336\nadmin: http://127.0.0.1:7336\n" NODES,
                   "f:1:10: metrics: http://127.0.0.1:7336 conflicts with admin: "
                   "http://127.0.0.1:7336; choose another port\n");
    configs_refuse("admin: http://127.0.0.1:7336\nmetrics: http://0.0.0.0:7336\n" NODES,
                   "f:2:10: metrics: http://0.0.0.0:7336 conflicts with admin: "
                   "http://127.0.0.1:7336; choose another port\n");
    configs_refuse("metrics: http://0.0.0.0:7335\n" NODES,
                   "f:1:10: metrics: http://0.0.0.0:7335 conflicts with listen: "
                   "tcp://127.0.0.1:7335; choose another port\n");
    configs_refuse("listen: [\"tcp://127.0.0.1:7336\"]\nadmin: http://127.0.0.1:7336\n" NODES,
                   "f:2:8: admin: http://127.0.0.1:7336 conflicts with listen: "
                   "tcp://127.0.0.1:7336; choose another port\n");
    configs_refuse(
        "insecure: true\nlisten: [\"tcp://0.0.0.0:7336\"]\nadmin: http://127.0.0.1:7336\n" NODES,
        "f:3:8: admin: http://127.0.0.1:7336 conflicts with listen: tcp://0.0.0.0:7336; choose "
        "another port\n");
    /* A host name can resolve to an IPv4 or an IPv6 address, so it does not conflict with
     * 0.0.0.0. */
    config_free(
        configs_accept("insecure: true\n"
                       "listen: [\"tcp://0.0.0.0:7335\", \"tcp://ip6-localhost:7335\"]\n" NODES));
    config_free(configs_accept("insecure: true\n"
                               "listen: [\"tcp://0.0.0.0:7336\", \"tcp://[::]:7336\"]\n"
                               "admin: http://127.0.0.1:7337\n" NODES));
}

TEST(dev_mode_needs_no_nodes_and_accepts_none)
{
    configs_write("f", "cluster: x\n");
    struct config *config = configs_load("f", CONFIG_DEV);
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(configs_report(), "");
    ck_assert_uint_eq(config->node_count, 0);
    config_free(config);
    configs_write("f", "# nothing\n");
    config_free(configs_load("f", CONFIG_DEV));
    ck_assert_str_eq(configs_report(), "");
    configs_write("f", NODES);
    ck_assert_ptr_null(configs_load("f", CONFIG_DEV));
    ck_assert_str_eq(configs_report(),
                     "f:1:1: nodes: --dev starts its own masters; leave the list out\n");
}

TEST(dash_reads_standard_input)
{
    configs_write("f", "cluster: 1 2\n" NODES);
    ck_assert_ptr_nonnull(freopen("f", "r", stdin));
    ck_assert_ptr_null(configs_load("-", CONFIG_NORMAL));
    ck_assert_str_eq(configs_report(),
                     "stdin:1:10: cluster: \"1 2\" may contain only A-Z a-z 0-9 _ . : -\n");
}

/* --- printing --- */

TEST(numbers_are_printed_as_in_the_file)
{
    char buf[VALUE_PRINTED];
    value_print_duration(3600000000000, buf);
    ck_assert_str_eq(buf, "1h");
    value_print_duration(90000000000, buf);
    ck_assert_str_eq(buf, "90s");
    value_print_duration(1500000, buf);
    ck_assert_str_eq(buf, "1500us");
    value_print_rate(20000, buf);
    ck_assert_str_eq(buf, "2%");
    value_print_rate(2500, buf);
    ck_assert_str_eq(buf, "2500ppm");
    value_print_integer(INT64_MAX, buf);
    ck_assert_str_eq(buf, "9223372036854775807");
}

/* --- the example --- */

static void find_example(char *path, size_t size)
{
    snprintf(path, size, "%s/redlockd.yaml.example", configs_origin());
}

TEST(example_loads_and_has_the_defaults)
{
    char example[300];
    find_example(example, sizeof(example));
    struct config *config = configs_load(example, CONFIG_NORMAL);
    ck_assert_str_eq(configs_report(), "");
    ck_assert_ptr_nonnull(config);
    check_defaults(config);
    ck_assert_uint_eq(config->node_count, 3);
    config_free(config);
}

static void read_example(char *text, size_t size)
{
    char example[300];
    find_example(example, sizeof(example));
    FILE *file = fopen(example, "r");
    ck_assert_ptr_nonnull(file);
    size_t len = fread(text, 1, size - 1, file);
    ck_assert(feof(file));
    text[len] = '\0';
    fclose(file);
}

TEST(example_documents_every_key)
{
    char text[32768];
    const char *name;
    size_t count = 0;
    read_example(text, sizeof(text));
    for (size_t i = 0; (name = config_keys[i].name) != NULL; i++) {
        char line[64];
        const char *dot = strchr(name, '.');
        snprintf(line, sizeof(line),
                 dot != NULL ? "\n  %s:" : "\n%s:", dot != NULL ? dot + 1 : name);
        const char *at = strstr(text, line);
        snprintf(line, sizeof(line),
                 dot != NULL ? "\n  # %s:" : "\n# %s:", dot != NULL ? dot + 1 : name);
        /* The key may be in a section that is commented out as a whole: "# auth: {users: ...". */
        char inside[64];
        snprintf(inside, sizeof(inside), "\n# %.*s: {%s:", dot != NULL ? (int)(dot - name) : 0,
                 name, dot != NULL ? dot + 1 : name);
        ck_assert_msg(at != NULL || strstr(text, line) != NULL || strstr(text, inside) != NULL,
                      "%s is missing", name);
        count++;
    }
    ck_assert_uint_gt(count, 20);
}

/* Whether the line is an option that the example shows commented out: it matches "  # key: value"
 * but not "  # Prose". */
static bool is_commented_key(const char *line)
{
    size_t len = strspn(line, " ");
    if (strncmp(line + len, "# ", 2) != 0)
        return false;
    const char *word = line + len + 2;
    size_t word_len = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
    return word_len > 0 && strncmp(word + word_len, ": ", 2) == 0;
}

TEST(commented_options_of_the_example_are_valid)
{
    char text[32768];
    char uncommented[32768] = "";
    char *rest = text;
    char *line;
    unsigned keys = 0;
    read_example(text, sizeof(text));
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (is_commented_key(line)) {
            memmove(strchr(line, '#'), strchr(line, '#') + 2, strlen(strchr(line, '#') + 2) + 1);
            keys++;
        }
        strcat(strcat(uncommented, line), "\n");
        /* The example's user needs a unix socket. */
        if (strcmp(line, "listen:") == 0)
            strcat(uncommented, "  - unix:/run/redlockd.sock\n");
    }
    ck_assert_uint_eq(keys, 3);
    struct config *config = configs_read(uncommented);
    ck_assert_msg(config != NULL, "%s", configs_report());
    ck_assert_str_eq(configs_report(), "");
    ck_assert_ptr_nonnull(config->users);
    config_free(config);
}
