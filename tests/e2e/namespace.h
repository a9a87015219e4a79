/*
 * Kernel namespaces, so that a test can have a private network or private mounts.
 */
#ifndef TESTS_E2E_NAMESPACE_H
#define TESTS_E2E_NAMESPACE_H

#include <stdbool.h>

/* Gives this process the right to create namespaces: without root, it becomes root in a user
 * namespace. False if the kernel refuses. */
bool namespace_become_root(void);

#endif
