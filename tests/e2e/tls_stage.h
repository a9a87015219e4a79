/*
 * A stage (tests/e2e/stage.h) whose daemon has a TLS listener, and certificates for its clients.
 */
#ifndef TESTS_E2E_TLS_STAGE_H
#define TESTS_E2E_TLS_STAGE_H

#include "tests/e2e/secure.h"
#include "tests/e2e/stage.h"

/* Opens three masters and a daemon. tls_stage_open() uses the certificate "daemon" and requires
 * none from clients. tls_stage_open_with() uses the named certificate. If ca_and_more is not
 * NULL, the listener has a client_ca, followed by the YAML fields in ca_and_more. */
void tls_stage_open(struct stage *stage, const char *test);
void tls_stage_open_with(struct stage *stage, const char *test, const char *certificate,
                         const char *ca_and_more);

/* A client that has no certificate and verifies the daemon against the CA of the tests.
 * tls_stage_connect() connects such a client. */
extern const struct tls_client_plan tls_no_certificate;
void tls_stage_connect(struct tls_client *client, const struct stage *stage);

/* Fails unless the line begins with `begin`. */
void tls_expect(const char *line, const char *begin);

#endif
