/*
 * config/users.c: each mistake in auth.users is reported with its line and column and a remedy. No
 * report shows a secret. Valid users are read as written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/acl.h"
#include "tests/runner.h"
#include "tests/unit/configs.h"

#define SECRET "0123456789abcdefXYZ"

/* Users without a secret need a unix socket. */
#define LISTEN_UNIX "listen: [\"unix:/run/a\"]\n"

static void write_secrets(void)
{
    configs_open();
    configs_write("s", SECRET "\n");
    configs_write("t", "Quite-secret with spaces\n");
    configs_write("u", SECRET "-of-u");
    configs_write("short", "123456789012345\n");
    configs_write("least", "1234567890123456\n");
    configs_write("empty", "\n");
}

const struct runner_settings runner_settings = {.setup = write_secrets, .teardown = configs_close};

/* --- mistakes --- */

/* NODES is appended to the text. */
static const struct mistake {
    const char *text;
    const char *report;
} mistakes[] = {
    {"auth:\n", "f:1:1: auth: has no users; list them in auth.users, or leave auth out\n"},
    {"auth: {}\n", "f:1:1: auth: has no users; list them in auth.users, or leave auth out\n"},
    {"auth: {user: []}\n", "f:1:1: auth: has no users; list them in auth.users, or leave auth out\n"
                           "f:1:8: auth.user: unknown key; did you mean users?\n"},
    {"auth: [a]\n", "f:1:7: auth: must be a mapping, not a list\n"},
    {"auth: {users: }\n", "f:1:15: auth.users: has no value; write a list, or leave it out\n"},
    {"auth: {users: []}\n",
     "f:1:15: auth.users: the list is empty; write at least one, like {name: ci, secret_file: "
     "/etc/redlockd/ci.secret, resources: [\"ci:\"]}\n"},
    {"auth: {users: [x]}\n",
     "f:1:16: auth.users: must be a mapping like {name: ci, secret_file: "
     "/etc/redlockd/ci.secret, resources: [\"ci:\"]}, not a single value\n"},
    {"auth: {users: [{name: ci, secret_file: s}]}\n",
     "f:1:16: auth.users.resources: missing; write [\"ci:\"] for all that begin with ci:, [\"\"] "
     "for all\n"},
    {"auth: {users: [{name: ci, secret_file: s, resources: []}]}\n",
     "f:1:54: auth.users.resources: the list is empty; write [\"ci:\"] for all that begin with "
     "ci:, [\"\"] for all\n"},
    {"auth: {users: [{name: ci, secret_file: s, resources: \"ci:\"}]}\n",
     "f:1:54: auth.users.resources: must be a list, not a single value\n"},
    {"auth: {users: [{name: ci, secret_file: s, resources: [\"ci:*\"]}]}\n",
     "f:1:55: auth.users.resources: \"ci:*\" is not a prefix of resource names; write \"ci:\" for "
     "all that begin with ci:, \"\" for all\n"},
    {"auth:\n  users:\n  - name: ci\n    secret_file: s\n    resources:\n    - \n    - a b\n",
     "f:6:6: auth.users.resources: has no value; write \"\" for all resources\n"
     "f:7:7: auth.users.resources: \"a b\" is not a prefix of resource names; write \"ci:\" for "
     "all that begin with ci:, \"\" for all\n"},
    {"auth: {users: [{secret_file: s, resources: [a]}]}\n",
     "f:1:16: auth.users.name: missing; write {name: ci, secret_file: /etc/redlockd/ci.secret, "
     "resources: [\"ci:\"]}\n"},
    {"auth: {users: [{name: \"c i\", secret_file: s, resources: [a]}]}\n",
     "f:1:23: auth.users.name: \"c i\" is not a valid name; write 1 to 32 of A-Z a-z 0-9 _ . -\n"},
    {"auth: {users: [{name: ci, resources: [a]}]}\n",
     "f:1:16: auth.users: no client can authenticate as this user; set secret_file, or uids or "
     "gids for unix "
     "sockets\n"},
    {"auth: {users: [{name: ci, uids: [], resources: [a]}]}\n",
     "f:1:16: auth.users: no client can authenticate as this user; set secret_file, or uids or "
     "gids for unix "
     "sockets\n"},
    {"auth:\n  users:\n  - {name: a, uids: [0], resources: [a]}\n"
     "  - {name: b, secret_file: s, uids: [1], resources: [a]}\n"
     "  - {name: c, gids: [0], resources: [a]}\n",
     "f:3:5: auth.users: no client can authenticate as this user, since listen has no unix socket; "
     "add one, or set secret_file\n"
     "f:5:5: auth.users: no client can authenticate as this user, since listen has no unix socket; "
     "add one, or set secret_file\n"},
    /* An invalid address may be a mistyped unix socket, so the lack of a unix socket is not
     * reported. */
    {"listen: [\"unix\"]\nauth: {users: [{name: a, uids: [0], resources: [a]}]}\n",
     "f:1:10: listen: \"unix\" is not a tcp:// address; write tcp://127.0.0.1:7335 or "
     "unix:/run/redlockd/redlockd.sock\n"},
    {"listen: unix\nauth: {users: [{name: a, uids: [0], resources: [a]}]}\n",
     "f:1:9: listen: must be a list, not a single value\n"},
    {"auth: {users: [{name: ci, secret_file: short, resources: [a]}]}\n",
     "f:1:40: auth.users.secret_file: short is shorter than 16 bytes and can be guessed; create "
     "one with: openssl rand -hex 32\n"},
    {"auth: {users: [{name: ci, secret_file: t, resources: [a]}]}\n",
     "f:1:40: auth.users.secret_file: t contains a space or a control character, which AUTH cannot "
     "carry; create one with: openssl rand -hex 32\n"},
    {"auth: {users: [{name: ci, secret_file: empty, resources: [a]}]}\n",
     "f:1:40: auth.users.secret_file: empty is empty; write the secret into it\n"},
    {"auth: {users: [{name: ci, secret_file: none, resources: [a]}]}\n",
     "f:1:40: auth.users.secret_file: is not the path of a file; write the secret into a file, "
     "and its path here\n"},
    {"auth:\n  users:\n  - {name: a, secret_file: s, resources: [a]}\n"
     "  - {name: a, secret_file: s, resources: [b]}\n",
     "f:4:12: auth.users.name: a is already the name of the user in line 3; give each its own\n"
     "f:4:28: auth.users.secret_file: s contains the same secret as that of the user in line 3; a "
     "secret must identify one user, so create another with: openssl rand -hex 32\n"},
    {"auth: {users: [{name: a, uids: [nosuchuser], gids: [-1], resources: [a]}]}\n",
     "f:1:33: auth.users.uids: \"nosuchuser\" is not a user of this host; write the name or number "
     "of a user\n"
     "f:1:53: auth.users.gids: \"-1\" is not a group of this host; write the name or number of a "
     "group\n"},
    {LISTEN_UNIX "auth:\n  users:\n  - {name: a, uids: [0, 5], gids: [7], resources: [a]}\n"
                 "  - {name: b, uids: [9, root], gids: [7], resources: [b]}\n",
     "f:5:21: auth.users.uids: 0 already identifies the user in line 4; each id can identify only "
     "one user\n"
     "f:5:38: auth.users.gids: 7 already identifies the user in line 4; each id can identify only "
     "one user\n"},
    {"auth: {users: [{name: a, secret_file: s, resources: [a], verbs: [lokc]}]}\n",
     "f:1:66: auth.users.verbs: \"lokc\" is not a verb; did you mean lock?\n"},
    {"auth: {users: [{name: a, secret_file: s, resources: [a], verbs: [frobnicate]}]}\n",
     "f:1:66: auth.users.verbs: \"frobnicate\" is not one of lock, unlock, extend, status, break, "
     "nodes, "
     "stats, locks, clients, all\n"},
    {"auth: {users: [{name: a, secret_file: s, resources: [a], verbs: []}]}\n",
     "f:1:65: auth.users.verbs: the list is empty; leave it out for lock, unlock, extend, status "
     "and locks\n"},
    {"auth: {users: [{name: a, secret_file: s, secret: x, resources: [a]}]}\n",
     "f:1:42: auth.users.secret: unknown key; did you mean secret_file?\n"},
    {"auth: {users: [{name: [a], secret_file: {b: c}, uids: x, resources: [[a]]}]}\n",
     "f:1:23: auth.users.name: must be a single value, not a list\n"
     "f:1:41: auth.users.secret_file: must be a single value, not a mapping\n"
     "f:1:55: auth.users.uids: must be a list, not a single value\n"
     "f:1:70: auth.users.resources: must be a single value, not a list\n"},
};

TEST_ROWS(each_mistake_is_reported_with_its_place_and_advice, mistakes)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s%s", mistakes[_i].text, NODES);
    ck_assert_ptr_null(configs_read(text));
    ck_assert_str_eq(configs_report(), mistakes[_i].report);
    ck_assert_ptr_null(strstr(configs_report(), SECRET));
    ck_assert_ptr_null(strstr(configs_report(), "Quite"));
    ck_assert_ptr_null(strstr(configs_report(), "1234567890"));
}

TEST(number_of_users_is_limited)
{
    char *text = malloc(200000);
    ck_assert_ptr_nonnull(text);
    size_t len = (size_t)sprintf(text, LISTEN_UNIX "auth:\n  users:\n");
    for (int i = 0; i <= LIMIT_USERS; i++)
        len += (size_t)sprintf(text + len, "  - {name: u%d, uids: [%d], verbs: [stats]}\n", i,
                               5000 + i);
    strcpy(text + len, NODES);
    ck_assert_ptr_null(configs_read(text));
    ck_assert_str_eq(configs_report(), "f:260:5: auth.users: more than 256; leave some out\n");
    free(text);
}

static void check_number_of_ids_is_limited(const char *key, const char *report)
{
    char text[2048];
    size_t len = (size_t)sprintf(text, LISTEN_UNIX "auth:\n  users:\n  - name: a\n    %s:\n", key);
    for (int i = 0; i <= LIMIT_USER_IDS; i++)
        len += (size_t)sprintf(text + len, "    - %d\n", 5000 + i);
    sprintf(text + len, "    verbs: [stats]\n" NODES);
    ck_assert_ptr_null(configs_read(text));
    ck_assert_str_eq(configs_report(), report);
}

TEST(number_of_ids_of_a_user_is_limited)
{
    check_number_of_ids_is_limited("uids", "f:38:7: auth.users.uids: more than 32; use a group\n");
    check_number_of_ids_is_limited(
        "gids", "f:38:7: auth.users.gids: more than 32; list the rest with another user\n");
}

/* --- valid users --- */

TEST(users_are_read_as_written)
{
    struct config *config = configs_read(
        "listen: [\"tcp://0.0.0.0:1\", \"unix:/run/a\"]\n" /* allowed once users are listed */
        "auth:\n  users:\n"
        "  - {name: ci, secret_file: s, resources: [\"ci:\", \"build/\"]}\n"
        "  - {name: ops, secret_file: least, resources: [\"\"], verbs: [All]}\n"
        "  - {name: local, uids: [root, 4000], gids: [0], resources: [\"l\"], verbs: [LOCK, "
        "unlock]}\n"
        "  - {name: watch, uids: [77], verbs: [stats, nodes]}\n" NODES);
    ck_assert_str_eq(configs_report(), "");
    ck_assert_ptr_nonnull(config);
    const struct config_user *users = config->users->list;
    ck_assert_uint_eq(config->users->count, 4);
    ck_assert_str_eq(users[0].name, "ci");
    ck_assert_str_eq(users[0].secret, SECRET);
    ck_assert_uint_eq(users[0].verbs, ACL_USUAL);
    ck_assert_uint_eq(users[0].prefix_count, 2);
    ck_assert_str_eq(users[0].prefixes[1], "build/");
    ck_assert_uint_eq(users[1].verbs, ACL_GRANTABLE);
    ck_assert_str_eq(users[1].prefixes[0], "");
    ck_assert_ptr_null(users[2].secret);
    ck_assert_uint_eq(users[2].uids[0], 0);
    ck_assert_uint_eq(users[2].uids[1], 4000);
    ck_assert_uint_eq(users[2].uid_count, 2);
    ck_assert_uint_eq(users[2].gid_count, 1);
    ck_assert_uint_eq(users[2].verbs, ACL_BIT(VERB_LOCK) | ACL_BIT(VERB_UNLOCK));
    ck_assert_uint_eq(users[3].prefix_count, 0);
    config_free(config);
}

TEST(secret_file_open_to_others_causes_a_warning)
{
    ck_assert_int_eq(chmod("s", 0644), 0);
    struct config *config =
        configs_read("auth: {users: [{name: ci, secret_file: s, resources: [\"\"]}]}\n" NODES);
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(configs_report(), "f:1:40: warning: auth.users.secret_file: s is readable or "
                                       "writable by every user; chmod 640 or 600\n");
    config_free(config);
}
