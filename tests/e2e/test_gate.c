/*
 * Other users in place of those there are, while connections are open: the daemon's own loop, in
 * the test's process, on real masters. (A reload has to call gate_renew() as this does.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "server/server.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

struct house {
    struct stage stage;
    struct secrets secrets;
    struct config *config;
    struct server server;
    struct client client;
};

static struct config *load(const struct house *house)
{
    FILE *null = fopen("/dev/null", "w");
    struct config *config = config_load(house->stage.daemon.config, CONFIG_NORMAL, null);
    ck_assert_ptr_nonnull(null);
    ck_assert_ptr_nonnull(config);
    fclose(null);
    return config;
}

static void run(struct house *house)
{
    event_base_loop(house->server.base, EVLOOP_NONBLOCK);
}

static const char *hear(struct house *house, struct client *client)
{
    struct waiting waiting = waiting_for("an answer of the loop");
    while (!client_has_line(client)) {
        waiting_pause(&waiting);
        run(house);
    }
    return client_read(client);
}

static void expect(struct house *house, const char *reply, const char *line)
{
    client_send(&house->client, line);
    client_send(&house->client, "\n");
    const char *got = hear(house, &house->client);
    ck_assert_msg(strncmp(got, reply, strlen(reply)) == 0, "%s: %s, not %s", line, got, reply);
}

/* It was closed, with this. */
static void expect_closed(struct house *house, const char *line)
{
    ck_assert_str_eq(hear(house, &house->client), line);
    client_expect_end(&house->client);
    client_close(&house->client);
}

static void write_users(struct house *house, const char *yaml)
{
    daemon_prepare(&house->stage.daemon, &house->stage.sandbox, house->stage.masters, 3,
                   &(struct daemon_plan){.yaml = yaml});
}

/* The same as a reload would do. */
static void renew(struct house *house, const char *yaml)
{
    write_users(house, yaml);
    struct config *next = load(house);
    struct config_users *before = house->config->users;
    house->config->users = next->users;
    ck_assert(gate_renew(&house->server));
    next->users = before;
    config_free(next);
    run(house);
}

static void open_house(struct house *house, const char *test)
{
    secrets_open(&house->secrets, "");
    stage_open_masters(&house->stage, test, &(struct stage_plan){.masters = 3});
    write_users(house, house->secrets.yaml);
    house->config = load(house);
    const struct log log = {CONFIG_LOG_ERROR, CONFIG_LOG_TEXT, STDERR_FILENO, false};
    ck_assert(server_start(&house->server, house->config, &log,
                           &(struct server_task){.trust_masters = true}));
    struct waiting waiting = waiting_for("the masters to vote");
    while (house->server.votes < 3) {
        run(house);
        waiting_pause(&waiting);
    }
    daemon_connect(&house->stage.daemon, &house->client);
}

static void close_house(struct house *house)
{
    server_stop(&house->server);
    config_free(house->config);
    stage_close_masters(&house->stage);
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

START_TEST(connection_goes_on_as_the_user_of_that_name)
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

START_TEST(unix_socket_is_looked_at_anew)
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

START_TEST(who_is_no_user_any_more_is_closed)
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
START_TEST(who_holds_what_he_may_not_any_more_is_closed)
{
    open_house(&house, __func__);
    expect(&house, "OK", "AUTH " SECRET_CI);
    expect(&house, "OK ", "LOCK ci:a 60s HOLD");
    renew(&house, users(&house, "\"ci:\", \"more:\"", "tester"));
    expect(&house, "PONG", "PING");
    renew(&house, users(&house, "\"cd:\"", "tester"));
    expect_closed(&house, "DENIED the users of this daemon have changed");
    ck_assert_uint_eq(masters_with(house.stage.masters, 3, "redlock:ci:a"), 3);
    close_house(&house);
}
END_TEST

START_TEST(users_may_come_and_go_altogether)
{
    open_house(&house, __func__);
    renew(&house, "log: {level: error}\n");
    expect(&house, "FREE", "STATUS anything");
    expect(&house, "OK", "AUTH whatever-it-is");
    renew(&house, users(&house, "\"ci:\"", "tester"));
    expect(&house, "FREE", "STATUS t:a"); /* known by its unix socket */
    expect(&house, "DENIED", "STATUS anything");
    client_close(&house.client);
    close_house(&house);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("gate");
    TCase *tests = sandbox_case("renewed users");
    tcase_add_test(tests, connection_goes_on_as_the_user_of_that_name);
    tcase_add_test(tests, unix_socket_is_looked_at_anew);
    tcase_add_test(tests, who_is_no_user_any_more_is_closed);
    tcase_add_test(tests, who_holds_what_he_may_not_any_more_is_closed);
    tcase_add_test(tests, users_may_come_and_go_altogether);
    suite_add_tcase(suite, tests);
    return suite;
}
