/*
 * config/: the report has one line for each mistake, with its line and column and a remedy. One
 * pass finds all mistakes, and reports none that merely follows from another.
 */
#include <stdio.h>
#include <string.h>

#include "config/listens.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

const struct runner_settings runner_settings = {.setup = configs_open, .teardown = configs_close};

#define LONG_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct mistake {
    const char *text; /* NODES is appended unless the text begins with '!' */
    const char *report;
};

static const struct mistake mistakes[] = {
    /* keys */
    {"lokcs: {}\n", "f:1:1: lokcs: unknown key; did you mean locks?\n"},
    {"zzzzzzzz: 1\n", "f:1:1: zzzzzzzz: unknown key\n"},
    {"locks: {maxttl: 5s}\n", "f:1:9: locks.maxttl: unknown key; did you mean max_ttl?\n"},
    {"rounds: {max_ttl: 5s}\n", "f:1:10: rounds.max_ttl: unknown key\n"},
    {"locks.max_ttl: 5s\n", "f:1:1: locks.max_ttl: unknown key\n"},
    {"max_ttl: 5s\n", "f:1:1: max_ttl: unknown key\n"},
    {"\"\": 5s\n", "f:1:1: : unknown key\n"},
    {LONG_64 ": 5s\n", "f:1:1: " LONG_64 ": unknown key\n"},
    {"cluster: a\ncluster: b\n", "f:2:1: cluster: given twice; the first is in line 1, column 1\n"},

    /* types */
    {"locks: 5\n", "f:1:8: locks: must be a mapping, not a single value\n"},
    {"locks: []\n", "f:1:8: locks: must be a mapping, not a list\n"},
    {"locks: {max_ttl: }\n",
     "f:1:18: locks.max_ttl: has no value; write a single value, or leave it out\n"},
    {"locks: {max_ttl: [1s]}\n", "f:1:18: locks.max_ttl: must be a single value, not a list\n"},
    {"insecure: {a: b}\n", "f:1:11: insecure: must be a single value, not a mapping\n"},
    {"!- a\n", "f:1:1: the file: must be a mapping, not a list\n"},
    {"!a\n", "f:1:1: the file: must be a mapping, not a single value\n"},
    {"insecure: yes\n", "f:1:11: insecure: \"yes\" must be true or false\n"},

    /* durations */
    {"locks: {max_ttl: 60}\n",
     "f:1:18: locks.max_ttl: \"60\" has no unit; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: long}\n",
     "f:1:18: locks.max_ttl: \"long\" is not a duration; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: \"\"}\n",
     "f:1:18: locks.max_ttl: \"\" is not a duration; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: -5s}\n",
     "f:1:18: locks.max_ttl: \"-5s\" is not a duration; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: 5d}\n",
     "f:1:18: locks.max_ttl: \"5d\" has an unknown unit; use us, ms, s, m or h\n"},
    {"locks: {max_ttl: 5 s}\n",
     "f:1:18: locks.max_ttl: \"5 s\" has a space before its unit; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: 1.5s}\n", "f:1:18: locks.max_ttl: \"1.5s\" is not a whole number; use a "
                                 "smaller unit, for example 1500ms for 1.5s\n"},
    {"locks: {max_ttl: 999999999999999h}\n",
     "f:1:18: locks.max_ttl: 999999999999999h is out of range; it must be between 100ms and 24h\n"},
    {"locks: {max_ttl: 10000000000000000000000us}\n",
     "f:1:18: locks.max_ttl: 10000000000000000000000us is out of range; it must be between 100ms "
     "and 24h\n"},

    /* rates */
    {"locks: {clock_drift_rate: 1}\n",
     "f:1:27: locks.clock_drift_rate: \"1\" is not a rate; write 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: 1.%}\n",
     "f:1:27: locks.clock_drift_rate: \"1.%\" is not a rate; write 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: fast}\n",
     "f:1:27: locks.clock_drift_rate: \"fast\" is not a rate; write 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: 10000000ppm}\n",
     "f:1:27: locks.clock_drift_rate: 10000000ppm is out of range; it must be between 0% and "
     "10%\n"},
    {"locks: {clock_drift_rate: 10000000000000000000000.5%}\n",
     "f:1:27: locks.clock_drift_rate: 10000000000000000000000.5% is out of range; it must be "
     "between 0% and 10%\n"},
    {"locks: {clock_drift_rate: 0.00001%}\n",
     "f:1:27: locks.clock_drift_rate: \"0.00001%\" is finer than 1ppm; write at most four decimal "
     "places\n"},

    /* ranges: a value below and a value above */
    {"locks: {max_ttl: 99ms}\n",
     "f:1:18: locks.max_ttl: 99ms is out of range; it must be between 100ms and 24h\n"},
    {"locks: {max_ttl: 25h}\n",
     "f:1:18: locks.max_ttl: 25h is out of range; it must be between 100ms and 24h\n"},
    {"locks: {min_validity: 999us}\n",
     "f:1:23: locks.min_validity: 999us is out of range; it must be between 1ms and 1m\n"},
    {"locks: {min_validity: 61s}\n",
     "f:1:23: locks.min_validity: 61s is out of range; it must be between 1ms and 1m\n"},
    {"locks: {clock_drift_rate: 10.0001%}\n",
     "f:1:27: locks.clock_drift_rate: 10.0001% is out of range; it must be between 0% and 10%\n"},
    {"locks: {clock_drift_margin: 0ms}\n",
     "f:1:29: locks.clock_drift_margin: 0ms is out of range; it must be between 1ms and 10s\n"},
    {"locks: {clock_drift_margin: 11s}\n",
     "f:1:29: locks.clock_drift_margin: 11s is out of range; it must be between 1ms and 10s\n"},
    {"rounds: {node_timeout: 0s}\n",
     "f:1:24: rounds.node_timeout: 0s is out of range; it must be between 1ms and 10s\n"},
    {"rounds: {node_timeout: 10001ms}\n",
     "f:1:24: rounds.node_timeout: 10001ms is out of range; it must be between 1ms and 10s\n"},
    {"limits: {clients: 0}\n",
     "f:1:19: limits.clients: 0 is out of range; it must be between 1 and 1000000\n"},
    {"limits: {clients: 1000001}\n",
     "f:1:19: limits.clients: 1000001 is out of range; it must be between 1 and 1000000\n"},
    {"limits: {clients: many}\n",
     "f:1:19: limits.clients: \"many\" is not a number; write digits, for example 1000\n"},
    {"limits: {clients: 10000000000000000000000}\n",
     "f:1:19: limits.clients: 10000000000000000000000 is out of range; it must be between 1 and "
     "1000000\n"},
    {"limits: {clients: 10000000000000000000000x}\n",
     "f:1:19: limits.clients: \"10000000000000000000000x\" is not a number; write digits, for "
     "example 1000\n"},

    /* words */
    {"log: {level: loud}\n",
     "f:1:14: log.level: \"loud\" is not one of debug, info, warning, error\n"},
    {"log: {format: xml}\n", "f:1:15: log.format: \"xml\" is not one of text, json\n"},
    {"cluster: \"a b\"\n", "f:1:10: cluster: \"a b\" may contain only A-Z a-z 0-9 _ . : -\n"},
    {"cluster: \"\"\n", "f:1:10: cluster: has 0 bytes; it must have 1 to 64\n"},
    {"cluster: " LONG_64 "a\n", "f:1:10: cluster: has 65 bytes; it must have 1 to 64\n"},
    {"locks: {key_prefix: " LONG_64 "a}\n",
     "f:1:21: locks.key_prefix: has 65 bytes; it must have 0 to 64\n"},
    {"locks: {key_prefix: \"redlockd:x\"}\n",
     "f:1:21: locks.key_prefix: \"redlockd:x\" is reserved for redlockd's own keys; choose another "
     "prefix\n"},
    {"locks: {key_prefix: \"a b\"}\n",
     "f:1:21: locks.key_prefix: \"a b\" must not contain spaces or control characters\n"},
    {"locks: {key_prefix: \"a\\x7f\"}\n",
     "f:1:21: locks.key_prefix: \"a\\x7f\" must not contain spaces or control characters\n"},
    {"cluster: \"${REDLOCKD_TEST_UNSET}\"\n",
     "f:1:10: the environment variable REDLOCKD_TEST_UNSET is not set\n"},

    /* keys that contradict each other: the report has the place of the key that its text names
     * first or, if the file does not set that key, of another one of them */
    {"locks: {max_ttl: 100ms, clock_drift_margin: 48ms}\n",
     "f:1:18: locks.max_ttl: 100ms leaves no validity, because clock drift, min_validity and "
     "node_timeout take 100ms; raise it to at least 101ms, or lower one of these\n"},
    {"rounds: {node_timeout: 10s}\nlocks: {min_validity: 50s}\n",
     "f:2:23: locks.max_ttl: 1m leaves no validity, because clock drift, min_validity and "
     "node_timeout take 60610ms; raise it to at least 60617ms, or lower one of these\n"},
    {"rounds: {backoff_min: 20ms, backoff_max: 10ms}\n",
     "f:1:42: rounds.backoff_max: 10ms is less than rounds.backoff_min (20ms); raise it to at "
     "least "
     "that value\n"},
    {"rounds: {backoff_min: 1s}\n", "f:1:23: rounds.backoff_max: 250ms is less than "
                                    "rounds.backoff_min (1s); raise it to at least that value\n"},
    {"locks: {fence_ttl: 59s}\n", "f:1:20: locks.fence_ttl: 59s is less than locks.max_ttl (1m); "
                                  "raise it to at least that value\n"},

    /* listen */
    {"listen: tcp://127.0.0.1:1\n", "f:1:9: listen: must be a list, not a single value\n"},
    {"listen:\n", "f:1:8: listen: has no value; write a list, or leave it out\n"},
    {"listen: []\n",
     "f:1:9: listen: the list is empty; leave the key out to listen on tcp://127.0.0.1:7335\n"},
    {"listen: [[a]]\n", "f:1:10: listen: must be a mapping, not a list\n"},
    {"listen:\n-\n", "f:2:2: listen: has no value; write a mapping, or leave it out\n"},
    {"listen: [{mode: \"0600\"}]\n",
     "f:1:10: listen.url: missing; write {url: \"unix:/PATH\", ...}\n"},
    {"listen: [{url: \"tcp://127.0.0.1:1\", mode: \"0600\"}]\n",
     "f:1:37: listen: mode and group are for unix sockets; leave them out of tcp://127.0.0.1:1\n"},
    {"listen: [{url: \"tcp://127.0.0.1:1\", group: \"0\"}]\n",
     "f:1:37: listen: mode and group are for unix sockets; leave them out of tcp://127.0.0.1:1\n"},
    {"listen: [{url: \"unix:/a\", mode: \"rw\"}]\n",
     "f:1:33: listen.mode: \"rw\" is not a file mode; write 0600, 0660 or 0666\n"},
    {"listen: [{url: \"unix:/a\", mode: \"1777\"}]\n",
     "f:1:33: listen.mode: \"1777\" is not a file mode; write 0600, 0660 or 0666\n"},
    {"listen: [{url: \"unix:/a\", group: no-such-group}]\n",
     "f:1:34: listen.group: \"no-such-group\" is not a group of this host; write the name or "
     "number of a group\n"},
    {"listen: [{url: \"unix:/a\", group: 4294967295}]\n",
     "f:1:34: listen.group: \"4294967295\" is not a group of this host; write the name or number "
     "of a group\n"},
    {"listen: [{url: \"unix:/a\", own: x, mode: [1], [a]: b}]\n",
     "f:1:27: listen.own: unknown key\n"
     "f:1:41: listen.mode: must be a single value, not a list\n"
     "f:1:46: a key must be a word, not a list\n"},
    {"listen: [\"unix:/a\", \"unix:/b\", \"unix:///a\"]\n",
     "f:1:32: listen: unix:///a is given twice; the first is in line 1\n"},
    {"listen: [\"tcp://[::1]:1\",\n \"tcp://[0::0:1]:1\"]\n",
     "f:2:2: listen: tcp://[0::0:1]:1 is given twice; the first is in line 1\n"},
    {"insecure: true\nlisten: [\"tcp://127.0.0.1:1\",\n \"tcp://0.0.0.0:1\"]\n",
     "f:3:2: listen: tcp://0.0.0.0:1 conflicts with tcp://127.0.0.1:1 in line 2: one of them "
     "covers every address with that port\n"},
    {"insecure: true\nlisten: [\"tcp://[::]:1\",\n \"tcp://[::1]:1\"]\n",
     "f:3:2: listen: tcp://[::1]:1 conflicts with tcp://[::]:1 in line 2: one of them covers every "
     "address with that port\n"},
    {"listen: [\"unix:/a\", \"tcp://0.0.0.0:1\"]\n",
     "f:1:21: listen: other hosts can reach tcp://0.0.0.0:1 and release locks there; list users "
     "(auth), require certificates (tls:// with client_ca), listen "
     "on 127.0.0.1 or a unix socket, or set "
     "insecure: true\n"},

    /* nodes */
    {"!", "f:1:1: nodes: missing; list at least three Redis masters\n"},
    {"!cluster: x\n", "f:1:1: nodes: missing; list at least three Redis masters\n"},
    {"!nodes: x\n", "f:1:8: nodes: must be a list, not a single value\n"},
    {"!nodes: []\n", "f:1:8: nodes: 0 are too few for a quorum; list 3 or 5\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n",
     "f:2:1: nodes: 2 are too few for a quorum; list 3 or 5\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") "}\n" NODE("d") "}\n",
     "f:2:1: nodes: 4 is an even number and tolerates no more failures than 3; list 3 or 5\n"},
    {"!nodes:\n" NODE("a") "}\n- {name: a, url: \"redis://i\"}\n"
                           "- {name: c, url: \"redis://A:6379/1\"}\n",
     "f:3:10: nodes.name: a is already the name of the node in line 2; give each its own\n"
     "f:4:18: nodes.url: redis://A:6379/1 is also the address of the node in line 2; a quorum "
     "needs independent "
     "masters\n"},
    {"!nodes:\n" NODE("a") "}\n- {name: b, url: \"redis://a\"}\n- {name: c, url: \"redis://a\"}\n",
     "f:3:18: nodes.url: redis://a is also the address of the node in line 2; a quorum needs "
     "independent "
     "masters\n"
     "f:4:18: nodes.url: redis://a is also the address of the node in line 2; a quorum needs "
     "independent "
     "masters\n"},
    {"!nodes:\n- {url: \"redis://i\"}\n- {name: c}\n- x\n",
     "f:2:3: nodes.name: missing; write {name: a, url: \"redis://10.0.0.1:6379\"}\n"
     "f:3:3: nodes.url: missing; write {name: a, url: \"redis://10.0.0.1:6379\"}\n"
     "f:4:3: nodes: must be a mapping like {name: a, url: \"redis://10.0.0.1:6379\"}, not a "
     "single value\n"},
    {"!nodes:\n- {name: \"a:b\", url: [], username: u}\n" NODE("b") ", port: 5}\n" NODE("c") "}\n",
     "f:2:10: nodes.name: \"a:b\" is not a valid name; write 1 to 32 of A-Z a-z 0-9 _ . -\n"
     "f:2:22: nodes.url: must be a single value, not a list\n"
     "f:2:26: nodes.username: needs a password as well; set password_file\n"
     "f:3:31: nodes.port: unknown key\n"},
    {"!nodes:\n" NODE("a") ", durable: true}\n" NODE("b") "}\n" NODE("c") ", durable: maybe}\n",
     "f:4:40: nodes.durable: \"maybe\" must be true or false\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", password_file: /nonexistent}\n",
     "f:4:46: nodes.password_file: /nonexistent cannot be read: No such file or directory\n"},
    /* A password in place of a file does not get into the log. */
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", password_file: hunter2}\n",
     "f:4:46: nodes.password_file: is not the path of a file; write the secret into a file, and "
     "its path here\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", password_file: q8/EjRWeJ+mrT=}\n",
     "f:4:46: nodes.password_file: is not the path of a file; write the secret into a file, and "
     "its path here\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", password_file: /}\n",
     "f:4:46: nodes.password_file: / is not a regular file\n"},
};

TEST_ROWS(each_mistake_is_reported_with_its_place_and_advice, mistakes)
{
    char text[4096];
    const char *given = mistakes[_i].text;
    snprintf(text, sizeof(text), "%s%s", given[0] == '!' ? given + 1 : given,
             given[0] == '!' ? "" : NODES);
    configs_refuse(text, mistakes[_i].report);
}

TEST(report_lists_all_mistakes_in_the_order_of_the_file)
{
    configs_refuse(
        "locks:\n"
        "  max_tll: 60s\n"
        "  min_validity: 50\n"
        "listen:\n"
        "  - tcp://127.0.0.1\n"
        "  - tcp://0.0.0.0:7335\n"
        "nodes:\n"
        "  - {name: a, url: \"redis://10.0.0.1\"}\n"
        "  - {name: b, url: \"http://10.0.0.2\"}\n"
        "  - {name: a, url: \"redis://10.0.0.1:6379\"}\n"
        "locks: {}\n"
        "log: {level: loud, format: *x}\n",
        "f:2:3: locks.max_tll: unknown key; did you mean max_ttl?\n"
        "f:3:17: locks.min_validity: \"50\" has no unit; write 60s, 1m or 500ms\n"
        "f:5:5: listen: \"tcp://127.0.0.1\" has no port; write tcp://127.0.0.1:7335\n"
        "f:6:5: listen: other hosts can reach tcp://0.0.0.0:7335 and release locks there; list "
        "users (auth), require certificates (tls:// with "
        "client_ca), listen on 127.0.0.1 or a unix socket, "
        "or set insecure: true\n"
        "f:9:20: nodes.url: \"http://10.0.0.2\" is not a redis:// address; write "
        "redis://10.0.0.1:6379 or unix:/run/redis/redis.sock\n"
        "f:10:12: nodes.name: a is already the name of the node in line 8; give each its own\n"
        "f:10:20: nodes.url: redis://10.0.0.1:6379 is also the address of the node in line 8; a "
        "quorum needs "
        "independent masters\n"
        "f:11:1: locks: given twice; the first is in line 1, column 1\n"
        "f:12:14: log.level: \"loud\" is not one of debug, info, warning, error\n"
        "f:12:28: aliases are not supported (*x); write the value out\n");
}

TEST(mistake_that_follows_from_another_is_not_reported)
{
    /* A malformed max_ttl, insecure or node list causes no errors of the keys that are compared
     * with it. */
    configs_refuse("locks: {max_ttl: 2m!, min_validity: 1m}\n" NODES,
                   "f:1:18: locks.max_ttl: \"2m!\" has an unknown unit; use us, ms, s, m or h\n");
    configs_refuse("locks: {max_ttl: 1, fence_ttl: 59s}\n" NODES,
                   "f:1:18: locks.max_ttl: \"1\" has no unit; write 60s, 1m or 500ms\n");
    configs_refuse("listen: [\"tcp://0.0.0.0:1\"]\ninsecure: True\n" NODES,
                   "f:2:11: insecure: \"True\" must be true or false\n");
    configs_refuse("nodes: *x\n", "f:1:8: aliases are not supported (*x); write the value out\n");
    configs_refuse(NODES NODES, "f:5:1: nodes: given twice; the first is in line 1, column 1\n");
}

TEST(missing_or_unreadable_file_is_named)
{
    ck_assert_ptr_null(configs_load("/nonexistent.yaml", CONFIG_NORMAL));
    ck_assert_str_eq(configs_report(), "/nonexistent.yaml: No such file or directory\n");
    ck_assert_ptr_null(configs_load("/", CONFIG_NORMAL));
    ck_assert_str_eq(configs_report(), "/:1:1: cannot be read: Is a directory\n");
}

TEST(number_of_nodes_and_listens_is_limited)
{
    char text[8192] = "listen:\n";
    for (unsigned i = 0; i <= LISTENS_MAX; i++)
        sprintf(text + strlen(text), "- unix:/s%u\n", i);
    strcat(text, "nodes:\n");
    for (unsigned i = 0; i <= LIMIT_NODES; i++)
        sprintf(text + strlen(text), "- {name: n%u, url: \"redis://h%u\"}\n", i, i);
    configs_refuse(text, "f:18:3: listen: more than 16 addresses; leave some out\n"
                         "f:35:3: nodes: more than 15; 5 or 7 are enough\n");
}

TEST(report_escapes_control_characters_of_the_file)
{
    configs_refuse("cluster: \"\\e[2J\\n\"\n" NODES,
                   "f:1:10: cluster: \"\\x1b[2J\\x0a\" may contain only A-Z a-z 0-9 _ . : -\n");
}

TEST(report_does_not_repeat_a_password_in_an_address)
{
    configs_refuse("nodes:\n- {name: a, url: \"redis://u:p@h\"}\n" NODE("b") "}\n" NODE("c") "}\n",
                   "f:2:18: nodes.url: the address contains a password; put it into a file and set "
                   "password_file\n");
    configs_refuse("listen: [\"rediss://u:p@h:1\"]\n" NODES,
                   "f:1:10: listen: the address contains a user name or a password; write "
                   "tcp://127.0.0.1:7335\n");
    char text[1024];
    snprintf(text, sizeof(text), "listen: [\"tcp://u:p@%0600d\"]\n" NODES, 0);
    configs_refuse(text, "f:1:10: listen: the address is longer than 511 bytes; write "
                         "tcp://127.0.0.1:7335\n");
}
