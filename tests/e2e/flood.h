/*
 * A hostile TLS client: it sends records that carry no request, as fast as the daemon takes them.
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
    FLOOD_CLIENT_HELLOS, /* TLS 1.2: renegotiation, asked for again and again */
    FLOOD_EMPTY,         /* TLS 1.2: as many empty records in a row as OpenSSL allows */
    FLOOD_FRAGMENTS,     /* no handshake: a ClientHello, one byte per record */
    FLOOD_KEY_UPDATES,   /* TLS 1.3: prepared in advance, so their number is limited */
};

struct flood {
    enum flood_kind kind;
    int fd;
    char *bytes; /* what is sent */
    size_t len;
    size_t size;
    pthread_t thread;
    atomic_ulong records; /* of an endless flood: how many were sent */
    atomic_bool over;     /* all was sent, or the daemon closed the connection */
    atomic_bool stop;
    struct secure *client; /* owned; NULL: the connection is the caller's */
    struct seal *seal;     /* owned; TLS 1.2, which has no end; otherwise NULL */
};

/* Connect to the TLS port of the stage's daemon and begin. */
void flood_start(struct flood *flood, const struct stage *stage, enum flood_kind kind);

/* The same over a connection of the caller, whose handshake is done: key updates. */
void flood_start_over(struct flood *flood, SSL *ssl, int fd);

/* Stop it and close its connection, unless that is the caller's. */
void flood_stop(struct flood *flood);

#endif
