/*
 * Namespaces of the kernel, so that a test has a network or files of its own.
 */
#ifndef TESTS_E2E_NAMESPACE_H
#define TESTS_E2E_NAMESPACE_H

#include <stdbool.h>

/* This process may make others then: who is not root becomes it in a user namespace. */
bool namespace_become_root(void);

#endif
