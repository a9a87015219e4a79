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

struct secure {
    int fd;
    SSL_CTX *context;
    SSL *ssl;
    char line[SECURE_LINE];
};

/* The certificates of the client: names of files in the sandbox. */
struct secure_plan {
    const char *ca;     /* trusted CA; NULL: does not verify */
    const char *own;    /* own certificate; NULL: none */
    const char *host;   /* required host name; NULL: any */
    int version;        /* TLS1_2_VERSION and the like; 0: the highest */
    bool small_buffers; /* small buffers: less than 70 KB fit unread */
};

/* Connects to a port of 127.0.0.1 and completes the handshake. False if it fails; the connection is
 * then closed. */
bool secure_try(struct secure *secure, const struct sandbox *sandbox, int port,
                const struct secure_plan *plan);
void secure_connect(struct secure *secure, const struct sandbox *sandbox, int port,
                    const struct secure_plan *plan);

/* Connects without the handshake, which SSL_do_handshake() does. */
void secure_open(struct secure *secure, const struct sandbox *sandbox, int port,
                 const struct secure_plan *plan);

void secure_send(struct secure *secure, const char *text);

/* Returns the next line without its LF. */
const char *secure_read(struct secure *secure);
const char *secure_ask(struct secure *secure, const char *text);

/* True if the daemon ends the session with close_notify, before another line. */
bool secure_ends_well(struct secure *secure);

/* Sends close_notify; the client can still read. */
void secure_half_close(struct secure *secure);

/* Ends the connection: with close_notify, with a FIN only, or with a reset. */
void secure_close(struct secure *secure);
void secure_cut(struct secure *secure);
void secure_reset(struct secure *secure);

#endif
