/*
 * The command line of the daemon: flags, and checking a configuration.
 */
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/command.h"
#include "tests/e2e/daemon.h"
#include "tests/runner.h"

static const char valid_config[] = "cluster: main\n"
                                   "listen:\n"
                                   "  - tcp://127.0.0.1:7335\n"
                                   "nodes:\n"
                                   "  - {name: a, url: \"redis://127.0.0.1:7001\"}\n"
                                   "  - {name: b, url: \"redis://127.0.0.1:7002\"}\n"
                                   "  - {name: c, url: \"redis://127.0.0.1:7003\"}\n";

/* Five mistakes of different kinds. */
static const char invalid_config[] = "cluster: main\n"
                                     "listen:\n"
                                     "  - tcp://127.0.0.1\n"
                                     "nodes:\n"
                                     "  - {name: a, url: \"redis://127.0.0.1:7001\"}\n"
                                     "  - {name: b, url: \"redis://127.0.0.1:7002\"}\n"
                                     "  - {name: c, url: \"redis://127.0.0.1:7003\"}\n"
                                     "locks:\n"
                                     "  max_tll: 60s\n"
                                     "  min_validity: 60\n"
                                     "limits: {clients: -1}\n"
                                     "log: {level: loud}\n";

/* The exit status for a configuration that is wrong or cannot be read: EX_CONFIG. */
enum { WRONG_CONFIGURATION = 78 };

/* Runs the program with up to four arguments. */
static void run(struct command *command, const struct sandbox *sandbox, const char *first,
                const char *second, const char *third, const char *fourth)
{
    const char *argv[] = {daemon_program(), first, second, third, fourth, NULL};
    command_run(command, sandbox, argv);
}

static void check_status(const struct command *command, int status)
{
    ck_assert_msg(command->status == status, "status %d, not %d\noutput: %s\nerrors: %s",
                  command->status, status, command->output, command->errors);
}

/* --- flags --- */

TEST(help_lists_the_flags)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    run(&command, &sandbox, "-h", NULL, NULL, NULL);
    check_status(&command, 0);
    static const char *const flags[] = {"usage:", "-c ", "-t", "--dev", "--bootstrap", "-V", "-h"};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        ck_assert_ptr_nonnull(strstr(command.output, flags[i]));
    ck_assert_str_eq(command.errors, "");
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(version_is_printed)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    run(&command, &sandbox, "-V", NULL, NULL, NULL);
    check_status(&command, 0);
    ck_assert_str_eq(command.output, "redlockd " REDLOCKD_VERSION "\n");
    ck_assert_str_eq(command.errors, "");
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(a_failed_write_to_stdout_is_an_error)
{
    static const char *const flags[] = {"-V", "-h"};
    struct sandbox sandbox;
    struct command command;
    char line[512];
    sandbox_open(&sandbox, __func__);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        snprintf(line, sizeof(line), "exec %s %s >/dev/full", daemon_program(), flags[i]);
        command_run(&command, &sandbox, (const char *[]){"/bin/sh", "-c", line, NULL});
        check_status(&command, 1);
        ck_assert_ptr_nonnull(strstr(command.errors, "standard output: No space left on device"));
        command_free(&command);
    }
    sandbox_close(&sandbox);
}

static void refuse_usage(const char *test, const char *first, const char *second)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, test);
    run(&command, &sandbox, first, second, NULL, NULL);
    check_status(&command, 2);
    ck_assert_ptr_nonnull(strstr(command.errors, "redlockd -h"));
    ck_assert_str_eq(command.output, "");
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(unknown_flag_is_refused_with_advice)
{
    refuse_usage(__func__, "-x", NULL);
    refuse_usage(__func__, "--nonsense", NULL);
}

TEST(an_extra_argument_is_refused_with_advice)
{
    refuse_usage(__func__, "start", NULL);
}

TEST(flag_without_its_file_is_refused_with_advice)
{
    refuse_usage(__func__, "-c", NULL);
}

/* --- the configuration --- */

static void check_config(struct command *command, const struct sandbox *sandbox, const char *text,
                         char *path)
{
    sandbox_path(sandbox, "test.yaml", path);
    sandbox_write(path, text);
    run(command, sandbox, "-t", "-c", path, NULL);
}

TEST(a_valid_configuration_prints_nothing)
{
    struct sandbox sandbox;
    struct command command;
    char path[SANDBOX_FILE];
    sandbox_open(&sandbox, __func__);
    check_config(&command, &sandbox, valid_config, path);
    check_status(&command, 0);
    ck_assert_str_eq(command.output, "");
    ck_assert_str_eq(command.errors, "");
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(flags_that_exclude_each_other_are_refused)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    run(&command, &sandbox, "--bootstrap", "-t", NULL, NULL);
    check_status(&command, 2);
    ck_assert_ptr_nonnull(strstr(command.errors, "use only one of"));
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(a_malformed_set_id_is_refused)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    run(&command, &sandbox, "--reset-set", "0123456789abcdex", NULL, NULL);
    check_status(&command, 2);
    ck_assert_ptr_nonnull(strstr(
        command.errors, "--reset-set requires the id of the old set, 16 lowercase hex digits"));
    command_free(&command);
    sandbox_close(&sandbox);
}

/* Counts lines "FILE:line:col: message"; every line must have this form. */
static unsigned count_positions(char *errors, const char *path)
{
    char pattern[SANDBOX_FILE + 64];
    char *rest = NULL;
    regex_t regex;
    unsigned count = 0;
    snprintf(pattern, sizeof(pattern), "^%s:[0-9]+:[0-9]+: .+$", path);
    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    for (char *line = strtok_r(errors, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_msg(regexec(&regex, line, 0, NULL, 0) == 0, "no position in: %s", line);
        count++;
    }
    regfree(&regex);
    return count;
}

TEST(every_mistake_is_reported_with_its_position_in_one_pass)
{
    struct sandbox sandbox;
    struct command command;
    char path[SANDBOX_FILE];
    sandbox_open(&sandbox, __func__);
    check_config(&command, &sandbox, invalid_config, path);
    check_status(&command, WRONG_CONFIGURATION);
    static const char *const expected[] = {
        ":3:", ":9:", "max_ttl?", ":10:", "min_validity", ":11:", ":12:", "loud"};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ck_assert_msg(strstr(command.errors, expected[i]) != NULL, "no %s in: %s", expected[i],
                      command.errors);
    ck_assert_uint_eq(count_positions(command.errors, path), 5);
    ck_assert_str_eq(command.output, "");
    command_free(&command);
    sandbox_close(&sandbox);
}

static void refuse_config(const char *test, const char *text, const char *expected)
{
    struct sandbox sandbox;
    struct command command;
    char path[SANDBOX_FILE];
    sandbox_open(&sandbox, test);
    check_config(&command, &sandbox, text, path);
    check_status(&command, WRONG_CONFIGURATION);
    ck_assert_msg(strstr(command.errors, expected) != NULL, "no %s in: %s", expected,
                  command.errors);
    ck_assert_uint_ge(count_positions(command.errors, path), 1);
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(broken_yaml_is_reported_with_its_position)
{
    refuse_config(__func__, "cluster: main\nlisten: [\n", ":");
    refuse_config(__func__, "cluster: \"main\n", ":");
    refuse_config(__func__, "cluster: main\n\tnodes: 1\n", ":");
}

TEST(duplicate_key_is_refused)
{
    refuse_config(__func__, "cluster: main\ncluster: other\n", "cluster");
}

TEST(a_public_listener_is_refused_without_insecure)
{
    struct sandbox sandbox;
    struct command command;
    char path[SANDBOX_FILE];
    char text[sizeof(valid_config) + 64];
    const char *nodes = strstr(valid_config, "nodes:");
    snprintf(text, sizeof(text), "listen: [\"tcp://0.0.0.0:7335\"]\n%s", nodes);
    refuse_config(__func__, text, "insecure");
    snprintf(text, sizeof(text), "listen: [\"tcp://0.0.0.0:7335\"]\ninsecure: true\n%s", nodes);
    sandbox_open(&sandbox, __func__);
    check_config(&command, &sandbox, text, path);
    check_status(&command, 0);
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(missing_file_is_named)
{
    struct sandbox sandbox;
    struct command command;
    char path[SANDBOX_FILE];
    sandbox_open(&sandbox, __func__);
    sandbox_path(&sandbox, "missing.yaml", path);
    run(&command, &sandbox, "-c", path, NULL, NULL);
    check_status(&command, WRONG_CONFIGURATION);
    ck_assert_ptr_nonnull(strstr(command.errors, path));
    command_free(&command);
    run(&command, &sandbox, "-t", "-c", path, NULL);
    check_status(&command, WRONG_CONFIGURATION);
    ck_assert_ptr_nonnull(strstr(command.errors, path));
    command_free(&command);
    sandbox_close(&sandbox);
}

/* The file is missing where redlockd is not installed. */
TEST(without_a_configuration_the_alternatives_are_named)
{
    struct sandbox sandbox;
    struct command command;
    if (access("/etc/redlockd/redlockd.yaml", F_OK) == 0)
        return;
    sandbox_open(&sandbox, __func__);
    run(&command, &sandbox, NULL, NULL, NULL, NULL);
    check_status(&command, WRONG_CONFIGURATION);
    ck_assert_str_eq(command.errors,
                     "/etc/redlockd/redlockd.yaml: No such file or directory; -c FILE names "
                     "another file, and redlockd --dev needs none\n");
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(a_directory_is_refused_as_configuration)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    run(&command, &sandbox, "-t", "-c", sandbox.dir, NULL);
    check_status(&command, WRONG_CONFIGURATION);
    ck_assert_ptr_nonnull(strstr(command.errors, sandbox.dir));
    command_free(&command);
    sandbox_close(&sandbox);
}

TEST(the_example_configuration_is_valid)
{
    struct sandbox sandbox;
    struct command command;
    sandbox_open(&sandbox, __func__);
    run(&command, &sandbox, "-t", "-c", "redlockd.yaml.example", NULL);
    check_status(&command, 0);
    ck_assert_str_eq(command.errors, "");
    command_free(&command);
    sandbox_close(&sandbox);
}
