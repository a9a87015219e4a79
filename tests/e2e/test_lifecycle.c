/*
 * Shutdown of the daemon, locks that survive a restart, the exit status for an invalid
 * configuration, and the log.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "tests/e2e/process.h"
#include "tests/e2e/stage.h"
#include "tests/runner.h"

static const struct stage_plan three = {.masters = 3, .over_unix = true};

/* While two of the three masters are stopped, a LOCK is in flight for about this node_timeout. A
 * shutdown waits longer than that for requests in flight. */
static const struct stage_plan slow_requests = {.masters = 3, .daemon = {.node_timeout_ms = 800}};

/* --- shutdown --- */

static void stop_by_signal(const char *test, int signal_number)
{
    struct stage stage;
    stage_open(&stage, test, &three);
    client_lock(&stage.client, "a", "10s");
    ck_assert_int_eq(kill(stage.daemon.pid, signal_number), 0);
    client_expect_end(&stage.client);
    daemon_check_end(&stage.daemon);
    stage_close(&stage);
}

TEST(sigterm_stops_the_daemon_cleanly)
{
    stop_by_signal(__func__, SIGTERM);
}

TEST(sigint_stops_the_daemon_cleanly)
{
    stop_by_signal(__func__, SIGINT);
}

TEST(user_signals_do_not_stop_the_daemon)
{
    static const int signal_numbers[] = {SIGUSR1, SIGUSR2};
    struct stage stage;
    stage_open(&stage, __func__, &three);
    for (size_t i = 0; i < sizeof(signal_numbers) / sizeof(signal_numbers[0]); i++) {
        ck_assert_int_eq(kill(stage.daemon.pid, signal_numbers[i]), 0);
        client_expect(&stage.client, "PONG", "PING");
    }
    stage_close(&stage);
}

TEST(the_daemon_stops_cleanly_without_masters)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    master_kill(&stage.masters[0]);
    stage_stop_masters(&stage, 1, 2);
    daemon_stop(&stage.daemon);
    stage_close(&stage);
}

TEST(a_request_in_flight_is_answered_before_the_daemon_stops)
{
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &slow_requests);
    stage_stop_masters(&stage, 1, 2);
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "LOCK a 60s\n");
    stage_wait_in_flight(&stage);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGTERM), 0);
    client_read_match(&client, "NOQUORUM .*|SHUTDOWN");
    client_expect_end(&client);
    client_close(&client);
    daemon_check_end(&stage.daemon);
    /* The LOCK left no key, not even on the stopped masters. */
    stage_continue_masters(&stage, 1, 2);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

/* The node_timeout is longer than the time limit of a shutdown. */
TEST(a_request_that_outlasts_the_shutdown_is_answered_and_undone)
{
    const struct stage_plan plan = {.masters = 5, .daemon = {.node_timeout_ms = 8000}};
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &plan);
    stage_stop_masters(&stage, 2, 4);
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "LOCK a 60s\n");
    stage_wait_in_flight(&stage);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGTERM), 0);
    client_read_match(&client, "NOQUORUM .*|SHUTDOWN");
    client_expect_end(&client);
    client_close(&client);
    daemon_check_end(&stage.daemon);
    stage_continue_masters(&stage, 2, 4);
    stage_wait_no_keys(&stage);
    stage_close(&stage);
}

/* The node_timeout is long, so that the request in flight delays the end of the daemon. */
TEST(requests_during_the_shutdown_are_refused)
{
    const struct stage_plan plan = {.masters = 3, .daemon = {.node_timeout_ms = 8000}};
    struct stage stage;
    struct client client;
    stage_open(&stage, __func__, &plan);
    stage_stop_masters(&stage, 1, 2);
    daemon_connect(&stage.daemon, &client);
    client_send(&client, "#slow LOCK a 60s\n");
    stage_wait_in_flight(&stage);
    ck_assert_int_eq(kill(stage.daemon.pid, SIGTERM), 0);
    daemon_wait_log(&stage.daemon, "stopping", "SIGTERM");
    client_expect(&client, "SHUTDOWN", "LOCK b 60s");
    client_expect(&client, "#x SHUTDOWN", "#x STATUS b");
    client_read_match(&client, "#slow (NOQUORUM .*|SHUTDOWN)");
    client_expect_end(&client);
    client_close(&client);
    daemon_check_end(&stage.daemon);
    stage_close(&stage);
}

/* --- restarts --- */

TEST(lock_survives_the_daemon)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_close(&stage.client);
    daemon_stop(&stage.daemon);
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    client_expect_match(&stage.client, "HELD [0-9]+", "LOCK a 60s");
    client_expect_match(&stage.client, "OK [0-9a-f]{40} [0-9]+ [0-9]+", "EXTEND a %s 60s",
                        grant.token);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

TEST(a_killed_daemon_starts_again_on_its_socket)
{
    struct stage stage;
    stage_open(&stage, __func__, &three);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_close(&stage.client);
    process_kill(stage.daemon.pid);
    ck_assert(sandbox_exists(stage.daemon.socket));
    daemon_start(&stage.daemon, 0);
    daemon_wait_up(&stage.daemon, 3);
    daemon_connect(&stage.daemon, &stage.client);
    client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    stage_close(&stage);
}

TEST(the_daemon_starts_before_its_masters)
{
    struct stage stage;
    stage_open_masters(&stage, __func__, &(struct stage_plan){.masters = 3});
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3,
                   &(struct daemon_plan){.locks = ", max_ttl: 1s"});
    for (unsigned i = 0; i < 3; i++)
        master_kill(&stage.masters[i]);
    daemon_start(&stage.daemon, 0);
    daemon_wait_listening(&stage.daemon);
    daemon_connect(&stage.daemon, &stage.client);
    client_expect_match(&stage.client, "NOQUORUM 0/3 need=2 .*", "LOCK a 1s");
    for (unsigned i = 0; i < 3; i++)
        master_restart(&stage.masters[i]);
    stage_wait_nodes(&stage, "vote=yes", 3);
    client_lock(&stage.client, "a", "1s");
    stage_close(&stage);
}

/* --- the log --- */

/* The shipped systemd unit does not restart a daemon that exits with this status, because an
 * invalid configuration does not become valid by itself. It does restart the daemon after other
 * errors, such as an address in use, which can become free. */
TEST(an_invalid_configuration_has_its_own_exit_status)
{
    enum { WRONG_CONFIGURATION = 78 };
    struct stage stage;
    stage_open_masters(&stage, __func__, &three);
    daemon_prepare(&stage.daemon, &stage.sandbox, stage.masters, 3, &three.daemon);
    ck_assert_int_eq(daemon_run(&stage.daemon, (const char *[]){"-t", NULL}), 0);
    sandbox_write(stage.daemon.config, "nonsense: 1\n");
    ck_assert_int_eq(daemon_refuses(&stage.daemon), WRONG_CONFIGURATION);
    ck_assert_int_eq(daemon_run(&stage.daemon, (const char *[]){"-t", NULL}), WRONG_CONFIGURATION);
    unlink(stage.daemon.config);
    ck_assert_int_eq(daemon_refuses(&stage.daemon), WRONG_CONFIGURATION);
    stage_close_masters(&stage);
}

TEST(no_token_is_in_the_log)
{
    struct stage stage;
    stage_open(&stage, __func__, &slow_requests);
    struct grant grant = client_lock(&stage.client, "a", "60s");
    client_expect_match(&stage.client, "OK .*", "EXTEND a %s 60s", grant.token);
    client_expect_match(&stage.client, "ERR .*", "UNLOCK a %s0", grant.token);
    client_expect_match(&stage.client, "ERR .*", "%s", grant.token);
    stage_stop_masters(&stage, 1, 2);
    client_expect_match(&stage.client, "NOQUORUM .*", "UNLOCK a %s", grant.token);
    stage_continue_masters(&stage, 1, 2);
    stage_wait_no_keys(&stage);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, grant.token), 0);
    stage_close(&stage);
}

/* Fails unless the line is one JSON object with the fields that every event has. JSON is a subset
 * of YAML, so libyaml can parse it, as a mapping. */
static void check_json(const char *line)
{
    yaml_parser_t parser;
    yaml_document_t document;
    ck_assert_msg(line[0] == '{' && line[strlen(line) - 1] == '}', "not a JSON object: %s", line);
    ck_assert_int_eq(strncmp(line, "{\"time\":\"", 9), 0);
    ck_assert_ptr_nonnull(strstr(line, "\",\"level\":\""));
    ck_assert_ptr_nonnull(strstr(line, "\",\"event\":\""));
    ck_assert_int_eq(yaml_parser_initialize(&parser), 1);
    yaml_parser_set_input_string(&parser, (const unsigned char *)line, strlen(line));
    ck_assert_msg(yaml_parser_load(&parser, &document) == 1, "cannot be parsed: %s", line);
    const yaml_node_t *root = yaml_document_get_root_node(&document);
    ck_assert_ptr_nonnull(root);
    ck_assert_int_eq(root->type, YAML_MAPPING_NODE);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
}

TEST(the_json_log_has_one_object_per_line)
{
    const struct stage_plan plan = {.masters = 3,
                                    .daemon = {.yaml = "log: {level: debug, format: json}\n"}};
    struct stage stage;
    char *rest = NULL;
    unsigned lines = 0;
    stage_open(&stage, __func__, &plan);
    client_expect(&stage.client, "OK", "NAME some-name");
    master_kill(&stage.masters[2]);
    stage_wait_nodes(&stage, "reason=refused", 1);
    daemon_stop(&stage.daemon);
    char *log = sandbox_read(stage.daemon.log);
    for (char *line = strtok_r(log, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        check_json(line);
        lines++;
    }
    ck_assert_uint_ge(lines, 3);
    free(log);
    stage_close(&stage);
}

TEST(the_log_level_suppresses_lower_levels)
{
    const struct stage_plan plan = {.masters = 3, .daemon = {.yaml = "log: {level: warning}\n"}};
    struct stage stage;
    stage_open(&stage, __func__, &plan);
    master_kill(&stage.masters[2]);
    daemon_wait_log(&stage.daemon, " warning node_down ", "node=c");
    daemon_stop(&stage.daemon);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " info "), 0);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " debug "), 0);
    stage_close(&stage);
}

TEST(a_lost_master_is_logged_when_its_state_changes_not_per_request)
{
    const struct stage_plan plan = {.masters = 3, .daemon = {.yaml = "log: {level: info}\n"}};
    struct stage stage;
    stage_open(&stage, __func__, &plan);
    master_kill(&stage.masters[2]);
    stage_wait_nodes(&stage, "reason=refused", 1);
    unsigned ups = daemon_count_log(&stage.daemon, " node_up node=c");
    for (unsigned i = 0; i < 50; i++) {
        struct grant grant = client_lock(&stage.client, "a", "10s");
        client_expect(&stage.client, "OK", "UNLOCK a %s", grant.token);
    }
    /* One line for the loss, and one for the reason why the daemon cannot reconnect. */
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " node_down node=c "), 2);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " node_down node=c reason=refused "), 1);
    master_restart(&stage.masters[2]);
    stage_wait_nodes(&stage, "state=up", 3);
    ck_assert_uint_eq(daemon_count_log(&stage.daemon, " node_up node=c"), ups + 1);
    stage_close(&stage);
}
