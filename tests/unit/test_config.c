/*
 * config/: each mistake has its line, with the place and what would be right; all of them in one
 * pass; and what is right is read as it is written.
 */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/url.h"
#include "config/value.h"
#include "tests/runner.h"

/* Three nodes, to put behind whatever is under test. */
#define NODES                                                                                      \
    "nodes:\n"                                                                                     \
    "  - {name: a, url: \"redis://10.0.0.1:6379\"}\n"                                              \
    "  - {name: b, url: \"redis://[fd00::2]/3\"}\n"                                                \
    "  - {name: c, url: \"unix:/run/redis.sock\"}\n"

static char report[65536];

/* Load a text; what was reported is then in `report`, with the file called "f". */
static struct config *load_as(const char *text, size_t len, enum config_mode mode)
{
    char directory[] = "/tmp/redlockd-config.XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/f", directory);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, len, file), len);
    fclose(file);
    memset(report, 0, sizeof(report));
    FILE *out = fmemopen(report, sizeof(report) - 1, "w");
    ck_assert_ptr_nonnull(out);
    struct config *config = config_load(path, mode, out);
    fclose(out);
    unlink(path);
    rmdir(directory);

    /* The folder is another one each time: leave its name out. */
    char *at;
    while ((at = strstr(report, path)) != NULL)
        memmove(at, at + strlen(path) - 1, strlen(at + strlen(path) - 1) + 1);
    return config;
}

static struct config *load(const char *text)
{
    return load_as(text, strlen(text), CONFIG_NORMAL);
}

static const struct {
    const char *text; /* NODES comes behind it, unless it begins with '!' */
    const char *report;
} mistakes[] = {
    {"cluster: a\ncluster: b\n", "f:2:1: cluster: given twice; the first is in line 1, column 1\n"},
    {"lokcs: {}\n", "f:1:1: lokcs: there is no such key; did you mean locks?\n"},
    {"zzzzzzzz: 1\n", "f:1:1: zzzzzzzz: there is no such key\n"},
    {"locks: {maxttl: 5s}\n", "f:1:9: locks.maxttl: there is no such key; did you mean max_ttl?\n"},
    {"locks.max_ttl: 5s\n", "f:1:1: locks.max_ttl: there is no such key\n"},
    {"locks: {max_ttl: 60}\n", "f:1:18: locks.max_ttl: \"60\": a duration needs a unit: write 60s, "
                               "1m or 500ms\n"},
    {"locks: {max_ttl: long}\n",
     "f:1:18: locks.max_ttl: \"long\": write a duration: 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: 5d}\n", "f:1:18: locks.max_ttl: \"5d\": the units are us, ms, s, m, h: "
                               "write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: 999999999999999h}\n",
     "f:1:18: locks.max_ttl: \"999999999999999h\": too long; write a duration of days at most\n"},
    {"locks: {max_ttl: 25h}\n",
     "f:1:18: locks.max_ttl: 25h is out of range; it goes from 100ms to 24h\n"},
    {"locks: {max_ttl: }\n", "f:1:18: locks.max_ttl: has no value\n"},
    {"locks: {max_ttl: [1s]}\n", "f:1:18: locks.max_ttl: has to be a scalar, not a list\n"},
    {"locks: 5\n", "f:1:8: locks: has to be a mapping, not a scalar\n"},
    {"locks: {clock_drift_rate: 11%}\n",
     "f:1:27: locks.clock_drift_rate: 11% is out of range; it goes from 0% to 10%\n"},
    {"locks: {clock_drift_rate: 1}\n",
     "f:1:27: locks.clock_drift_rate: \"1\": write a rate: 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: 1.%}\n",
     "f:1:27: locks.clock_drift_rate: \"1.%\": write a rate: 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: fast}\n",
     "f:1:27: locks.clock_drift_rate: \"fast\": write a rate: 1%, 0.5% or 100ppm\n"},
    {"locks: {max_ttl: 100ms, clock_drift_margin: 60ms}\n",
     "f:1:1: locks.max_ttl: too short: drift, min_validity and node_timeout leave nothing of it\n"},
    {"locks: {key_prefix: \"redlockd:x\"}\n",
     "f:1:1: locks.key_prefix: \"redlockd:\" is where redlockd keeps its own keys\n"},
    {"locks: {key_prefix: \"a b\"}\n",
     "f:1:1: locks.key_prefix: no spaces or control characters\n"},
    {"locks: {key_prefix: "
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n",
     "f:1:21: locks.key_prefix: longer than 64 bytes\n"},
    {"cluster: \"a b\"\n", "f:1:10: cluster: write 1 to 64 of the letters A-Z a-z 0-9 _ . : -\n"},
    {"insecure: yes\n", "f:1:11: insecure: \"yes\": write true or false\n"},
    {"limits: {clients: 0}\n",
     "f:1:19: limits.clients: 0 is out of range; it goes from 1 to 1000000\n"},
    {"limits: {clients: many}\n", "f:1:19: limits.clients: \"many\": write a number: 1000\n"},
    {"log: {level: loud}\n",
     "f:1:14: log.level: \"loud\" is none of debug, info, warning, error\n"},
    {"log: {format: xml}\n", "f:1:15: log.format: \"xml\" is none of text, json\n"},
    {"listen: tcp://127.0.0.1:1\n", "f:1:9: listen: has to be a list, not a scalar\n"},
    {"listen: []\n", "f:1:9: listen: the list is empty; leave it out for tcp://127.0.0.1:7335\n"},
    {"listen: [[a]]\n", "f:1:10: listen: has to be a mapping, not a list\n"},
    {"listen: [{mode: \"0600\"}]\n", "f:1:10: listen: url is missing\n"},
    {"listen: [{url: \"tcp://127.0.0.1:1\", mode: \"0600\"}]\n",
     "f:1:43: listen: mode and group are for unix sockets\n"},
    {"listen: [{url: \"unix:/a\", mode: \"rw\"}]\n",
     "f:1:33: listen.mode: \"rw\" is no file mode; write \"0660\"\n"},
    {"listen: [{url: \"unix:/a\", group: no-such-group}]\n",
     "f:1:34: listen.group: this host has no group \"no-such-group\"\n"},
    {"listen: [{url: \"unix:/a\", own: x, mode: [1]}]\n",
     "f:1:27: listen.own: there is no such key\n"
     "f:1:41: listen: has to be a scalar, not a list\n"},
    {"listen: [\"tcp://127.0.0.1:0\"]\n",
     "f:1:10: listen: \"tcp://127.0.0.1:0\": \"0\" is no port: "
     "they go from 1 to 65535\n"},
    {"listen: [\"tcp://127.0.0.1:70000\"]\n",
     "f:1:10: listen: \"tcp://127.0.0.1:70000\": \"70000\" "
     "is no port: they go from 1 to 65535\n"},
    {"listen: [\"tcp://127.0.0.1\"]\n", "f:1:10: listen: \"tcp://127.0.0.1\": the port is missing: "
                                        "write tcp://127.0.0.1:7335\n"},
    {"listen: [\"tcp://127.0.0.1:1/x\"]\n",
     "f:1:10: listen: \"tcp://127.0.0.1:1/x\": nothing may stand behind the port\n"},
    {"listen: [\"tcp://:7335\"]\n",
     "f:1:10: listen: \"tcp://:7335\": the host is missing: write 127.0.0.1 for this host, 0.0.0.0 "
     "for all its addresses\n"},
    {"listen: [\"tcp://::1:7335\"]\n",
     "f:1:10: listen: \"tcp://::1:7335\": an IPv6 address stands in brackets: [::1]:6379\n"},
    {"listen: [\"tcp://[::1:7335\"]\n",
     "f:1:10: listen: \"tcp://[::1:7335\": the ] behind the IPv6 address is missing\n"},
    {"listen: [\"tcp://[fe]:7335\"]\n",
     "f:1:10: listen: \"tcp://[fe]:7335\": what stands in the brackets is no IPv6 address\n"},
    {"listen: [\"tcp://a b:7335\"]\n",
     "f:1:10: listen: \"tcp://a b:7335\": the host is neither a name nor an address\n"},
    {"listen: [\"http://127.0.0.1:1\"]\n",
     "f:1:10: listen: \"http://127.0.0.1:1\": write tcp://HOST:PORT or unix:/PATH\n"},
    {"listen: [\"unix:a.sock\"]\n", "f:1:10: listen: \"unix:a.sock\": a socket's path begins with "
                                    "/: write unix:/run/redlockd/redlockd.sock\n"},
    {"listen: [\"unix:/a\", \"unix:///a\"]\n", "f:1:21: listen: unix:///a is given twice\n"},
    {"listen: [\"tcp://0.0.0.0:1\"]\n",
     "f:1:10: listen: tcp://0.0.0.0:1 can be reached from other hosts, and whoever reaches it can "
     "take locks: authentication is not available yet; listen on 127.0.0.1 or a unix socket, or "
     "say insecure: true\n"},
    {"!cluster: x\n", "f:1:1: nodes: missing; list at least three Redis masters\n"},
    {"!nodes: x\n", "f:1:8: nodes: has to be a list, not a scalar\n"},
    {"!nodes: []\n", "f:1:8: nodes: 0 of them; take an odd number from 3 to 15, as 4 masters "
                     "survive no more failures than 3\n"},
    {"!nodes:\n- {name: a, url: \"redis://h\"}\n- {name: b, url: \"redis://i\"}\n"
     "- {name: c, url: \"redis://j\"}\n- {name: d, url: \"redis://k\"}\n",
     "f:2:1: nodes: 4 of them; take an odd number from 3 to 15, as 4 masters survive no more "
     "failures than 3\n"},
    {"!nodes:\n- {name: a, url: \"redis://h\"}\n- {name: a, url: \"redis://i\"}\n"
     "- {name: c, url: \"redis://H:6379/1\"}\n",
     "f:3:3: nodes: two have the name a\n"
     "f:4:3: nodes: redis://H:6379/1 is listed twice; a quorum needs independent masters\n"},
    {"!nodes:\n- {name: \"a b\", url: \"redis://u:p@h\"}\n- {url: \"redis://i/x\"}\n- {name: c}\n",
     "f:2:10: nodes.name: write 1 to 32 of the letters A-Z a-z 0-9 _ . -\n"
     "f:2:22: nodes.url: no user or password in an address: put the password into a file and name "
     "it by password_file, the user by username\n"
     "f:3:3: nodes: name is missing\n"
     "f:3:9: nodes.url: behind the / stands the number of a database, 0 to 9999\n"
     "f:4:3: nodes: url is missing\n"},
    {"!nodes:\n- x\n- {name: b, url: \"redis://i\", username: u}\n"
     "- {name: c, url: \"redis://j\", password_file: /nonexistent, port: 5}\n",
     "f:2:3: nodes: has to be a mapping, not a scalar\n"
     "f:3:3: nodes: a username needs a password_file beside it\n"
     "f:4:46: nodes.password_file: /nonexistent: No such file or directory\n"
     "f:4:60: nodes.port: there is no such key\n"},
    {"!", "f:1:1: the file is empty: at least `nodes` has to be given\n"},
    {"!# nothing\n", "f:1:1: the file is empty: at least `nodes` has to be given\n"},
    {"!- a\n", "f:1:1: the file: has to be a mapping, not a list\n"},
    {"!cluster: &x a\n", "f:1:10: anchors are not supported (&x); write the value out\n"},
    {"!cluster: *x\n", "f:1:10: aliases are not supported (*x); write the value out\n"},
    {"!cluster: !!str x\n",
     "f:1:10: tags are not supported (tag:yaml.org,2002:str); leave it out\n"},
    {"!locks: &l {}\n", "f:1:8: anchors are not supported (&l); write the value out\n"},
    {"!nodes: &l []\n", "f:1:8: anchors are not supported (&l); write the value out\n"},
    {"![a]: b\n", "f:1:1: a key has to be a word, not a list\n"},
    {"!locks:\n\tmax_ttl: 1s\n", "f:2:1: not YAML: found character that cannot start any token "
                                 "while scanning for the next token\n"},
    {"!a: [[[[[[[[[1]]]]]]]]]\n", "f:1:11: nested too deeply\n"},
    {"!cluster: \"x\\0y\"\n", "f:1:1: nodes: missing; list at least three Redis masters\n"
                              "f:1:10: a NUL byte has no place here\n"},
    {"cluster: \"${REDLOCKD_TEST_UNSET}\"\n",
     "f:1:10: the environment variable REDLOCKD_TEST_UNSET is not set\n"},
    {"locks: {key_prefix: a$b}\n",
     "f:1:21: \"$\" begins a variable, ${NAME}; write $$ for a dollar\n"},
};

START_TEST(each_mistake_has_its_place_and_advice)
{
    char text[4096];
    const char *given = mistakes[_i].text;
    snprintf(text, sizeof(text), "%s%s", given[0] == '!' ? given + 1 : given,
             given[0] == '!' ? "" : NODES);
    ck_assert_ptr_null(load(text));
    ck_assert_str_eq(report, mistakes[_i].report);
}
END_TEST

START_TEST(a_second_document_is_refused)
{
    ck_assert_ptr_null(load(NODES "---\nb: c\n"));
    ck_assert_str_eq(report, "f:5:1: a second document begins here; a configuration is one\n");
}
END_TEST

START_TEST(what_is_not_text_or_too_large_is_refused)
{
    static char large[256 * 1024 + 2];
    memset(large, '#', sizeof(large));
    ck_assert_ptr_null(load_as(large, sizeof(large), CONFIG_NORMAL));
    ck_assert_str_eq(report, "f:1:1: larger than 256 KiB: not a configuration\n");
    ck_assert_ptr_null(load("a: \xff\xfe\n"));
    ck_assert_ptr_nonnull(strstr(report, "f:1:1: not UTF-8 text"));
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named)
{
    FILE *out = fmemopen(report, sizeof(report) - 1, "w");
    ck_assert_ptr_null(config_load("/nonexistent.yaml", CONFIG_NORMAL, out));
    fclose(out);
    ck_assert_str_eq(report, "/nonexistent.yaml: No such file or directory\n");
}
END_TEST

START_TEST(all_mistakes_come_in_one_pass)
{
    ck_assert_ptr_null(load("cluster: \"\"\nlocks: {max_ttl: 1, min_validity: 2}\n"
                            "log: {level: x}\nnodes: []\n"));
    unsigned lines = 0;
    for (const char *at = report; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_uint_eq(lines, 5);
}
END_TEST

START_TEST(what_is_left_out_has_its_default)
{
    struct config *config = load(NODES);
    ck_assert_str_eq(report, "");
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(config->cluster, "main");
    ck_assert_uint_eq(config->listen_count, 1);
    ck_assert_str_eq(config->listens[0].address.url, "tcp://127.0.0.1:7335");
    ck_assert_str_eq(config->locks.key_prefix, "redlock:");
    ck_assert_int_eq(config->locks.max_ttl_ns, 60000000000);
    ck_assert_int_eq(config->locks.min_validity_ns, 1000000);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 10000);
    ck_assert_int_eq(config->locks.clock_drift_margin_ns, 10000000);
    ck_assert_int_eq(config->rounds.node_timeout_ns, 50000000);
    ck_assert_int_eq(config->limits.clients, 10000);
    ck_assert_int_eq(config->log.level, CONFIG_LOG_INFO);
    ck_assert_int_eq(config->log.format, CONFIG_LOG_TEXT);
    ck_assert(!config->insecure);
    config_free(config);
}
END_TEST

START_TEST(nodes_are_read_as_written)
{
    struct config *config = load(NODES);
    ck_assert_ptr_nonnull(config);
    ck_assert_uint_eq(config->node_count, 3);
    ck_assert_str_eq(config->nodes[0].address.host, "10.0.0.1");
    ck_assert_uint_eq(config->nodes[0].address.port, 6379);
    ck_assert_str_eq(config->nodes[1].address.host, "fd00::2");
    ck_assert_uint_eq(config->nodes[1].address.port, 6379);
    ck_assert_uint_eq(config->nodes[1].database, 3);
    ck_assert_str_eq(config->nodes[2].address.path, "/run/redis.sock");
    config_free(config);
}
END_TEST

START_TEST(everything_can_be_set)
{
    const struct group *root = getgrgid(0);
    char text[2048];
    snprintf(text, sizeof(text),
             "cluster: eu.1\ninsecure: true\n"
             "listen:\n- tcp://0.0.0.0:1\n- {url: \"unix:/a\", mode: \"0600\", group: %s}\n"
             "- {url: \"unix:/b\", group: \"77\"}\n- tcp://localhost:2\n- tcp://[::1]:3\n"
             "locks: {key_prefix: \"\", max_ttl: 2m, min_validity: 5ms, clock_drift_rate: 0.25%%,\n"
             "        clock_drift_margin: 1500us}\n"
             "rounds: {node_timeout: 20ms}\nlimits: {clients: 7}\n"
             "log: {level: error, format: json}\n" NODES,
             root->gr_name);
    struct config *config = load(text);
    ck_assert_str_eq(report, "");
    ck_assert_ptr_nonnull(config);
    ck_assert_uint_eq(config->listen_count, 5);
    ck_assert_uint_eq(config->listens[1].mode, 0600);
    ck_assert_uint_eq(config->listens[1].group, 0);
    ck_assert_uint_eq(config->listens[2].mode, 0660);
    ck_assert_uint_eq(config->listens[2].group, 77);
    ck_assert_str_eq(config->locks.key_prefix, "");
    ck_assert_int_eq(config->locks.max_ttl_ns, 120000000000);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 2500);
    ck_assert_int_eq(config->locks.clock_drift_margin_ns, 1500000);
    ck_assert_int_eq(config->rounds.node_timeout_ns, 20000000);
    ck_assert_int_eq(config->limits.clients, 7);
    ck_assert_int_eq(config->log.level, CONFIG_LOG_ERROR);
    ck_assert_int_eq(config->log.format, CONFIG_LOG_JSON);
    config_free(config);
}
END_TEST

START_TEST(variables_are_replaced_and_a_doubled_dollar_is_one)
{
    setenv("REDLOCKD_TEST_NAME", "eu", 1);
    struct config *config = load("cluster: ${REDLOCKD_TEST_NAME}.1\n"
                                 "locks: {key_prefix: \"$${x}\"}\n" NODES);
    ck_assert_str_eq(report, "");
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(config->cluster, "eu.1");
    ck_assert_str_eq(config->locks.key_prefix, "${x}");
    config_free(config);
}
END_TEST

START_TEST(keys_that_have_no_effect_yet_are_checked_and_warned_about)
{
    struct config *config = load("locks: {max_hold: 1h, fence_ttl: 24h, max_extensions: 10}\n"
                                 "admin: http://127.0.0.1:1\n" NODES);
    ck_assert_str_eq(
        report,
        "f:1:9: warning: locks.max_hold has no effect yet (it comes with HOLD)\n"
        "f:1:23: warning: locks.fence_ttl has no effect yet (it comes with FENCE)\n"
        "f:1:39: warning: locks.max_extensions has no effect yet (it comes with the guard)\n"
        "f:2:1: warning: admin has no effect yet (it comes with the admin page)\n");
    ck_assert_ptr_nonnull(config);
    config_free(config);
    ck_assert_ptr_null(load("locks: {max_hold: 1}\n" NODES));
}
END_TEST

/* A node c whose password file holds these bytes. */
static struct config *load_secret(const char *secret, size_t len)
{
    char path[] = "/tmp/redlockd-secret.XXXXXX";
    char text[1024];
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, secret, len), (ssize_t)len);
    close(fd);
    snprintf(text, sizeof(text),
             "nodes:\n- {name: a, url: \"redis://a\"}\n- {name: b, url: \"redis://b\"}\n"
             "- {name: c, url: \"redis://c\", username: u, password_file: %s}\n",
             path);
    struct config *config = load(text);
    unlink(path);
    return config;
}

START_TEST(a_password_comes_from_its_file_without_the_newline)
{
    struct config *config = load_secret("s3cret\n", 7);
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(config->nodes[2].password, "s3cret");
    ck_assert_str_eq(config->nodes[2].username, "u");
    config_free(config);
}
END_TEST

START_TEST(an_empty_long_or_binary_password_is_refused)
{
    char large[1026];
    memset(large, 'x', sizeof(large));
    ck_assert_ptr_null(load_secret("\n", 1));
    ck_assert_ptr_nonnull(strstr(report, "has to hold one line of 1 to 1024 bytes"));
    ck_assert_ptr_null(load_secret(large, sizeof(large)));
    ck_assert_ptr_null(load_secret("a\0b", 3));
}
END_TEST

START_TEST(dev_needs_no_nodes_and_takes_none)
{
    struct config *config = load_as("cluster: x\n", 11, CONFIG_DEV);
    ck_assert_ptr_nonnull(config);
    config_free(config);
    ck_assert_ptr_null(load_as(NODES, strlen(NODES), CONFIG_DEV));
    ck_assert_ptr_nonnull(strstr(report, "nodes: --dev brings its own masters"));
}
END_TEST

START_TEST(there_is_a_bound_on_nodes_listens_and_paths)
{
    char text[8192] = "listen:\n";
    for (unsigned i = 0; i < 17; i++)
        sprintf(text + strlen(text), "- unix:/s%u\n", i);
    sprintf(text + strlen(text), "- unix:/");
    memset(text + strlen(text), 'p', 120);
    strcat(text, "\nnodes:\n");
    for (unsigned i = 0; i < 16; i++)
        sprintf(text + strlen(text), "- {name: n%u, url: \"redis://h%u\"}\n", i, i);
    ck_assert_ptr_null(load(text));
    ck_assert_str_eq(report, "f:18:3: listen: more than 16 addresses\n"
                             "f:36:3: nodes: more than 15\n");
    char long_path[512] = "listen: [\"unix:/";
    memset(long_path + strlen(long_path), 'p', 120);
    strcat(long_path, "\"]\n" NODES);
    ck_assert_ptr_null(load(long_path));
    ck_assert_ptr_nonnull(
        strstr(report, "the path has 121 bytes; a unix socket's has at most 107"));
}
END_TEST

START_TEST(the_example_loads_and_says_the_defaults)
{
    FILE *out = fmemopen(report, sizeof(report) - 1, "w");
    memset(report, 0, sizeof(report));
    struct config *config = config_load("redlockd.yaml.example", CONFIG_NORMAL, out);
    struct config *initial = config_defaults();
    fclose(out);
    ck_assert_str_eq(report, "");
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(config->cluster, initial->cluster);
    ck_assert_mem_eq(&config->locks.max_ttl_ns, &initial->locks.max_ttl_ns,
                     sizeof(config->locks) - offsetof(struct config, locks.max_ttl_ns) +
                         offsetof(struct config, locks));
    ck_assert_str_eq(config->locks.key_prefix, initial->locks.key_prefix);
    ck_assert_mem_eq(&config->rounds, &initial->rounds, sizeof(config->rounds));
    ck_assert_mem_eq(&config->limits, &initial->limits, sizeof(config->limits));
    ck_assert_mem_eq(&config->log, &initial->log, sizeof(config->log));
    ck_assert_str_eq(config->listens[0].address.url, initial->listens[0].address.url);
    config_free(config);
    config_free(initial);
}
END_TEST

START_TEST(the_example_names_every_key)
{
    char text[16384] = {0};
    FILE *file = fopen("redlockd.yaml.example", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 1000);
    fclose(file);
    const char *name;
    for (size_t i = 0; (name = config_key_name(i)) != NULL; i++) {
        char line[64];
        const char *dot = strchr(name, '.');
        snprintf(line, sizeof(line), "%s:", dot != NULL ? dot + 1 : name);
        ck_assert_msg(strstr(text, line) != NULL, "%s is missing", name);
    }
}
END_TEST

START_TEST(local_addresses_are_known)
{
    static const struct {
        const char *url;
        bool local;
    } rows[] = {
        {"tcp://127.0.0.1:1", true},  {"tcp://127.9.9.9:1", true}, {"tcp://localhost:1", true},
        {"tcp://[::1]:1", true},      {"unix:/a", true},           {"tcp://10.0.0.1:1", false},
        {"tcp://[fd00::1]:1", false}, {"tcp://example:1", false},  {"tcp://0.0.0.0:1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_address address;
        struct error error;
        ck_assert(url_parse(rows[i].url, "tcp", 0, &address, NULL, &error));
        ck_assert_int_eq(url_is_local(&address), rows[i].local);
        url_free(&address);
    }
}
END_TEST

START_TEST(an_address_has_a_longest_length)
{
    char url[700] = "tcp://";
    struct config_address address;
    struct error error;
    memset(url + 6, 'h', 600);
    ck_assert(!url_parse(url, "tcp", 0, &address, NULL, &error));
    ck_assert_str_eq(error.text, "longer than 511 bytes: no address");
    url_free(&address);
}
END_TEST

START_TEST(durations_print_exactly)
{
    char buf[32];
    ck_assert_str_eq(value_print_duration(3600000000000, buf), "1h");
    ck_assert_str_eq(value_print_duration(90000000000, buf), "90s");
    ck_assert_str_eq(value_print_duration(1500000, buf), "1500us");
    ck_assert_str_eq(value_print_duration(0, buf), "0h");
}
END_TEST

START_TEST(suggestions_are_near_or_none)
{
    static const char *const words[] = {"max_ttl", "min_validity", NULL};
    ck_assert_str_eq(value_suggestion("max_tll", words), "max_ttl");
    ck_assert_str_eq(value_suggestion("mn_validity", words), "min_validity");
    ck_assert_ptr_null(value_suggestion("port", words));
    ck_assert_ptr_null(value_suggestion("a_word_far_longer_than_any_key_could_be_at_all", words));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("config");
    TCase *cases = tcase_create("config");
    tcase_add_loop_test(cases, each_mistake_has_its_place_and_advice, 0,
                        (int)(sizeof(mistakes) / sizeof(mistakes[0])));
    tcase_add_test(cases, a_second_document_is_refused);
    tcase_add_test(cases, what_is_not_text_or_too_large_is_refused);
    tcase_add_test(cases, a_file_that_is_not_there_is_named);
    tcase_add_test(cases, all_mistakes_come_in_one_pass);
    tcase_add_test(cases, what_is_left_out_has_its_default);
    tcase_add_test(cases, nodes_are_read_as_written);
    tcase_add_test(cases, everything_can_be_set);
    tcase_add_test(cases, variables_are_replaced_and_a_doubled_dollar_is_one);
    tcase_add_test(cases, keys_that_have_no_effect_yet_are_checked_and_warned_about);
    tcase_add_test(cases, a_password_comes_from_its_file_without_the_newline);
    tcase_add_test(cases, an_empty_long_or_binary_password_is_refused);
    tcase_add_test(cases, dev_needs_no_nodes_and_takes_none);
    tcase_add_test(cases, there_is_a_bound_on_nodes_listens_and_paths);
    tcase_add_test(cases, the_example_loads_and_says_the_defaults);
    tcase_add_test(cases, the_example_names_every_key);
    tcase_add_test(cases, local_addresses_are_known);
    tcase_add_test(cases, an_address_has_a_longest_length);
    tcase_add_test(cases, durations_print_exactly);
    tcase_add_test(cases, suggestions_are_near_or_none);
    suite_add_tcase(suite, cases);
    return suite;
}
