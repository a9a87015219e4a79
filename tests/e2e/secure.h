/*
 * A TLS client of the daemon: OpenSSL over a blocking socket.
 */
#ifndef TESTS_E2E_SECURE_H
#define TESTS_E2E_SECURE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/e2e/sandbox.h"

enum { SECURE_LINE = 4096 };

struct tls_client {
    int fd;
    SSL_CTX *context;
    SSL *ssl;
    char line[SECURE_LINE];
};

/* What the client presents and requires. `ca` and `own` name files in the sandbox, without the
 * endings .crt and .key. */
struct tls_client_plan {
    const char *ca;   /* trusted CA; NULL: does not verify */
    const char *own;  /* own certificate; NULL: none */
    const char *host; /* required host name; NULL: any */
    int version;      /* the highest to offer, such as TLS1_2_VERSION; 0: any */
    /* While the client does not read, the daemon can send it less than 70 KB. */
    bool small_buffers;
};

/* Connects to a port of 127.0.0.1 and completes the handshake. If the handshake fails, closes the
 * connection and returns false. With TLS 1.3 the handshake succeeds even if the daemon then refuses
 * the client's certificate; only the next read fails. */
bool tls_client_try(struct tls_client *secure, const struct sandbox *sandbox, int port,
                    const struct tls_client_plan *plan);
void tls_client_connect(struct tls_client *secure, const struct sandbox *sandbox, int port,
                        const struct tls_client_plan *plan);

/* Connects without the handshake, which SSL_do_handshake() does. */
void tls_client_open(struct tls_client *secure, const struct sandbox *sandbox, int port,
                     const struct tls_client_plan *plan);

void tls_client_send(struct tls_client *secure, const char *text);

/* Returns the next line without its LF. */
const char *tls_client_read(struct tls_client *secure);
const char *tls_client_ask(struct tls_client *secure, const char *text);

/* True if the daemon ends the session with close_notify. Fails if it sends more data first. */
bool tls_client_ends_well(struct tls_client *secure);

/* Sends close_notify; the client can still read. */
void tls_client_half_close(struct tls_client *secure);

/* Ends the connection: with close_notify, with a FIN only, or with a reset. */
void tls_client_close(struct tls_client *secure);
void tls_client_cut(struct tls_client *secure);
void tls_client_reset(struct tls_client *secure);

#endif
