/*
 * A hostile TLS client: it sends records that contain no request, as fast as the daemon reads them.
 */
#ifndef TESTS_E2E_FLOOD_H
#define TESTS_E2E_FLOOD_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/e2e/stage.h"

enum flood_kind {
    FLOOD_CLIENT_HELLOS, /* TLS 1.2: repeated requests for renegotiation */
    FLOOD_EMPTY,         /* TLS 1.2: empty records, nearly as many in a row as OpenSSL allows */
    FLOOD_FRAGMENTS,     /* an incomplete ClientHello, one byte per record */
    FLOOD_KEY_UPDATES,   /* TLS 1.3: a limited number of updates, prepared in advance */
};

struct flood {
    enum flood_kind kind;
    int fd;
    char *bytes; /* output buffer, owned */
    size_t len;
    size_t size;
    pthread_t thread;
    atomic_ulong records; /* sent so far by an endless flood */
    atomic_bool over;     /* everything sent, or connection closed by the daemon */
    atomic_bool stop;
    struct tls_client *client; /* owned; NULL: the connection is the caller's */
    struct seal *seal;         /* owned; makes the records of an endless flood; NULL: not endless */
};

/* Connects to the TLS port of the stage's daemon and starts the flood. */
void flood_start(struct flood *flood, const struct stage *stage, enum flood_kind kind);

/* Starts a flood of key updates over a connection of the caller, whose handshake is done. */
void flood_start_over(struct flood *flood, SSL *ssl, int fd);

/* Stops the flood and closes its connection, unless the caller owns the connection. */
void flood_stop(struct flood *flood);

#endif
