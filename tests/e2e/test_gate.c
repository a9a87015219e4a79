/*
 * Other users in place of those there are, by SIGHUP, while connections are open.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

struct house {
    struct stage stage;
    struct secrets secrets;
    struct client client;
};

static void expect(struct house *house, const char *reply, const char *line)
{
    const char *got = client_ask(&house->client, "%s", line);
    ck_assert_msg(strncmp(got, reply, strlen(reply)) == 0, "%s: %s, not %s", line, got, reply);
}

/* It was closed, with this. */
static void expect_closed(struct house *house, const char *line)
{
    ck_assert_str_eq(client_read(&house->client), line);
    client_expect_end(&house->client);
    client_close(&house->client);
}

static void renew(struct house *house, const char *yaml)
{
    struct daemon same_files;
    const struct daemon *daemon = &house->stage.daemon;
    unsigned before = daemon_count_log(daemon, " reloaded ");
    daemon_prepare(&same_files, &house->stage.sandbox, house->stage.masters, 3,
                   &(struct daemon_plan){.yaml = yaml});
    ck_assert_int_eq(kill(daemon->pid, SIGHUP), 0);
    struct waiting waiting = waiting_for("the reload");
    while (daemon_count_log(daemon, " reloaded ") == before)
        waiting_pause(&waiting);
}

static void open_house(struct house *house, const char *test)
{
    secrets_open(&house->secrets, "");
    stage_open(&house->stage, test,
               &(struct stage_plan){
                   .masters = 3, .over_unix = true, .daemon = {.yaml = house->secrets.yaml}});
    daemon_connect(&house->stage.daemon, &house->client);
}

static void close_house(struct house *house)
{
    stage_close(&house->stage);
    secrets_close(&house->secrets);
}

/* Users in YAML: ci with these prefixes, and whoever runs the tests as this one. */
static const char *users(const struct house *house, const char *prefixes, const char *tester)
{
    static char yaml[512];
    char path[64];
    snprintf(yaml, sizeof(yaml),
             "auth:\n  users:\n"
             "  - {name: ci, secret_file: %s, resources: [%s]}\n"
             "  - {name: %s, uids: [%u], resources: [\"t:\"]}\n",
             secrets_path(&house->secrets, "ci", path), prefixes, tester, (unsigned)geteuid());
    return yaml;
}

static struct house house;

START_TEST(a_connection_keeps_its_user_name_with_the_new_rights)
{
    open_house(&house, __func__);
    expect(&house, "OK", "AUTH " SECRET_CI);
    expect(&house, "FREE", "STATUS ci:a");
    renew(&house, users(&house, "\"cd:\"", "tester"));
    expect(&house, "DENIED this user may not use this resource", "STATUS ci:a");
    expect(&house, "FREE", "STATUS cd:a");
    client_close(&house.client);
    close_house(&house);
}
END_TEST

/* Whatever else is read again, and however often: what they may do is still theirs alone. */
START_TEST(unchanged_users_keep_their_rights)
{
    static const char *const others[] = {
        "log: {level: debug}\n",
        "log: {level: info}\n",
        "limits: {waiters_per_resource: 7}\nlog: {level: debug}\n",
    };
    char yaml[SECRETS_YAML];
    open_house(&house, __func__);
    expect(&house, "OK", "AUTH " SECRET_CI);
    for (unsigned i = 0; i < 3 * sizeof(others) / sizeof(others[0]); i++) {
        struct client newcomer;
        snprintf(yaml, sizeof(yaml), "%s%s", others[i / 3], strstr(house.secrets.yaml, "auth:"));
        renew(&house, yaml);
        expect(&house, "FREE", "STATUS ci:a");
        expect(&house, "DENIED this user may not use this resource", "STATUS cd:a");
        daemon_connect(&house.stage.daemon, &newcomer);
        client_expect(&newcomer, "OK", "AUTH " SECRET_CI);
        client_expect(&newcomer, "FREE", "STATUS ci:a");
        client_expect(&newcomer, "DENIED this user may not use this resource", "STATUS cd:a");
        client_close(&newcomer);
    }
    client_close(&house.client);
    close_house(&house);
}
END_TEST

START_TEST(a_unix_peer_is_matched_with_the_new_users)
{
    open_house(&house, __func__);
    expect(&house, "FREE", "STATUS prod");
    renew(&house, users(&house, "\"ci:\"", "other"));
    expect(&house, "DENIED this user may not use this resource", "STATUS prod");
    expect(&house, "FREE", "STATUS t:a");
    client_close(&house.client);
    close_house(&house);
}
END_TEST

START_TEST(connections_of_removed_users_are_closed)
{
    char path[64];
    char yaml[256];
    open_house(&house, __func__);
    expect(&house, "OK", "AUTH " SECRET_CI);
    snprintf(yaml, sizeof(yaml),
             "auth:\n  users:\n  - {name: ops, secret_file: %s, resources: [\"\"]}\n",
             secrets_path(&house.secrets, "ops", path));
    renew(&house, yaml);
    expect_closed(&house, "DENIED the users of this daemon have changed");
    /* The secret of who is gone is nobody's, and the unix socket's user has gone, too. */
    daemon_connect(&house.stage.daemon, &house.client);
    expect(&house, "DENIED authenticate first", "STATUS a");
    /* At the gate one may stay. */
    renew(&house, house.secrets.yaml);
    expect(&house, "FREE", "STATUS a");
    client_close(&house.client);
    close_house(&house);
}
END_TEST

/* Closed, not released: its holder may rely on it until its deadline. */
START_TEST(a_holder_that_loses_its_right_is_closed)
{
    open_house(&house, __func__);
    expect(&house, "OK", "AUTH " SECRET_CI);
    expect(&house, "OK ", "LOCK ci:a 60s HOLD");
    renew(&house, users(&house, "\"ci:\", \"more:\"", "tester"));
    expect(&house, "PONG", "PING");
    renew(&house, users(&house, "\"cd:\"", "tester"));
    expect_closed(&house, "DENIED the users of this daemon have changed");
    stage_wait_key(&house.stage, "redlock:ci:a", 3);
    daemon_wait_log(&house.stage.daemon, " info client_evicted", "holds=1");
    close_house(&house);
}
END_TEST

START_TEST(users_may_be_removed_and_introduced_by_a_reload)
{
    open_house(&house, __func__);
    renew(&house, "log: {level: info}\n");
    expect(&house, "FREE", "STATUS anything");
    expect(&house, "OK", "AUTH whatever-it-is");
    renew(&house, users(&house, "\"ci:\"", "tester"));
    expect(&house, "FREE", "STATUS t:a"); /* known by its unix socket */
    expect(&house, "DENIED", "STATUS anything");
    client_close(&house.client);
    close_house(&house);
}
END_TEST

START_TEST(a_shorter_auth_timeout_applies_to_open_connections)
{
    char path[64];
    char yaml[2][256];
    open_house(&house, __func__);
    for (unsigned i = 0; i < 2; i++)
        snprintf(yaml[i], sizeof(yaml[i]),
                 "limits: {auth_timeout: %s}\n"
                 "auth:\n  users:\n  - {name: ops, secret_file: %s, resources: [\"\"]}\n",
                 i == 0 ? "1m" : "1s", secrets_path(&house.secrets, "ops", path));
    renew(&house, yaml[0]);
    expect_closed(&house, "DENIED the users of this daemon have changed");
    daemon_connect(&house.stage.daemon, &house.client);
    expect(&house, "DENIED authenticate first", "STATUS a");
    int64_t begin_ms = waiting_clock_ms();
    renew(&house, yaml[1]);
    expect_closed(&house, "DENIED not authenticated in time");
    ck_assert_int_lt(waiting_clock_ms() - begin_ms, 30000); /* by the new one, not by the old */
    close_house(&house);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("gate");
    TCase *tests = sandbox_case("renewed users");
    tcase_add_test(tests, a_connection_keeps_its_user_name_with_the_new_rights);
    tcase_add_test(tests, unchanged_users_keep_their_rights);
    tcase_add_test(tests, a_unix_peer_is_matched_with_the_new_users);
    tcase_add_test(tests, connections_of_removed_users_are_closed);
    tcase_add_test(tests, a_holder_that_loses_its_right_is_closed);
    tcase_add_test(tests, users_may_be_removed_and_introduced_by_a_reload);
    tcase_add_test(tests, a_shorter_auth_timeout_applies_to_open_connections);
    suite_add_tcase(suite, tests);
    return suite;
}
