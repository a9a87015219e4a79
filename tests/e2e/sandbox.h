/*
 * A folder of its own for each test, and what is left in it. It is in $E2E_FOLDER, which has a
 * short name, or /tmp.
 *
 * A test that passes removes its folder itself. What is still there when its case is over belongs
 * to a test that failed, crashed or ran into its time limit: then the logs in it are printed, and
 * it is removed too. Check ends a failed test on the spot, so nobody else could do that.
 */
#ifndef TESTS_E2E_SANDBOX_H
#define TESTS_E2E_SANDBOX_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* Short: paths of unix sockets are below it. */
enum { SANDBOX_PATH = 48, SANDBOX_FILE = 96 };

struct sandbox {
    char dir[SANDBOX_PATH];
};

/* A case whose tests have sandboxes, and time enough. */
TCase *sandbox_case(const char *name);

void sandbox_open(struct sandbox *sandbox, const char *test);
void sandbox_close(struct sandbox *sandbox);

/* DIR/name, into path (SANDBOX_FILE bytes), which is returned. */
char *sandbox_path(const struct sandbox *sandbox, const char *name, char *path);

void sandbox_write(const char *path, const char *text);

/* The whole file, to be freed; empty if it is not there. */
char *sandbox_read(const char *path);

bool sandbox_exists(const char *path);

#endif
