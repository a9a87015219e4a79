/*
 * A client of the daemon that speaks TLS, by OpenSSL over a blocking socket.
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

/* Who it is and whom it believes: names of certificates in the sandbox. */
struct secure_plan {
    const char *ca;   /* NULL: it believes anybody */
    const char *own;  /* NULL: none */
    const char *host; /* that the daemon has to be; NULL: anybody */
    int version;      /* TLS1_2_VERSION; 0: the best there is */
    bool narrow;      /* while it does not read, the kernels take less than 70 KB for it */
};

/* Connect to a port of 127.0.0.1 and shake hands. False if that failed; then it is closed. */
bool secure_try(struct secure *secure, const struct sandbox *sandbox, int port,
                const struct secure_plan *plan);
void secure_connect(struct secure *secure, const struct sandbox *sandbox, int port,
                    const struct secure_plan *plan);

/* The same without the handshake, which SSL_do_handshake() does. */
void secure_open(struct secure *secure, const struct sandbox *sandbox, int port,
                 const struct secure_plan *plan);

void secure_send(struct secure *secure, const char *text);

/* The next line, without its LF. */
const char *secure_read(struct secure *secure);
const char *secure_ask(struct secure *secure, const char *text);

/* Does it end in order (close_notify), before another line? */
bool secure_ends_well(struct secure *secure);

/* close_notify, and go on reading. */
void secure_half_close(struct secure *secure);

/* How to end: in order, without a word, by a reset. */
void secure_close(struct secure *secure);
void secure_cut(struct secure *secure);
void secure_reset(struct secure *secure);

#endif
