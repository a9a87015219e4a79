/*
 * Running the command redlock, and shell scripts with it, for the tests of the command.
 */
#ifndef TESTS_E2E_REDLOCK_FIXTURE_H
#define TESTS_E2E_REDLOCK_FIXTURE_H

#include <stdbool.h>

#include "tests/e2e/stage.h"

enum { WORDS_MAX = 16, LINE_SIZE = 1024 };

/* Set REDLOCK_URL, and the other variables of the environment that commands read. */
void redlock_use_daemon(const struct daemon *daemon);

/* Open a stage and use its daemon. */
void redlock_open_stage(struct stage *stage, const char *test);

/* A command line, split at spaces. */
struct words {
    char text[LINE_SIZE];
    const char *argv[WORDS_MAX + 1];
};

void redlock_split(struct words *words, const char *text);

/* Does the whole text match the pattern? */
bool redlock_matches(const char *text, const char *pattern);

/* Run redlock, which must exit with this status. Its whole standard output and standard error must
 * match these patterns. */
void redlock_expect(const struct stage *stage, const char *text, int status, const char *output,
                    const char *errors);

/* Run a shell script, which finds the program as $REDLOCK. */
void redlock_expect_script(const struct stage *stage, const char *script, int status,
                           const char *output, const char *errors);

#endif
