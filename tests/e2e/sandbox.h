/*
 * A temporary folder for each test, below $E2E_FOLDER (which needs a short name) or /tmp.
 *
 * A test that passes removes its folder. A folder that is left when its test case ends belongs to a
 * test that failed, crashed or timed out: its logs are printed, then it is removed. Check ends a
 * failed test at once, so the test itself cannot print its logs.
 */
#ifndef TESTS_E2E_SANDBOX_H
#define TESTS_E2E_SANDBOX_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* Short, since the path of a unix socket has at most 107 bytes. */
enum { SANDBOX_PATH = 48, SANDBOX_FILE = 96 };

struct sandbox {
    char dir[SANDBOX_PATH];
};

void sandbox_open(struct sandbox *sandbox, const char *test);
void sandbox_close(struct sandbox *sandbox);

/* Formats DIR/name into path (SANDBOX_FILE bytes) and returns it. */
char *sandbox_path(const struct sandbox *sandbox, const char *name, char *path);

void sandbox_write(const char *path, const char *text);

/* Returns the whole file, to be freed; "" if there is none. */
char *sandbox_read(const char *path);

bool sandbox_exists(const char *path);

#endif
