/*
 * A stage (tests/e2e/stage.h) whose daemon has a TLS address, and the certificates for all who come
 * there.
 */
#ifndef TESTS_E2E_TLS_STAGE_H
#define TESTS_E2E_TLS_STAGE_H

#include "tests/e2e/secure.h"
#include "tests/e2e/stage.h"

/* Three masters and a daemon: with its certificate, and nobody has to show one; or with the one of
 * this name, and more of its fields, in YAML, behind a client_ca (NULL: neither). */
void tls_stage_open(struct stage *stage, const char *test);
void tls_stage_open_with(struct stage *stage, const char *test, const char *certificate,
                         const char *ca_and_more);

/* Without a certificate of its own, and it believes our CA. */
extern const struct secure_plan tls_anybody;
void tls_stage_connect(struct secure *client, const struct stage *stage);

/* The line has to begin like this. */
void tls_expect(const char *line, const char *begin);

#endif
