#include "tests/e2e/redlock_fixture.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/command.h"
#include "tests/e2e/wrapper.h"
#include "tests/runner.h"

void redlock_use_daemon(const struct daemon *daemon)
{
    char url[SANDBOX_FILE + 8];
    snprintf(url, sizeof(url), "unix:%s", daemon->socket);
    setenv("REDLOCK_URL", url, 1);
    setenv("REDLOCK", wrapper_program(), 1);
    setenv("TERM", "xterm", 1);
    unsetenv("REDLOCK_TOKEN");
    unsetenv("NO_COLOR");
}

void redlock_open_stage(struct stage *stage, const char *test)
{
    stage_open(stage, test, &(struct stage_plan){.masters = 3, .over_unix = true});
    redlock_use_daemon(&stage->daemon);
}

void redlock_split(struct words *words, const char *text)
{
    unsigned count = 0;
    char *rest = NULL;
    *words = (struct words){.argv = {wrapper_program()}};
    snprintf(words->text, sizeof(words->text), "%s", text);
    for (char *word = strtok_r(words->text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        ck_assert_uint_lt(count + 1, WORDS_MAX);
        words->argv[++count] = word;
    }
}

static void check_exit(const struct command *command, const char *text, int status)
{
    ck_assert_msg(command->status == status,
                  "redlock %s: status %d, not %d\noutput: %s\nerrors: %s", text, command->status,
                  status, command->output, command->errors);
}

bool redlock_matches(const char *text, const char *pattern)
{
    regex_t regex;
    char whole[LINE_SIZE];
    snprintf(whole, sizeof(whole), "^(%s)$", pattern);
    ck_assert_int_eq(regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB), 0);
    bool does = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return does;
}

void redlock_expect(const struct stage *stage, const char *text, int status, const char *output,
                    const char *errors)
{
    struct command command;
    struct words words;
    redlock_split(&words, text);
    command_run(&command, &stage->sandbox, words.argv);
    check_exit(&command, text, status);
    ck_assert_msg(redlock_matches(command.output, output), "redlock %s printed: %s", text,
                  command.output);
    ck_assert_msg(redlock_matches(command.errors, errors), "redlock %s wrote to stderr: %s", text,
                  command.errors);
    command_free(&command);
}

void redlock_expect_script(const struct stage *stage, const char *script, int status,
                           const char *output, const char *errors)
{
    struct command command;
    const char *argv[] = {"sh", "-c", script, NULL};
    command_run(&command, &stage->sandbox, argv);
    check_exit(&command, script, status);
    ck_assert_msg(redlock_matches(command.output, output), "%s printed: %s", script,
                  command.output);
    ck_assert_msg(redlock_matches(command.errors, errors), "%s wrote to stderr: %s", script,
                  command.errors);
    command_free(&command);
}
