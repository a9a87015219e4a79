/*
 * Users that are changed by SIGHUP while connections are open.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/secrets.h"
#include "tests/e2e/stage.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

struct fixture {
    struct stage stage;
    struct secrets secrets;
    struct client client;
};

static void expect(struct fixture *fixture, const char *reply, const char *line)
{
    const char *got = client_ask(&fixture->client, "%s", line);
    ck_assert_msg(strncmp(got, reply, strlen(reply)) == 0, "%s: %s, not %s", line, got, reply);
}

/* Reads this line and expects the end of the connection. */
static void expect_closed(struct fixture *fixture, const char *line)
{
    ck_assert_str_eq(client_read(&fixture->client), line);
    client_expect_end(&fixture->client);
    client_close(&fixture->client);
}

/* Replaces the daemon's configuration by one with these YAML sections, and reloads it. */
static void reload_with(struct fixture *fixture, const char *yaml)
{
    struct daemon same_files;
    daemon_prepare(&same_files, &fixture->stage.sandbox, fixture->stage.masters, 3,
                   &(struct daemon_plan){.yaml = yaml});
    daemon_reload(&fixture->stage.daemon, " reloaded ");
}

static void open_fixture(struct fixture *fixture, const char *test)
{
    secrets_open(&fixture->secrets, "");
    stage_open(&fixture->stage, test,
               &(struct stage_plan){
                   .masters = 3, .over_unix = true, .daemon = {.yaml = fixture->secrets.yaml}});
    daemon_connect(&fixture->stage.daemon, &fixture->client);
}

static void close_fixture(struct fixture *fixture)
{
    stage_close(&fixture->stage);
    secrets_close(&fixture->secrets);
}

/* Formats users in YAML: ci with these prefixes, and the user that runs the tests, under the name
 * that `tester` gives. */
static const char *users(const struct fixture *fixture, const char *prefixes, const char *tester)
{
    static char yaml[512];
    char path[64];
    snprintf(yaml, sizeof(yaml),
             "auth:\n  users:\n"
             "  - {name: ci, secret_file: %s, resources: [%s]}\n"
             "  - {name: %s, uids: [%u], resources: [\"t:\"]}\n",
             secrets_path(&fixture->secrets, "ci", path), prefixes, tester, (unsigned)geteuid());
    return yaml;
}

static struct fixture fixture;

TEST(a_connection_keeps_its_user_and_gets_the_new_rights)
{
    open_fixture(&fixture, __func__);
    expect(&fixture, "OK", "AUTH " SECRET_CI);
    expect(&fixture, "FREE", "STATUS ci:a");
    reload_with(&fixture, users(&fixture, "\"cd:\"", "tester"));
    expect(&fixture, "DENIED user ci may not use this resource", "STATUS ci:a");
    expect(&fixture, "FREE", "STATUS cd:a");
    client_close(&fixture.client);
    close_fixture(&fixture);
}

/* Repeated reloads of other settings must not mix up the rights of users. */
TEST(unchanged_users_keep_their_rights)
{
    static const char *const others[] = {
        "log: {level: debug}\n",
        "log: {level: info}\n",
        "limits: {waiters_per_resource: 7}\nlog: {level: debug}\n",
    };
    char yaml[SECRETS_YAML];
    open_fixture(&fixture, __func__);
    expect(&fixture, "OK", "AUTH " SECRET_CI);
    for (unsigned i = 0; i < 3 * sizeof(others) / sizeof(others[0]); i++) {
        struct client newcomer;
        snprintf(yaml, sizeof(yaml), "%s%s", others[i / 3], strstr(fixture.secrets.yaml, "auth:"));
        reload_with(&fixture, yaml);
        expect(&fixture, "FREE", "STATUS ci:a");
        expect(&fixture, "DENIED user ci may not use this resource", "STATUS cd:a");
        daemon_connect(&fixture.stage.daemon, &newcomer);
        client_expect(&newcomer, "OK", "AUTH " SECRET_CI);
        client_expect(&newcomer, "FREE", "STATUS ci:a");
        client_expect(&newcomer, "DENIED user ci may not use this resource", "STATUS cd:a");
        client_close(&newcomer);
    }
    client_close(&fixture.client);
    close_fixture(&fixture);
}

TEST(a_unix_peer_is_matched_with_the_new_users)
{
    open_fixture(&fixture, __func__);
    expect(&fixture, "FREE", "STATUS prod");
    reload_with(&fixture, users(&fixture, "\"ci:\"", "other"));
    expect(&fixture, "DENIED user other may not use this resource", "STATUS prod");
    expect(&fixture, "FREE", "STATUS t:a");
    client_close(&fixture.client);
    close_fixture(&fixture);
}

TEST(connections_of_removed_users_are_closed)
{
    char path[64];
    char yaml[256];
    open_fixture(&fixture, __func__);
    expect(&fixture, "OK", "AUTH " SECRET_CI);
    snprintf(yaml, sizeof(yaml),
             "auth:\n  users:\n  - {name: ops, secret_file: %s, resources: [\"\"]}\n",
             secrets_path(&fixture.secrets, "ops", path));
    reload_with(&fixture, yaml);
    expect_closed(&fixture, "DENIED the users of this daemon have changed");
    /* The reload has also removed the user `tester`, so the unix socket no longer authenticates. */
    daemon_connect(&fixture.stage.daemon, &fixture.client);
    expect(&fixture, "DENIED authenticate first", "STATUS a");
    /* An unauthenticated connection survives a reload. */
    reload_with(&fixture, fixture.secrets.yaml);
    expect(&fixture, "FREE", "STATUS a");
    client_close(&fixture.client);
    close_fixture(&fixture);
}

/* Over RESP, the last message is an error, so that a Redis client can report it. */
TEST(a_redis_client_of_a_removed_user_receives_an_error)
{
    static const char auth[] = "*2\r\n$4\r\nAUTH\r\n$35\r\n" SECRET_CI "\r\n";
    open_fixture(&fixture, __func__);
    client_send(&fixture.client, auth);
    client_read_match(&fixture.client, "\\+OK\r");
    reload_with(&fixture, users(&fixture, "\"cd:\"", "tester"));
    client_send(&fixture.client, "*2\r\n$6\r\nSTATUS\r\n$4\r\ncd:a\r\n");
    client_read_match(&fixture.client, "\\+FREE\r");
    reload_with(&fixture, "log: {level: info}\nauth:\n  users:\n"
                          "  - {name: other, uids: [4711], resources: [\"\"]}\n");
    client_read_match(&fixture.client, "-DENIED the users of this daemon have changed\r");
    client_expect_end(&fixture.client);
    client_close(&fixture.client);
    close_fixture(&fixture);
}

/* The connection is closed, but the lock stays: its holder may rely on it until the deadline. */
TEST(a_holder_that_loses_its_right_is_disconnected)
{
    open_fixture(&fixture, __func__);
    expect(&fixture, "OK", "AUTH " SECRET_CI);
    expect(&fixture, "OK ", "LOCK ci:a 60s HOLD");
    reload_with(&fixture, users(&fixture, "\"ci:\", \"more:\"", "tester"));
    expect(&fixture, "PONG", "PING");
    reload_with(&fixture, users(&fixture, "\"cd:\"", "tester"));
    expect_closed(&fixture, "DENIED the users of this daemon have changed");
    stage_wait_key(&fixture.stage, "redlock:ci:a", 3);
    daemon_wait_log(&fixture.stage.daemon, " info client_evicted", "holds=1");
    close_fixture(&fixture);
}

TEST(a_reload_can_remove_and_introduce_users)
{
    open_fixture(&fixture, __func__);
    reload_with(&fixture, "log: {level: info}\n");
    expect(&fixture, "FREE", "STATUS anything");
    expect(&fixture, "OK", "AUTH whatever-it-is");
    reload_with(&fixture, users(&fixture, "\"ci:\"", "tester"));
    expect(&fixture, "FREE", "STATUS t:a"); /* user by peer credentials */
    expect(&fixture, "DENIED", "STATUS anything");
    client_close(&fixture.client);
    close_fixture(&fixture);
}

TEST(a_shorter_auth_timeout_applies_to_open_connections)
{
    char path[64];
    char yaml[2][256];
    open_fixture(&fixture, __func__);
    for (unsigned i = 0; i < 2; i++)
        snprintf(yaml[i], sizeof(yaml[i]),
                 "limits: {auth_timeout: %s}\n"
                 "auth:\n  users:\n  - {name: ops, secret_file: %s, resources: [\"\"]}\n",
                 i == 0 ? "1m" : "1s", secrets_path(&fixture.secrets, "ops", path));
    reload_with(&fixture, yaml[0]);
    expect_closed(&fixture, "DENIED the users of this daemon have changed");
    daemon_connect(&fixture.stage.daemon, &fixture.client);
    expect(&fixture, "DENIED authenticate first", "STATUS a");
    int64_t begin_ms = waiting_clock_ms();
    reload_with(&fixture, yaml[1]);
    expect_closed(&fixture, "DENIED not authenticated in time");
    ck_assert_int_lt(waiting_clock_ms() - begin_ms, 30000); /* after 1 s, not after 1 min */
    close_fixture(&fixture);
}
