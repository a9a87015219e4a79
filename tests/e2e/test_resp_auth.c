/*
 * Users of a daemon over RESP: AUTH and HELLO AUTH, with the errors that Redis clients know, and
 * what RESET leaves.
 */
#include <string.h>

#include "server/clients/auth_throttle.h"
#include "tests/e2e/resp_client.h"
#include "tests/e2e/secrets.h"
#include "tests/e2e/waiting.h"
#include "tests/runner.h"

#define TOKEN  "0123456789abcdef0123456789abcdef01234567"
#define NOAUTH "-NOAUTH authenticate first: AUTH <secret>"

static struct secrets secrets;

/* Opens a stage whose daemon has users; stage.client is `tester`. */
static void open_stage(struct stage *stage, const char *test, const char *more)
{
    secrets_open(&secrets, more);
    stage_open(stage, test,
               &(struct stage_plan){.masters = 3,
                                    .over_unix = true,
                                    .daemon = {.tcp_host = "127.0.0.1", .yaml = secrets.yaml}});
}

static void close_stage(struct stage *stage)
{
    ck_assert_uint_eq(daemon_count_log(&stage->daemon, "0123456789abcdef0123456789abcdef"), 0);
    ck_assert_uint_eq(daemon_count_log(&stage->daemon, "guess-"), 0);
    stage_close(stage);
    secrets_close(&secrets);
}

TEST(commands_before_auth_are_refused_with_noauth)
{
    static const char *const refused[] = {
        "LOCK ci:a 10s",
        "LOCK ci:a 10s WAIT 1s",
        "UNLOCK ci:a " TOKEN,
        "EXTEND ci:a " TOKEN " 1s",
        "STATUS ci:a",
        "NAME me",
        "NODES",
        "STATS",
        "LOCKS",
        "LOCKS ci:a",
        "CLIENTS",
        "CLIENT ID",
        "CLIENT SETNAME me",
        "SELECT 0",
        "ECHO hi",
        /* An error text with the valid range would reveal the configuration. */
        "LOCK ci:a 99999999",
        "UNLOCK ci:a x",
    };
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    resp_connect_tcp(&resp, &stage);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        resp_expect(&resp, NOAUTH, "%s", refused[i]);
    resp_expect_match(&resp, "-NOAUTH .*", "INFO");
    resp_expect(&resp, "-NOAUTH authenticate first: HELLO 3 AUTH <user> <secret>", "HELLO 3");
    resp_expect(&resp, "+PONG", "PING");
    resp_expect(&resp, "$2 hi", "PING hi");
    resp_expect_match(&resp, "\\+VERSION .*", "VERSION");
    resp_expect_match(&resp, "\\*15 .*", "HELP");
    resp_expect(&resp, ":15", "COMMAND COUNT");
    resp_expect_match(&resp, "-ERR unknown command 'GET': .*", "GET a");
    resp_expect(&resp, "+OK", "AUTH " SECRET_CI);
    resp_lock(&resp, "ci:a", "10s");
    resp_close(&resp);
    close_stage(&stage);
}

/* The ways in which Redis clients authenticate. `default` is the name that they send with a secret
 * alone. */
static const char *const right[] = {"AUTH " SECRET_CI,
                                    "AUTH ci " SECRET_CI,
                                    "AUTH default " SECRET_CI,
                                    "HELLO 2 AUTH ci " SECRET_CI,
                                    "HELLO 3 AUTH ci " SECRET_CI,
                                    "HELLO 3 AUTH default " SECRET_CI " SETNAME me",
                                    "HELLO 3 SETNAME me AUTH ci " SECRET_CI};

TEST(a_user_authenticates_by_its_secret)
{
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        resp_connect_tcp(&resp, &stage);
        resp_expect_match(&resp, "\\+OK|\\*14 .*|%7 .*", "%s", right[i]);
        ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", "user=ci"), 1);
        resp_expect(&resp, "+FREE", "STATUS ci:a");
        resp_expect(&resp, "-NOPERM user ci may not use this resource", "STATUS prod");
        resp_expect(&resp, "-NOPERM user ci may not use this resource", "LOCK prod 10s");
        resp_expect(&resp, "-NOPERM user ci may not use NODES", "NODES");
        resp_expect(&resp, "-NOPERM user ci may not use STATS", "INFO");
        resp_expect_match(&resp, "-NOPERM .*", "BREAK ci:a");
        resp_close(&resp);
        stage_wait_clients(&stage, 1);
    }
    close_stage(&stage);
}

/* A secret that belongs to another user than the named one is as wrong as any other. */
static const char *const wrong[] = {"AUTH guess-1",
                                    "AUTH ci guess-2",
                                    "AUTH default guess-3",
                                    "AUTH ops " SECRET_CI,
                                    "AUTH nobody " SECRET_CI,
                                    "AUTH CI " SECRET_CI,
                                    "HELLO 3 AUTH ci guess-4",
                                    "HELLO 2 AUTH ops " SECRET_CI " SETNAME me"};

TEST_ROWS(a_wrong_secret_or_name_is_refused_and_the_client_can_try_again, wrong)
{
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "%s", wrong[_i]);
    resp_send(&resp, "CLIENT SETINFO LIB-NAME test");
    resp_send(&resp, "LOCK ci:a 10s");
    resp_send(&resp, "AUTH " SECRET_CI);
    resp_send(&resp, "STATUS ci:a");
    resp_read_equal(&resp, "-WRONGPASS wrong secret");
    resp_read_equal(&resp, NOAUTH);
    resp_read_equal(&resp, NOAUTH);
    resp_read_equal(&resp, "+OK");
    resp_read_equal(&resp, "+FREE");
    resp_close(&resp);
    daemon_wait_log(&stage.daemon, "auth_failed", "peer=127.0.0.1");
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " wrong_secrets=1"), 1);
    close_stage(&stage);
}

/* A client cannot try any number of secrets on one connection. */
TEST(after_many_wrong_secrets_none_is_checked)
{
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    resp_connect_tcp(&resp, &stage);
    for (unsigned i = 0; i < AUTH_THROTTLE_BURST; i++)
        resp_expect(&resp, "-WRONGPASS wrong secret", "AUTH guess-%u", i);
    struct waiting waiting = waiting_for("the throttle to refuse");
    /* The throttle allows one more attempt each second while the test guesses. */
    for (unsigned i = 0;
         resp_send(&resp, "AUTH more-guess-%u", i), strcmp(resp_read(&resp), "-LIMIT secrets") != 0;
         i++)
        waiting_pause(&waiting);
    resp_expect(&resp, "-LIMIT secrets", "AUTH " SECRET_CI);
    resp_expect(&resp, NOAUTH, "STATUS ci:a");
    resp_close(&resp);
    close_stage(&stage);
}

TEST(a_connection_can_authenticate_again_as_the_same_user_only)
{
    static const char once[] = "-ERR this connection has already authenticated; open another one";
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    resp_connect_tcp(&resp, &stage);
    resp_expect(&resp, "+OK", "AUTH " SECRET_CI);
    resp_expect(&resp, once, "AUTH " SECRET_OPS);
    resp_expect(&resp, "+OK", "AUTH ci " SECRET_CI);
    resp_expect(&resp, "+OK", "AUTH default " SECRET_CI);
    resp_expect_match(&resp, "%7 .*", "HELLO 3 AUTH ci " SECRET_CI);
    resp_expect(&resp, "-WRONGPASS wrong secret", "AUTH ci " SECRET_OPS);
    resp_expect(&resp, once, "HELLO 3 AUTH ops " SECRET_OPS);
    resp_expect(&resp, "-NOPERM user ci may not use this resource", "STATUS prod");
    resp_hello(&resp);
    resp_expect(&resp, "+FREE", "STATUS ci:a");
    resp_close(&resp);
    close_stage(&stage);
}

/* RESET is the only way to another user on the same connection. */
TEST(after_reset_a_connection_is_unauthenticated)
{
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    resp_connect_tcp(&resp, &stage);
    resp_expect_match(&resp, "%7 .*", "HELLO 3 AUTH ci " SECRET_CI " SETNAME me");
    resp_lock(&resp, "ci:a", "60s HOLD");
    resp_expect(&resp, "+RESET", "RESET");
    resp_expect(&resp, NOAUTH, "STATUS ci:a");
    stage_wait_key(&stage, "redlock:ci:a", 0);
    ck_assert_uint_eq(client_count(&stage.client, "CLIENTS", "name=me"), 0);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " unauthenticated=1 "), 1);
    resp_expect(&resp, "+OK", "AUTH ops " SECRET_OPS);
    resp_expect(&resp, "+FREE", "STATUS prod");
    resp_expect(&resp, "$-1", "CLIENT GETNAME");
    resp_close(&resp);
    close_stage(&stage);
}

TEST(after_reset_the_auth_timeout_runs_again)
{
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "limits: {auth_timeout: 1s}\n");
    resp_connect_tcp(&resp, &stage);
    resp_expect(&resp, "+OK", "AUTH " SECRET_CI);
    resp_expect(&resp, "+RESET", "RESET");
    resp_read_equal(&resp, "-DENIED not authenticated in time");
    resp_expect_end(&resp);
    resp_close(&resp);
    close_stage(&stage);
}

TEST(a_connection_that_misses_the_auth_timeout_is_closed)
{
    struct stage stage;
    struct resp_client idle;
    struct resp_client busy;
    open_stage(&stage, __func__, "limits: {auth_timeout: 1s}\n");
    resp_connect_tcp(&idle, &stage);
    resp_expect(&idle, "+PONG", "PING");
    resp_connect_tcp(&busy, &stage);
    resp_expect(&busy, "-WRONGPASS wrong secret", "AUTH guess-6");
    resp_send_raw(&busy, "*2\r\n$4\r\nAU"); /* nothing of this extends the timeout */
    resp_read_equal(&idle, "-DENIED not authenticated in time");
    resp_expect_end(&idle);
    resp_read_equal(&busy, "-DENIED not authenticated in time");
    resp_expect_end(&busy);
    resp_close(&idle);
    resp_close(&busy);
    ck_assert_uint_eq(client_count(&stage.client, "STATS", " unauthenticated=0 "), 1);
    close_stage(&stage);
}

/* Clients send the first commands without waiting for the reply to AUTH. */
TEST(commands_can_follow_auth_at_once)
{
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    resp_connect_tcp(&resp, &stage);
    resp_send(&resp, "STATUS ci:a");
    resp_send(&resp, "HELLO 3 AUTH default " SECRET_CI);
    resp_send(&resp, "CLIENT SETINFO LIB-NAME test");
    resp_send(&resp, "LOCK ci:b 10s");
    resp_read_equal(&resp, NOAUTH);
    resp_read_prefix(&resp, "%7 ");
    resp_read_equal(&resp, "+OK");
    resp_read_match(&resp, RESP_GRANT_3);
    resp_close(&resp);
    close_stage(&stage);
}

/* So that clients can be given their secrets before the daemon has users. */
TEST(without_users_any_name_and_secret_are_accepted)
{
    struct stage stage;
    struct resp_client resp;
    stage_open(
        &stage, __func__,
        &(struct stage_plan){.masters = 3, .over_unix = true, .daemon = {.tcp_host = "127.0.0.1"}});
    resp_connect_tcp(&resp, &stage);
    resp_expect(&resp, "+OK", "AUTH any");
    resp_expect(&resp, "+OK", "AUTH some other");
    resp_expect_match(&resp, "%7 .*", "HELLO 3 AUTH default third");
    resp_expect(&resp, "+FREE", "STATUS a");
    resp_close(&resp);
    stage_close(&stage);
}

/* On the unix socket, the kernel names the user. A secret overrides it, until RESET. */
TEST(a_unix_socket_names_the_user_also_after_reset)
{
    struct stage stage;
    struct resp_client resp;
    open_stage(&stage, __func__, "");
    resp_connect_unix(&resp, &stage);
    resp_expect(&resp, "-WRONGPASS wrong secret", "AUTH guess-5");
    resp_expect(&resp, "+FREE", "STATUS prod");
    resp_expect(&resp, "+OK", "AUTH " SECRET_CI);
    resp_expect_match(&resp, "-NOPERM .*", "STATUS prod");
    resp_expect(&resp, "+RESET", "RESET");
    resp_expect(&resp, "+FREE", "STATUS prod");
    resp_close(&resp);
    close_stage(&stage);
}
