/*
 * config/: each mistake has its line, with the place and what would be right; all of them in one
 * pass, and none that only follows from another; and what is right is read as it is written.
 */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/listens.h"
#include "config/secret.h"
#include "config/url.h"
#include "config/value.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

#define LONG_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* --- mistakes --- */

struct mistake {
    const char *text; /* NODES comes behind it, unless it begins with '!' */
    const char *report;
};

static const struct mistake mistakes[] = {
    /* keys */
    {"lokcs: {}\n", "f:1:1: lokcs: there is no such key; did you mean locks?\n"},
    {"zzzzzzzz: 1\n", "f:1:1: zzzzzzzz: there is no such key\n"},
    {"locks: {maxttl: 5s}\n", "f:1:9: locks.maxttl: there is no such key; did you mean max_ttl?\n"},
    {"rounds: {max_ttl: 5s}\n", "f:1:10: rounds.max_ttl: there is no such key\n"},
    {"locks.max_ttl: 5s\n", "f:1:1: locks.max_ttl: there is no such key\n"},
    {"max_ttl: 5s\n", "f:1:1: max_ttl: there is no such key\n"},
    {"\"\": 5s\n", "f:1:1: : there is no such key\n"},
    {LONG_64 ": 5s\n", "f:1:1: " LONG_64 ": there is no such key\n"},
    {"cluster: a\ncluster: b\n", "f:2:1: cluster: given twice; the first is in line 1, column 1\n"},

    /* types */
    {"locks: 5\n", "f:1:8: locks: has to be a mapping, not a single value\n"},
    {"locks: []\n", "f:1:8: locks: has to be a mapping, not a list\n"},
    {"locks: {max_ttl: }\n",
     "f:1:18: locks.max_ttl: has no value; write a single value, or leave it out\n"},
    {"locks: {max_ttl: [1s]}\n", "f:1:18: locks.max_ttl: has to be a single value, not a list\n"},
    {"insecure: {a: b}\n", "f:1:11: insecure: has to be a single value, not a mapping\n"},
    {"!- a\n", "f:1:1: the file: has to be a mapping, not a list\n"},
    {"!a\n", "f:1:1: the file: has to be a mapping, not a single value\n"},
    {"insecure: yes\n", "f:1:11: insecure: \"yes\" is neither true nor false; write one\n"},

    /* durations */
    {"locks: {max_ttl: 60}\n",
     "f:1:18: locks.max_ttl: \"60\" has no unit; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: long}\n",
     "f:1:18: locks.max_ttl: \"long\" is no duration; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: \"\"}\n",
     "f:1:18: locks.max_ttl: \"\" is no duration; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: -5s}\n",
     "f:1:18: locks.max_ttl: \"-5s\" is no duration; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: 5d}\n",
     "f:1:18: locks.max_ttl: \"5d\" has a unit that is none of us, ms, s, "
     "m and h; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: 1.5s}\n", "f:1:18: locks.max_ttl: \"1.5s\" is no whole number; take a "
                                 "smaller unit, as 1500ms for one second and a half\n"},
    {"locks: {max_ttl: 999999999999999h}\n",
     "f:1:18: locks.max_ttl: \"999999999999999h\" is longer "
     "than anybody waits; write 60s, 1m or 500ms\n"},
    {"locks: {max_ttl: 1000000000000000us}\n",
     "f:1:18: locks.max_ttl: \"1000000000000000us\" is longer than anybody waits; write 60s, 1m or "
     "500ms\n"},

    /* rates */
    {"locks: {clock_drift_rate: 1}\n",
     "f:1:27: locks.clock_drift_rate: \"1\" is no rate; write 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: 1.%}\n",
     "f:1:27: locks.clock_drift_rate: \"1.%\" is no rate; write 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: fast}\n",
     "f:1:27: locks.clock_drift_rate: \"fast\" is no rate; write 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: 10000000ppm}\n",
     "f:1:27: locks.clock_drift_rate: \"10000000ppm\" is no rate; write 1%, 0.5% or 100ppm\n"},
    {"locks: {clock_drift_rate: 0.00001%}\n",
     "f:1:27: locks.clock_drift_rate: \"0.00001%\" is finer than 1ppm; write at most four places "
     "behind the point\n"},

    /* ranges: one beyond each end */
    {"locks: {max_ttl: 99ms}\n",
     "f:1:18: locks.max_ttl: 99ms is out of range; it goes from 100ms to 24h\n"},
    {"locks: {max_ttl: 25h}\n",
     "f:1:18: locks.max_ttl: 25h is out of range; it goes from 100ms to 24h\n"},
    {"locks: {min_validity: 999us}\n",
     "f:1:23: locks.min_validity: 999us is out of range; it goes from 1ms to 1m\n"},
    {"locks: {min_validity: 61s}\n",
     "f:1:23: locks.min_validity: 61s is out of range; it goes from 1ms to 1m\n"},
    {"locks: {clock_drift_rate: 10.0001%}\n",
     "f:1:27: locks.clock_drift_rate: 10.0001% is out of range; it goes from 0% to 10%\n"},
    {"locks: {clock_drift_margin: 0ms}\n",
     "f:1:29: locks.clock_drift_margin: 0ms is out of range; it goes from 1ms to 10s\n"},
    {"locks: {clock_drift_margin: 11s}\n",
     "f:1:29: locks.clock_drift_margin: 11s is out of range; it goes from 1ms to 10s\n"},
    {"rounds: {node_timeout: 0s}\n",
     "f:1:24: rounds.node_timeout: 0s is out of range; it goes from 1ms to 10s\n"},
    {"rounds: {node_timeout: 10001ms}\n",
     "f:1:24: rounds.node_timeout: 10001ms is out of range; it goes from 1ms to 10s\n"},
    {"limits: {clients: 0}\n",
     "f:1:19: limits.clients: 0 is out of range; it goes from 1 to 1000000\n"},
    {"limits: {clients: 1000001}\n",
     "f:1:19: limits.clients: 1000001 is out of range; it goes from 1 to 1000000\n"},
    {"limits: {clients: many}\n",
     "f:1:19: limits.clients: \"many\" is no number; write it in digits, as 1000\n"},
    {"limits: {clients: 1000000000000000}\n", "f:1:19: limits.clients: \"1000000000000000\" is no "
                                              "number; write it in digits, as 1000\n"},

    /* words */
    {"log: {level: loud}\n",
     "f:1:14: log.level: \"loud\" is none of debug, info, warning, error\n"},
    {"log: {format: xml}\n", "f:1:15: log.format: \"xml\" is none of text, json\n"},
    {"cluster: \"a b\"\n", "f:1:10: cluster: \"a b\" has other letters than A-Z a-z 0-9 _ . : -\n"},
    {"cluster: \"\"\n", "f:1:10: cluster: has 0 bytes; write 1 to 64\n"},
    {"cluster: " LONG_64 "a\n", "f:1:10: cluster: has 65 bytes; write 1 to 64\n"},
    {"locks: {key_prefix: " LONG_64 "a}\n",
     "f:1:21: locks.key_prefix: has 65 bytes; write 0 to 64\n"},
    {"locks: {key_prefix: \"redlockd:x\"}\n",
     "f:1:21: locks.key_prefix: \"redlockd:x\" is where redlockd keeps keys of its own; begin with "
     "another word\n"},
    {"locks: {key_prefix: \"a b\"}\n", "f:1:21: locks.key_prefix: \"a b\" has a space or a control "
                                       "character in it; leave that out\n"},
    {"locks: {key_prefix: \"a\\x7f\"}\n", "f:1:21: locks.key_prefix: \"a\\x7f\" has a space or a "
                                          "control character in it; leave that out\n"},
    {"cluster: \"${REDLOCKD_TEST_UNSET}\"\n",
     "f:1:10: the environment variable REDLOCKD_TEST_UNSET is not set\n"},

    /* two keys that contradict each other: at the first of them that the file gives */
    {"locks: {max_ttl: 100ms, clock_drift_margin: 48ms}\n",
     "f:1:18: locks.max_ttl: 100ms leaves no validity; drift, min_validity and node_timeout take "
     "100ms together, make it more than that\n"},
    {"rounds: {node_timeout: 10s}\nlocks: {min_validity: 50s}\n",
     "f:2:23: locks.max_ttl: 1m leaves no validity; drift, min_validity and node_timeout take "
     "60610ms together, make it more than that\n"},
    {"rounds: {backoff_min: 20ms, backoff_max: 10ms}\n",
     "f:1:42: rounds.backoff_max: 10ms is less than rounds.backoff_min, which is 20ms; make it at "
     "least that\n"},
    {"rounds: {backoff_min: 1s}\n",
     "f:1:23: rounds.backoff_max: 250ms is less than rounds.backoff_min, which is 1s; make it at "
     "least that\n"},
    {"locks: {fence_ttl: 59s}\n",
     "f:1:20: locks.fence_ttl: 59s is less than locks.max_ttl, which is 1m; make it at least "
     "that\n"},

    /* listen */
    {"listen: tcp://127.0.0.1:1\n", "f:1:9: listen: has to be a list, not a single value\n"},
    {"listen:\n", "f:1:8: listen: has no value; write a list, or leave it out\n"},
    {"listen: []\n", "f:1:9: listen: the list is empty; leave the key out to have "
                     "tcp://127.0.0.1:7335 alone\n"},
    {"listen: [[a]]\n", "f:1:10: listen: has to be a mapping, not a list\n"},
    {"listen:\n-\n", "f:2:2: listen: has no value; write a mapping, or leave it out\n"},
    {"listen: [{mode: \"0600\"}]\n",
     "f:1:10: listen.url: missing; write {url: \"unix:/PATH\", ...}\n"},
    {"listen: [{url: \"tcp://127.0.0.1:1\", mode: \"0600\"}]\n",
     "f:1:37: listen: mode and group are for unix sockets; leave them out of tcp://127.0.0.1:1\n"},
    {"listen: [{url: \"tcp://127.0.0.1:1\", group: \"0\"}]\n",
     "f:1:37: listen: mode and group are for unix sockets; leave them out of tcp://127.0.0.1:1\n"},
    {"listen: [{url: \"unix:/a\", mode: \"rw\"}]\n",
     "f:1:33: listen.mode: \"rw\" is no file mode; write 0600, 0660 or 0666\n"},
    {"listen: [{url: \"unix:/a\", mode: \"1777\"}]\n",
     "f:1:33: listen.mode: \"1777\" is no file mode; write 0600, 0660 or 0666\n"},
    {"listen: [{url: \"unix:/a\", group: no-such-group}]\n",
     "f:1:34: listen.group: \"no-such-group\" is no group of this host; write the name of one, or "
     "its number\n"},
    {"listen: [{url: \"unix:/a\", group: 4294967295}]\n",
     "f:1:34: listen.group: \"4294967295\" is no group of this host; write the name of one, or "
     "its number\n"},
    {"listen: [{url: \"unix:/a\", own: x, mode: [1], [a]: b}]\n",
     "f:1:27: listen.own: there is no such key\n"
     "f:1:41: listen.mode: has to be a single value, not a list\n"
     "f:1:46: a key has to be a word, not a list\n"},
    {"listen: [\"unix:/a\", \"unix:/b\", \"unix:///a\"]\n",
     "f:1:32: listen: unix:///a is given twice; the first is in line 1\n"},
    {"listen: [\"tcp://[::1]:1\",\n \"tcp://[0::0:1]:1\"]\n",
     "f:2:2: listen: tcp://[0::0:1]:1 is given twice; the first is in line 1\n"},
    {"insecure: true\nlisten: [\"tcp://127.0.0.1:1\",\n \"tcp://0.0.0.0:1\"]\n",
     "f:3:2: listen: tcp://0.0.0.0:1 cannot be had beside tcp://127.0.0.1:1 in line 2: one of them "
     "is every address with that port\n"},
    {"insecure: true\nlisten: [\"tcp://[::]:1\",\n \"tcp://[::1]:1\"]\n",
     "f:3:2: listen: tcp://[::1]:1 cannot be had beside tcp://[::]:1 in line 2: one of them "
     "is every address with that port\n"},
    {"listen: [\"unix:/a\", \"tcp://0.0.0.0:1\"]\n",
     "f:1:21: listen: tcp://0.0.0.0:1 can be reached from other hosts, and anybody who reaches it "
     "can release locks; list users (auth), require certificates (tls:// with client_ca), listen "
     "on 127.0.0.1 or a unix socket, or set "
     "insecure: true\n"},

    /* nodes */
    {"!", "f:1:1: nodes: missing; list at least three Redis masters\n"},
    {"!cluster: x\n", "f:1:1: nodes: missing; list at least three Redis masters\n"},
    {"!nodes: x\n", "f:1:8: nodes: has to be a list, not a single value\n"},
    {"!nodes: []\n", "f:1:8: nodes: 0 of them make no quorum; list 3, or 5\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n",
     "f:2:1: nodes: 2 of them make no quorum; list 3, or 5\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") "}\n" NODE("d") "}\n",
     "f:2:1: nodes: 4 is an even number, and survives no more failures than 3; list 3, or 5\n"},
    {"!nodes:\n" NODE("a") "}\n- {name: a, url: \"redis://i\"}\n"
                           "- {name: c, url: \"redis://A:6379/1\"}\n",
     "f:3:10: nodes.name: a is taken by the node in line 2; give each its own\n"
     "f:4:18: nodes.url: redis://A:6379/1 is the node in line 2 again; a quorum needs independent "
     "masters\n"},
    {"!nodes:\n- {url: \"redis://i\"}\n- {name: c}\n- x\n",
     "f:2:3: nodes.name: missing; write {name: a, url: \"redis://10.0.0.1:6379\"}\n"
     "f:3:3: nodes.url: missing; write {name: a, url: \"redis://10.0.0.1:6379\"}\n"
     "f:4:3: nodes: has to be a mapping, not a single value\n"},
    {"!nodes:\n- {name: \"a:b\", url: [], username: u}\n" NODE("b") ", port: 5}\n" NODE("c") "}\n",
     "f:2:10: nodes.name: \"a:b\" is no name; write 1 to 32 of A-Z a-z 0-9 _ . -\n"
     "f:2:22: nodes.url: has to be a single value, not a list\n"
     "f:2:26: nodes.username: needs a password too; name its file by password_file\n"
     "f:3:31: nodes.port: there is no such key\n"},
    {"!nodes:\n" NODE("a") ", durable: true}\n" NODE("b") "}\n" NODE("c") ", durable: maybe}\n",
     "f:4:40: nodes.durable: \"maybe\" is neither true nor false; write one\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", password_file: /nonexistent}\n",
     "f:4:46: nodes.password_file: /nonexistent cannot be read: No such file or directory\n"},
    {"!nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", password_file: /}\n",
     "f:4:46: nodes.password_file: / is no regular file\n"},
};

START_TEST(each_mistake_has_its_place_and_advice)
{
    char text[4096];
    const char *given = mistakes[_i].text;
    snprintf(text, sizeof(text), "%s%s", given[0] == '!' ? given + 1 : given,
             given[0] == '!' ? "" : NODES);
    configs_refuse(text, mistakes[_i].report);
}
END_TEST

START_TEST(all_mistakes_come_in_one_pass_in_the_order_of_the_file)
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
        "f:2:3: locks.max_tll: there is no such key; did you mean max_ttl?\n"
        "f:3:17: locks.min_validity: \"50\" has no unit; write 60s, 1m or 500ms\n"
        "f:5:5: listen: \"tcp://127.0.0.1\" has no port; write tcp://127.0.0.1:7335\n"
        "f:6:5: listen: tcp://0.0.0.0:7335 can be reached from other hosts, and anybody who "
        "reaches it can release locks; list users (auth), require certificates (tls:// with "
        "client_ca), listen on 127.0.0.1 or a unix socket, "
        "or set insecure: true\n"
        "f:9:20: nodes.url: \"http://10.0.0.2\" is no redis:// address; write "
        "redis://10.0.0.1:6379 or unix:/run/redis/redis.sock\n"
        "f:10:12: nodes.name: a is taken by the node in line 8; give each its own\n"
        "f:10:20: nodes.url: redis://10.0.0.1:6379 is the node in line 8 again; a quorum needs "
        "independent masters\n"
        "f:11:1: locks: given twice; the first is in line 1, column 1\n"
        "f:12:14: log.level: \"loud\" is none of debug, info, warning, error\n"
        "f:12:28: aliases are not supported (*x); write the value out\n");
}
END_TEST

START_TEST(no_mistake_follows_from_another)
{
    /* A broken max_ttl, insecure or list of nodes says nothing of what they are compared with. */
    configs_refuse(
        "locks: {max_ttl: 2m!, min_validity: 1m}\n" NODES,
        "f:1:18: locks.max_ttl: \"2m!\" has a unit that is none of us, ms, s, m and h; write "
        "60s, 1m or 500ms\n");
    configs_refuse("locks: {max_ttl: 1, fence_ttl: 59s}\n" NODES,
                   "f:1:18: locks.max_ttl: \"1\" has no unit; write 60s, 1m or 500ms\n");
    configs_refuse("listen: [\"tcp://0.0.0.0:1\"]\ninsecure: True\n" NODES,
                   "f:2:11: insecure: \"True\" is neither true nor false; write one\n");
    configs_refuse("nodes: *x\n", "f:1:8: aliases are not supported (*x); write the value out\n");
    configs_refuse(NODES NODES, "f:5:1: nodes: given twice; the first is in line 1, column 1\n");
}
END_TEST

START_TEST(a_file_that_is_not_there_or_none_is_named)
{
    ck_assert_ptr_null(configs_load("/nonexistent.yaml", CONFIG_NORMAL));
    ck_assert_str_eq(configs_report(), "/nonexistent.yaml: No such file or directory\n");
    ck_assert_ptr_null(configs_load("/", CONFIG_NORMAL));
    ck_assert_str_eq(configs_report(), "/:1:1: cannot be read: Is a directory\n");
}
END_TEST

START_TEST(there_is_a_bound_on_nodes_and_listens)
{
    char text[8192] = "listen:\n";
    for (unsigned i = 0; i <= LISTENS_MAX; i++)
        sprintf(text + strlen(text), "- unix:/s%u\n", i);
    strcat(text, "nodes:\n");
    for (unsigned i = 0; i <= LIMIT_NODES; i++)
        sprintf(text + strlen(text), "- {name: n%u, url: \"redis://h%u\"}\n", i, i);
    configs_refuse(text, "f:18:3: listen: more than 16 addresses; leave some out\n"
                         "f:35:3: nodes: more than 15; 5 or 7 are plenty\n");
}
END_TEST

START_TEST(nothing_a_file_says_reaches_the_terminal_raw)
{
    configs_refuse(
        "cluster: \"\\e[2J\\n\"\n" NODES,
        "f:1:10: cluster: \"\\x1b[2J\\x0a\" has other letters than A-Z a-z 0-9 _ . : -\n");
}
END_TEST

/* --- addresses --- */

static const struct {
    const char *url;
    const char *as_listen; /* what is wrong with it, "" if nothing */
    const char *as_node;
} addresses[] = {
    {"tcp://127.0.0.1:1", "",
     "is no redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"redis://h",
     "is no tcp:// address; write tcp://127.0.0.1:7335 or "
     "unix:/run/redlockd/redlockd.sock",
     ""},
    {"10.0.0.1:6379",
     "is no tcp:// address; write tcp://127.0.0.1:7335 or "
     "unix:/run/redlockd/redlockd.sock",
     "is no redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"tls://127.0.0.1:1", "",
     "is no redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"rediss://h",
     "is no tcp:// address; write tcp://127.0.0.1:7335 or "
     "unix:/run/redlockd/redlockd.sock",
     ""},
    {"tls://127.0.0.1", "has no port; write tls://127.0.0.1:7337",
     "is no redis:// address; write redis://10.0.0.1:6379 or unix:/run/redis/redis.sock"},
    {"unix:/a@b", "", ""},
    {"unix:///a", "", ""},
    {"unix:a", "has no absolute path; write unix:/run/redlockd/redlockd.sock",
     "has no absolute path; write unix:/run/redis/redis.sock"},
    {"unix:/a b", "has a space or control character in its path",
     "has a space or control character in its path"},
    {"unix:", "has no absolute path; write unix:/run/redlockd/redlockd.sock",
     "has no absolute path; write unix:/run/redis/redis.sock"},
    {"unix://a", "has no absolute path; write unix:/run/redlockd/redlockd.sock",
     "has no absolute path; write unix:/run/redis/redis.sock"},
};

START_TEST(an_address_is_for_one_use)
{
    struct config_address address;
    struct error error = {""};
    unsigned database = 7;
    bool fine = url_parse(addresses[_i].url, URL_LISTEN, &address, NULL, &error);
    ck_assert_str_eq(fine ? "" : error.text, addresses[_i].as_listen);
    url_free(&address);
    fine = url_parse(addresses[_i].url, URL_NODE, &address, &database, &error);
    ck_assert_str_eq(fine ? "" : error.text, addresses[_i].as_node);
    url_free(&address);
}
END_TEST

START_TEST(clients_have_no_tls_and_are_told_what_to_do)
{
    struct address address;
    struct error error = {""};
    ck_assert(!address_parse("tls://127.0.0.1:7337", URL_DAEMON, &address, &error));
    ck_assert_str_eq(error.text, "asks for TLS, which this library does not speak; name a unix "
                                 "socket of a redlockd on this host, or the tcp:// address of a "
                                 "TLS proxy on it (stunnel)");
}
END_TEST

/* Behind "tcp://", as a listen. */
static const struct {
    const char *text;
    const char *wrong;
} hosts[] = {
    {"127.0.0.1", "has no port; write tcp://127.0.0.1:7335"},
    {"127.0.0.1:", "has a bad port; write 1 to 65535"},
    {"127.0.0.1:0", "has a bad port; write 1 to 65535"},
    {"127.0.0.1:65536", "has a bad port; write 1 to 65535"},
    {"127.0.0.1:70000", "has a bad port; write 1 to 65535"},
    {"127.0.0.1:http", "has a bad port; write 1 to 65535"},
    {"127.0.0.1:65535", ""},
    {"127.0.0.1:1/", ""},
    {"127.0.0.1:1/0", "goes on behind the port; leave that out"},
    {":7335", "has no host; write 127.0.0.1 for this host alone, 0.0.0.0 for everybody"},
    {"*:7335", "has a host that is no name and no address; write tcp://127.0.0.1:7335"},
    {"a b:7335", "has a host that is no name and no address; write tcp://127.0.0.1:7335"},
    {"127.0.0.256:1", "has no IPv4 address; write tcp://127.0.0.1:7335"},
    {"::1:7335", "has an IPv6 address without brackets; write tcp://[::1]:7335"},
    {"[::1:7335", "has no ] behind the IPv6 address; write tcp://[::1]:7335"},
    {"[::1]", "has no port; write tcp://127.0.0.1:7335"},
    {"[::1]7335", "goes on behind the ]; write tcp://[::1]:7335"},
    {"[::g]:1", "has no IPv6 address in the brackets; write tcp://[::1]:7335"},
    {"[]:1", "has no IPv6 address in the brackets; write tcp://[::1]:7335"},
    {"[fe80::1%eth0]:1", "has no IPv6 address in the brackets; write tcp://[::1]:7335"},
    {"me:secret@h:1", "has a user or a password in it; write tcp://127.0.0.1:7335"},
};

START_TEST(a_host_and_its_port_are_read_or_refused)
{
    char url[128];
    struct config_address address;
    struct error error = {""};
    snprintf(url, sizeof(url), "tcp://%s", hosts[_i].text);
    bool fine = url_parse(url, URL_LISTEN, &address, NULL, &error);
    ck_assert_str_eq(fine ? "" : error.text, hosts[_i].wrong);
    url_free(&address);
}
END_TEST

START_TEST(a_database_is_a_number_behind_the_host)
{
    struct config_address address;
    struct error error;
    unsigned database = 0;
    ck_assert(url_parse("redis://h:1/9999", URL_NODE, &address, &database, &error));
    ck_assert_uint_eq(database, 9999);
    url_free(&address);
    ck_assert(!url_parse("redis://h/10000", URL_NODE, &address, &database, &error));
    ck_assert_str_eq(error.text, "has no number of a database behind the /; write 0 to 9999");
    url_free(&address);
    ck_assert(!url_parse("redis://h/x", URL_NODE, &address, &database, &error));
    url_free(&address);
}
END_TEST

START_TEST(a_password_in_an_address_is_not_repeated)
{
    configs_refuse(
        "nodes:\n- {name: a, url: \"redis://u:p@h\"}\n" NODE("b") "}\n" NODE("c") "}\n",
        "f:2:18: nodes.url: the address has a password in it; put it into a file and name it by "
        "password_file\n");
    configs_refuse("listen: [\"rediss://u:p@h:1\"]\n" NODES,
                   "f:1:10: listen: the address has a user or a password in it; write "
                   "tcp://127.0.0.1:7335\n");
    char text[1024];
    snprintf(text, sizeof(text), "listen: [\"tcp://u:p@%0600d\"]\n" NODES, 0);
    configs_refuse(text, "f:1:10: listen: the address is longer than 511 bytes; write "
                         "tcp://127.0.0.1:7335\n");
}
END_TEST

START_TEST(a_socket_path_has_a_longest_length)
{
    char url[256] = "unix:/";
    struct config_address address;
    struct error error;
    memset(url + 6, 'p', 106);
    ck_assert(url_parse(url, URL_NODE, &address, NULL, &error));
    ck_assert_uint_eq(strlen(address.path), 107);
    url_free(&address);
    url[112] = 'p';
    ck_assert(!url_parse(url, URL_NODE, &address, NULL, &error));
    ck_assert_str_eq(error.text, "has a path of 108 bytes; a unix socket's has at most 107");
    url_free(&address);
}
END_TEST

START_TEST(local_addresses_are_known)
{
    static const struct {
        const char *url;
        bool local;
    } rows[] = {{"tcp://127.0.0.1:1", true},
                {"tcp://127.9.9.9:1", true},
                {"tcp://LocalHost:1", true},
                {"tcp://[::1]:1", true},
                {"unix:/a", true},
                {"tcp://10.0.0.1:1", false},
                {"tcp://[fd00::1]:1", false},
                {"tcp://example:1", false},
                {"tcp://0.0.0.0:1", false},
                {"tcp://[::]:1", false},
                {"tcp://126.0.0.1:1", false},
                {"tcp://128.0.0.1:1", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_address address;
        struct error error;
        ck_assert(url_parse(rows[i].url, URL_LISTEN, &address, NULL, &error));
        ck_assert_int_eq(url_is_local(&address), rows[i].local);
        url_free(&address);
    }
}
END_TEST

START_TEST(addresses_are_equal_where_they_lead_to_the_same_place)
{
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } rows[] = {
        {"tcp://h:1", "tcp://H:1", true},
        {"tcp://h:1", "tcp://h:2", false},
        {"tcp://h:1", "tcp://i:1", false},
        {"tcp://[::1]:1", "tcp://[0:0::1]:1", true},
        {"unix:/a", "unix:///a", true},
        {"unix:/a", "unix:/A", false},
        {"unix:/a", "tcp://h:1", false},
        {"tcp://h:1", "unix:/a", false},
        {"tcp://h", "tcp://h", false /* no address, but half of one */},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_address a;
        struct config_address b;
        struct error error;
        (void)url_parse(rows[i].a, URL_LISTEN, &a, NULL, &error);
        (void)url_parse(rows[i].b, URL_LISTEN, &b, NULL, &error);
        ck_assert_int_eq(url_equal(&a, &b), rows[i].equal);
        url_free(&a);
        url_free(&b);
    }
}
END_TEST

/* --- what is right --- */

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

START_TEST(what_is_left_out_has_its_default)
{
    struct config *config = configs_fine(NODES);
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
END_TEST

START_TEST(a_section_may_lose_all_of_its_keys_to_comments)
{
    struct config *config = configs_fine("locks:\n  # max_ttl: 60s\nlog:\nrounds: {}\n" NODES);
    check_defaults(config);
    config_free(config);
}
END_TEST

START_TEST(nodes_are_read_as_written)
{
    struct config *config = configs_fine(NODES);
    ck_assert_uint_eq(config->node_count, 3);
    ck_assert_str_eq(config->nodes[0].name, "a");
    ck_assert_int_eq(config->nodes[0].address.kind, ADDRESS_TCP);
    ck_assert_str_eq(config->nodes[0].address.host, "10.0.0.1");
    ck_assert_uint_eq(config->nodes[0].address.port, 6379);
    ck_assert_uint_eq(config->nodes[0].database, 0);
    ck_assert_ptr_null(config->nodes[0].username);
    ck_assert_ptr_null(config->nodes[0].password);
    ck_assert_str_eq(config->nodes[1].address.url, "redis://[fd00::2]/3");
    ck_assert_str_eq(config->nodes[1].address.host, "fd00::2");
    ck_assert_uint_eq(config->nodes[1].address.port, 6379);
    ck_assert_uint_eq(config->nodes[1].database, 3);
    ck_assert_int_eq(config->nodes[2].address.kind, ADDRESS_UNIX);
    ck_assert_str_eq(config->nodes[2].address.path, "/run/redis.sock");
    config_free(config);
}
END_TEST

START_TEST(everything_can_be_set)
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
    struct config *config = configs_fine(text);
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
END_TEST

START_TEST(both_ends_of_a_range_are_inside)
{
    struct config *config =
        configs_fine("locks: {max_ttl: 24h, max_hold: 24h, min_validity: 1m, clock_drift_rate: "
                     "10%, clock_drift_margin: 10s}\n"
                     "rounds: {node_timeout: 10s}\nlimits: {clients: 1}\n" NODES);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 100000);
    config_free(config);
    config = configs_fine("locks: {max_ttl: 100ms, min_validity: 1ms, clock_drift_rate: 0ppm, "
                          "clock_drift_margin: 1000us}\n"
                          "rounds: {node_timeout: 1ms}\nlimits: {clients: 1000000}\n" NODES);
    ck_assert_int_eq(config->locks.clock_drift_ppm, 0);
    config_free(config);
}
END_TEST

START_TEST(variables_are_replaced_in_any_value)
{
    setenv("REDLOCKD_TEST_NAME", "eu", 1);
    setenv("REDLOCKD_TEST_TTL", "5", 1);
    setenv("REDLOCKD_TEST_HOST", "10.9.8.7", 1);
    struct config *config =
        configs_fine("cluster: ${REDLOCKD_TEST_NAME}.1\n"
                     "locks: {key_prefix: \"$${x}\", max_ttl: \"${REDLOCKD_TEST_"
                     "TTL}s\"}\nnodes:\n- {name: a, url: \"redis://${REDLOCKD_"
                     "TEST_HOST}\"}\n" NODE("b") "}\n" NODE("c") "}\n");
    ck_assert_str_eq(config->cluster, "eu.1");
    ck_assert_str_eq(config->locks.key_prefix, "${x}");
    ck_assert_int_eq(config->locks.max_ttl_ns, 5000000000);
    ck_assert_str_eq(config->nodes[0].address.host, "10.9.8.7");
    config_free(config);
}
END_TEST

START_TEST(admin_is_off_unless_it_is_given)
{
    struct config *config = configs_fine(NODES);
    ck_assert_ptr_null(config->admin.host);
    config_free(config);
    config = configs_fine("admin: http://127.0.0.1:7336/\n" NODES);
    ck_assert_str_eq(config->admin.host, "127.0.0.1");
    ck_assert_uint_eq(config->admin.port, 7336);
    config_free(config);
    config = configs_fine("admin: http://[::1]:1\n" NODES);
    ck_assert_str_eq(config->admin.host, "::1");
    config_free(config);
}
END_TEST

START_TEST(admin_is_an_address_of_http)
{
    configs_refuse("admin: tcp://127.0.0.1:7336\n" NODES,
                   "f:1:8: admin: \"tcp://127.0.0.1:7336\" is no http:// address; write "
                   "http://127.0.0.1:7336\n");
    configs_refuse(
        "admin: unix:/run/x\n" NODES,
        "f:1:8: admin: \"unix:/run/x\" is no http:// address; write http://127.0.0.1:7336\n");
    configs_refuse("admin: http://127.0.0.1\n" NODES,
                   "f:1:8: admin: \"http://127.0.0.1\" has no port; write http://127.0.0.1:7336\n");
    configs_refuse(
        "admin: http://127.0.0.1:7336/metrics\n" NODES,
        "f:1:8: admin: \"http://127.0.0.1:7336/metrics\" goes on behind the port; leave that "
        "out\n");
    configs_refuse("admin: http://me:secret@127.0.0.1:7336\n" NODES,
                   "f:1:8: admin: the address has a user or a password in it; write "
                   "http://127.0.0.1:7336\n");
    configs_refuse("admin: [http://127.0.0.1:7336]\n" NODES,
                   "f:1:8: admin: has to be a single value, not a list\n");
}
END_TEST

START_TEST(admin_is_for_this_host_alone)
{
    static const char other[] =
        "f:1:8: admin: http://0.0.0.0:7336 can be reached from other hosts, and shows anybody who "
        "reaches it the names of resources; write http://127.0.0.1:7336, or set insecure: true\n";
    configs_refuse("admin: http://0.0.0.0:7336\n" NODES, other);
    config_free(configs_fine("admin: http://0.0.0.0:7336\ninsecure: true\n" NODES));
    config_free(configs_fine("admin: http://localhost:7336\n" NODES));
    configs_refuse("listen: [\"tcp://127.0.0.1:7336\"]\nadmin: http://127.0.0.1:7336\n" NODES,
                   "f:2:8: admin: http://127.0.0.1:7336 is where clients connect (listen: "
                   "tcp://127.0.0.1:7336); give it another port\n");
    configs_refuse(
        "insecure: true\nlisten: [\"tcp://0.0.0.0:7336\"]\nadmin: http://127.0.0.1:7336\n" NODES,
        "f:3:8: admin: http://127.0.0.1:7336 is where clients connect (listen: "
        "tcp://0.0.0.0:7336); give it another port\n");
    /* A name may be of either family. */
    config_free(
        configs_fine("insecure: true\n"
                     "listen: [\"tcp://0.0.0.0:7335\", \"tcp://ip6-localhost:7335\"]\n" NODES));
    config_free(configs_fine("insecure: true\n"
                             "listen: [\"tcp://0.0.0.0:7336\", \"tcp://[::]:7336\"]\n"
                             "admin: http://127.0.0.1:7337\n" NODES));
}
END_TEST

START_TEST(dev_needs_no_nodes_and_takes_none)
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
                     "f:1:1: nodes: --dev brings masters of its own; leave the list out\n");
}
END_TEST

START_TEST(a_dash_is_standard_input)
{
    configs_write("f", "cluster: 1 2\n" NODES);
    ck_assert_ptr_nonnull(freopen("f", "r", stdin));
    ck_assert_ptr_null(configs_load("-", CONFIG_NORMAL));
    ck_assert_str_eq(configs_report(),
                     "stdin:1:10: cluster: \"1 2\" has other letters than A-Z a-z 0-9 _ . : -\n");
}
END_TEST

/* --- passwords --- */

static const char with_secret[] =
    "nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", username: u, password_file: secret}\n";

START_TEST(a_password_comes_from_its_file_without_the_line_feed)
{
    configs_write("secret", "s3cret\n");
    struct config *config = configs_fine(with_secret);
    ck_assert_str_eq(config->nodes[2].password, "s3cret");
    ck_assert_str_eq(config->nodes[2].username, "u");
    config_free(config);
    configs_write("secret", "no line feed");
    config = configs_fine(with_secret);
    ck_assert_str_eq(config->nodes[2].password, "no line feed");
    config_free(config);
}
END_TEST

/* As systemd hands it over: LoadCredential=redis:/etc/redlockd/redis.password */
START_TEST(a_password_may_be_a_credential_of_systemd)
{
    configs_write("secret", "hunter2\n");
    setenv("CREDENTIALS_DIRECTORY", configs_folder(), 1);
    struct config *config = configs_fine(
        "nodes:\n" NODE("a") ", password_file: \"${CREDENTIALS_DIRECTORY}/secret\"}\n" NODE(
            "b") "}\n" NODE("c") "}\n");
    ck_assert_str_eq(config->nodes[0].password, "hunter2");
    config_free(config);
    unsetenv("CREDENTIALS_DIRECTORY");
    configs_refuse(
        "nodes:\n" NODE("a") ", password_file: \"${CREDENTIALS_DIRECTORY}/secret\"}\n" NODE(
            "b") "}\n" NODE("c") "}\n",
        "f:2:46: the environment variable CREDENTIALS_DIRECTORY is not set\n");
}
END_TEST

START_TEST(a_password_has_a_longest_length)
{
    char large[SECRET_MAX + 8];
    memset(large, 'x', sizeof(large));
    large[SECRET_MAX] = '\n';
    configs_write_bytes("secret", large, SECRET_MAX + 1);
    struct config *config = configs_fine(with_secret);
    ck_assert_uint_eq(strlen(config->nodes[2].password), SECRET_MAX);
    config_free(config);
    configs_write_bytes("secret", large, SECRET_MAX + 2);
    configs_refuse(with_secret, "f:4:59: nodes.password_file: secret is longer than 1024 bytes\n");
    large[SECRET_MAX] = 'x';
    for (size_t len = SECRET_MAX + 1; len <= sizeof(large); len++) {
        configs_write_bytes("secret", large, len);
        configs_refuse(with_secret,
                       "f:4:59: nodes.password_file: secret is longer than 1024 bytes\n");
    }
}
END_TEST

START_TEST(an_empty_or_binary_password_is_refused)
{
    static const char empty[] =
        "f:4:59: nodes.password_file: secret is empty; write the secret into it\n";
    static const char binary[] = "f:4:59: nodes.password_file: secret holds more than one line, or "
                                 "a NUL byte; write the secret alone into it\n";
    configs_write("secret", "");
    configs_refuse(with_secret, empty);
    configs_write("secret", "\n");
    configs_refuse(with_secret, empty);
    configs_write_bytes("secret", "a\0b", 3);
    configs_refuse(with_secret, binary);
    configs_write("secret", "a\nb\n");
    configs_refuse(with_secret, binary);
}
END_TEST

START_TEST(a_pipe_is_no_password_and_keeps_nobody_waiting)
{
    ck_assert_int_eq(mkfifo("secret", 0600), 0);
    configs_refuse(with_secret, "f:4:59: nodes.password_file: secret is no regular file\n");
}
END_TEST

START_TEST(a_username_is_one_word)
{
    configs_write("secret", "x");
    configs_refuse(
        "nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", username: \"u v\","
                                                             " password_file: secret}\n",
        "f:4:41: nodes.username: \"u v\" is no name of a Redis user; write 1 to 256 letters "
        "without spaces\n");
    configs_refuse(
        "nodes:\n" NODE("a") "}\n" NODE("b") "}\n" NODE("c") ", username: \"\xc3\xa4\","
                                                             " password_file: secret}\n",
        "f:4:41: nodes.username: \"\\xc3\\xa4\" is no name of a Redis user; write 1 to 256 "
        "letters without spaces\n");
}
END_TEST

/* --- words --- */

START_TEST(numbers_print_as_the_file_would_say_them)
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
END_TEST

/* --- the example --- */

static void find_example(char *path, size_t size)
{
    snprintf(path, size, "%s/redlockd.yaml.example", configs_origin());
}

START_TEST(the_example_loads_and_says_the_defaults)
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
END_TEST

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

START_TEST(the_example_documents_every_key)
{
    char text[32768];
    const char *name;
    size_t count = 0;
    read_example(text, sizeof(text));
    for (size_t i = 0; (name = config_key_name(i)) != NULL; i++) {
        char line[64];
        const char *dot = strchr(name, '.');
        snprintf(line, sizeof(line),
                 dot != NULL ? "\n  %s:" : "\n%s:", dot != NULL ? dot + 1 : name);
        const char *at = strstr(text, line);
        snprintf(line, sizeof(line),
                 dot != NULL ? "\n  # %s:" : "\n# %s:", dot != NULL ? dot + 1 : name);
        /* A section that is switched off as a whole: "# auth: {users: ...". */
        char inside[64];
        snprintf(inside, sizeof(inside), "\n# %.*s: {%s:", dot != NULL ? (int)(dot - name) : 0,
                 name, dot != NULL ? dot + 1 : name);
        ck_assert_msg(at != NULL || strstr(text, line) != NULL || strstr(text, inside) != NULL,
                      "%s is missing", name);
        count++;
    }
    ck_assert_uint_gt(count, 20);
}
END_TEST

/* "  # key: value", as against "  # Prose goes on": what no effect yet shows. */
static bool is_commented_key(const char *line)
{
    size_t len = strspn(line, " ");
    if (strncmp(line + len, "# ", 2) != 0)
        return false;
    const char *word = line + len + 2;
    size_t word_len = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
    return word_len > 0 && strncmp(word + word_len, ": ", 2) == 0;
}

START_TEST(what_the_example_comments_out_is_right_too)
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
    }
    ck_assert_uint_eq(keys, 2);
    struct config *config = configs_read(uncommented);
    ck_assert_msg(config != NULL, "%s", configs_report());
    ck_assert_str_eq(configs_report(), "");
    ck_assert_ptr_nonnull(config->users);
    config_free(config);
}
END_TEST

static TCase *mistake_cases(void)
{
    TCase *cases = tcase_create("mistakes");
    tcase_add_checked_fixture(cases, configs_open, configs_close);
    tcase_add_loop_test(cases, each_mistake_has_its_place_and_advice, 0,
                        (int)(sizeof(mistakes) / sizeof(mistakes[0])));
    tcase_add_test(cases, all_mistakes_come_in_one_pass_in_the_order_of_the_file);
    tcase_add_test(cases, no_mistake_follows_from_another);
    tcase_add_test(cases, a_file_that_is_not_there_or_none_is_named);
    tcase_add_test(cases, there_is_a_bound_on_nodes_and_listens);
    tcase_add_test(cases, nothing_a_file_says_reaches_the_terminal_raw);
    tcase_add_test(cases, a_password_in_an_address_is_not_repeated);
    tcase_add_test(cases, an_empty_or_binary_password_is_refused);
    tcase_add_test(cases, a_pipe_is_no_password_and_keeps_nobody_waiting);
    tcase_add_test(cases, a_username_is_one_word);
    return cases;
}

static TCase *value_cases(void)
{
    TCase *cases = tcase_create("values");
    tcase_add_checked_fixture(cases, configs_open, configs_close);
    tcase_add_test(cases, what_is_left_out_has_its_default);
    tcase_add_test(cases, a_section_may_lose_all_of_its_keys_to_comments);
    tcase_add_test(cases, nodes_are_read_as_written);
    tcase_add_test(cases, everything_can_be_set);
    tcase_add_test(cases, both_ends_of_a_range_are_inside);
    tcase_add_test(cases, variables_are_replaced_in_any_value);
    tcase_add_test(cases, admin_is_off_unless_it_is_given);
    tcase_add_test(cases, admin_is_an_address_of_http);
    tcase_add_test(cases, admin_is_for_this_host_alone);
    tcase_add_test(cases, dev_needs_no_nodes_and_takes_none);
    tcase_add_test(cases, a_dash_is_standard_input);
    tcase_add_test(cases, a_password_comes_from_its_file_without_the_line_feed);
    tcase_add_test(cases, a_password_may_be_a_credential_of_systemd);
    tcase_add_test(cases, a_password_has_a_longest_length);
    return cases;
}

static TCase *pure_cases(void)
{
    TCase *cases = tcase_create("words and addresses");
    tcase_add_test(cases, clients_have_no_tls_and_are_told_what_to_do);
    tcase_add_loop_test(cases, an_address_is_for_one_use, 0,
                        (int)(sizeof(addresses) / sizeof(addresses[0])));
    tcase_add_loop_test(cases, a_host_and_its_port_are_read_or_refused, 0,
                        (int)(sizeof(hosts) / sizeof(hosts[0])));
    tcase_add_test(cases, a_database_is_a_number_behind_the_host);
    tcase_add_test(cases, a_socket_path_has_a_longest_length);
    tcase_add_test(cases, local_addresses_are_known);
    tcase_add_test(cases, addresses_are_equal_where_they_lead_to_the_same_place);
    tcase_add_test(cases, numbers_print_as_the_file_would_say_them);
    return cases;
}

static TCase *example_cases(void)
{
    TCase *cases = tcase_create("example");
    tcase_add_checked_fixture(cases, configs_open, configs_close);
    tcase_add_test(cases, the_example_loads_and_says_the_defaults);
    tcase_add_test(cases, the_example_documents_every_key);
    tcase_add_test(cases, what_the_example_comments_out_is_right_too);
    return cases;
}

Suite *test_suite(void)
{
    Suite *suite = suite_create("config");
    suite_add_tcase(suite, mistake_cases());
    suite_add_tcase(suite, value_cases());
    suite_add_tcase(suite, pure_cases());
    suite_add_tcase(suite, example_cases());
    return suite;
}
